"""Every script, and the rows that store their decisions (decision 0036)."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from msgspec.structs import replace

from waypost.base.written_numbers import json_decoder
from waypost.simulator.state.fleets import Fleet, Fleets
from waypost.simulator.state.phones import Phones
from waypost.simulator.state.script_steps import RenderedMessage, Script, ScriptStep, plan_steps, read_steps
from waypost.simulator.storage.keyed_store import StoredKind
from waypost.simulator.storage.store import Statement, Store
from waypost.simulator.storage.tables import messages
from waypost.simulator.storage.tables.phone_plans import (
    PLANNED_ACTIONS,
    STEP_COUNTS,
    PlannedAction,
    StepCount,
    delete_range,
)

_USES: Final = StoredKind("script_use", dict[int, int])  # by step: of a script's owner, by phone
_UNPLANNED: Final = frozenset({"read", "nothing"})


@dataclass(frozen=True)
class ScriptPlan:
    """The plan of a phone's script for one message."""

    decides_reading: bool = False  # whether the script decides about reading; if not, the phone's settings do
    read_after_ms: int | None = None  # from delivery; None: it is not read automatically
    actions: tuple[PlannedAction, ...] = ()  # the planned actions
    counted_steps: tuple[tuple[str, int], ...] = ()  # owner and step of each planned step, to be counted

    def postpone(self) -> "ScriptPlan":
        """Return the same plan with actions that wait until the message arrives."""
        return dataclasses.replace(self, actions=tuple(replace(action, due_ms=None) for action in self.actions))


NO_PLAN: Final = ScriptPlan()


class Scripts:
    """Every script, how many messages each scripted phone has received, and how often each step was taken."""

    def __init__(self, store: Store, fleets: Fleets, phones: Phones) -> None:
        self._store = store
        self._fleets = fleets
        self._phones = phones
        self._received: dict[str, int] = {}
        self._uses = _USES.cached_in(store)
        store.register_reset(self._received.clear)

    async def open(self) -> None:
        """Count the messages that the scripted phones have received."""
        for phone in self._phones.by_digits.values():
            if phone.script:
                await self._load_received_counts(phone.phone, phone.phone)
        for fleet in self._fleets.by_name.values():
            await self.add_fleet(fleet)

    async def add_fleet(self, fleet: Fleet) -> None:
        """Load the message counts of a fleet whose script applies from now on."""
        if fleet.steps:
            await self._load_received_counts(*fleet.range)

    async def replace_script(self, phone: str, steps: Sequence[ScriptStep]) -> list[Statement]:
        """Prepare a phone for a new script; return the statements that delete the earlier one's plans."""
        if steps:
            await self._load_received_counts(phone, phone)
        self._uses.pop_owner(_script_owner(phone))
        return self._reset_statements(_script_owner(phone), len(steps))

    def find_script(self, phone: str) -> Script | None:
        """Return the script of a phone: its own, else its fleet's; None if there is none."""
        script = self.find_own_script(phone)
        if script is not None:
            return script
        fleet = self._fleets.find_fleet(phone)
        return None if fleet is None else fleet.phone_script

    def find_own_script(self, phone: str) -> Script | None:
        """Return the phone's own script; None if it has none."""
        known = self._phones.by_digits.get(phone)
        return _decode_script(phone, known.seed, known.script) if known is not None and known.script else None

    def plan_message(
        self,
        phone: str,
        phone_number_id: str,
        wamid: str,
        rendered: RenderedMessage,
        *,
        arrives_ms: int | None,
        is_delivered: bool,
    ) -> ScriptPlan:
        """Plan what a phone will do about a message that is being accepted, and count the message as received.

        Args:
            phone_number_id: the sender.
            rendered: the message as the phone will show it.
            arrives_ms: when it arrives; None: when the phone is online again.
            is_delivered: False: it will never arrive, and nothing is planned.
        """
        script = self.find_script(phone)
        if script is None or not script.steps:
            return NO_PLAN
        ordinal = self._received[phone] = self._received.get(phone, 0) + 1
        if not is_delivered:
            return NO_PLAN
        earlier_uses = self._uses.values_of(script.owner).get(phone, {})
        uses = {index: earlier_uses.get(index, 0) for index, step in enumerate(script.steps) if step.times is not None}
        chosen = plan_steps(script, phone, ordinal, rendered, uses)
        actions: list[PlannedAction] = []
        counted: dict[int, int] = {}
        read_after_ms: int | None = None
        for planned in chosen:
            index, after_ms = planned.step, planned.after_ms
            if index in uses:
                counted[index] = uses[index] + 1
            if script.steps[index].do == "read":
                read_after_ms = after_ms if read_after_ms is None else min(read_after_ms, after_ms)
            elif planned.action:
                due_ms = None if arrives_ms is None else arrives_ms + after_ms
                step = (script.owner, index, planned.action)
                actions.append(PlannedAction(due_ms, after_ms, phone, phone_number_id, wamid, *step))
        if counted:
            now_used = {**earlier_uses, **counted}
            self._uses.put(now_used, phone, script.owner)
            self._store.write_soon([_USES.save_statement(now_used, phone, script.owner)])
        return ScriptPlan(
            decides_reading=any(step.do == "read" for step in script.steps),
            read_after_ms=read_after_ms,
            actions=tuple(actions),
            counted_steps=tuple((script.owner, planned.step) for planned in chosen),
        )

    async def counts(self, owner: str, steps: Sequence[ScriptStep]) -> list[dict[str, Any]]:
        """Return for each step how often it was planned, and how often it was done."""
        counts = {count.step: count for count in await STEP_COUNTS.find(self._store, owner=owner)}
        views: list[dict[str, Any]] = []
        for index, step in enumerate(steps):
            count = counts.get(index, StepCount(owner, index))
            view = {"step": index, "on": step.on, "do": step.do, "planned": count.planned}
            views.append(view if step.do in _UNPLANNED else view | {"done": count.done})
        return views

    def reset_fleet(self, fleet: Fleet, *, steps: int) -> tuple[list[Statement], Callable[[], None]]:
        """Return the statements that delete a fleet's counts and plans, and the function that does so in memory."""

        def clear() -> None:
            self._uses.pop_owner(fleet.owner)
            self._uses.pop_range(*fleet.range)

        return [
            *delete_range(*fleet.range),
            *self._reset_statements(fleet.owner, steps),
            _USES.delete_range_statement(*fleet.range),
        ], clear

    def _reset_statements(self, owner: str, steps: int) -> list[Statement]:
        """Return the statements that delete a script's plans and counts, and start the counts of its steps."""
        dropped = [
            PLANNED_ACTIONS.delete(owner=owner),
            STEP_COUNTS.delete(owner=owner),
            _USES.delete_owner_statement(owner),
        ]
        return dropped + [STEP_COUNTS.insert(StepCount(owner, step)) for step in range(steps)]

    async def _load_received_counts(self, first: str, last: str) -> None:
        self._received.update(await messages.count_received(self._store, first, last))


def _script_owner(phone: str) -> str:
    return f"phone {phone}"


@lru_cache(maxsize=16_384)
def _decode_script(phone: str, seed: str, script: str) -> Script:
    return Script(_script_owner(phone), seed, read_steps(json_decoder().decode(script)))
