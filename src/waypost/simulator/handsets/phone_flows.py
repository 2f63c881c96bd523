"""Flows that a phone opens from messages, and plays, by calls and by scripts."""

from typing import Any, Final

from msgspec.structs import replace

from waypost.base.json_values import object_of, text_or_none
from waypost.flow_player import player
from waypost.flow_player.play_state import StepNotAllowed
from waypost.flow_player.playable import PlayableFlow
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.flows.model import FLOWS, Flow, find_flow, find_flow_by_name
from waypost.simulator.flows.playing import FlowPlay
from waypost.simulator.flows.sessions import (
    FlowSession,
    FlowSessionView,
    digest_of,
    find_session,
    find_text,
    load_playable,
    newest_session,
    playing,
    resume_text,
    save_session,
    view_session,
)
from waypost.simulator.handsets.actions import send_message
from waypost.simulator.handsets.phone_messages import InboundOptions, build_response
from waypost.simulator.state.control_parameters import check_reachable
from waypost.simulator.state.flow_steps import FlowStep
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.tables.messages import MESSAGES, SimulatedMessage
from waypost.simulator.templates.model import find_template

_FLOW: Final = "FLOW"


async def open_flow(state: SimulatorState, message: SimulatedMessage, *, restart: bool, origin: str) -> FlowSessionView:
    """Open the flow of a message where it was left, or at its beginning.

    Args:
        origin: the scheme and host of the URLs of files.

    Raises:
        ControlApiError: the message has no flow, or it cannot be opened.
    """
    button = find_flow_button(message)
    if button is None:
        raise ControlApiError("message_id", "the message has no flow", "a message with a FLOW button", status=409)
    check_reachable(state, message.phone, state.accounts.numbers[message.phone_number_id])
    _check_usable(button)
    with playing(state, message.wamid, message.phone):
        known = await find_session(state, message.wamid, message.phone)
        if known is not None and not restart and not known.state.ended:
            playable = await load_playable(await resume_text(state, known))
            session = replace(known, state=player.reopen(known.state))
            await state.transact(lambda transaction: save_session(transaction, session, is_opened=True))
            return view_session(state, session, playable)
        return await _open(state, message, button, origin)


async def play_steps(
    state: SimulatorState, phone: str, message_id: str | None, steps: list[FlowStep], *, origin: str
) -> FlowSessionView:
    """Carry out steps in the flow that a phone has opened last, or that of a message.

    Raises:
        ControlApiError: it has opened none, or the handset does not allow a step; those before it are done.
    """
    session = await find_open_session(state, phone, message_id)
    with playing(state, session.session_id, phone):
        session = await find_open_session(state, phone, session.session_id)
        message = await _find_message(state, session)
        check_reachable(state, phone, state.accounts.numbers[session.phone_number_id])
        playable = await load_playable(await resume_text(state, session))
        play = FlowPlay(state, session, state.values(FLOWS).get(session.flow_id), playable, origin)
        try:
            await play.run(steps)
        except ControlApiError:
            await _save(state, session, play, playable, message)
            raise
        return await _save(state, session, play, playable, message)


async def find_open_session(state: SimulatorState, phone: str, message_id: str | None) -> FlowSession:
    """Return the session that a phone has opened last, or that of a message.

    Raises:
        ControlApiError: 404, there is none.
    """
    found = newest_session(state, phone) if message_id is None else find_session(state, message_id, phone)
    session = await found
    if session is None:
        accepted = f"POST /control/phones/{phone}/flow first"
        raise ControlApiError("phone", "has opened no such flow", accepted, status=404)
    return session


def find_flow_button(message: SimulatedMessage) -> dict[str, Any] | None:
    """Return the button of a message that opens a flow; None if it has none."""
    return next((button for button in message.buttons if button["type"] == _FLOW), None)


async def _open(
    state: SimulatorState, message: SimulatedMessage, button: dict[str, Any], origin: str
) -> FlowSessionView:
    number = state.accounts.numbers[message.phone_number_id]
    flow, version, text = _find_content(state, number.waba_id, message, button)
    playable = await load_playable(text)
    session = FlowSession(
        session_id=message.wamid,
        phone=message.phone,
        phone_number_id=message.phone_number_id,
        flow_id=flow.flow_id if flow is not None else "",
        version=version,
        text="" if flow is not None else text,
        digest=digest_of(text),
        is_draft=button.get("mode") == "draft",
        opened_ms=state.clock.now_ms(),
    )
    play = FlowPlay(state, session, flow, playable, origin)
    try:
        opened = player.open_flow(
            playable,
            flow_token=text_or_none(button.get("flow_token")) or "unused",
            action=str(button.get("flow_action")),
            screen=text_or_none(button.get("screen")) or "",
            data=object_of(button.get("flow_action_data")),
        )
    except StepNotAllowed as error:
        raise ControlApiError(error.target, error.rule, error.accepted, status=409) from None
    await play.follow(opened)
    return await _save(state, session, play, playable, message, is_opened=True)


async def _save(
    state: SimulatorState,
    session: FlowSession,
    play: FlowPlay,
    playable: PlayableFlow,
    message: SimulatedMessage,
    *,
    is_opened: bool = False,
) -> FlowSessionView:
    """Store a session after steps, and send the answers if they have completed it, in one transaction."""
    session = replace(session, state=play.state)
    button, number = find_flow_button(message) or {}, state.accounts.numbers[session.phone_number_id]
    completion, payload = play.completion, await play.build_reply()
    send = None
    if completion is not None:
        reply = build_response({**button, "type": _FLOW}, payload)
        send = send_message(state, session.phone, number, reply, InboundOptions(context_id=message.wamid))

    def write(transaction: Transaction) -> str:
        save_session(transaction, session, is_opened=is_opened)
        if session.state.ended:
            ended = {"used": True} if completion is not None else {"disabled": session.state.error}
            _change_button(transaction, message.wamid, ended)
        return send(transaction) if send is not None else ""

    wamid = await state.transact(write)
    if completion is not None:
        play.events.append({"type": "completed", "wamid": wamid, "response": payload})
    return view_session(state, session, playable, play.events)


def _change_button(transaction: Transaction, wamid: str, members: dict[str, Any]) -> None:
    for message in MESSAGES.find_on(transaction.connection, wamid=wamid):
        buttons = [one | members if one["type"] == _FLOW else one for one in message.buttons]
        transaction.run(MESSAGES.update({"content": {**message.content, "buttons": buttons}}, wamid=wamid))


def _check_usable(button: dict[str, Any]) -> None:
    if button.get("used"):
        rule = "the flow of the message has been completed"
        raise ControlApiError("message_id", rule, "a new message with a flow", status=409)
    if button.get("disabled"):
        rule = f"the button is disabled: {button['disabled']}"
        raise ControlApiError("message_id", rule, "a new message with a valid flow token", status=409)


def _find_content(
    state: SimulatorState, waba_id: str, message: SimulatedMessage, button: dict[str, Any]
) -> tuple[Flow | None, int, str]:
    """Return the flow of a button, the version that it opens (0: the draft) and its JSON; no flow: of the template.

    Raises:
        ControlApiError: 409, the flow cannot be opened.
    """
    flow_id, name = text_or_none(button.get("flow_id")), text_or_none(button.get("flow_name"))
    text = "" if flow_id or name else _template_flow(state, waba_id, message)
    if text:
        return None, 0, text
    flow = find_flow(state, flow_id, waba_id) if flow_id else find_flow_by_name(state, name, waba_id)
    if flow is None:
        accepted = "a flow of the account that sent the message"
        raise ControlApiError("flow", f"{flow_id or name or ''} does not exist", accepted, status=409)
    if button.get("mode") == "draft":
        return flow, 0, find_text(state, flow, 0)
    version = int(button.get("flow_version") or 0) or (flow.published[-1].number if flow.published else 0)
    if not version:
        raise ControlApiError("flow", f"{flow.flow_id} was never published", "the mode draft", status=409)
    return flow, version, find_text(state, flow, version)


def _template_flow(state: SimulatorState, waba_id: str, message: SimulatedMessage) -> str:
    """Return the Flow JSON that a template's button has itself; empty if it has none."""
    name, language = message.template.get("name"), message.template.get("language")
    template = find_template(state, waba_id, str(name), str(language))
    buttons = template.buttons if template is not None else []
    return next((str(one["flow_json"]) for one in buttons if one.get("type") == _FLOW and one.get("flow_json")), "")


async def _find_message(state: SimulatorState, session: FlowSession) -> SimulatedMessage:
    found = await MESSAGES.find(state.store, wamid=session.session_id, phone=session.phone)
    if not found:
        raise ControlApiError("message_id", "is not on this phone any more", "a message of its inbox", status=409)
    return found[0]
