"""The armed faults: kept in the file, asked in the order in which they were armed."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from waypost.base.clock import Clock
from waypost.simulator.faults.fault import Fault, Subject
from waypost.simulator.faults.fault_kinds import FILTERS
from waypost.simulator.keyed_store import LoadedKind, StoredKind
from waypost.simulator.store import Statement, Store

SHOWN_FIRINGS: Final = 100
"""How many of a fault's last firings are kept."""


class Firing(msgspec.Struct, frozen=True):
    """One time that a fault has fired: which, when, at a call or webhook of which name, about what."""

    hit: int
    at_ms: int
    name: str
    about: str


class Faults:
    """Arms, counts, and answers whether something is to go wrong."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._faults = LoadedKind(store, "fault", Fault)
        self.by_id = self._faults.all
        self._firings = StoredKind(store, "fault_firing", Firing)  # of a fault, by hit

    @property
    def all(self) -> list[Fault]:
        """Every one, spent ones too, in the order of arming."""
        return list(self._faults.all.values())

    def armed(self, *each: str) -> list[Fault]:
        """Those that may still fire and are counted by one of these: `call`, `update`, `post`."""
        if not self._faults.all:
            return []
        now_ms = self._clock.now_ms()
        return [fault for fault in self._faults.all.values() if fault.kind.each in each and fault.is_armed(now_ms)]

    def asks_for(self, *members: str) -> bool:
        """Whether any of the webhooks' faults looks at one of these filters."""
        return any(name in fault.given for fault in self.armed("update", "post") for name in members)

    def judge(self, each: str, subjects: Sequence[Subject]) -> tuple[Fault | None, list[Statement]]:
        """Which fault spoils this call, update or POST, if any.

        Faults are asked one after the other, oldest first; the first that fires is the one, and those
        behind it are not asked. Whoever asks carries out the statements before the effect can be seen,
        so that no restart gives back what was spent.

        Args:
            each: what is judged: `call`, `update` or `post`.
            subjects: what it is about; a POST may be about several things, and counts once.

        Returns:
            The fault, and the statements that keep the counts.
        """
        statements: list[Statement] = []
        for fault in self.armed(each):
            subject = next((one for one in subjects if fault.concerns(one)), None)
            if subject is None:
                continue
            asked = replace(fault, seen=fault.seen + 1)
            fires = asked.fires()
            if fires:
                asked = replace(asked, hits=asked.hits + 1)
            self._faults.put(asked, str(asked.id))
            statements.append(self._faults.save_statement(asked, str(asked.id)))
            if fires:
                return asked, [*statements, *self._fired(asked, subject)]
        return None, statements

    async def strike(self, subject: Subject) -> Fault | None:
        """Which fault spoils a call; on disk before it is given."""
        fault, statements = self.judge("call", [subject])
        if statements:
            await self._store.run(statements)
        return fault

    async def arm(self, wishes: Iterable[dict[str, Any]], *, scenario: str = "") -> list[Fault]:
        """Arm checked faults, and give them with their ids, which begin at 1 when there are none."""
        first = max((fault.id for fault in self.all), default=0) + 1
        armed = [Fault(first + at, wish, scenario) for at, wish in enumerate(wishes)]
        for fault in armed:  # at once: nobody else gets these ids
            self._faults.put(fault, str(fault.id))
        try:
            await self._store.run([self._faults.save_statement(fault, str(fault.id)) for fault in armed])
        except BaseException:
            self._drop(armed)
            raise
        return armed

    async def disarm(self, faults: Collection[Fault]) -> None:
        """Remove faults with their counts; what they hold back is told in its time."""
        self._drop(faults)
        await self._store.run(
            [
                *(self._faults.delete_statement(str(fault.id)) for fault in faults),
                *(self._firings.delete_owner_statement(str(fault.id)) for fault in faults),
            ]
        )

    async def firings(self, fault: Fault) -> list[dict[str, Any]]:
        """The last firings of one, oldest first."""
        firings = await self._firings.read(str(fault.id))
        return [
            {"hit": one.hit, "at_ms": one.at_ms, fault.given["on"]: one.name, "about": one.about}
            for one in firings.values()
        ]

    def view(self, fault: Fault) -> dict[str, Any]:
        """A fault as the control door shows it."""
        return {
            "id": fault.id,
            **{name: fault.given[name] for name in _SHOWN if name in fault.given},
            "is_armed": fault.is_armed(self._clock.now_ms()),
            "seen": fault.seen,
            "hits": fault.hits,
            "left": fault.left,
        }

    def _drop(self, faults: Collection[Fault]) -> None:
        for fault in faults:
            self._faults.pop(str(fault.id))

    def _fired(self, fault: Fault, subject: Subject) -> list[Statement]:
        firing = Firing(fault.hits, self._clock.now_ms(), subject.name, subject.about)
        return [
            self._firings.save_statement(firing, str(fault.hits), str(fault.id)),
            self._firings.delete_statement(str(fault.hits - SHOWN_FIRINGS), str(fault.id)),
        ]


_SHOWN: Final = (
    "label", "on", "call", "webhook", *FILTERS, "when", "what", "until_ms", "seed",
)  # fmt: skip
