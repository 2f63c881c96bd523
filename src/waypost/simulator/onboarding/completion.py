"""The end of a signup: portfolio, account, number, access and code, in one transaction.

Source: decision 0123.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from waypost.base.object_ids import make_id
from waypost.simulator.business_app.connection import connect_number
from waypost.simulator.numbers.model import NEVER_REGISTERED
from waypost.simulator.numbers.new_numbers import THROUGHPUT
from waypost.simulator.onboarding.grants import give_access, notify_partner
from waypost.simulator.onboarding.model import (
    BUSINESS_APP_NUMBERS,
    CONFIGURATIONS,
    PORTFOLIOS,
    SIGNUP_CODES,
    Portfolio,
    SignupCode,
    find_access,
    is_in_use,
    owned_accounts,
)
from waypost.simulator.onboarding.preverified import PREVERIFIED_NUMBERS
from waypost.simulator.onboarding.session import OnboardingSession, WindowErrorShown, end_session
from waypost.simulator.state.accounts import ACCOUNTS, APPS, NUMBERS, SHARED_THROUGHPUT, Account, Number
from waypost.simulator.state.embedded_signup import (
    BUSINESS_APP,
    CODE_MS,
    EVENTS_SCOPE,
    FEATURES,
    MANAGEMENT_SCOPE,
    MARKETING_MESSAGES,
    OBO_EVENT,
    PRODUCTS,
)
from waypost.simulator.state.records import NUMBER_STATUS, OBO, ONBOARDED, REGISTRATION, SENDING_RESTRICTION
from waypost.simulator.state.simulator_state import Transaction
from waypost.simulator.storage.tables.updates import MESSAGES_FIELD


def complete_signup(transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
    """Take the step of the last screen: create what was entered, give the app access, and end the session with a code.

    Raises:
        WindowErrorShown: somebody else has registered the number in the meantime.
    """
    if session.phone_number and not session.phone_number_id and is_in_use(transaction, session.phone_number):
        raise WindowErrorShown(3441030, back_to="account" if session.number == "preverified" else "number")
    state = transaction.state
    business_id = session.business_id or _create_portfolio(transaction, session)
    account = _find_or_create_account(transaction, session, business_id)
    number_id = _find_or_create_number(transaction, session, account)
    access = give_access(transaction, account, session.app_id, session.solution_id)
    if session.feature == MARKETING_MESSAGES:
        notify_partner(transaction, "MM_LITE_TERMS_SIGNED", account, access)
    further = [transaction.find(ACCOUNTS, waba_id) for waba_id in session.further_waba_ids]
    for other in filter(None, further):
        give_access(transaction, other, session.app_id, session.solution_id)
    code = _create_code(transaction, session, business_id, account, access.system_user_id)
    _break_app(transaction, session)
    event = FEATURES[session.feature].event
    if transaction.record(account.waba_id, OBO):
        event = OBO_EVENT
        transaction.save_record(account.waba_id, OBO, {})
    ids: dict[str, Any] = {"waba_id": account.waba_id}
    if session.feature != BUSINESS_APP or session.number != "business_app":
        ids = {"phone_number_id": number_id, **ids, "business_id": business_id, **(session.assets or {})}
        ids["waba_ids"] = [account.waba_id, *session.further_waba_ids] if session.further_waba_ids else []
        event = FEATURES[""].event if event == FEATURES[BUSINESS_APP].event else event
    data = {name: value for name, value in ids.items() if value}
    ended = replace(session, business_id=business_id, waba_id=account.waba_id, phone_number_id=number_id, code=code)
    transaction.follow(state.accounts.clear_tokens)
    return end_session(transaction, replace(ended, error=None), event, data)


def _create_portfolio(transaction: Transaction, session: OnboardingSession) -> str:
    new, business_id = session.business, make_id(transaction.state.ids, "business")
    assert new is not None, "a business was chosen or named"  # noqa: S101  a defect, not an input
    members = msgspec.structs.asdict(new)
    portfolio = Portfolio(business_id=business_id, person_ids=(session.person_id,), **members)
    transaction.save(PORTFOLIOS, portfolio, business_id)
    return business_id


def _find_or_create_account(transaction: Transaction, session: OnboardingSession, business_id: str) -> Account:
    known = transaction.find(ACCOUNTS, session.waba_id) if session.waba_id else None
    if known is not None:
        return known
    ids = transaction.state.ids
    account = Account(
        waba_id=make_id(ids, "account"),
        name=session.account_name,
        namespace=ids.new().replace("-", "_"),
        token=f"EAA{ids.secret()}",
        app_id=session.app_id,
        owner_business_id=business_id,
    )
    transaction.save(ACCOUNTS, account, account.waba_id)
    return account


def _find_or_create_number(transaction: Transaction, session: OnboardingSession, account: Account) -> str:
    """Return the id of the chosen number; empty if there is none."""
    number_id, state = session.phone_number_id, transaction.state
    if not number_id and not session.phone_number:
        return ""
    if not number_id:
        number_id = make_id(state.ids, "number")
        is_on_app = session.number == "business_app"
        throughput = SHARED_THROUGHPUT if is_on_app else THROUGHPUT
        number = Number(number_id, account.waba_id, session.phone_number, session.display_name, throughput)
        transaction.save(NUMBERS, number, number_id)
        transaction.save_record(number_id, SENDING_RESTRICTION, NEVER_REGISTERED)
        if is_on_app:
            connect_number(transaction, number)
        transaction.delete(BUSINESS_APP_NUMBERS, session.phone_number)
        transaction.delete(PREVERIFIED_NUMBERS, session.phone_number)
    if "name_declined" in session.breaks:
        transaction.change_record(number_id, NUMBER_STATUS, name_status="DECLINED")
    if "pin_forgotten" in session.breaks:
        transaction.change_record(number_id, REGISTRATION, pin=state.ids.digits(6), guesses=0)
    if session.number == "display_name_only":
        transaction.change_record(number_id, ONBOARDED, is_virtual=True)
    transaction.change_record(number_id, ONBOARDED, at_ms=state.clock.now_ms())
    return number_id


def _create_code(
    transaction: Transaction, session: OnboardingSession, business_id: str, account: Account, system_user_id: str
) -> str:
    """Store a code for the accounts of the business that the app has access to, oldest first, and return it."""
    state, now_ms = transaction.state, transaction.state.clock.now_ms()
    shared = [
        each.waba_id
        for each in owned_accounts(transaction, business_id)
        if find_access(transaction, each.waba_id, session.app_id) is not None
    ]
    configuration = transaction.find(CONFIGURATIONS, session.config_id) if session.config_id else None
    code = SignupCode(
        code=f"AQ{state.ids.secret()}",
        app_id=session.app_id,
        session_id=session.session_id,
        business_id=business_id,
        waba_ids=tuple(dict.fromkeys((*shared, account.waba_id))),
        scopes=signup_scopes(session.products, session.breaks),
        assets=session.assets or {},
        system_user_id=system_user_id,
        redirect_uri=session.redirect_uri,
        expires_ms=now_ms if "code_expired" in session.breaks else now_ms + CODE_MS,
        token_days=configuration.token_days if configuration is not None else None,
        used_ms=now_ms if "code_used" in session.breaks else None,
    )
    transaction.save(SIGNUP_CODES, code, code.code)
    return code.code


def signup_scopes(products: tuple[str, ...], breaks: tuple[str, ...]) -> tuple[str, ...]:
    """Return the scopes of a token for these products; two breaks play those of before and after 10 June 2026."""
    scopes = tuple(dict.fromkeys(scope for name in products for scope in PRODUCTS[name].scopes))
    if "scopes_since_june_2026" in breaks:
        return tuple(dict.fromkeys(EVENTS_SCOPE if scope == MANAGEMENT_SCOPE else scope for scope in scopes))
    if "scopes_before_june_2026" in breaks:
        return tuple(scope for scope in scopes if scope != EVENTS_SCOPE)
    return scopes


def _break_app(transaction: Transaction, session: OnboardingSession) -> None:
    app = transaction.find(APPS, session.app_id)
    if app is None:
        return
    if "field_not_subscribed" in session.breaks:
        app = replace(app, fields=tuple(field for field in app.fields if field != MESSAGES_FIELD))
    if "secret_rotated" in session.breaks:
        app = replace(app, app_secret=transaction.state.ids.secret()[:32])
    transaction.save(APPS, app, app.app_id)
