"""Actions that scripts have planned: rows with due times, run in batches by one loop.

An action and the deletion of its row are one transaction: after a crash nothing is done twice.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from waypost.base.clock import Clock
from waypost.base.loops import Loop
from waypost.base.telemetry.logs import log
from waypost.simulator.accounts.accounts import Accounts, Number
from waypost.simulator.handsets.feedback import PhoneFeedback
from waypost.simulator.handsets.handsets import Handsets
from waypost.simulator.handsets.inbound_kinds import Said, answered, said, tapped, text_said
from waypost.simulator.handsets.inbound_options import Manner
from waypost.simulator.handsets.reachability import Absences
from waypost.simulator.messages.delivery_signals import Arrivals
from waypost.simulator.phones.phones import Phones
from waypost.simulator.store import STORE_FAILURES, Statement, Store
from waypost.simulator.tables.phone_plans import ACTS, PlannedAct, count_done, due_acts, next_act_ms

_LOG = log("simulator")
_FAR_MS: Final = 3_600_000
_AT_ONCE: Final = 500


class PlannedActs:
    """Runs the planned actions that are due."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        accounts: Accounts,
        phones: Phones,
        arrivals: Arrivals,
        handsets: Handsets,
        absences: Absences,
        feedback: PhoneFeedback,
    ) -> None:
        self._store = store
        self._clock = clock
        self._accounts = accounts
        self._phones = phones
        self._arrivals = arrivals
        self._handsets = handsets
        self._absences = absences
        self._feedback = feedback
        self.loop = Loop("planned actions", self._do, self._wait, log=_LOG)

    async def next_due_ms(self) -> int | None:
        """Return when the next action is due; None if none is planned."""
        return await next_act_ms(self._store)

    async def do_due(self) -> int | None:
        """Run one batch; return until when nothing is due, or None if there may be more."""
        now_ms = self._clock.now_ms()
        actions = await due_acts(self._store, now_ms, _AT_ONCE)
        if not actions:
            due_ms = await self.next_due_ms()
            return now_ms + _FAR_MS if due_ms is None else due_ms
        results = await asyncio.gather(*map(self._carry_out, actions), return_exceptions=True)
        failure = next((result for result in results if isinstance(result, STORE_FAILURES)), None)
        if failure is not None:  # not a defect of an action: those that were not done stay due
            raise failure
        for action, result in zip(actions, results, strict=True):
            if isinstance(result, BaseException):
                _LOG.error("planned action failed", action_id=action.id, step=action.step, error=repr(result))
                await self._store.run([ACTS.delete(id=action.id)])
        return None

    async def _do(self) -> int | None:
        self._arrivals.planned.clear()
        return await self.do_due()

    async def _wait(self, until_ms: int | None) -> None:
        if until_ms is not None:
            await self._clock.wait(self._arrivals.planned, until_ms=until_ms)

    async def _carry_out(self, planned: PlannedAct) -> None:
        number = self._accounts.numbers.get(planned.phone_number_id)
        drop = ACTS.delete(id=planned.id)
        action: dict[str, Any] = msgspec.json.decode(planned.act)
        name, phone = action["do"], self._phones.known(planned.phone)
        if number is None or (name != "return" and planned.phone_number_id in phone.has_blocked):
            await self._store.run([drop])
            return
        if name != "return" and phone.is_offline:
            return  # it went offline a moment ago, and that postpones this row
        extra_statements = [drop, count_done(planned.owner, planned.step)]
        message = _words(planned, action)
        if message is not None:
            options = Manner(context_id=None if name == "react" else planned.wamid)
            await self._handsets.say(planned.phone, number, message, options, also=extra_statements)
            return
        await self._otherwise(planned, number, action, extra_statements)

    async def _otherwise(
        self, planned: PlannedAct, number: Number, act: dict[str, Any], also: Sequence[Statement]
    ) -> None:
        phone = planned.phone
        match act["do"]:
            case "block":
                await self._absences.block(phone, number, blocks=True, also=also)
            case "report":
                await self._feedback.report(phone, number, planned.wamid, also=also)
            case "opt_out":
                await self._feedback.want_marketing(phone, number, wants=False, also=also)
            case "offline":
                await self._absences.leave(phone, [*also, *self._return_of(planned, act["for_ms"])])
            case "return":
                await self._absences.come_back(phone, also[:1])
            case name:
                raise ValueError(f"unknown action {name!r}")

    def _return_of(self, planned: PlannedAct, for_ms: int | None) -> list[Statement]:
        """Return the action that brings an offline phone back; none if only a request does."""
        if for_ms is None:
            return []
        due_ms = self._clock.now_ms() + for_ms
        return [ACTS.insert(replace(planned, due_ms=due_ms, after_ms=for_ms, act='{"do":"return"}'))]


def _words(planned: PlannedAct, act: dict[str, Any]) -> Said | None:
    """Return the message that an action sends; None if it sends none."""
    match act["do"]:
        case "tap":
            return tapped(act["button"])
        case "respond":
            return answered(act["button"], act["response"])
        case "answer":
            return text_said(act["text"])
        case "react":
            return said("reaction", {"message_id": planned.wamid, "emoji": act["text"]})
        case _:
            return None
