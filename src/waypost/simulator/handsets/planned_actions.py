"""Actions that scripts have planned: rows with due times, run in batches by one loop.

An action and the deletion of its row are one transaction: after a crash nothing is done twice.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from waypost.base.clock import Clock
from waypost.base.loops import Loop
from waypost.base.telemetry.logs import log
from waypost.base.written_numbers import json_decoder
from waypost.simulator.accounts.accounts import Accounts, Number
from waypost.simulator.delivery_signals import DeliverySignals
from waypost.simulator.handsets.feedback import PhoneFeedback
from waypost.simulator.handsets.handsets import Handsets
from waypost.simulator.handsets.phone_messages import (
    InboundOptions,
    PhoneMessage,
    build_message,
    build_response,
    build_tap,
    build_text_message,
)
from waypost.simulator.handsets.reachability import PhoneReachability
from waypost.simulator.phones.phones import Phones
from waypost.simulator.store import STORE_FAILURES, Statement, Store
from waypost.simulator.tables.phone_plans import (
    PLANNED_ACTIONS,
    PlannedAction,
    count_done_step,
    find_due_actions,
    next_action_ms,
)

_SIMULATOR_LOG = log("simulator")
_MAX_IDLE_MS: Final = 3_600_000
_BATCH_SIZE: Final = 500


class PlannedActionRunner:
    """Runs the planned actions that are due."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        accounts: Accounts,
        phones: Phones,
        signals: DeliverySignals,
        handsets: Handsets,
        reachability: PhoneReachability,
        feedback: PhoneFeedback,
    ) -> None:
        self._store = store
        self._clock = clock
        self._accounts = accounts
        self._phones = phones
        self._signals = signals
        self._handsets = handsets
        self._reachability = reachability
        self._feedback = feedback
        self.loop = Loop("planned actions", self._run_batch, self._wait, log=_SIMULATOR_LOG)

    async def next_due_ms(self) -> int | None:
        """Return when the next action is due; None if none is planned."""
        return await next_action_ms(self._store)

    async def run_due(self) -> int | None:
        """Run one batch; return until when nothing is due, or None if there may be more."""
        now_ms = self._clock.now_ms()
        actions = await find_due_actions(self._store, now_ms, _BATCH_SIZE)
        if not actions:
            due_ms = await self.next_due_ms()
            return now_ms + _MAX_IDLE_MS if due_ms is None else due_ms
        results = await asyncio.gather(*map(self._run_action, actions), return_exceptions=True)
        failure = next((result for result in results if isinstance(result, STORE_FAILURES)), None)
        if failure is not None:  # not a defect of an action: those that were not done stay due
            raise failure
        for action, result in zip(actions, results, strict=True):
            if isinstance(result, BaseException):
                _SIMULATOR_LOG.error("planned action failed", action_id=action.id, step=action.step, error=repr(result))
                await self._store.run([PLANNED_ACTIONS.delete(id=action.id)])
        return None

    async def _run_batch(self) -> int | None:
        self._signals.actions_planned.clear()
        return await self.run_due()

    async def _wait(self, until_ms: int | None) -> None:
        if until_ms is not None:
            await self._clock.wait(self._signals.actions_planned, until_ms=until_ms)

    async def _run_action(self, planned: PlannedAction) -> None:
        number = self._accounts.numbers.get(planned.phone_number_id)
        drop = PLANNED_ACTIONS.delete(id=planned.id)
        action: dict[str, Any] = json_decoder().decode(planned.act)
        name, phone = action["do"], self._phones.find_or_default(planned.phone)
        if number is None or (name != "return" and planned.phone_number_id in phone.has_blocked):
            await self._store.run([drop])
            return
        if name != "return" and phone.is_offline:
            return  # it went offline a moment ago, and that postpones this row
        extra_statements = [drop, count_done_step(planned.owner, planned.step)]
        message = _build_action_message(planned, action)
        if message is not None:
            options = InboundOptions(context_id=None if name == "react" else planned.wamid)
            await self._handsets.send_message(
                planned.phone, number, message, options, extra_statements=extra_statements
            )
            return
        await self._change_phone(planned, number, action, extra_statements)

    async def _change_phone(
        self, planned: PlannedAction, number: Number, action: dict[str, Any], extra_statements: Sequence[Statement]
    ) -> None:
        phone = planned.phone
        match action["do"]:
            case "block":
                await self._reachability.block(phone, number, blocks=True, extra_statements=extra_statements)
            case "report":
                await self._feedback.report_spam(phone, number, planned.wamid, extra_statements=extra_statements)
            case "opt_out":
                await self._feedback.set_marketing_preference(
                    phone, number, wants=False, extra_statements=extra_statements
                )
            case "offline":
                await self._reachability.go_offline(
                    phone, [*extra_statements, *self._plan_return(planned, action["for_ms"])]
                )
            case "return":
                await self._reachability.go_online(phone, extra_statements[:1])
            case name:
                raise ValueError(f"unknown action {name!r}")

    def _plan_return(self, planned: PlannedAction, for_ms: int | None) -> list[Statement]:
        """Return the action that brings an offline phone back; none if only a request does."""
        if for_ms is None:
            return []
        due_ms = self._clock.now_ms() + for_ms
        return [PLANNED_ACTIONS.insert(replace(planned, due_ms=due_ms, after_ms=for_ms, act='{"do":"return"}'))]


def _build_action_message(planned: PlannedAction, action: dict[str, Any]) -> PhoneMessage | None:
    """Return the message that an action sends; None if it sends none."""
    match action["do"]:
        case "tap":
            return build_tap(action["button"])
        case "respond":
            return build_response(action["button"], action["response"])
        case "reply":
            return build_text_message(action["text"])
        case "react":
            return build_message("reaction", {"message_id": planned.wamid, "emoji": action["text"]})
        case _:
            return None
