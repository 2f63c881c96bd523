"""Control API calls for embedded signup: who uses the window, the apps that offer it, and the end of an access."""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from waypost.base.http.hosts import is_web_url
from waypost.base.object_ids import describe_other_kind, make_id
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlOperations, find, view_of
from waypost.simulator.apis.field_types import Id, Name, Position, accepts
from waypost.simulator.onboarding.grants import open_partner_webhooks, remove_access
from waypost.simulator.onboarding.model import (
    ADDRESSES,
    BUSINESS_APP_NUMBERS,
    CONFIGURATIONS,
    PARTNERS,
    PERSONS,
    PORTFOLIOS,
    SIGNUP_CODES,
    AppAddresses,
    AppPartner,
    BusinessAppNumber,
    LoginConfiguration,
    OnboardingPerson,
    Portfolio,
)
from waypost.simulator.onboarding.session import LongText, Text
from waypost.simulator.state.accounts import ACCOUNTS, Account, AppAccess
from waypost.simulator.state.control_parameters import PathAccount, PathApp
from waypost.simulator.state.embedded_signup import PRODUCTS, WINDOW_ERRORS, ScreenName
from waypost.simulator.state.embedded_signup import list_choices as list_window_choices
from waypost.simulator.state.records import OBO
from waypost.simulator.state.simulator_state import SimulatorState, Transaction

operation = ControlOperations()

_DAYS: Final = "60, or null: the tokens do not expire"
_PRODUCT: Final = accepts(", ".join(PRODUCTS), f"^({'|'.join(PRODUCTS)})$")

Domain = Annotated[str, accepts("a host name, such as shop.example", "^[a-z0-9.-]{1,253}$")]
WindowErrorCode = Annotated[int, accepts("0: none, or an error code of the window", ge=0, le=9_999_999)]


class SignupCodeView(Struct, frozen=True):
    """A code, and whether it can still be exchanged."""

    code: str
    app_id: str
    session_id: str
    business_id: str
    waba_ids: tuple[str, ...]
    scopes: tuple[str, ...]
    expires_ms: int
    used_ms: int | None
    is_good: bool


class AccessView(Struct, frozen=True):
    """An account with its owner, and the apps that have access to it by embedded signup."""

    waba_id: str
    business_id: str
    is_on_behalf_of: bool
    apps: list[AppAccess]


@operation(
    "GET",
    "/control/onboarding/choices",
    versions=dict[str, dict[str, Any]],
    features=dict[str, dict[str, Any]],
    products=dict[str, dict[str, Any]],
    screens=dict[str, dict[str, Any]],
    errors=dict[str, str],
    breaks=dict[str, str],
)
async def show_choices() -> dict[str, Any]:
    """Return versions, features, products, screens and errors of the window, and what can go wrong with a signup."""
    return list_window_choices()


@operation("GET", "/control/onboarding/people", people=list[OnboardingPerson])
async def list_people(state: SimulatorState) -> dict[str, Any]:
    """Return the people who can sign in."""
    return {"people": list(state.values(PERSONS).values())}


@operation("POST", "/control/onboarding/people")
async def save_person(
    state: SimulatorState, *, name: Name, person_id: Id | None = None, error_code: WindowErrorCode = 0
) -> OnboardingPerson:
    """Create a person, or change one; with an `error_code` the window shows this error when the person signs in."""
    _check_error_code(error_code, "sign_in")
    if person_id is not None:
        find(state.values(PERSONS), person_id, field="person_id", rule="is no person")
    person = OnboardingPerson(person_id or make_id(state.ids, "person"), name, error_code)
    await state.cached(PERSONS).save(person, person.person_id)
    return person


@operation("GET", "/control/onboarding/businesses", businesses=list[Portfolio])
async def list_businesses(state: SimulatorState) -> dict[str, Any]:
    """Return the business portfolios."""
    return {"businesses": list(state.values(PORTFOLIOS).values())}


@operation("POST", "/control/onboarding/businesses")
async def save_business(
    state: SimulatorState,
    *,
    name: Name | None = None,
    business_id: Id | None = None,
    person_ids: Annotated[tuple[Id, ...], Meta(max_length=100)] | None = None,
    is_verified: bool | None = None,
    email: Text | None = None,
    website: LongText | None = None,
    country: Text | None = None,
    error_code: WindowErrorCode | None = None,
) -> Portfolio:
    """Create a portfolio, or change one: absent members stay. An unverified one has the operator's lower limits."""
    _check_error_code(error_code or 0, "business")
    for person_id in person_ids or ():
        find(state.values(PERSONS), person_id, field="person_ids", rule="name no person")
    members = {
        "name": name,
        "person_ids": person_ids,
        "is_verified": is_verified,
        "email": email,
        "website": website,
        "country": country,
        "error_code": error_code,
    }
    given = {key: value for key, value in members.items() if value is not None}

    def write(transaction: Transaction) -> Portfolio:
        known = transaction.find(PORTFOLIOS, business_id) if business_id else None
        if business_id and known is None:
            raise _not_found(
                "business_id", business_id, "is no business portfolio", "GET /control/onboarding/businesses"
            )
        if known is None and (name is None or not person_ids):
            missing = "name" if name is None else "person_ids"
            raise ControlApiError(missing, "is missing", "name and person_ids of a new business")
        base = known or Portfolio(make_id(state.ids, "business"), name or "", person_ids or ())
        portfolio = replace(base, **given)
        transaction.save(PORTFOLIOS, portfolio, portfolio.business_id)
        return portfolio

    return await state.transact(write)


@operation("PUT", "/control/onboarding/business-app-numbers/{phone}")
async def put_business_app_number(
    state: SimulatorState, phone: str, *, name: Name, error_code: WindowErrorCode = 0
) -> BusinessAppNumber:
    """Let a business use a number in the app on a phone; with an `error_code` the window shows this error for it."""
    _check_error_code(error_code, "number")
    digits = phone.lstrip("+")
    if not (digits.isascii() and digits.isdigit() and 8 <= len(digits) <= 15 and digits[0] != "0"):
        raise ControlApiError("phone", "is not a phone number", "8 to 15 digits, the first not 0")
    if digits in state.accounts.numbers_by_digits:
        raise ControlApiError("phone", "is a number of an account", "a number that is not in use", status=409)
    number = BusinessAppNumber(digits, name, error_code)
    await state.cached(BUSINESS_APP_NUMBERS).save(number, digits)
    return number


@operation("PUT", "/control/onboarding/configurations/{config_id}")
async def put_configuration(
    state: SimulatorState,
    config_id: str,
    *,
    app_id: Id,
    products: Annotated[tuple[Annotated[str, _PRODUCT], ...], Meta(min_length=1, max_length=len(PRODUCTS))] = (
        "cloud_api",
    ),
    token_days: Annotated[Literal[60] | None, accepts(_DAYS)] = None,
) -> LoginConfiguration:
    """Create or change a login configuration of an app: the products of its window, and the lifetime of its tokens."""
    if not (config_id.isascii() and config_id.isdigit() and len(config_id) <= 32):  # a page's own, of any range
        raise ControlApiError("config_id", "is not an id", "1 to 32 digits")
    find(state.accounts.apps, app_id, field="app_id", rule="is no app")
    configuration = LoginConfiguration(config_id, app_id, tuple(dict.fromkeys(products)), token_days)
    await state.cached(CONFIGURATIONS).save(configuration, config_id)
    return configuration


@operation("PUT", "/control/onboarding/apps/{app_id}/addresses")
async def put_addresses(
    state: SimulatorState,
    app: PathApp,
    *,
    allowed_domains: Annotated[tuple[Domain, ...], Meta(max_length=100)] = (),
    redirect_uris: Annotated[tuple[LongText, ...], Meta(max_length=100)] = (),
) -> AppAddresses:
    """Set the allowed domains and valid OAuth redirect URIs of an app: the window refuses every other page.

    Until they are set, it refuses none. A page with the script must be on an allowed domain that a redirect URI has,
    too, by HTTPS unless it is on this machine; a dialog must name one of the redirect URIs exactly.
    """
    other = next((uri for uri in redirect_uris if not is_web_url(uri)), None)
    if other is not None:
        raise ControlApiError("redirect_uris", f"has {other[:80]!r}, which is no URL", "http and https URLs")
    addresses = AppAddresses(app.app_id, allowed_domains, redirect_uris)
    await state.cached(ADDRESSES).save(addresses, app.app_id)
    return addresses


@operation("PUT", "/control/onboarding/partners/{app_id}")
async def put_partner(
    state: SimulatorState, app: PathApp, *, is_verified: bool = False, has_credit_line: bool = False
) -> AppPartner:
    """Say what an app's business is at the operator: verified for more customers, a solution partner with credit."""
    app_id, ids = app.app_id, state.ids

    def write(transaction: Transaction) -> AppPartner:
        known = transaction.find(PARTNERS, app_id) or AppPartner(app_id)
        line = (known.credit_line_id or make_id(ids, "credit line")) if has_credit_line else ""
        credential = (known.credential_id or make_id(ids, "credit credential")) if has_credit_line else ""
        partner = AppPartner(app_id, is_verified, line, credential)
        transaction.save(PARTNERS, partner, app_id)
        return partner

    return await state.transact(write)


@operation("PUT", "/control/onboarding/accounts/{waba_id}")
async def put_owner(
    state: SimulatorState, account: PathAccount, *, business_id: Id, is_on_behalf_of: bool = False
) -> AccessView:
    """Give an account to a portfolio, so that its people can choose it; another business may have it on its behalf."""
    find(state.values(PORTFOLIOS), business_id, field="business_id", rule="is no business portfolio")

    def write(transaction: Transaction) -> Account:
        known = transaction.find(ACCOUNTS, account.waba_id) or account
        owned = replace(known, owner_business_id=business_id)
        transaction.save(ACCOUNTS, owned, account.waba_id)
        transaction.save_record(account.waba_id, OBO, {"is_on_behalf_of": True} if is_on_behalf_of else {})
        return owned

    return _access_view(state, await state.transact(write))


@operation("GET", "/control/onboarding/accounts/{waba_id}")
async def show_accesses(state: SimulatorState, account: PathAccount) -> AccessView:
    """Return an account's owner, and the apps that have access to it by embedded signup."""
    return _access_view(state, account)


@operation("DELETE", "/control/onboarding/accounts/{waba_id}/apps/{app_id}")
async def end_access(state: SimulatorState, account: PathAccount, app: PathApp) -> AccessView:
    """Remove a partner as the business does: its tokens and webhooks of the account end; it gets `PARTNER_REMOVED`."""
    access = state.accounts.accesses_of(account.waba_id).get(app.app_id)
    if access is None:
        known = ", ".join(state.accounts.accesses_of(account.waba_id)) or "none has"
        raise ControlApiError("app_id", "has no access to the account by embedded signup", known, status=409)
    await open_partner_webhooks(state, app.app_id)
    await state.transact(lambda transaction: remove_access(transaction, account, access))
    return _access_view(state, account)


@operation("GET", "/control/onboarding/codes", codes=list[SignupCodeView], next=int | None)
async def list_codes(
    state: SimulatorState, *, after: Position = 0, limit: Annotated[int, Meta(ge=1, le=2000)] = 1000
) -> dict[str, Any]:
    """Return the codes of finished signups, oldest first, and whether they can still be exchanged."""
    now_ms, codes = state.clock.now_ms(), list(state.values(SIGNUP_CODES).values())
    page = [
        view_of(SignupCodeView, code, is_good=code.used_ms is None and now_ms < code.expires_ms)
        for code in codes[after : after + limit]
    ]
    return {"codes": page, "next": after + limit if len(codes) > after + limit else None}


def _access_view(state: SimulatorState, account: Account) -> AccessView:
    current = state.accounts.by_id[account.waba_id]
    return AccessView(
        account.waba_id,
        current.owner_business_id,
        bool(state.record(account.waba_id, OBO)),
        list(state.accounts.accesses_of(account.waba_id).values()),
    )


def _check_error_code(error_code: int, screen: ScreenName) -> None:
    if error_code and (error_code not in WINDOW_ERRORS or screen not in WINDOW_ERRORS[error_code].screens):
        codes = ", ".join(str(code) for code, row in WINDOW_ERRORS.items() if screen in row.screens)
        raise ControlApiError("error_code", f"{error_code} is no error of the screen {screen}", f"0 or one of {codes}")


def _not_found(field: str, value: str, rule: str, source: str) -> ControlApiError:
    other = describe_other_kind(value, field)
    return ControlApiError(field, f"{rule}: {other}" if other else rule, f"one of {source}", status=404)
