"""Every script, and the rows that store their decisions (decision 0036)."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from waypost.base.written_numbers import json_decoder
from waypost.simulator.state.fleets import FLEETS, Fleet, find_fleet
from waypost.simulator.state.phones import PHONES
from waypost.simulator.state.script_steps import RenderedMessage, Script, ScriptStep, plan_steps, read_steps
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind
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


async def open_scripts(state: SimulatorState) -> None:
    """Count the messages that the scripted phones have received."""
    for phone in list(state.values(PHONES).values()):
        if phone.script:
            await load_received_counts(state, phone.phone, phone.phone)
    for fleet in list(state.values(FLEETS).values()):
        if fleet.steps:
            await load_received_counts(state, *fleet.range)


async def load_received_counts(state: SimulatorState, first: str, last: str) -> None:
    """Count the messages that phones have received, because a script applies to them from now on."""
    state.received_counts.update(await messages.count_received(state.store, first, last))


def find_script(state: SimulatorState, phone: str) -> Script | None:
    """Return the script of a phone: its own, else its fleet's; None if there is none."""
    script = find_own_script(state, phone)
    if script is not None:
        return script
    fleet = find_fleet(state, phone)
    return None if fleet is None else fleet.phone_script


def find_own_script(state: SimulatorState, phone: str) -> Script | None:
    """Return the phone's own script; None if it has none."""
    known = state.values(PHONES).get(phone)
    return _decode_script(phone, known.seed, known.script) if known is not None and known.script else None


def plan_script_actions(
    state: SimulatorState,
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
    script = find_script(state, phone)
    if script is None or not script.steps:
        return NO_PLAN
    ordinal = state.received_counts[phone] = state.received_counts.get(phone, 0) + 1
    if not is_delivered:
        return NO_PLAN
    earlier_uses = state.values(_USES, script.owner).get(phone, {})
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
        state.cached(_USES).put(now_used, phone, script.owner)
        state.store.write_soon([_USES.save_statement(now_used, phone, script.owner)])
    return ScriptPlan(
        decides_reading=any(step.do == "read" for step in script.steps),
        read_after_ms=read_after_ms,
        actions=tuple(actions),
        counted_steps=tuple((script.owner, planned.step) for planned in chosen),
    )


class StepCountView(Struct, frozen=True):
    """A step of a script, and how often it was planned and done; one that needs no plan is done at once."""

    step: int
    on: str
    do: str
    planned: int
    done: int | UnsetType = UNSET


async def count_steps(state: SimulatorState, owner: str, steps: Sequence[ScriptStep]) -> list[StepCountView]:
    """Return for each step how often it was planned, and how often it was done."""
    counts = {count.step: count for count in await STEP_COUNTS.find(state.store, owner=owner)}
    views: list[StepCountView] = []
    for index, step in enumerate(steps):
        count = counts.get(index, StepCount(owner, index))
        done = UNSET if step.do in _UNPLANNED else count.done
        views.append(StepCountView(index, step.on, step.do, count.planned, done))
    return views


def reset_script(transaction: Transaction, owner: str, steps: int) -> None:
    """Delete the plans and counts of a script's owner, and start the counts of the steps of its new script."""
    transaction.run(PLANNED_ACTIONS.delete(owner=owner), STEP_COUNTS.delete(owner=owner))
    transaction.delete_owner(_USES, owner)
    transaction.run(*(STEP_COUNTS.insert(StepCount(owner, step)) for step in range(steps)))


def reset_fleet_scripts(transaction: Transaction, fleet: Fleet, steps: int) -> None:
    """Delete the plans and counts of a fleet and of its phones, and start the counts of the fleet's steps."""
    transaction.run(*delete_range(*fleet.range))
    reset_script(transaction, fleet.owner, steps)
    transaction.delete_range(_USES, *fleet.range)


def script_owner(phone: str) -> str:
    """Return the owner of the plans and counts of a phone's own script."""
    return f"phone {phone}"


@lru_cache(maxsize=16_384)
def _decode_script(phone: str, seed: str, script: str) -> Script:
    return Script(script_owner(phone), seed, read_steps(json_decoder().decode(script)))
