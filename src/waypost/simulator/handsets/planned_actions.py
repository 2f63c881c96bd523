"""Actions that scripts have planned: rows with due times, run in batches by one loop.

An action and the deletion of its row are one transaction: after a crash nothing is done twice.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from waypost.base.loops import Loop
from waypost.base.telemetry.logs import log
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.handsets.actions import report_spam, send_message, set_marketing_preference
from waypost.simulator.handsets.phone_flows import open_flow, play_steps
from waypost.simulator.handsets.phone_messages import (
    InboundOptions,
    build_message,
    build_response,
    build_tap,
    build_text_message,
)
from waypost.simulator.handsets.reachability import block, go_offline, go_online
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.flow_steps import FlowStep
from waypost.simulator.state.phones import find_phone
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.store import STORE_FAILURES
from waypost.simulator.storage.tables.messages import MESSAGES
from waypost.simulator.storage.tables.phone_plans import COUNT_DONE_STEP, PLANNED_ACTIONS, PlannedAction, next_action_ms

_SIMULATOR_LOG = log("simulator")
_MAX_IDLE_MS: Final = 3_600_000
_BATCH_SIZE: Final = 500
_RETRY_PLAY_MS: Final = 1000
"""Time until a flow is opened that could not be, since too many are being filled in."""


def start_planned_actions(state: SimulatorState) -> None:
    """Start the loop that runs the planned actions that are due."""
    wakeup = state.delivery_signals.actions_planned

    async def run_batch() -> int | None:
        wakeup.clear()
        return await _run_due(state)

    loop = Loop("planned actions", run_batch, partial(state.wait, wakeup), log=_SIMULATOR_LOG)
    state.start_loop(loop, lambda: next_action_ms(state.store))


async def _run_due(state: SimulatorState) -> int | None:
    """Run one batch; return until when nothing is due, or None if there may be more."""
    now_ms = state.clock.now_ms()
    due = "due_ms<=:now_ms ORDER BY due_ms, id LIMIT :limit"
    actions = await PLANNED_ACTIONS.rows(state.store, due, now_ms=now_ms, limit=_BATCH_SIZE)
    if not actions:
        due_ms = await next_action_ms(state.store)
        return now_ms + _MAX_IDLE_MS if due_ms is None else due_ms
    results = await asyncio.gather(*(_run_action(state, action) for action in actions), return_exceptions=True)
    failure = next((result for result in results if isinstance(result, STORE_FAILURES)), None)
    if failure is not None:  # not a defect of an action: those that were not done stay due
        raise failure
    for action, result in zip(actions, results, strict=True):
        if isinstance(result, BaseException):
            _SIMULATOR_LOG.error("planned action failed", action_id=action.id, step=action.step, error=repr(result))
            await state.store.run([PLANNED_ACTIONS.delete(id=action.id)])
    return None


async def _run_action(state: SimulatorState, planned: PlannedAction) -> None:
    number = state.accounts.numbers.get(planned.phone_number_id)
    drop = PLANNED_ACTIONS.delete(id=planned.id)
    action = planned.action
    name, phone = action["do"], find_phone(state, planned.phone)
    if number is None or (name != "return" and planned.phone_number_id in phone.has_blocked):
        await state.store.run([drop])
        return
    if name != "return" and phone.is_offline:
        return  # it went offline a moment ago, and that postpones this row
    if name == "play" and not state.endpoints.start(_play_flow(state, planned)):
        later = {"due_ms": state.clock.now_ms() + _RETRY_PLAY_MS}
        await state.store.run([PLANNED_ACTIONS.update(later, id=planned.id)])
        return
    act = _prepare(state, planned, number, action)

    def write(transaction: Transaction) -> None:
        act(transaction)
        transaction.run(drop)
        if name != "return":
            transaction.run((COUNT_DONE_STEP, (planned.owner, planned.step)))
        if name == "offline" and action["for_ms"] is not None:  # else only a request brings it back
            due_ms = state.clock.now_ms() + action["for_ms"]
            back = replace(planned, due_ms=due_ms, after_ms=action["for_ms"], action={"do": "return"})
            transaction.run(PLANNED_ACTIONS.insert(back))

    await state.transact(write)


def _prepare(
    state: SimulatorState, planned: PlannedAction, number: Number, action: dict[str, Any]
) -> Callable[[Transaction], Any]:
    """Return the function that carries out an action in a transaction."""
    phone, options, message = planned.phone, InboundOptions(context_id=planned.wamid), None
    match action["do"]:
        case "block":
            return block(state, phone, number, blocks=True)
        case "report":
            return report_spam(state, phone, number, planned.wamid)
        case "opt_out":
            return set_marketing_preference(state, phone, number, wants=False)
        case "offline":
            return go_offline(state, phone)
        case "return":
            return go_online(state, phone)
        case "play":
            return lambda _transaction: None  # it has begun, and its endpoint must not hold up the other actions
        case "tap":
            message = build_tap(action["button"])
        case "respond":
            message = build_response(action["button"], action["response"])
        case "reply":
            message = build_text_message(action["text"])
        case "react":
            options = InboundOptions()
            message = build_message("reaction", {"message_id": planned.wamid, "emoji": action["text"]})
        case _:
            pass
    if message is None:
        raise ValueError(f"unknown action {action['do']!r}")
    return send_message(state, phone, number, message, options)


async def _play_flow(state: SimulatorState, planned: PlannedAction) -> None:
    """Open the flow of a message and fill it in; where the handset does not allow a step, the person leaves it open."""
    steps = msgspec.convert(planned.action["steps"], list[FlowStep])
    try:
        for message in await MESSAGES.find(state.store, wamid=planned.wamid, phone=planned.phone):
            await open_flow(state, message, restart=True, origin="")
            await play_steps(state, planned.phone, planned.wamid, steps, origin="")
    except ControlApiError as error:
        _SIMULATOR_LOG.info("a script cannot fill in the flow", phone=planned.phone, reason=str(error))
    except Exception as error:  # noqa: BLE001  a defect, or a store that is away, is not the loop's
        _SIMULATOR_LOG.error("planned action failed", action_id=planned.id, step=planned.step, error=repr(error))
