"""Every script, and the rows that store their decisions (decision 0036)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from waypost.simulator.keyed_store import LoadedKind
from waypost.simulator.phones.fleets import Fleet, Fleets
from waypost.simulator.phones.intentions import Script, intentions
from waypost.simulator.phones.phones import Phones
from waypost.simulator.phones.script_steps import Shown, Step, read_steps
from waypost.simulator.store import Statement, Store
from waypost.simulator.tables import messages
from waypost.simulator.tables.phone_plans import ACTS, STEPS, PlannedAct, StepCount, drop_range

_UNPLANNED: Final = frozenset({"read", "nothing"})
_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Plan:
    """The plan of a phone's script for one message.

    Args:
        says_reading: whether the script decides about reading; if not, the phone's settings do.
        read_after_ms: from delivery; None: it is not read automatically.
        acts: the planned actions.
        chosen: owner and step of each planned step, to be counted.
        uses: store how often steps with `times` have been taken.
    """

    says_reading: bool = False
    read_after_ms: int | None = None
    acts: tuple[PlannedAct, ...] = ()
    chosen: tuple[tuple[str, int], ...] = ()
    uses: tuple[Statement, ...] = ()

    def put_off(self) -> "Plan":
        """Return the same plan with actions that wait until the message arrives."""
        acts = tuple(replace(act, due_ms=None) for act in self.acts)
        return Plan(self.says_reading, self.read_after_ms, acts, self.chosen, self.uses)


NO_PLAN: Final = Plan()


class Scripts:
    """Every script, how many messages each scripted phone has received, and how often each step was taken."""

    def __init__(self, store: Store, fleets: Fleets, phones: Phones) -> None:
        self._store = store
        self._fleets = fleets
        self._phones = phones
        self._received: dict[str, int] = {}
        self._uses = LoadedKind(store, "script_use", dict[int, int])  # by step: of a script's owner, by phone
        store.at_reset(self._received.clear)

    async def open(self) -> None:
        """Count the messages that the scripted phones have received."""
        for phone in self._phones.all.values():
            if phone.script:
                await self._count(phone.phone, phone.phone)
        for fleet in self._fleets.by_name.values():
            await self.learn_fleet(fleet)

    async def learn_fleet(self, fleet: Fleet) -> None:
        """Load the message counts of a fleet whose script applies from now on."""
        if fleet.steps:
            await self._count(*fleet.range)

    async def begin(self, phone: str, steps: Sequence[Step]) -> list[Statement]:
        """Prepare a phone for a new script; return the statements that delete the earlier one's plans."""
        if steps:
            await self._count(phone, phone)
        self._uses.pop_owner(_owner(phone))
        return self._begin_statements(_owner(phone), len(steps))

    def of(self, phone: str) -> Script | None:
        """Return the script of a phone: its own, else its fleet's; None if there is none."""
        script = self.own(phone)
        if script is not None:
            return script
        fleet = self._fleets.of(phone)
        return None if fleet is None else fleet.phone_script

    def own(self, phone: str) -> Script | None:
        """Return the phone's own script; None if it has none."""
        known = self._phones.all.get(phone)
        return _script_of(phone, known.seed, known.script) if known is not None and known.script else None

    def plan(
        self, phone: str, phone_number_id: str, wamid: str, shown: Shown, *, arrives_ms: int | None, is_delivered: bool
    ) -> Plan:
        """Plan what a phone will do about a message that is being accepted, and count the message as received.

        Args:
            phone: its digits.
            phone_number_id: the sender.
            wamid: the message's id.
            shown: the message as the phone will show it.
            arrives_ms: when it arrives; None: when the phone is online again.
            is_delivered: False: it will never arrive, and nothing is planned.
        """
        script = self.of(phone)
        if script is None or not script.steps:
            return NO_PLAN
        ordinal = self._received[phone] = self._received.get(phone, 0) + 1
        if not is_delivered:
            return NO_PLAN
        earlier_uses = self._uses.of(script.owner).get(phone, {})
        uses = {index: earlier_uses.get(index, 0) for index, step in enumerate(script.steps) if step.times is not None}
        chosen = intentions(script, phone, ordinal, shown, uses)
        actions: list[PlannedAct] = []
        counted: dict[int, int] = {}
        read_after_ms: int | None = None
        for planned_step in chosen:
            if planned_step.step in uses:
                counted[planned_step.step] = uses[planned_step.step] + 1
            if script.steps[planned_step.step].do == "read":
                sooner = planned_step.after_ms if read_after_ms is None else min(read_after_ms, planned_step.after_ms)
                read_after_ms = sooner
            elif planned_step.act:
                due_ms = None if arrives_ms is None else arrives_ms + planned_step.after_ms
                action_json = _encode(planned_step.act).decode()
                action = PlannedAct(
                    due_ms, planned_step.after_ms, phone, phone_number_id, wamid, script.owner, planned_step.step, action_json
                )  # fmt: skip
                actions.append(action)
        if counted:
            self._uses.put({**earlier_uses, **counted}, phone, script.owner)
        return Plan(
            says_reading=any(step.do == "read" for step in script.steps),
            read_after_ms=read_after_ms,
            acts=tuple(actions),
            chosen=tuple((script.owner, planned_step.step) for planned_step in chosen),
            uses=(self._uses.save_statement({**earlier_uses, **counted}, phone, script.owner),) if counted else (),
        )

    async def counts(self, owner: str, steps: Sequence[Step]) -> list[dict[str, Any]]:
        """Return for each step how often it was planned, and how often it was done."""
        counts = {count.step: count for count in await STEPS.find(self._store, owner=owner)}
        views: list[dict[str, Any]] = []
        for index, step in enumerate(steps):
            count = counts.get(index, StepCount(owner, index))
            view = {"step": index, "on": step.on, "do": step.do, "planned": count.planned}
            views.append(view if step.do in _UNPLANNED else view | {"done": count.done})
        return views

    def begin_fleet(self, fleet: Fleet, *, steps: int) -> list[Statement]:
        """Reset the phones of a fleet; return the statements that delete their counts and plans."""
        self._uses.pop_owner(fleet.owner)
        self._uses.pop_range(*fleet.range)
        return [
            *drop_range(*fleet.range), *self._begin_statements(fleet.owner, steps),
            self._uses.delete_range_statement(*fleet.range),
        ]  # fmt: skip

    def _begin_statements(self, owner: str, steps: int) -> list[Statement]:
        """Return the statements that delete a script's plans and counts, and start the counts of its steps."""
        dropped = [ACTS.delete(owner=owner), STEPS.delete(owner=owner), self._uses.delete_owner_statement(owner)]
        return dropped + [STEPS.insert(StepCount(owner, step)) for step in range(steps)]

    async def _count(self, first: str, last: str) -> None:
        self._received.update(await messages.received_counts(self._store, first, last))


def _owner(phone: str) -> str:
    return f"phone {phone}"


@lru_cache(maxsize=16_384)
def _script_of(phone: str, seed: str, script: str) -> Script:
    return Script(_owner(phone), seed, read_steps(msgspec.json.decode(script)))
