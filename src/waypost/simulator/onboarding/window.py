"""The window of embedded signup: a session, its screens, and what the page that opened it gets at the end.

A page and the control API call the same functions: `open_session`, then `take_step` with the function of the shown
screen, and `end_by_user`; `play` does all of it with given inputs. `page_events` is what the page gets. Nothing is
created before the window is finished, except the person who signs in: then business, account, number, access and code
are one transaction.

Source: facts 14.1, 14.2, 14.3, 14.8; decision 0123.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace

from waypost.base.clock import DAY_MS
from waypost.base.http.hosts import is_web_url
from waypost.base.json_values import list_or_none, object_of, text_or_none
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.errors import GraphApiError
from waypost.simulator.apis.object_ids import describe_other_kind, make_id
from waypost.simulator.business_app.connection import connect_number
from waypost.simulator.faults.model import FaultSubject, armed_faults, select_fault
from waypost.simulator.numbers.names import check_display_name
from waypost.simulator.numbers.new_numbers import THROUGHPUT, join_number
from waypost.simulator.numbers.registration import UNREGISTERED
from waypost.simulator.numbers.sent_codes import CodeMethod, check_code, is_locked, send_code
from waypost.simulator.onboarding.grants import give_access, notify_partner, open_partner_webhooks
from waypost.simulator.onboarding.model import (
    BUSINESS_APP_NUMBERS,
    CONFIGURATIONS,
    PARTNERS,
    PERSONS,
    PORTFOLIOS,
    SIGNUP_CODES,
    AppPartner,
    LoginConfiguration,
    OnboardingPerson,
    Portfolio,
    SignupCode,
    find_access,
    owned_accounts,
)
from waypost.simulator.state.accounts import ACCOUNTS, APPS, NUMBERS, SHARED_THROUGHPUT, Account, GraphApp, Number
from waypost.simulator.state.embedded_signup import (
    BREAKS,
    BUSINESS_APP,
    CODE_MS,
    DEPRECATED_MS,
    EVENTS_SCOPE,
    FEATURE_ALIASES,
    FEATURES,
    LATE_MS,
    MANAGEMENT_SCOPE,
    MARKETING_MESSAGES,
    MAX_ACCOUNT_NAME_CHARS,
    MAX_ACCOUNTS,
    MAX_CUSTOMERS,
    MAX_NUMBERS,
    MAX_PORTFOLIOS,
    MAX_VIRTUAL_NUMBERS,
    OBO_EVENT,
    ONLY_ACCESS,
    ONLY_ACCOUNT,
    OTHER_ORIGIN,
    PRODUCTS,
    RESEND_AFTER_MS,
    SCREENS,
    SESSION_INFO_VERSION,
    SESSION_OPENED,
    VERSIONS,
    WINDOW_ERRORS,
    NumberChoice,
    ScreenName,
)
from waypost.simulator.state.records import NUMBER_STATUS, OBO, ONBOARDED, REGISTRATION, SENDING_RESTRICTION
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind
from waypost.simulator.storage.tables.updates import MESSAGES_FIELD

_VIRTUAL_PREFIX: Final = "1555"
_MAX_NAME_CHARS: Final = 100
_CUSTOMERS_WINDOW_MS: Final = 7 * DAY_MS


class NewBusiness(msgspec.Struct, frozen=True):
    """A portfolio that will be created when the window is finished."""

    name: str
    email: str = ""
    website: str = ""
    country: str = ""


class ShownError(msgspec.Struct, frozen=True):
    """The error that the window shows."""

    code: int
    text: str
    screen: ScreenName


class SessionOptions(msgspec.Struct, frozen=True):
    """The order and delays of the result that the page gets; a delay of None: never."""

    order: Literal["message_first", "callback_first"] = "message_first"
    message_delay_ms: int | None = 0
    callback_delay_ms: int | None = 0
    origin: Literal["https://www.facebook.com", "https://web.facebook.com"] = "https://www.facebook.com"


class OnboardingSession(msgspec.Struct, frozen=True, kw_only=True):
    """One use of the window: what it was opened with, what was entered, and how it ended."""

    session_id: str
    app_id: str
    config_id: str
    version: str
    feature: str
    products: tuple[str, ...]
    solution_id: str
    sends_message: bool
    redirect_uri: str
    oauth_state: str
    prefill: dict[str, Any]
    options: SessionOptions
    breaks: tuple[str, ...]
    opened_ms: int
    page_key: str  # of the URL of its page: who knows it uses the window
    screen: ScreenName = "sign_in"
    person_id: str = ""
    business_id: str = ""
    new_business: NewBusiness | None = None
    waba_id: str = ""
    account_name: str = ""
    number_choice: NumberChoice | Literal[""] = ""
    phone_number_id: str = ""
    phone_number: str = ""
    display_name: str = ""
    category: str = ""
    timezone_id: str = ""
    code_sent_ms: int | None = None
    assets: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])
    error: ShownError | None = None
    event: str = ""  # of the message at the end; empty until then, and if no message is sent
    data: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    code: str = ""
    ended_ms: int | None = None


SESSIONS: Final = StoredKind("onboarding_session", OnboardingSession)


class WindowErrorShown(Exception):
    """The window shows an error and stays at its screen, or returns to another."""

    def __init__(self, code: int, *, back_to: ScreenName | None = None, ends: bool = False) -> None:
        super().__init__(WINDOW_ERRORS[code].text)
        self.code = code
        self.back_to: ScreenName | None = back_to
        self.ends = ends


Step = Callable[[Transaction, OnboardingSession], OnboardingSession]


# Opening


async def open_session(
    state: SimulatorState,
    app: GraphApp,
    *,
    config_id: str = "",
    extras: Mapping[str, Any] | None = None,
    redirect_uri: str = "",
    oauth_state: str = "",
    falls_back: bool | None = None,
    options: SessionOptions | None = None,
    breaks: tuple[str, ...] = (),
    page_key: str = "",
) -> OnboardingSession:
    """Open the window for an app, and return the session at its first screen.

    Args:
        config_id: of a login configuration; empty: that of the Cloud API, with tokens that do not expire.
        extras: as a page gives them to `FB.login`.
        redirect_uri: of a dialog without the script; empty: the window is opened by the script.
        falls_back: whether a deprecated version ignores features; None: as the operator does by the clock.
        page_key: as the script has chosen it; empty: a new one.

    Raises:
        ControlApiError: the configuration is unknown or another app's, or the version is unknown.
    """
    configuration = _find_configuration(state, app, config_id)
    given, now_ms = extras or {}, state.clock.now_ms()
    version = _read_version(given, has_configuration=bool(config_id))
    if falls_back is None:
        falls_back = VERSIONS[version].is_deprecated and now_ms >= DEPRECATED_MS
    reads_products = VERSIONS[version].reads_products
    setup = object_of(given.get("setup"))
    wants_message = str(given.get("sessionInfoVersion", "")) == str(SESSION_INFO_VERSION)
    session = OnboardingSession(
        session_id=make_id(state.ids, "onboarding session"),
        app_id=app.app_id,
        config_id=config_id,
        version=version,
        feature="" if falls_back else _read_feature(given, version, configuration.products if reads_products else ()),
        products=configuration.products if reads_products else ("cloud_api",),
        solution_id=text_or_none(setup.get("solutionID")) or "",
        sends_message=VERSIONS[version].sends_message or wants_message,
        redirect_uri=redirect_uri,
        oauth_state=oauth_state,
        prefill=dict(setup),
        options=options or SessionOptions(),
        breaks=breaks,
        opened_ms=now_ms,
        page_key=page_key or state.ids.secret(),
    )
    await open_partner_webhooks(state, app.app_id)

    def write(transaction: Transaction) -> OnboardingSession:
        opened = session
        if armed_faults(state, "session"):
            subject = FaultSubject(SESSION_OPENED, app=app.app_id, subject=session.session_id)
            fault = select_fault(state, transaction, "session", [subject])
            opened = session if fault is None else replace(session, breaks=(*breaks, str(fault.value)))
        transaction.save(SESSIONS, opened, opened.session_id)
        return opened

    return await state.transact(write)


def _find_configuration(state: SimulatorState, app: GraphApp, config_id: str) -> LoginConfiguration:
    if not config_id:
        return LoginConfiguration("", app.app_id)
    configuration = state.values(CONFIGURATIONS).get(config_id)
    if configuration is None or configuration.app_id != app.app_id:
        other = describe_other_kind(config_id, "config_id")
        rule = f"is no login configuration of the app{f': {other}' if other else ''}"
        raise ControlApiError(
            "config_id", rule, "one of PUT /control/onboarding/configurations/{config_id}", status=404
        )
    return configuration


def _read_version(extras: Mapping[str, Any], *, has_configuration: bool) -> str:
    """Return the version that a page asks for; without one the configuration decides: products are for v4 only."""
    version = extras.get("version")
    if version is None:
        return "v4" if has_configuration and "featureType" not in extras else "v2"
    if not isinstance(version, str) or version not in VERSIONS:
        raise ControlApiError("extras.version", f"cannot be {str(version)[:40]!r}", ", ".join(VERSIONS))
    return version


def _read_feature(extras: Mapping[str, Any], version: str, products: tuple[str, ...]) -> str:
    """Return the feature that a page or its configuration asks for; one that the version does not know is ignored."""
    names = [extras.get("featureType"), extras.get("feature_type")]
    names += [object_of(item).get("name") for item in list_or_none(extras.get("features")) or []]
    texts = [FEATURE_ALIASES.get(name, name) for name in names if isinstance(name, str)]
    known = [name for name in texts if name in FEATURES and name and version in FEATURES[name].versions]
    return next(iter([*known, *(PRODUCTS[name].feature for name in products if PRODUCTS[name].feature)]), "")


# Screens


def shown_screens(session: OnboardingSession) -> list[ScreenName]:
    """Return the screens that the session shows, as far as its inputs decide it, in order."""
    skipped: set[ScreenName] = set()
    if not VERSIONS[session.version].has_profile_screen or session.waba_id or session.feature == ONLY_ACCESS:
        skipped.add("profile")
    if session.feature in (ONLY_ACCESS, ONLY_ACCOUNT) or session.number_choice == "existing":
        skipped |= {"number", "code"}
    if session.number_choice == "display_name_only":
        skipped.add("code")
    return [name for name in SCREENS if name not in skipped]


def _next_screen(session: OnboardingSession) -> OnboardingSession:
    shown = shown_screens(session)
    return replace(session, screen=shown[shown.index(session.screen) + 1], error=None)


def take_step(transaction: Transaction, session_id: str, screen: ScreenName, step: Step) -> OnboardingSession:
    """Enter something on a screen, and return the session: at the next screen, or at this one with an error.

    Raises:
        ControlApiError: 404, the session is unknown; 409, it has ended, or shows another screen; or the input names
            something that does not exist, which a person could not choose.
    """
    session = find_open_session(transaction, session_id)
    if session.screen != screen:
        rule = f"shows the screen {session.screen}, not {screen}"
        raise ControlApiError("session_id", rule, f"the call for the screen {session.screen}", status=409)
    try:
        _raise_faulted_error(transaction, session)
        entered = step(transaction, session)
    except WindowErrorShown as refused:
        entered = show_error(session, refused.code, refused.back_to)
        if refused.ends:
            entered = _end(transaction, entered, "ERROR", _error_data(transaction, entered))
    transaction.save(SESSIONS, entered, session_id)
    return entered


def find_open_session(transaction: Transaction, session_id: str) -> OnboardingSession:
    """Return a session that has not ended.

    Raises:
        ControlApiError: 404, it is unknown; 409, it has ended.
    """
    session = transaction.find(SESSIONS, session_id)
    if session is None:
        other = describe_other_kind(session_id, "session_id")
        rule = f"is no onboarding session{f': {other}' if other else ''}"
        raise ControlApiError("session_id", rule, "one of GET /control/onboarding/sessions", status=404)
    if session.ended_ms is not None:
        raise ControlApiError("session_id", "has ended", "a session that is open", status=409)
    return session


def show_error(session: OnboardingSession, code: int, back_to: ScreenName | None = None) -> OnboardingSession:
    """Return the session with an error on its screen."""
    screen = back_to or session.screen
    return replace(session, screen=screen, error=ShownError(code, WINDOW_ERRORS[code].text, screen))


def _raise_faulted_error(transaction: Transaction, session: OnboardingSession) -> None:
    for name in session.breaks:
        error = BREAKS[name].error
        if error is not None and error[0] == session.screen:
            raise WindowErrorShown(error[1])
    state = transaction.state
    if session.screen == "done" or not armed_faults(state, "screen"):
        return
    number = (session.phone_number_id, session.phone_number) if session.phone_number else ()
    subject = FaultSubject(session.screen, app=session.app_id, number=number, subject=session.session_id)
    fault = select_fault(state, transaction, "screen", [subject])
    if fault is not None:
        raise WindowErrorShown(int(fault.value), ends=bool(fault.effect.get("ends")))


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
        return _next_screen(replace(session, person_id=person.person_id))

    return step


def accept_terms(_transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
    """Take the step of the second screen."""
    return _next_screen(session)


def choose_business(business_id: str = "", new: NewBusiness | None = None) -> Step:
    """Return the step that chooses a portfolio of the person, or names a new one; by default what `extras` prefill."""

    def step(transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
        chosen = business_id or ("" if new else text_or_none(_prefill(session, "business").get("id")) or "")
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
            return _next_screen(replace(session, business_id=chosen, new_business=None))
        business = new or prefilled_business(session)
        if not _is_name(business.name):
            raise WindowErrorShown(1690090)
        if business.website and not is_web_url(business.website):
            raise WindowErrorShown(3771014)
        own = [one for one in transaction.values(PORTFOLIOS).values() if session.person_id in one.person_ids]
        if _has_limits(transaction) and len(own) >= MAX_PORTFOLIOS:
            raise WindowErrorShown(1690114)
        return _next_screen(replace(session, business_id="", new_business=business))

    return step


def choose_account(
    waba_id: str = "", name: str = "", number: NumberChoice | Literal[""] = "", phone_number_id: str = ""
) -> Step:
    """Return the step that chooses an account of the portfolio or names a new one, and the kind of number."""

    def step(transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
        chosen = replace(session, waba_id=waba_id, account_name=name, number_choice="", phone_number_id="")
        if waba_id:
            account = transaction.find(ACCOUNTS, waba_id)
            if account is None:
                raise _unknown("waba_id", waba_id, "is no account", "one of GET /control/state")
            if not session.business_id or account.owner_business_id != session.business_id:
                raise WindowErrorShown(2593072)
        else:
            if session.feature == ONLY_ACCESS:
                raise ControlApiError("waba_id", "is missing", "an account: only access is given here", status=409)
            chosen = replace(chosen, account_name=name or _default_name(transaction, session))
            _check_account_name(chosen.account_name)
            _check_account_limit(transaction, session)
        if session.feature in (ONLY_ACCESS, ONLY_ACCOUNT):
            return _next_screen(chosen)
        return _next_screen(_choose_number(transaction, chosen, number, phone_number_id))

    return step


def _choose_number(
    transaction: Transaction, session: OnboardingSession, choice: NumberChoice | Literal[""], phone_number_id: str
) -> OnboardingSession:
    if not choice:
        usual: NumberChoice = "business_app" if session.feature == BUSINESS_APP else "new"
        choice = "existing" if phone_number_id else usual
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
    return replace(session, number_choice=choice)


def name_account(name: str = "") -> Step:
    """Return the step that names a new account on a screen of its own (v2, v3)."""

    def step(_transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
        chosen = name or session.account_name
        _check_account_name(chosen)
        return _next_screen(replace(session, account_name=chosen))

    return step


def enter_number(
    phone_number: str = "", country_code: str = "", display_name: str = "", category: str = "", timezone_id: str = ""
) -> Step:
    """Return the step that enters the number and its display name.

    Args:
        phone_number: international, or national beside `country_code`; ignored for a number that the operator gives.
    """

    def step(transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
        proposed_name, proposed_category = prefilled_phone(session)
        shown = display_name or proposed_name or session.account_name
        if session.number_choice == "display_name_only":
            digits = _give_virtual_number(transaction)
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
        return _next_screen(
            replace(
                session,
                phone_number=digits,
                display_name=shown or _default_name(transaction, session),
                category=category or proposed_category or "OTHER",
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
        used: CodeMethod = "APP" if session.number_choice == "business_app" else method
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
        return _next_screen(session)

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
        if _has_limits(transaction) and not _may_add_customer(transaction, session):
            raise WindowErrorShown(3441033)
        return _next_screen(replace(session, assets=dict(assets or {})))

    return step


def finish(transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
    """Finish the window at its last screen: everything is created, and the page gets message and code."""
    return _complete(transaction, session)


def end_by_user(transaction: Transaction, session_id: str, *, reports: bool = False) -> OnboardingSession:
    """Close the window: on the last screen that finishes it, before that it cancels it.

    Args:
        reports: whether the person reports the shown error, which the page then gets.

    Raises:
        ControlApiError: as for `find_open_session`; 409, there is no error to report.
    """
    session = find_open_session(transaction, session_id)
    if reports and session.error is None:
        raise ControlApiError("session_id", "shows no error", "a session whose window shows one", status=409)
    if reports:
        ended = _end(transaction, session, "CANCEL", _error_data(transaction, session))
    elif session.screen == "done":
        try:
            ended = _complete(transaction, session)
        except WindowErrorShown as refused:
            ended = show_error(session, refused.code, refused.back_to)
    else:
        step = SCREENS[session.screen].current_step
        ended = _end(transaction, session, "CANCEL" if step else "", {"current_step": step} if step else {})
    transaction.save(SESSIONS, ended, session_id)
    return ended


def fail_window(transaction: Transaction, session_id: str, code: int, *, ends: bool = False) -> OnboardingSession:
    """Show an error on the current screen; with `ends` it ends the window, and the page gets it.

    Raises:
        ControlApiError: as for `find_open_session`; the screen cannot show this error.
    """
    session = find_open_session(transaction, session_id)
    check_window_error("code", session.screen, code)
    failed = show_error(session, code)
    if ends:
        failed = _end(transaction, failed, "ERROR", _error_data(transaction, failed))
    transaction.save(SESSIONS, failed, session_id)
    return failed


def check_window_error(field: str, screen: str, code: int) -> None:
    """Check that a screen can show an error. Raises ControlApiError, with the codes that it can show."""
    if code not in WINDOW_ERRORS or screen not in WINDOW_ERRORS[code].screens:
        codes = ", ".join(str(known) for known, row in WINDOW_ERRORS.items() if screen in row.screens)
        raise ControlApiError(field, f"{code} is no error of the screen {screen}", codes or "none")


# What the page gets


def window_path(session: OnboardingSession) -> str:
    """Return the path of the window in a browser."""
    return f"/dialog/window/{session.page_key}"


def page_events(session: OnboardingSession) -> list[dict[str, Any]]:
    """Return what the page gets, in order: the message and the call of its function, each with its time.

    A message has the `data` of a `message` event as text; a callback the argument `response`, and for a dialog without
    the script the `redirect_url` in place of it.
    """
    if session.ended_ms is None:
        return []
    options, events = session.options, list[dict[str, Any]]()
    message_ms = _delay(session, "message", options.message_delay_ms)
    callback_ms = _delay(session, "callback", options.callback_delay_ms)
    if session.event and session.sends_message and message_ms is not None:
        body = {
            "type": "WA_EMBEDDED_SIGNUP",
            "event": session.event,
            "data": session.data,
            "version": SESSION_INFO_VERSION,
        }
        at_ms = session.ended_ms + message_ms
        origin = OTHER_ORIGIN if "other_origin" in session.breaks else options.origin
        events.append({"kind": "message", "at_ms": at_ms, "origin": origin, "data": json.dumps(body)})
    if callback_ms is not None:
        code = session.code
        response: dict[str, Any] = {
            "authResponse": {"code": code} if code else None,
            "status": "connected" if code else "unknown",
        }
        event: dict[str, Any] = {"kind": "callback", "at_ms": session.ended_ms + callback_ms, "response": response}
        if session.redirect_uri:
            event["redirect_url"] = _redirect_url(session)
        events.append(event)
    first = "callback" if "callback_first" in session.breaks else options.order.partition("_")[0]
    return sorted(events, key=lambda event: (event["at_ms"], event["kind"] != first))


def _delay(session: OnboardingSession, kind: str, usual_ms: int | None) -> int | None:
    if f"{kind}_never" in session.breaks:
        return None
    return LATE_MS if f"{kind}_late" in session.breaks else usual_ms


def _redirect_url(session: OnboardingSession) -> str:
    query = {"code": session.code} if session.code else {"error": "access_denied", "error_reason": "user_denied"}
    state = {"state": session.oauth_state} if session.oauth_state else {}
    return f"{session.redirect_uri}{'&' if '?' in session.redirect_uri else '?'}{urlencode({**query, **state})}"


def _error_data(transaction: Transaction, session: OnboardingSession) -> dict[str, Any]:
    error = session.error
    assert error is not None, "there is an error to report"  # noqa: S101  a defect, not an input
    return {
        "error_message": error.text,
        "error_code": str(error.code),
        "session_id": session.session_id,
        "timestamp": str(transaction.state.clock.now_ms() // 1000),
    }


def _end(transaction: Transaction, session: OnboardingSession, event: str, data: dict[str, Any]) -> OnboardingSession:
    return replace(session, event=event, data=data, ended_ms=transaction.state.clock.now_ms())


# The end


def _complete(transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
    """Create what was entered, give the app access, and end the session with a code."""
    if session.phone_number and not session.phone_number_id and is_in_use(transaction, session.phone_number):
        raise WindowErrorShown(3441030, back_to="number")
    state = transaction.state
    business_id = session.business_id or _create_portfolio(transaction, session)
    account = _find_or_create_account(transaction, session, business_id)
    number_id = _find_or_create_number(transaction, session, account)
    access = give_access(transaction, account, session.app_id, session.solution_id)
    if session.feature == MARKETING_MESSAGES:
        notify_partner(transaction, "MM_LITE_TERMS_SIGNED", account, access)
    code = _create_code(transaction, session, business_id, account, access.system_user_id)
    _break_app(transaction, session)
    event = FEATURES[session.feature].event
    if transaction.record(account.waba_id, OBO):
        event = OBO_EVENT
        transaction.save_record(account.waba_id, OBO, {})
    ids: dict[str, Any] = {"waba_id": account.waba_id}
    if session.feature != BUSINESS_APP or session.number_choice != "business_app":
        ids = {"phone_number_id": number_id, **ids, "business_id": business_id, **session.assets}
        event = FEATURES[""].event if event == FEATURES[BUSINESS_APP].event else event
    data = {name: value for name, value in ids.items() if value}
    ended = replace(session, business_id=business_id, waba_id=account.waba_id, phone_number_id=number_id, code=code)
    transaction.follow(state.accounts.clear_tokens)
    return _end(transaction, replace(ended, error=None), event, data)


def _create_portfolio(transaction: Transaction, session: OnboardingSession) -> str:
    new, business_id = session.new_business, make_id(transaction.state.ids, "business")
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
        is_on_app = session.number_choice == "business_app"
        throughput = SHARED_THROUGHPUT if is_on_app else THROUGHPUT
        number = Number(number_id, account.waba_id, session.phone_number, session.display_name, throughput)
        transaction.save(NUMBERS, number, number_id)
        transaction.save_record(number_id, SENDING_RESTRICTION, {"name": UNREGISTERED})
        if is_on_app:
            connect_number(transaction, number)
        transaction.delete(BUSINESS_APP_NUMBERS, session.phone_number)
    if "name_declined" in session.breaks:
        transaction.change_record(number_id, NUMBER_STATUS, name_status="DECLINED")
    if "pin_forgotten" in session.breaks:
        transaction.change_record(number_id, REGISTRATION, pin=state.ids.digits(6), guesses=0)
    if session.number_choice == "display_name_only":
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


# Checks


def _unknown(field: str, value: str, rule: str, accepted: str) -> ControlApiError:
    other = describe_other_kind(value, field)
    return ControlApiError(field, f"{rule}: {other}" if other else rule, accepted, status=404)


def _raise_error(code: int) -> None:
    if code:
        raise WindowErrorShown(code)


def _has_limits(transaction: Transaction) -> bool:
    return transaction.state.settings.value.limits


def _prefill(session: OnboardingSession, name: str) -> Mapping[str, Any]:
    return object_of(session.prefill.get(name))


def prefilled_phone(session: OnboardingSession) -> tuple[str, str]:
    """Return the display name and the category of the number that the page proposes; empty where it proposes none."""
    members = _prefill(session, "phone")
    return text_or_none(members.get("displayName")) or "", text_or_none(members.get("category")) or ""


def prefilled_business(session: OnboardingSession) -> NewBusiness:
    """Return the portfolio that the page proposes."""
    members = _prefill(session, "business")
    texts = {name: text_or_none(members.get(name)) or "" for name in ("name", "email", "website")}
    country = text_or_none(object_of(members.get("address")).get("country")) or ""
    return NewBusiness(**{**texts, "name": texts["name"] or "Example Business", "country": country})


def _default_name(transaction: Transaction, session: OnboardingSession) -> str:
    if session.new_business is not None:
        return session.new_business.name
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
    # Imported on first use: the tables of the world's numbering plans are large.
    import phonenumbers

    if not country_code:
        try:
            country_code = str(phonenumbers.parse("+" + phone_number.lstrip("+")).country_code)
        except phonenumbers.NumberParseException as error:
            raise WindowErrorShown(3441051) from error
        phone_number = "+" + phone_number.lstrip("+")
    try:
        return join_number(country_code, phone_number)
    except GraphApiError as error:
        raise WindowErrorShown(3441051) from error


def _check_number(transaction: Transaction, session: OnboardingSession, digits: str) -> None:
    on_app = transaction.find(BUSINESS_APP_NUMBERS, digits)
    if session.number_choice == "business_app":
        if is_in_use(transaction, digits):
            raise WindowErrorShown(2655093)
        if on_app is None:
            raise WindowErrorShown(2655095)
        _raise_error(on_app.error_code)
    elif on_app is not None or is_in_use(transaction, digits):
        raise WindowErrorShown(3441030)


def is_in_use(transaction: Transaction, digits: str) -> bool:
    """True if an account has a number with these digits."""
    return bool(transaction.find_by_member(NUMBERS, "phone_number", digits))


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
