"""Every script there is, and the rows in which what they decide is kept (decision 0036)."""

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
    """What a phone will do about one message.

    Args:
        says_reading: whether the script decides about reading; if not, the phone's habits do.
        read_after_ms: from delivery; None: it is not read by itself.
        acts: what it will do, and when.
        chosen: owner and step, which are counted.
        uses: keep how often it has done what it does only so many times.
    """

    says_reading: bool = False
    read_after_ms: int | None = None
    acts: tuple[PlannedAct, ...] = ()
    chosen: tuple[tuple[str, int], ...] = ()
    uses: tuple[Statement, ...] = ()

    def put_off(self) -> "Plan":
        """The same, with acts that wait until the message arrives, whenever that is."""
        acts = tuple(replace(act, due_ms=None) for act in self.acts)
        return Plan(self.says_reading, self.read_after_ms, acts, self.chosen, self.uses)


NO_PLAN: Final = Plan()


class Scripts:
    """Every script, how many messages each scripted phone has had, and how often it did what."""

    def __init__(self, store: Store, fleets: Fleets, phones: Phones) -> None:
        self._store = store
        self._fleets = fleets
        self._phones = phones
        self._received: dict[str, int] = {}
        self._uses = LoadedKind(store, "script_use", dict[int, int])  # by step: of a script's owner, by phone
        store.at_reset(self._received.clear)

    async def open(self) -> None:
        """Count what the scripted phones have received."""
        for phone in self._phones.all.values():
            if phone.script:
                await self._count(phone.phone, phone.phone)
        for fleet in self._fleets.by_name.values():
            await self.learn_fleet(fleet)

    async def learn_fleet(self, fleet: Fleet) -> None:
        """A fleet is there whose script applies from now on."""
        if fleet.steps:
            await self._count(*fleet.range)

    async def begin(self, phone: str, steps: Sequence[Step]) -> list[Statement]:
        """A phone is about to get another script: the statements that drop what its earlier one planned."""
        if steps:
            await self._count(phone, phone)
        self._uses.pop_owner(_owner(phone))
        return self._begin_statements(_owner(phone), len(steps))

    def of(self, phone: str) -> Script | None:
        """The script that a phone follows: its own, else its fleet's."""
        script = self.own(phone)
        if script is not None:
            return script
        fleet = self._fleets.of(phone)
        return None if fleet is None else fleet.phone_script

    def own(self, phone: str) -> Script | None:
        """The phone's own script."""
        known = self._phones.all.get(phone)
        return _script_of(phone, known.seed, known.script) if known is not None and known.script else None

    def plan(
        self, phone: str, phone_number_id: str, wamid: str, shown: Shown, *, arrives_ms: int | None, is_delivered: bool
    ) -> Plan:
        """Decide what a phone will do about a message that is being taken; it is counted as received.

        Args:
            phone: its digits.
            phone_number_id: the sender.
            wamid: the message's id.
            shown: what the phone will show.
            arrives_ms: when; None: when the phone is back.
            is_delivered: False: it will never arrive, and nothing is done.
        """
        script = self.of(phone)
        if script is None or not script.steps:
            return NO_PLAN
        ordinal = self._received[phone] = self._received.get(phone, 0) + 1
        if not is_delivered:
            return NO_PLAN
        before = self._uses.of(script.owner).get(phone, {})
        uses = {step: before.get(step, 0) for step, one in enumerate(script.steps) if one.times is not None}
        chosen = intentions(script, phone, ordinal, shown, uses)
        acts: list[PlannedAct] = []
        counted: dict[int, int] = {}
        read_after_ms: int | None = None
        for one in chosen:
            if one.step in uses:
                counted[one.step] = uses[one.step] + 1
            if script.steps[one.step].do == "read":
                sooner = one.after_ms if read_after_ms is None else min(read_after_ms, one.after_ms)
                read_after_ms = sooner
            elif one.act:
                due_ms = None if arrives_ms is None else arrives_ms + one.after_ms
                act = _encode(one.act).decode()
                planned = PlannedAct(
                    due_ms, one.after_ms, phone, phone_number_id, wamid, script.owner, one.step, act
                )  # fmt: skip
                acts.append(planned)
        if counted:
            self._uses.put({**before, **counted}, phone, script.owner)
        return Plan(
            says_reading=any(step.do == "read" for step in script.steps),
            read_after_ms=read_after_ms,
            acts=tuple(acts),
            chosen=tuple((script.owner, one.step) for one in chosen),
            uses=(self._uses.save_statement({**before, **counted}, phone, script.owner),) if counted else (),
        )

    async def counts(self, owner: str, steps: Sequence[Step]) -> list[dict[str, Any]]:
        """Of each step how often it was decided on, and how often it has been done."""
        found = {count.step: count for count in await STEPS.find(self._store, owner=owner)}
        views: list[dict[str, Any]] = []
        for place, step in enumerate(steps):
            count = found.get(place, StepCount(owner, place))
            view = {"step": place, "on": step.on, "do": step.do, "planned": count.planned}
            views.append(view if step.do in _UNPLANNED else view | {"done": count.done})
        return views

    def begin_fleet(self, fleet: Fleet, *, steps: int) -> list[Statement]:
        """The phones of a fleet are about to begin anew: the statements that drop what they did and will do."""
        self._uses.pop_owner(fleet.owner)
        self._uses.pop_range(*fleet.range)
        return [
            *drop_range(*fleet.range), *self._begin_statements(fleet.owner, steps),
            self._uses.delete_range_statement(*fleet.range),
        ]  # fmt: skip

    def _begin_statements(self, owner: str, steps: int) -> list[Statement]:
        """The statements that drop what a script planned and counted, and begin to count so many steps."""
        dropped = [ACTS.delete(owner=owner), STEPS.delete(owner=owner), self._uses.delete_owner_statement(owner)]
        return dropped + [STEPS.insert(StepCount(owner, step)) for step in range(steps)]

    async def _count(self, first: str, last: str) -> None:
        self._received.update(await messages.received_counts(self._store, first, last))


def _owner(phone: str) -> str:
    return f"phone {phone}"


@lru_cache(maxsize=16_384)
def _script_of(phone: str, seed: str, script: str) -> Script:
    return Script(_owner(phone), seed, read_steps(msgspec.json.decode(script)))
