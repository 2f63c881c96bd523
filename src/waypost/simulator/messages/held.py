"""Messages that are held until their template's quality is known, and what then becomes of them."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from waypost.base.clock import Clock
from waypost.simulator.messages.receptions import Reception
from waypost.simulator.messages.takings import ADD_WAITING
from waypost.simulator.phones.conditions import lifetime_ms
from waypost.simulator.phones.phones import Phones
from waypost.simulator.store import Row, Store
from waypost.simulator.templates.template import Template
from waypost.simulator.webhooks.outbox import ADD_UPDATE, Outbox

DROPPED_WITH: Final = 132015  # Source: facts 3.2, "pacing"
_HOLD: Final = "INSERT INTO held VALUES (?,?,?)"
_LET_GO: Final = "DELETE FROM held WHERE wamid=?"
_OF: Final = "SELECT wamid, body FROM held WHERE template_id=?"
_SET: Final = "UPDATE messages SET delivered_ms=?, read_ms=?, failed_ms=?, failed_code=? WHERE wamid=?"
_RESUME_ACTS: Final = "UPDATE planned_acts SET due_ms=?+after_ms WHERE wamid=? AND due_ms IS NULL"
_DROP_ACTS: Final = "DELETE FROM planned_acts WHERE wamid=?"
_DUE, _ID, _KIND, _REST = 1, 2, 3, 6  # places in a row of the outbox


class _Plan(msgspec.Struct, frozen=True):
    """What a held message will have: `updates` when it is released, `dropped` when it is not.

    Its times are as if it were released at `at_ms`.
    """

    waba_id: str
    phone: str
    phone_number_id: str
    position: int
    at_ms: int
    fate: tuple[int | None, int | None]
    failed: tuple[int | None, int | None]  # when, and with which code
    is_awaited: bool  # its phone was offline
    lives_ms: int
    read_after_ms: int | None
    updates: list[Any]
    dropped: list[Any]


class Held:
    """Keeps held messages in the file, and knows which templates have any."""

    def __init__(self, store: Store, clock: Clock, outbox: Outbox, phones: Phones) -> None:
        self._store = store
        self._clock = clock
        self._outbox = outbox
        self._phones = phones
        self.template_ids: set[str] = set()

    async def open(self) -> None:
        """Learn which templates have held messages."""
        rows = await self._store.rows("SELECT DISTINCT template_id FROM held")
        self.template_ids = {template_id for (template_id,) in rows}

    def hold(
        self,
        template: Template,
        message: Row,
        waba_id: str,
        reception: Reception,
        updates: Sequence[Row],
        dropped: Sequence[Row],
    ) -> tuple[str, Row]:
        """Hold a message that is being taken; the statement belongs into its transaction.

        Args:
            template: what it is sent with.
            message: its row, whose own times must be empty.
            waba_id: who sends.
            reception: when it would arrive and be read if it were not held.
            updates: its statuses in that case.
            dropped: its statuses if it is not released.
        """
        fate = reception.fate
        read_after_ms = reception.read_after_ms
        if fate.delivered_ms is not None and fate.read_ms is not None:
            read_after_ms = fate.read_ms - fate.delivered_ms
        plan = _Plan(
            waba_id=waba_id,
            phone=message[2],
            phone_number_id=message[3],
            position=message[0],
            at_ms=message[6],
            fate=(fate.delivered_ms, fate.read_ms),
            failed=(fate.failed_ms, fate.failed_code),
            is_awaited=reception.until_ms is not None,
            lives_ms=lifetime_ms(template),
            read_after_ms=read_after_ms,
            updates=[list(row) for row in updates],
            dropped=[list(row) for row in dropped],
        )
        self.template_ids.add(template.template_id)
        return _HOLD, (message[1], template.template_id, msgspec.json.encode(plan).decode())

    def unsettled(self, find: Callable[[str], Template | None]) -> list[tuple[str, bool]]:
        """Templates whose held messages have had their verdict: the ids, and whether it is good."""
        found = [(template_id, find(template_id)) for template_id in sorted(self.template_ids)]
        return [
            (template_id, template is not None and template.pace_verdict == "release")
            for template_id, template in found
            if template is None or not template.is_paced
        ]

    async def settle(self, template_id: str, *, is_released: bool) -> list[str]:
        """Let go of a template's held messages, all in one transaction; gives their phones."""
        rows = await self._store.rows(_OF, (template_id,))
        plans = [(wamid, msgspec.json.decode(body, type=_Plan)) for wamid, body in rows]
        statements = [
            statement for wamid, plan in plans for statement in self._let_go(wamid, plan, is_released=is_released)
        ]
        self.template_ids.discard(template_id)
        if statements:
            await self._store.run(statements)
        for waba_id in {plan.waba_id for _, plan in plans}:
            self._outbox.wake_of(waba_id).set()
        return [plan.phone for _, plan in plans]

    def forget(self) -> None:
        """Drop everything from memory; the file is the caller's matter."""
        self.template_ids.clear()

    def _let_go(self, wamid: str, plan: _Plan, *, is_released: bool) -> list[tuple[str, Row]]:
        now_ms = self._clock.now_ms()
        let_go: list[tuple[str, Row]] = [(_LET_GO, (wamid,))]
        if not is_released:
            let_go += [(_SET, (None, None, now_ms, DROPPED_WITH, wamid)), (_DROP_ACTS, (wamid,))]
            return let_go + self._later(plan.dropped, now_ms - plan.at_ms)
        if self._phones.known(plan.phone).is_offline:
            rest = plan.updates[0][_REST] if plan.updates else ""
            waiting: Row = (
                plan.phone, plan.position, wamid, plan.waba_id, plan.phone_number_id,
                now_ms + plan.lives_ms, 0, plan.read_after_ms, rest,
            )  # fmt: skip
            let_go.append((ADD_WAITING, waiting))
            return let_go + self._later(plan.updates[:1], now_ms - plan.at_ms)
        fate, updates = plan.fate, plan.updates
        if plan.is_awaited:  # its phone has come back meanwhile
            fate = (plan.at_ms, None)
            updates = [
                [*row[:_KIND], kind, *row[_KIND + 1 :]] for row in plan.updates[:1] for kind in ("sent", "delivered")
            ]
        late_ms = now_ms - plan.at_ms
        delivered_ms, read_ms = (None if at is None else at + late_ms for at in fate)
        failed_ms, failed_code = plan.failed
        failed_ms = None if failed_ms is None else failed_ms + late_ms
        let_go.append((_SET, (delivered_ms, read_ms, failed_ms, failed_code, wamid)))
        let_go.append((_RESUME_ACTS, (delivered_ms, wamid)))
        return let_go + self._later(updates, late_ms)

    def _later(self, updates: Sequence[Any], by_ms: int) -> list[tuple[str, Row]]:
        return [
            (ADD_UPDATE, (*row[:_DUE], row[_DUE] + by_ms, self._outbox.next_id(), *row[_ID + 1 :])) for row in updates
        ]
