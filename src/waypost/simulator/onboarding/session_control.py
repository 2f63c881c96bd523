"""Control API calls for the window of embedded signup: step by step, or at once."""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta
from msgspec.structs import asdict, replace

from waypost.simulator.apis.control_operations import ControlOperations, find, path_object
from waypost.simulator.apis.field_types import Position
from waypost.simulator.numbers.sent_codes import CodeMethod
from waypost.simulator.onboarding.completion import complete_signup
from waypost.simulator.onboarding.opening import open_session
from waypost.simulator.onboarding.page_events import page_events
from waypost.simulator.onboarding.play import play_session
from waypost.simulator.onboarding.screens import (
    accept_terms,
    choose_account,
    choose_business,
    confirm_permissions,
    enter_code,
    enter_number,
    name_account,
    request_signup_code,
    sign_in,
)
from waypost.simulator.onboarding.session import (
    SESSIONS,
    Assets,
    FurtherAccounts,
    LongText,
    NewBusiness,
    OnboardingSession,
    PlayBody,
    Step,
    Text,
    WindowOpening,
    shown_screens,
    window_path,
)
from waypost.simulator.onboarding.window import end_by_user, fail_window, take_step
from waypost.simulator.state.embedded_signup import SCREENS, NumberChoice, ScreenName
from waypost.simulator.state.simulator_state import SimulatorState

operation = ControlOperations()

_SESSION: Final = "/control/onboarding/sessions/{session_id}"

PathSession = Annotated[
    OnboardingSession, path_object("session_id", lambda state: state.values(SESSIONS), "is no onboarding session")
]


class SessionView(OnboardingSession, frozen=True, kw_only=True):
    """A session, the shown screen with what it accepts, and what the page gets, in order.

    `page` is the path of its window in a browser.
    """

    page: str
    screens: list[str]
    current_step: str
    inputs: str
    events: list[dict[str, Any]]


@operation("GET", "/control/onboarding/sessions", sessions=list[SessionView], next=int | None)
async def list_sessions(
    state: SimulatorState, *, after: Position = 0, limit: Annotated[int, Meta(ge=1, le=1000)] = 100
) -> dict[str, Any]:
    """Return the onboarding sessions, oldest first."""
    sessions = list(state.values(SESSIONS).values())
    page = [_view(session) for session in sessions[after : after + limit]]
    return {"sessions": page, "next": after + limit if len(sessions) > after + limit else None}


@operation("POST", "/control/onboarding/sessions")
async def open_window(state: SimulatorState, body: WindowOpening) -> SessionView:
    """Open the window as a page of the app does, and return the session at its first screen."""
    return _view(await _open(state, body))


@operation("POST", "/control/onboarding/play")
async def play(state: SimulatorState, body: PlayBody) -> SessionView:
    """Use the window at once: to the end, to the first error, or to `stop_at`, where `stop` says what happens.

    `stop` closes the window by default; `leave` leaves it open; `fail` shows `error_code`, `report` reports it to the
    page too, and `end` ends the window with it.
    """
    opened = await _open(state, body)
    return _view(await state.transact(lambda transaction: play_session(transaction, opened.session_id, body)))


@operation("GET", _SESSION)
async def show_session(state: SimulatorState, session: PathSession) -> SessionView:
    """Return a session: the shown screen, what was entered, and what the page gets."""
    return _view(session)


@operation("POST", f"{_SESSION}/sign-in")
async def enter_person(
    state: SimulatorState, session: PathSession, *, person_id: Text = "", name: Text = ""
) -> SessionView:
    """Sign in as a person, or as a new one with this name."""
    return await _step(state, session, "sign_in", sign_in(person_id, name))


@operation("POST", f"{_SESSION}/terms")
async def enter_terms(state: SimulatorState, session: PathSession) -> SessionView:
    """Accept the terms."""
    return await _step(state, session, "terms", accept_terms)


@operation("POST", f"{_SESSION}/business")
async def enter_business(
    state: SimulatorState, session: PathSession, *, business_id: Text = "", new: NewBusiness | None = None
) -> SessionView:
    """Choose a portfolio of the person, or create one; with neither, what the page prefills."""
    return await _step(state, session, "business", choose_business(business_id, new))


@operation("POST", f"{_SESSION}/account")
async def enter_account(
    state: SimulatorState,
    session: PathSession,
    *,
    waba_id: Text = "",
    name: LongText = "",
    number: NumberChoice | None = None,
    phone_number_id: Text = "",
    further_waba_ids: FurtherAccounts = (),
) -> SessionView:
    """Choose an account of the portfolio or create one, and the kind of number: by default a new one.

    `further_waba_ids` are shared together with it, in version 4.
    """
    step = choose_account(waba_id, name, number, phone_number_id, further_waba_ids)
    return await _step(state, session, "account", step)


@operation("POST", f"{_SESSION}/profile")
async def enter_profile(state: SimulatorState, session: PathSession, *, name: LongText = "") -> SessionView:
    """Name the new account on a screen of its own, as versions 2 and 3 ask for it."""
    return await _step(state, session, "profile", name_account(name))


@operation("POST", f"{_SESSION}/number")
async def enter_phone_number(
    state: SimulatorState,
    session: PathSession,
    *,
    phone_number: Text = "",
    country_code: Text = "",
    display_name: LongText = "",
    category: Text = "",
    timezone_id: Text = "",
) -> SessionView:
    """Enter the number, international or beside its country code, and the display name."""
    step = enter_number(phone_number, country_code, display_name, category, timezone_id)
    return await _step(state, session, "number", step)


@operation("POST", f"{_SESSION}/code/send")
async def send_signup_code(
    state: SimulatorState, session: PathSession, *, method: Literal["SMS", "VOICE"] = "SMS"
) -> SessionView:
    """Send the code by text message or call; `GET /control/phones/{phone}/code` shows it."""
    used: CodeMethod = method
    return await _step(state, session, "code", request_signup_code(used))


@operation("POST", f"{_SESSION}/code")
async def enter_signup_code(state: SimulatorState, session: PathSession, *, code: Text) -> SessionView:
    """Enter the code."""
    return await _step(state, session, "code", enter_code(code))


@operation("POST", f"{_SESSION}/permissions")
async def enter_permissions(
    state: SimulatorState, session: PathSession, *, assets: Assets | None = None
) -> SessionView:
    """Confirm the permissions, with what else is shared: `page_ids`, `ad_account_ids`, `dataset_ids`, …."""
    return await _step(state, session, "permissions", confirm_permissions(assets))


@operation("POST", f"{_SESSION}/finish")
async def finish_window(state: SimulatorState, session: PathSession) -> SessionView:
    """Finish on the last screen: business, account, number, access and code are created, and the app is told."""
    return await _step(state, session, "done", complete_signup)


@operation("POST", f"{_SESSION}/close")
async def close_window(state: SimulatorState, session: PathSession) -> SessionView:
    """Close the window: it is cancelled, or on the last screen finished."""
    return _view(await state.transact(lambda transaction: end_by_user(transaction, session.session_id)))


@operation("POST", f"{_SESSION}/fail")
async def fail_at_screen(state: SimulatorState, session: PathSession, *, code: int, ends: bool = False) -> SessionView:
    """Show an error on the current screen; with `ends` it ends the window, and the page gets `ERROR`."""
    return _view(
        await state.transact(lambda transaction: fail_window(transaction, session.session_id, code, ends=ends))
    )


@operation("POST", f"{_SESSION}/report")
async def report_error(state: SimulatorState, session: PathSession) -> SessionView:
    """Report the shown error as its person does: the window closes, and the page gets `CANCEL` with the error."""
    return _view(await state.transact(lambda transaction: end_by_user(transaction, session.session_id, reports=True)))


async def _open(state: SimulatorState, body: WindowOpening) -> OnboardingSession:
    app = find(state.accounts.apps, body.app_id, field="app_id", rule="is no app")
    return await open_session(state, app, replace(body, breaks=tuple(dict.fromkeys(body.breaks))))


async def _step(state: SimulatorState, session: OnboardingSession, screen: ScreenName, step: Step) -> SessionView:
    return _view(await state.transact(lambda transaction: take_step(transaction, session.session_id, screen, step)))


def _view(session: OnboardingSession) -> SessionView:
    screen = SCREENS[session.screen]
    return SessionView(
        **asdict(session),
        page=window_path(session),
        screens=list(shown_screens(session)),
        current_step=screen.current_step,
        inputs=screen.inputs,
        events=page_events(session),
    )
