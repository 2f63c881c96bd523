"""Flows that are being played: on phones, from a message, and as previews; stored, so that they go on after a restart.

A session belongs to a phone and a message, or stands alone. It plays the version of the Flow with which it was opened.
"""

import asyncio
import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct
from starlette.requests import Request

from waypost.flow_json.validator import check_flow_json
from waypost.flow_player.play_state import FlowState, PlayerView
from waypost.flow_player.playable import PlayableFlow, UnplayableFlow, read_playable
from waypost.flow_player.views import view_screen
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.flows.model import BLOCKED, DEPRECATED, FLOWS, MAX_PUBLISHED_VERSIONS, Flow
from waypost.simulator.flows.version_life import find_expired_version, list_expired
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind

MAX_PHONE_SESSIONS: Final = 20
"""Of one phone; the oldest are deleted."""
MAX_PREVIEW_SESSIONS: Final = 200
"""Of all previews: an editor opens one with each change."""
_TRIM: Final = (
    "DELETE FROM state WHERE kind=:kind AND owner=:owner AND position <= (SELECT position FROM state "
    "WHERE kind=:kind AND owner=:owner ORDER BY position DESC LIMIT 1 OFFSET :kept)"
)


class FlowSession(Struct, frozen=True, kw_only=True):
    """A Flow that is being played.

    Attributes:
        session_id: of a phone, the wamid of the message.
        phone: empty for a preview.
        phone_number_id: of the number that sent the message; empty for a preview.
        flow_id: whose endpoint is asked; empty if only a text is played.
        version: the published one; 0: the draft.
        text: the Flow JSON, if it is not that of the flow.
        digest: of the Flow JSON, so that another one does not go on with this state.
    """

    session_id: str
    phone: str = ""
    phone_number_id: str = ""
    flow_id: str = ""
    version: int = 0
    text: str = ""
    digest: str = ""
    is_draft: bool = False
    opened_ms: int = 0
    state: FlowState = FlowState()


FLOW_SESSIONS: Final = StoredKind("flow_session", FlowSession, in_memory=False)


class FlowSessionView(Struct, frozen=True, kw_only=True):
    """A session: what the handset shows, and what the last steps caused, in order.

    An event has a `type`: `exchange`, `opened_url` or `completed`.
    """

    session_id: str
    phone: str
    flow_id: str
    flow_name: str
    is_draft: bool
    flow_token: str
    view: PlayerView
    history: list[str] = []  # the screens, the shown one last
    data: dict[str, Any] = {}  # of the shown screen
    events: list[dict[str, Any]] = []


def view_session(
    state: SimulatorState, session: FlowSession, playable: PlayableFlow, events: list[dict[str, Any]] | None = None
) -> FlowSessionView:
    """Return what a session shows."""
    flow = state.values(FLOWS).get(session.flow_id)
    return FlowSessionView(
        session_id=session.session_id,
        phone=session.phone,
        flow_id=session.flow_id,
        flow_name=flow.name if flow is not None else "",
        is_draft=session.is_draft,
        flow_token=session.state.flow_token,
        view=view_screen(playable, session.state),
        history=session.state.stack,
        data=session.state.memory.data,
        events=events or [],
    )


def find_text(state: SimulatorState, flow: Flow, version: int) -> str:
    """Return the Flow JSON of a published version, or of the draft.

    Raises:
        ControlApiError: 409, the flow is blocked or deprecated, the version of it is too old, that of Flow JSON has
            expired, or the draft has errors.
    """
    if flow.status in (BLOCKED, DEPRECATED):
        raise ControlApiError("flow", f"{flow.flow_id} is {flow.status.lower()}", "one that can be opened", status=409)
    text = _find_published(flow, version) if version else _find_draft(flow)
    expired = find_expired_version(state, text)
    if expired is not None:
        raise ControlApiError("flow", f"{flow.flow_id} has Flow JSON {expired}, which has expired", "", status=409)
    return text


def _find_published(flow: Flow, version: int) -> str:
    published = next((one for one in flow.published if one.number == version), None)
    if published is None:
        rule = f"version {version} of {flow.flow_id} can no longer be opened"
        accepted = f"one of the newest {MAX_PUBLISHED_VERSIONS} versions: send a new message"
        raise ControlApiError("flow", rule, accepted, status=409)
    return published.asset


def _find_draft(flow: Flow) -> str:
    if not flow.asset or flow.errors:
        reason = str(flow.errors[0].get("message")) if flow.errors else "there is no Flow JSON"
        raise ControlApiError("flow", f"the draft {flow.flow_id} is not valid: {reason}", "", status=409)
    return flow.asset


async def read_checked(state: SimulatorState, text: str) -> PlayableFlow:
    """Return the Flow of a text that a person has written.

    Raises:
        ControlApiError: 422, it is not valid.
    """
    errors = (await asyncio.to_thread(check_flow_json, text, list_expired(state))).errors
    if errors:
        first = errors[0]
        place = f"line {first.get('line_start')}, column {first.get('column_start')}"
        raise ControlApiError("flow_json", f"is not valid: {first.get('message')} ({place})", "", status=422)
    return await load_playable(text)


async def load_playable(text: str) -> PlayableFlow:
    """Return the Flow of a text.

    Raises:
        ControlApiError: 409, it cannot be played.
    """
    try:
        return await asyncio.to_thread(_read_cached, text)
    except UnplayableFlow as error:
        raise ControlApiError("flow", str(error), "a Flow without validation errors", status=409) from None


@lru_cache(maxsize=4)
def _read_cached(text: str) -> PlayableFlow:
    return read_playable(text)


def digest_of(text: str) -> str:
    """Return the digest of a Flow JSON."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


async def resume_text(state: SimulatorState, session: FlowSession) -> str:
    """Return the Flow JSON of a session.

    Raises:
        ControlApiError: 409, it can no longer be opened, or was changed.
    """
    if session.text:
        return session.text
    flow = state.values(FLOWS).get(session.flow_id)
    if flow is None:
        raise ControlApiError("flow", f"{session.flow_id} was deleted", "open another one", status=409)
    text = find_text(state, flow, session.version)
    if digest_of(text) != session.digest:
        raise ControlApiError("flow", "was changed since it was opened", "open it again with restart: true", status=409)
    return text


def origin_of(request: Request) -> str:
    """Return the scheme and host of this server's URLs, as a client has called it."""
    return f"{request.url.scheme}://{request.headers.get('host', 'localhost')}"


async def find_session(state: SimulatorState, session_id: str, owner: str) -> FlowSession | None:
    """Return a session of a phone, or a preview; None if there is none."""
    return await state.store.read(lambda connection: FLOW_SESSIONS.find_on(connection, session_id, owner))


async def newest_session(state: SimulatorState, phone: str) -> FlowSession | None:
    """Return the session that a phone opened last; None if it has none."""
    sessions = await state.store.read(lambda connection: FLOW_SESSIONS.values_on(connection, phone))
    return next(reversed(sessions.values()), None)


def save_session(transaction: Transaction, session: FlowSession, *, is_opened: bool = False) -> None:
    """Store a session; one that is opened becomes its phone's newest."""
    owner = session.phone
    if is_opened:
        transaction.run(FLOW_SESSIONS.delete_statement(session.session_id, owner))
    transaction.run(FLOW_SESSIONS.save_statement(session, session.session_id, owner))
    transaction.run(
        (
            _TRIM,
            {"kind": FLOW_SESSIONS.name, "owner": owner, "kept": MAX_PHONE_SESSIONS if owner else MAX_PREVIEW_SESSIONS},
        )
    )


@contextmanager
def playing(state: SimulatorState, session_id: str, owner: str) -> Generator[None]:
    """Keep a session for one call at a time: while it waits for an endpoint, a handset takes no input.

    Raises:
        ControlApiError: 409, another call plays it.
    """
    key = f"{owner}/{session_id}"
    if key in state.active_flow_sessions:
        raise ControlApiError("flow", "is being played by another call", "wait for its response", status=409)
    state.active_flow_sessions.add(key)
    try:
        yield
    finally:
        state.active_flow_sessions.discard(key)
