"""The armed faults: stored in the file, matched against calls and updates, and evaluated in the order of arming."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from waypost.base.clock import Clock
from waypost.simulator.faults.fault_kinds import ANY, FAULT_FILTERS, FaultKind, find_fault_kind
from waypost.simulator.keyed_store import CachedKeyedValues, KeyedValues
from waypost.simulator.store import Statement, Store

_FILTER_NAMES: Final = tuple(FAULT_FILTERS)


@dataclass(frozen=True)
class FaultSubject:
    """A call or an update, with the values that the filters of faults compare.

    Args:
        name: of the call or the webhook.
        number: a business number's id and its digits; empty if there is none.
        phone: digits; empty if there is none, or if it is not disclosed.
        subject: the text in the list of firings: an id, or a phone's digits.
    """

    name: str
    app: str = ""
    waba_id: str = ""
    number: tuple[str, ...] = ()
    phone: str = ""
    template: str = ""
    subject: str = ""


class ArmedFault(msgspec.Struct, frozen=True, dict=True):
    """An armed fault with the counts of its evaluations and firings.

    Args:
        given: its definition, checked: see `fault_reading`.
        scenario: the key of its scenario; empty if it was armed individually.
        seen: number of matching calls, updates or POSTs.
        hits: number of firings.
    """

    id: int
    given: dict[str, Any]
    scenario: str = ""
    seen: int = 0
    hits: int = 0

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
            if value is not None and not _is_in(value, getattr(subject, name)):
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


def _is_in(value: str, values: str | Collection[str]) -> bool:
    return value == values if isinstance(values, str) else value in values


MAX_STORED_FIRINGS: Final = 100
"""Number of a fault's last firings that are stored."""


class FaultFiring(msgspec.Struct, frozen=True):
    """One firing of a fault: its number, its time, the call's or webhook's name, and the subject."""

    hit: int
    at_ms: int
    name: str
    subject: str


class Faults:
    """Arms faults, counts their evaluations and firings, and selects the fault of a call or webhook."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._faults = CachedKeyedValues(store, "fault", ArmedFault)
        self.by_id = self._faults.all
        self._firings = KeyedValues(store, "fault_firing", FaultFiring)  # of a fault, by number

    @property
    def all_faults(self) -> list[ArmedFault]:
        """Every fault, spent ones too, in order of arming."""
        return list(self._faults.all.values())

    def armed(self, *each: str) -> list[ArmedFault]:
        """Return the faults that may still fire and count one of these units: `call`, `update`, `post`."""
        if not self._faults.all:
            return []
        now_ms = self._clock.now_ms()
        return [
            fault for fault in self._faults.all.values() if fault.fault_kind.each in each and fault.is_armed(now_ms)
        ]

    def filters_by(self, *members: str) -> bool:
        """True if an armed webhook fault has one of these filters."""
        return any(name in fault.given for fault in self.armed("update", "post") for name in members)

    def select_fault(self, each: str, subjects: Sequence[FaultSubject]) -> tuple[ArmedFault | None, list[Statement]]:
        """Return the fault that applies to this call, update or POST, if any.

        Faults are evaluated oldest first; the first that fires is selected, and later ones are not
        evaluated. The caller runs the statements before the effect is visible, so that a restart does
        not restore a spent count.

        Args:
            each: the unit: `call`, `update` or `post`.
            subjects: of the unit; a POST may have several, and counts once.

        Returns:
            The fault, and the statements that store the counts.
        """
        statements: list[Statement] = []
        for fault in self.armed(each):
            subject = next((subject for subject in subjects if fault.matches(subject)), None)
            if subject is None:
                continue
            counted = replace(fault, seen=fault.seen + 1)
            fires = counted.fires()
            if fires:
                counted = replace(counted, hits=counted.hits + 1)
            self._faults.put(counted, str(counted.id))
            statements.append(self._faults.save_statement(counted, str(counted.id)))
            if fires:
                return counted, [*statements, *self._firing_statements(counted, subject)]
        return None, statements

    async def select_call_fault(self, subject: FaultSubject) -> ArmedFault | None:
        """Return the fault that applies to a call, if any; its counts are on disk."""
        fault, statements = self.select_fault("call", [subject])
        if statements:
            await self._store.run(statements)
        return fault

    async def arm_missing(self, definitions: Iterable[dict[str, Any]]) -> tuple[list[ArmedFault], list[ArmedFault]]:
        """Arm those of checked faults that are not armed yet; two that differ only in `until_ms` are the same.

        Returns:
            The faults that it armed, and those that were armed already.
        """
        now_ms = self._clock.now_ms()
        existing = [fault for fault in self.all_faults if fault.is_armed(now_ms)]
        found: list[ArmedFault] = []
        missing: list[dict[str, Any]] = []
        for definition in definitions:
            same = next((fault for fault in existing if _timeless(fault.given) == _timeless(definition)), None)
            if same is None:
                missing.append(definition)
            else:
                existing.remove(same)  # a scenario may have the same fault twice
                found.append(same)
        return await self.arm(missing), found

    async def arm(self, definitions: Iterable[dict[str, Any]], *, scenario: str = "") -> list[ArmedFault]:
        """Arm checked faults and return them with new ids, which start at 1 if there are none."""
        first = max((fault.id for fault in self.all_faults), default=0) + 1
        armed = [ArmedFault(first + index, definition, scenario) for index, definition in enumerate(definitions)]
        for fault in armed:  # before the write, so that a concurrent call does not use these ids
            self._faults.put(fault, str(fault.id))
        try:
            await self._store.run([self._faults.save_statement(fault, str(fault.id)) for fault in armed])
        except BaseException:
            self._drop(armed)
            raise
        return armed

    async def disarm(self, faults: Collection[ArmedFault]) -> None:
        """Delete faults with their counts; webhooks that they hold back are sent at their time."""
        self._drop(faults)
        await self._store.run(
            [
                *(self._faults.delete_statement(str(fault.id)) for fault in faults),
                *(self._firings.delete_owner_statement(str(fault.id)) for fault in faults),
            ]
        )

    async def firings(self, fault: ArmedFault) -> list[dict[str, Any]]:
        """Return the last firings of a fault, oldest first."""
        firings = await self._firings.read(str(fault.id))
        return [
            {"hit": firing.hit, "at_ms": firing.at_ms, fault.given["on"]: firing.name, "subject": firing.subject}
            for firing in firings.values()
        ]

    def view(self, fault: ArmedFault) -> dict[str, Any]:
        """Return a fault as the control API shows it."""
        return {
            "id": fault.id,
            **{name: fault.given[name] for name in _FAULT_MEMBERS if name in fault.given},
            "is_armed": fault.is_armed(self._clock.now_ms()),
            "seen": fault.seen,
            "hits": fault.hits,
            "left": fault.remaining_firings,
        }

    def _drop(self, faults: Collection[ArmedFault]) -> None:
        for fault in faults:
            self._faults.pop(str(fault.id))

    def _firing_statements(self, fault: ArmedFault, subject: FaultSubject) -> list[Statement]:
        firing = FaultFiring(fault.hits, self._clock.now_ms(), subject.name, subject.subject)
        return [
            self._firings.save_statement(firing, str(fault.hits), str(fault.id)),
            self._firings.delete_statement(str(fault.hits - MAX_STORED_FIRINGS), str(fault.id)),
        ]


def _timeless(definition: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in definition.items() if name != "until_ms"}


_FAULT_MEMBERS: Final = (
    "label", "on", "call", "webhook", *FAULT_FILTERS, "when", "what", "until_ms", "seed",
)  # fmt: skip
