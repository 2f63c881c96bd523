"""The screens of the window: for each a function whose result is the step that enters something on it.

Source: facts 14.3, 14.7, 14.8.
"""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from waypost.base.clock import DAY_MS
from waypost.base.http.hosts import is_web_url
from waypost.base.json_values import object_of, text_or_none
from waypost.base.object_ids import describe_other_kind, make_id
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.errors import GraphApiError
from waypost.simulator.numbers.names import check_display_name
from waypost.simulator.numbers.new_numbers import join_number, read_number
from waypost.simulator.numbers.sent_codes import CodeMethod, check_code, is_locked, send_code
from waypost.simulator.onboarding.model import (
    BUSINESS_APP_NUMBERS,
    PARTNERS,
    PERSONS,
    PORTFOLIOS,
    AppPartner,
    OnboardingPerson,
    find_access,
    is_in_use,
    owned_accounts,
)
from waypost.simulator.onboarding.preverified import offered_preverified
from waypost.simulator.onboarding.session import (
    MAX_CHARS,
    NewBusiness,
    OnboardingSession,
    Step,
    WindowErrorShown,
    next_screen,
)
from waypost.simulator.state.accounts import ACCOUNTS, NUMBERS, Number
from waypost.simulator.state.embedded_signup import (
    BUSINESS_APP,
    MAX_ACCOUNT_NAME_CHARS,
    MAX_ACCOUNTS,
    MAX_CUSTOMERS,
    MAX_NUMBERS,
    MAX_PORTFOLIOS,
    MAX_VIRTUAL_NUMBERS,
    ONLY_ACCESS,
    ONLY_ACCOUNT,
    PRODUCTS,
    RESEND_AFTER_MS,
    VERSIONS,
    NumberChoice,
)
from waypost.simulator.state.records import ONBOARDED
from waypost.simulator.state.simulator_state import Transaction

_VIRTUAL_PREFIX: Final = "1555"
_MAX_NAME_CHARS: Final = 100
_MAX_ASSET_ID_CHARS: Final = 32
_CUSTOMERS_WINDOW_MS: Final = 7 * DAY_MS


def sign_in(person_id: str = "", name: str = "") -> Step:
    """Return the step of the first screen: a known person, or a new one with a name."""

    def step(transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
        person = transaction.find(PERSONS, person_id) if person_id else None
        if person_id and person is None:
            raise _unknown("person_id", person_id, "is no person", "one of GET /control/onboarding/people")
        if person is None:
            person = OnboardingPerson(make_id(transaction.state.ids, "person"), name or "Ann Example")
            transaction.save(PERSONS, person, person.person_id)
        _raise_error(person.error_code)
        return next_screen(replace(session, person_id=person.person_id))

    return step


def accept_terms(_transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
    """Take the step of the second screen."""
    return next_screen(session)


def choose_business(business_id: str = "", new: NewBusiness | None = None) -> Step:
    """Return the step that chooses a portfolio of the person, or names a new one; by default what `extras` prefill."""

    def step(transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
        chosen = business_id or ("" if new else session.proposed_text("business", "id"))
        if chosen:
            portfolio = transaction.find(PORTFOLIOS, chosen)
            if portfolio is None:
                raise _unknown(
                    "business_id", chosen, "is no business portfolio", "one of GET /control/onboarding/businesses"
                )
            if session.person_id not in portfolio.person_ids:
                accepted = f"a business of the person {session.person_id}"
                raise ControlApiError("business_id", "is not managed by the person", accepted, status=409)
            _raise_error(portfolio.error_code)
            return next_screen(replace(session, business_id=chosen, business=None))
        business = new or proposed_business(session)
        if not _is_name(business.name):
            raise WindowErrorShown(1690090)
        if business.website and not is_web_url(business.website):
            raise WindowErrorShown(3771014)
        own = [one for one in transaction.values(PORTFOLIOS).values() if session.person_id in one.person_ids]
        if _has_limits(transaction) and len(own) >= MAX_PORTFOLIOS:
            raise WindowErrorShown(1690114)
        return next_screen(replace(session, business_id="", business=business))

    return step


def choose_account(
    waba_id: str = "",
    name: str = "",
    number: NumberChoice | None = None,
    phone_number_id: str = "",
    further_waba_ids: tuple[str, ...] = (),
) -> Step:
    """Return the step that chooses an account of the portfolio or names a new one, and the kind of number.

    Args:
        phone_number_id: of a number of the account, or of one that the page offers.
        further_waba_ids: of accounts that are shared together with it, in a version that offers several.
    """

    def step(transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
        further = tuple(dict.fromkeys(each for each in further_waba_ids if each != waba_id))
        chosen = replace(
            session,
            waba_id=waba_id,
            further_waba_ids=further,
            account_name=name,
            number=None,
            phone_number_id="",
            is_number_verified=False,
        )
        if further and not VERSIONS[session.version].shares_several:
            accepted = "none: this version of the window shares one account"
            raise ControlApiError("further_waba_ids", "are not offered by this window", accepted, status=409)
        for field, one in (("waba_id", waba_id), *(("further_waba_ids", each) for each in further)):
            account = transaction.find(ACCOUNTS, one) if one else None
            if one and account is None:
                raise _unknown(field, one, "is no account", "one of GET /control/state")
            if account is not None and not (session.business_id and account.owner_business_id == session.business_id):
                raise WindowErrorShown(2593072)
        if not waba_id:
            if session.feature == ONLY_ACCESS:
                raise ControlApiError("waba_id", "is missing", "an account: only access is given here", status=409)
            chosen = replace(chosen, account_name=name or _default_name(transaction, session))
            _check_account_name(chosen.account_name)
            _check_account_limit(transaction, session)
        if session.feature in (ONLY_ACCESS, ONLY_ACCOUNT):
            return next_screen(chosen)
        return next_screen(_choose_number(transaction, chosen, number, phone_number_id))

    return step


def _choose_number(
    transaction: Transaction, session: OnboardingSession, choice: NumberChoice | None, phone_number_id: str
) -> OnboardingSession:
    offered = {one.preverified_id: one for one in offered_preverified(transaction.state, session)}
    if not choice:
        usual: NumberChoice = "business_app" if session.feature == BUSINESS_APP else "new"
        is_offered = phone_number_id in offered or (offered and not phone_number_id)
        choice = "preverified" if is_offered else "existing" if phone_number_id else usual
    if choice == "preverified":
        chosen = offered.get(phone_number_id or next(iter(offered), ""))
        if chosen is None:
            accepted = f"one of {', '.join(offered)}" if offered else "another choice: the page offers no such number"
            raise ControlApiError("phone_number_id", "is not offered by this window", accepted, status=409)
        is_verified = chosen.is_verified(transaction.state.clock.now_ms())
        session = replace(session, phone_number=chosen.phone_number, is_number_verified=is_verified)
    if choice == "business_app" and session.feature != BUSINESS_APP:
        accepted = f"another choice, or a window with the feature {BUSINESS_APP}"
        raise ControlApiError("number", "is not offered by this window", accepted, status=409)
    if choice == "existing":
        number = transaction.find(NUMBERS, phone_number_id)
        if number is None or not session.waba_id or number.waba_id != session.waba_id:
            raise WindowErrorShown(2655011 if number is not None else 2593072)
        session = replace(session, phone_number_id=phone_number_id, phone_number=number.phone_number)
    if choice == "display_name_only" and _has_limits(transaction):
        numbers = _numbers_of_business(transaction, session)
        records = [transaction.record(number.phone_number_id, ONBOARDED) for number in numbers]
        if sum(bool(record.get("is_virtual")) for record in records) >= MAX_VIRTUAL_NUMBERS:
            raise WindowErrorShown(2655076)
    return replace(session, number=choice)


def name_account(name: str = "") -> Step:
    """Return the step that names a new account on a screen of its own (v2, v3)."""

    def step(_transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
        chosen = name or session.account_name
        _check_account_name(chosen)
        return next_screen(replace(session, account_name=chosen))

    return step


def enter_number(
    phone_number: str = "", country_code: str = "", display_name: str = "", category: str = "", timezone_id: str = ""
) -> Step:
    """Return the step that enters the number and its display name.

    Args:
        phone_number: international, or national beside `country_code`; ignored for a number that is given or chosen.
    """

    def step(transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
        shown = display_name or session.proposed_text("phone", "displayName") or session.account_name
        if session.number == "display_name_only":
            digits = _give_virtual_number(transaction)
        elif session.number == "preverified":
            digits = session.phone_number
        else:
            digits = _read_number(country_code, phone_number)
            _check_number(transaction, session, digits)
        if _has_limits(transaction):
            limit = MAX_NUMBERS[_is_verified(transaction, session)]
            if len(_numbers_of_business(transaction, session)) >= limit:
                raise WindowErrorShown(2388002)
        try:
            check_display_name("display_name", shown or _default_name(transaction, session))
        except GraphApiError as error:
            raise WindowErrorShown(1690091) from error
        return next_screen(
            replace(
                session,
                phone_number=digits,
                display_name=shown or _default_name(transaction, session),
                category=category or session.proposed_text("phone", "category") or "OTHER",
                timezone_id=timezone_id,
                code_sent_ms=None,
            )
        )

    return step


def request_signup_code(method: CodeMethod = "SMS") -> Step:
    """Return the step that sends the code by text message or call; in the app for a number that is used there."""

    def step(transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
        now_ms, sent_ms = transaction.state.clock.now_ms(), session.code_sent_ms
        is_soon = sent_ms is not None and now_ms - sent_ms < RESEND_AFTER_MS
        if _has_limits(transaction) and (is_soon or is_locked(transaction, session.phone_number)):
            raise WindowErrorShown(2494158)
        used: CodeMethod = "APP" if session.number == "business_app" else method
        send_code(transaction, session.phone_number, used, "en_US")
        return replace(session, code_sent_ms=now_ms, error=None)

    return step


def enter_code(code: str) -> Step:
    """Return the step that enters the code, with or without a hyphen."""

    def step(transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
        if session.code_sent_ms is None:
            raise ControlApiError("code", "was not sent yet", "the call that sends it first", status=409)
        if is_locked(transaction, session.phone_number):
            raise WindowErrorShown(2593039)
        if not check_code(transaction, session.phone_number, code.replace("-", "").replace(" ", "")):
            raise WindowErrorShown(2388093)
        return next_screen(session)

    return step


def offered_assets(session: OnboardingSession) -> list[str]:
    """Return what may be shared besides the account, as the products ask for it."""
    return list(dict.fromkeys(name for product in session.products for name in PRODUCTS[product].assets))


def offered_choices(session: OnboardingSession) -> list[NumberChoice]:
    """Return the kinds of numbers that may be chosen, the usual one first; those of the account are chosen by id."""
    if session.feature in (ONLY_ACCESS, ONLY_ACCOUNT):
        return []
    usual: list[NumberChoice] = ["new", "display_name_only"]
    return ["business_app", *usual] if session.feature == BUSINESS_APP else usual


def confirm_permissions(assets: Mapping[str, tuple[str, ...]] | None = None) -> Step:
    """Return the step that confirms the permissions, with what else is shared: pages, ad accounts, data sets."""

    def step(transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
        offered = offered_assets(session)
        other = next((name for name in assets or () if name not in offered), None)
        if other is not None:
            accepted = ", ".join(offered) or "none: the configuration has no product with assets"
            raise ControlApiError(f"assets.{other}", "is not asked for by this window", accepted, status=409)
        for name, asset_id in ((name, each) for name, ids in (assets or {}).items() for each in ids):
            if not (asset_id.isascii() and asset_id.isdigit() and len(asset_id) <= _MAX_ASSET_ID_CHARS):
                raise ControlApiError(f"assets.{name}", f"has {asset_id[:40]!r}, which is no id", "1 to 32 digits")
            if mistaken := describe_other_kind(asset_id, name):
                raise ControlApiError(f"assets.{name}", f"has {asset_id}: {mistaken}", f"ids of {name}", status=409)
        if _has_limits(transaction) and not _may_add_customer(transaction, session):
            raise WindowErrorShown(3441033)
        return next_screen(replace(session, assets=dict(assets or {})))

    return step


# Checks


def _unknown(field: str, value: str, rule: str, accepted: str) -> ControlApiError:
    other = describe_other_kind(value, field)
    return ControlApiError(field, f"{rule}: {other}" if other else rule, accepted, status=404)


def _raise_error(code: int) -> None:
    if code:
        raise WindowErrorShown(code)


def _has_limits(transaction: Transaction) -> bool:
    return transaction.state.settings.value.limits


def proposed_business(session: OnboardingSession) -> NewBusiness:
    """Return the portfolio that the page proposes."""
    name, email, website = (session.proposed_text("business", member) for member in ("name", "email", "website"))
    country = text_or_none(object_of(session.proposes("business").get("address")).get("country")) or ""
    return NewBusiness(name or "Example Business", email, website, country[:MAX_CHARS])


def _default_name(transaction: Transaction, session: OnboardingSession) -> str:
    if session.business is not None:
        return session.business.name
    portfolio = transaction.find(PORTFOLIOS, session.business_id)
    return portfolio.name if portfolio is not None else "Example Business"


def _is_name(name: str) -> bool:
    return 0 < len(name.strip()) <= _MAX_NAME_CHARS and any(char.isalpha() for char in name)


def _is_verified(transaction: Transaction, session: OnboardingSession) -> bool:
    portfolio = transaction.find(PORTFOLIOS, session.business_id) if session.business_id else None
    return portfolio is not None and portfolio.is_verified


def _check_account_name(name: str) -> None:
    if len(name) > MAX_ACCOUNT_NAME_CHARS:
        raise WindowErrorShown(2593010)


def _check_account_limit(transaction: Transaction, session: OnboardingSession) -> None:
    is_verified = _is_verified(transaction, session)
    accounts = owned_accounts(transaction, session.business_id) if session.business_id else []
    if _has_limits(transaction) and len(accounts) >= MAX_ACCOUNTS[is_verified]:
        raise WindowErrorShown(2494067 if is_verified else 2388098)


def _numbers_of_business(transaction: Transaction, session: OnboardingSession) -> list[Number]:
    if not session.business_id:
        return []
    return [
        number
        for account in owned_accounts(transaction, session.business_id)
        for number in transaction.find_by_member(NUMBERS, "waba_id", account.waba_id)
    ]


def _read_number(country_code: str, phone_number: str) -> str:
    """Return the digits of a number. Raises WindowErrorShown: it is none."""
    try:
        return join_number(country_code, phone_number) if country_code else read_number("phone_number", phone_number)
    except GraphApiError as error:
        raise WindowErrorShown(3441051) from error


def _check_number(transaction: Transaction, session: OnboardingSession, digits: str) -> None:
    on_app = transaction.find(BUSINESS_APP_NUMBERS, digits)
    if session.number == "business_app":
        if is_in_use(transaction, digits):
            raise WindowErrorShown(2655093)
        if on_app is None:
            raise WindowErrorShown(2655095)
        _raise_error(on_app.error_code)
    elif on_app is not None or is_in_use(transaction, digits):
        raise WindowErrorShown(3441030)


def _give_virtual_number(transaction: Transaction) -> str:
    for _ in range(1000):
        digits = _VIRTUAL_PREFIX + transaction.state.ids.digits(7)
        if not is_in_use(transaction, digits):
            return digits
    raise WindowErrorShown(2655005, back_to="account")


def _may_add_customer(transaction: Transaction, session: OnboardingSession) -> bool:
    """True if the partner may onboard the session's business: it is a customer, or the week's limit is not reached."""
    partner = transaction.find(PARTNERS, session.app_id) or AppPartner(session.app_id)
    since_ms = transaction.state.clock.now_ms() - _CUSTOMERS_WINDOW_MS
    first_ms: dict[str, int] = {}
    for account in transaction.values(ACCOUNTS).values():
        access = find_access(transaction, account.waba_id, session.app_id)
        if access is not None:
            owner = account.owner_business_id
            first_ms[owner] = min(access.given_ms, first_ms.get(owner, access.given_ms))
    recent = sum(given_ms > since_ms for given_ms in first_ms.values())
    return session.business_id in first_ms or recent < MAX_CUSTOMERS[partner.is_verified]
