"""The armed faults: stored in the file, matched against calls and updates, and evaluated in the order of arming."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from waypost.simulator.faults.fault_kinds import ANY, FAULT_FILTERS, FaultKind, find_fault_kind
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind

_FILTER_NAMES: Final = tuple(FAULT_FILTERS)


@dataclass(frozen=True)
class FaultSubject:
    """A call or an update, with the values that the filters of faults compare."""

    name: str  # of the call or the webhook
    app: str = ""
    waba_id: str = ""
    number: tuple[str, ...] = ()  # a business number's id and its digits; empty if there is none
    phone: str = ""  # digits; empty if there is none, or if it is not disclosed
    template: str = ""
    flow: str = ""  # its id
    subject: str = ""  # the text in the list of firings: an id, or a phone's digits


class ArmedFault(msgspec.Struct, frozen=True, dict=True):
    """An armed fault with the counts of its evaluations and firings."""

    id: int
    given: dict[str, Any]  # its definition, checked: see `fault_reading`
    scenario: str = ""  # the key of its scenario; empty if it was armed individually
    seen: int = 0  # number of matching calls, updates or POSTs
    hits: int = 0  # number of firings

    @cached_property
    def fault_kind(self) -> FaultKind:
        """Its row of the table of kinds."""
        return find_fault_kind(self.given["on"], self.given["what"])

    @property
    def effect(self) -> dict[str, Any]:
        """The member of its kind, and its optional parameters."""
        return self.given["what"]

    @property
    def value(self) -> Any:
        """The value of the member of its kind."""
        return self.effect[self.fault_kind.name]

    @property
    def remaining_firings(self) -> int | None:
        """The remaining number of firings; None if it is unlimited."""
        at_most: int | None = self.given["when"].get("next")
        return None if at_most is None else max(0, at_most - self.hits)

    def is_armed(self, now_ms: int) -> bool:
        """True if it may still fire."""
        return self.remaining_firings != 0 and now_ms < self.given.get("until_ms", now_ms + 1)

    def matches(self, subject: FaultSubject) -> bool:
        """True if its name and filters match."""
        given = self.given
        if given[given["on"]] not in (ANY, subject.name):
            return False
        for name in _FILTER_NAMES:
            value = given.get(name)
            known = getattr(subject, name)
            if value is not None and value not in ((known,) if isinstance(known, str) else known):
                return False
        return True

    def fires(self) -> bool:
        """True if it fires for the current subject, which `seen` already counts.

        A probability is drawn from the seed, the id and the count, without a clock, so every run has
        the same result.
        """
        match self.given["when"]:
            case {"every": int(every)}:
                return self.seen % every == 0
            case {"probability": int() | float() as probability}:
                text = f"{self.given.get('seed', 0)}/{self.id}/{self.seen}".encode()
                draw = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
                return draw < probability * 2**64
            case _:
                return True


MAX_STORED_FIRINGS: Final = 100
"""Number of a fault's last firings that are stored."""


class FaultFiring(msgspec.Struct, frozen=True):
    """One firing of a fault: its number, its time, the call's or webhook's name, and the subject."""

    hit: int
    at_ms: int
    name: str
    subject: str


FAULTS: Final = StoredKind("fault", ArmedFault)
"""Every fault, spent ones too, in order of arming."""
_FIRINGS: Final = StoredKind("fault_firing", FaultFiring, in_memory=False)  # of a fault, by number


def all_faults(state: SimulatorState) -> list[ArmedFault]:
    """Return every fault, spent ones too, in order of arming."""
    return list(state.values(FAULTS).values())


def armed_faults(state: SimulatorState, *each: str) -> list[ArmedFault]:
    """Return the faults that may still fire and count one of these units: `call`, `update`, `post`."""
    faults = state.values(FAULTS)
    if not faults:
        return []
    now_ms = state.clock.now_ms()
    return [fault for fault in list(faults.values()) if fault.fault_kind.each in each and fault.is_armed(now_ms)]


def select_fault(
    state: SimulatorState, transaction: Transaction, each: str, subjects: Sequence[FaultSubject]
) -> ArmedFault | None:
    """Return the fault that applies to this call, update or POST, if any; its counts are written with the transaction.

    Faults are evaluated oldest first; the first that fires is selected, and later ones are not evaluated. A POST may
    have several subjects, and counts once.
    """
    now_ms = state.clock.now_ms()
    for fault in transaction.values(FAULTS).values():
        subject = next((subject for subject in subjects if fault.matches(subject)), None)
        if subject is None or fault.fault_kind.each != each or not fault.is_armed(now_ms):
            continue
        counted = replace(fault, seen=fault.seen + 1)
        if not counted.fires():
            transaction.save(FAULTS, counted, str(fault.id))
            continue
        counted = replace(counted, hits=fault.hits + 1)
        firing = FaultFiring(counted.hits, now_ms, subject.name, subject.subject)
        transaction.save(FAULTS, counted, str(fault.id))
        transaction.run(
            _FIRINGS.save_statement(firing, str(counted.hits), str(fault.id)),
            _FIRINGS.delete_statement(str(counted.hits - MAX_STORED_FIRINGS), str(fault.id)),
        )
        return counted
    return None


def arm_missing_faults(
    transaction: Transaction, definitions: Iterable[dict[str, Any]]
) -> tuple[list[ArmedFault], list[ArmedFault]]:
    """Arm those of checked faults that are not armed yet; two that differ only in `until_ms` are the same.

    Returns:
        The faults that it armed, and those that were armed already.
    """
    now_ms = transaction.state.clock.now_ms()
    existing = [fault for fault in transaction.values(FAULTS).values() if fault.is_armed(now_ms)]
    found: list[ArmedFault] = []
    missing: list[dict[str, Any]] = []
    for definition in definitions:
        same = next((fault for fault in existing if _timeless(fault.given) == _timeless(definition)), None)
        if same is None:
            missing.append(definition)
        else:
            existing.remove(same)  # a scenario may have the same fault twice
            found.append(same)
    return arm_faults(transaction, missing), found


def arm_faults(transaction: Transaction, definitions: Iterable[dict[str, Any]], scenario: str = "") -> list[ArmedFault]:
    """Arm checked faults and return them with new ids, which start at 1 if there are none."""
    first = max((fault.id for fault in transaction.values(FAULTS).values()), default=0) + 1
    armed = [ArmedFault(first + index, definition, scenario) for index, definition in enumerate(definitions)]
    for fault in armed:
        transaction.save(FAULTS, fault, str(fault.id))
    return armed


def arm_scenario(transaction: Transaction, key: str, definitions: Iterable[dict[str, Any]]) -> None:
    """Replace the faults of another scenario by those of this one; do nothing if it is armed already."""
    known = transaction.values(FAULTS).values()
    if all(fault.scenario != key for fault in known):
        disarm_faults(transaction, [fault for fault in known if fault.scenario])
        arm_faults(transaction, definitions, key)


def disarm_faults(transaction: Transaction, faults: Iterable[ArmedFault]) -> None:
    """Delete faults with their counts; webhooks that they hold back are sent at their time."""
    for fault in faults:
        transaction.delete(FAULTS, str(fault.id))
        transaction.run(_FIRINGS.delete_owner_statement(str(fault.id)))


async def list_firings(state: SimulatorState, fault: ArmedFault) -> list[FaultFiring]:
    """Return the last firings of a fault, oldest first."""
    firings = await state.store.read(lambda connection: _FIRINGS.values_on(connection, str(fault.id)))
    return list(firings.values())


class FaultView(msgspec.Struct, frozen=True, kw_only=True):
    """A fault as the control API shows it: its definition, and the counts of its evaluations and firings."""

    id: int
    label: str | UnsetType = UNSET
    on: str
    call: str | UnsetType = UNSET
    webhook: str | UnsetType = UNSET
    onboarding: str | UnsetType = UNSET
    endpoint: str | UnsetType = UNSET
    app: str | UnsetType = UNSET
    waba_id: str | UnsetType = UNSET
    number: str | UnsetType = UNSET
    phone: str | UnsetType = UNSET
    template: str | UnsetType = UNSET
    flow: str | UnsetType = UNSET
    when: dict[str, Any]
    what: dict[str, Any]
    until_ms: int | UnsetType = UNSET
    seed: int | UnsetType = UNSET
    is_armed: bool
    seen: int
    hits: int
    left: int | None


def fault_view(state: SimulatorState, fault: ArmedFault) -> FaultView:
    """Return a fault as the control API shows it."""
    return FaultView(
        id=fault.id,
        is_armed=fault.is_armed(state.clock.now_ms()),
        seen=fault.seen,
        hits=fault.hits,
        left=fault.remaining_firings,
        **fault.given,
    )


def _timeless(definition: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in definition.items() if name != "until_ms"}
