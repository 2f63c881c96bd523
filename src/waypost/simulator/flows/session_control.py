"""Control API calls for previews of flows: sessions without a phone, of a flow or of a text."""

from typing import Annotated, Any, Literal

from msgspec import Meta, field
from msgspec.structs import replace
from starlette.requests import Request

from waypost.base.json_values import object_of
from waypost.flow_player import player
from waypost.flow_player.play_state import StepNotAllowed
from waypost.flow_player.playable import PlayableFlow
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlBody, ControlOperations, find
from waypost.simulator.apis.field_types import Id, Name
from waypost.simulator.flows.model import FLOWS
from waypost.simulator.flows.playing import FlowPlay, FlowStepsBody
from waypost.simulator.flows.sessions import (
    FlowSession,
    FlowSessionView,
    digest_of,
    find_session,
    find_text,
    load_playable,
    origin_of,
    playing,
    read_checked,
    resume_text,
    save_session,
    view_session,
)
from waypost.simulator.state.simulator_state import SimulatorState

operation = ControlOperations()


class FlowPreviewBody(ControlBody, frozen=True, kw_only=True):
    """A preview: of a flow, of a text, or of a text with the endpoint of a flow.

    Without a text the draft is played; with `version` that published version. `uses_examples` gives the first screen the
    examples of its data that `data` does not have. `phone_number_id` is the number by whose key requests are encrypted.
    """

    flow_id: Id | None = None
    flow_json: Annotated[str, Meta(max_length=4_000_000)] = ""
    version: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    flow_token: Name = "unused"  # noqa: S105  the operator's default
    flow_action: Literal["navigate", "data_exchange"] = "navigate"
    screen: Annotated[str, Meta(max_length=256)] = ""
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    uses_examples: bool = False
    phone_number_id: Annotated[str, Meta(max_length=64)] = ""


@operation("POST", "/control/flow-sessions")
async def open_preview(state: SimulatorState, request: Request, body: FlowPreviewBody) -> FlowSessionView:
    """Open a preview, and return its first screen."""
    if body.flow_id is None and not body.flow_json:
        raise ControlApiError("flow_id", "or flow_json is required", "the id of a flow, or a text of Flow JSON")
    flow = None if body.flow_id is None else find(state.values(FLOWS), body.flow_id, field="flow_id", rule="is no flow")
    if body.flow_json:
        text, playable = body.flow_json, await read_checked(state, body.flow_json)
    else:
        text = find_text(state, state.values(FLOWS)[body.flow_id or ""], body.version)
        playable = await load_playable(text)
    session = FlowSession(
        session_id=state.ids.new(),
        phone_number_id=body.phone_number_id,
        flow_id=body.flow_id or "",
        version=0 if body.flow_json else body.version,
        is_draft=bool(body.flow_json) or not body.version,
        text=body.flow_json,
        digest=digest_of(text),
        opened_ms=state.clock.now_ms(),
    )
    play = FlowPlay(state, session, flow, playable, origin_of(request))
    data = body.data
    if body.uses_examples and body.flow_action == "navigate":
        data = example_data(playable, body.screen or playable.entry_screen) | data
    try:
        opened = player.open_flow(
            playable, flow_token=body.flow_token, action=body.flow_action, screen=body.screen, data=data
        )
    except StepNotAllowed as error:
        raise ControlApiError(error.target, error.rule, error.accepted, status=409) from None
    await play.follow(opened)
    session = replace(session, state=play.state)
    await state.transact(lambda transaction: save_session(transaction, session, is_opened=True))
    return view_session(state, session, playable, play.events)


def example_data(playable: PlayableFlow, screen_id: str) -> dict[str, Any]:
    """Return the examples of a screen's data; empty if there is no such screen."""
    screen = playable.screens.get(screen_id)
    declared = screen.declared_data if screen is not None else {}
    examples = {name: object_of(schema).get("__example__") for name, schema in declared.items()}
    return {name: example for name, example in examples.items() if example is not None}


@operation("GET", "/control/flow-sessions/{session_id}")
async def show_preview(state: SimulatorState, session_id: str) -> FlowSessionView:
    """Return what a preview shows."""
    session = await _find(state, session_id)
    return view_session(state, session, await load_playable(await resume_text(state, session)))


@operation("POST", "/control/flow-sessions/{session_id}/steps")
async def play_preview(
    state: SimulatorState, request: Request, session_id: str, body: FlowStepsBody
) -> FlowSessionView:
    """Carry out steps in a preview; the first that the handset does not allow ends them, with what they have changed."""
    with playing(state, session_id, ""):
        session = await _find(state, session_id)
        playable = await load_playable(await resume_text(state, session))
        session = replace(session, state=player.reopen(session.state))
        play = FlowPlay(state, session, state.values(FLOWS).get(session.flow_id), playable, origin_of(request))
        try:
            await play.run(body.steps)
        finally:
            session = replace(session, state=play.state)
            await state.transact(lambda transaction: save_session(transaction, session))
    if play.completion is not None:
        play.events.append({"type": "completed", "response": await play.build_reply()})
    return view_session(state, session, playable, play.events)


async def _find(state: SimulatorState, session_id: str) -> FlowSession:
    session = await find_session(state, session_id[:100], "")
    if session is None:
        accepted = "a session_id of POST /control/flow-sessions"
        raise ControlApiError("session_id", "is no preview", accepted, status=404)
    return session
