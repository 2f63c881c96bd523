"""A session of the signup window: what it was opened with, what was entered, and how it ended.

Each struct extends the one before: a whole use of the window is given by the same members that a session stores.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from waypost.base.json_values import object_of, text_or_none
from waypost.base.object_ids import describe_other_kind
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlBody
from waypost.simulator.apis.field_types import Id, accepts
from waypost.simulator.state.embedded_signup import (
    BREAKS,
    ONLY_ACCESS,
    ONLY_ACCOUNT,
    SCREENS,
    VERSIONS,
    WINDOW_ERRORS,
    NumberChoice,
    ScreenName,
)
from waypost.simulator.state.simulator_state import Transaction
from waypost.simulator.storage.keyed_store import StoredKind

_NOT_SENT: Final = "0 to 604800000, or null: never"
_BREAK: Final = accepts(", ".join(BREAKS), f"^({'|'.join(BREAKS)})$")
MAX_CHARS: Final = 256

Delay = Annotated[Annotated[int, Meta(ge=0, le=604_800_000)] | None, accepts(_NOT_SENT)]
Text = Annotated[str, Meta(max_length=MAX_CHARS)]
LongText = Annotated[str, Meta(max_length=2000)]
AssetName = Annotated[str, Meta(max_length=64)]
Assets = dict[AssetName, Annotated[tuple[Id, ...], Meta(max_length=100)]]
FurtherAccounts = Annotated[tuple[Id, ...], Meta(max_length=20)]
StopAction = Literal["leave", "close", "fail", "report", "end"]
"""What happens on the screen where a play stops: nothing; the window is closed; it shows an error, which the person
reports then, or which ends it."""


class NewBusiness(ControlBody, frozen=True):
    """A portfolio that the person creates; it exists when the window is finished."""

    name: Text
    email: Text = ""
    website: LongText = ""
    country: Text = ""


class WindowOpening(ControlBody, frozen=True, kw_only=True):
    """Options of a page that opens the window, and of the result that it gets; a delay of null: never.

    `redirect_uri` and `state` are of a dialog without the script.
    """

    app_id: Id
    config_id: Annotated[
        str, accepts("a login configuration's id, or empty: that of the Cloud API", "^[0-9]{0,32}$")
    ] = ""
    extras: dict[str, Any] = msgspec.field(default_factory=lambda: {"version": "v4", "setup": {}})
    redirect_uri: LongText = ""
    state: LongText = ""
    falls_back: Annotated[bool | None, accepts("true, false, or null: by the clock, as the operator")] = None
    order: Literal["message_first", "callback_first"] = "message_first"
    message_delay_ms: Delay = 0
    callback_delay_ms: Delay = 0
    origin: Literal["https://www.facebook.com", "https://web.facebook.com"] = "https://www.facebook.com"
    breaks: Annotated[tuple[Annotated[str, _BREAK], ...], Meta(max_length=len(BREAKS))] = ()

    def proposes(self, group: str) -> dict[str, Any]:
        """Return the members of `extras.setup` that propose something for a screen."""
        return object_of(object_of(self.extras.get("setup")).get(group))

    def proposed_text(self, group: str, name: str) -> str:
        """Return a proposed text, as much of it as its field has room for; empty if there is none."""
        return (text_or_none(self.proposes(group).get(name)) or "")[:MAX_CHARS]


class SignupEntries(WindowOpening, frozen=True, kw_only=True):
    """The inputs of a person on the screens of a window."""

    person_id: Text = ""
    business_id: Text = ""
    business: NewBusiness | None = None
    waba_id: Text = ""
    further_waba_ids: FurtherAccounts = ()  # of the same business, shared together with it
    account_name: LongText = ""
    number: NumberChoice | None = None
    phone_number_id: Text = ""
    phone_number: Text = ""
    display_name: LongText = ""
    category: Text = ""
    timezone_id: Text = ""
    assets: Assets | None = None


class PlayBody(SignupEntries, frozen=True, kw_only=True):
    """A whole use of the window; what is not answered is chosen. `stop_at` names the screen where it stops."""

    person_name: Text = ""
    code_method: Literal["SMS", "VOICE"] = "SMS"
    code: Text = ""
    stop_at: ScreenName | None = None
    stop: StopAction = "close"
    error_code: int | None = None


class ShownError(Struct, frozen=True):
    """The error that the window shows."""

    code: int
    text: str
    screen: ScreenName


class OnboardingSession(SignupEntries, frozen=True, kw_only=True):
    """One use of the window: what it asks for, what was entered, and how it ended."""

    session_id: str
    version: str
    feature: str
    products: tuple[str, ...]
    sends_message: bool
    opened_ms: int
    page_key: str  # of the URL of its page: who knows it uses the window
    screen: ScreenName = "sign_in"
    is_number_verified: bool = False  # by the partner, before
    code_sent_ms: int | None = None
    error: ShownError | None = None
    event: str = ""  # of the message at the end; empty until then, and if no message is sent
    data: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    code: str = ""
    ended_ms: int | None = None

    @property
    def solution_id(self) -> str:
        """The joint solution that the page names; empty: none."""
        return text_or_none(object_of(self.extras.get("setup")).get("solutionID")) or ""


SESSIONS: Final = StoredKind("onboarding_session", OnboardingSession)


class WindowErrorShown(Exception):
    """The window shows an error and stays at its screen, or returns to another."""

    def __init__(self, code: int, *, back_to: ScreenName | None = None, ends: bool = False) -> None:
        super().__init__(WINDOW_ERRORS[code].text)
        self.code = code
        self.back_to: ScreenName | None = back_to
        self.ends = ends


Step = Callable[[Transaction, OnboardingSession], OnboardingSession]


def shown_screens(session: OnboardingSession) -> list[ScreenName]:
    """Return the screens that the session shows, as far as its inputs decide it, in order."""
    skipped: set[ScreenName] = set()
    if not VERSIONS[session.version].has_profile_screen or session.waba_id or session.feature == ONLY_ACCESS:
        skipped.add("profile")
    if session.feature in (ONLY_ACCESS, ONLY_ACCOUNT) or session.number == "existing":
        skipped |= {"number", "code"}
    if session.number == "display_name_only" or session.is_number_verified:
        skipped.add("code")
    return [name for name in SCREENS if name not in skipped]


def next_screen(session: OnboardingSession) -> OnboardingSession:
    """Return the session at its next screen."""
    shown = shown_screens(session)
    return replace(session, screen=shown[shown.index(session.screen) + 1], error=None)


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


def end_session(
    transaction: Transaction, session: OnboardingSession, event: str, data: dict[str, Any]
) -> OnboardingSession:
    """Return the session, ended now, with the message that the page gets."""
    return replace(session, event=event, data=data, ended_ms=transaction.state.clock.now_ms())


def window_path(session: OnboardingSession) -> str:
    """Return the path of the window in a browser."""
    return f"/dialog/window/{session.page_key}"
