"""The armed faults: kept in the file, asked in the order in which they were armed."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from waypost.base.clock import Clock
from waypost.simulator.faults.fault import Fault, Subject
from waypost.simulator.faults.fault_kinds import FILTERS
from waypost.simulator.store import Row, Store

Statement = tuple[str, Row]
SHOWN_FIRINGS: Final = 100
"""How many of a fault's last firings are kept."""

_ARM: Final = "INSERT INTO faults VALUES (?,?,?,?,?)"
_COUNT: Final = "UPDATE faults SET seen=?, hits=? WHERE id=?"
_DISARM: Final = ("DELETE FROM faults WHERE id=?", "DELETE FROM fault_firings WHERE fault_id=?")
_FIRED: Final = "INSERT OR REPLACE INTO fault_firings VALUES (?,?,?,?,?)"
_FORGET_FIRED: Final = "DELETE FROM fault_firings WHERE fault_id=? AND hit<=?"
_FIRINGS: Final = "SELECT hit, at_ms, name, about FROM fault_firings WHERE fault_id=? ORDER BY hit"


class Faults:
    """Arms, counts, and answers whether something is to go wrong."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._all: dict[int, Fault] = {}

    async def open(self) -> None:
        """Take up what was armed before, with its counts."""
        rows = await self._store.rows("SELECT id, body, scenario, seen, hits FROM faults ORDER BY id")
        self._all = {row[0]: Fault(row[0], msgspec.json.decode(row[1], type=dict[str, Any]), *row[2:]) for row in rows}

    @property
    def all(self) -> list[Fault]:
        """Every one, spent ones too, in the order of arming."""
        return list(self._all.values())

    def find(self, fault_id: int) -> Fault | None:
        """One by its id."""
        return self._all.get(fault_id)

    def armed(self, *each: str) -> list[Fault]:
        """Those that may still fire and are counted by one of these: `call`, `update`, `post`."""
        if not self._all:
            return []
        now_ms = self._clock.now_ms()
        return [fault for fault in self._all.values() if fault.kind.each in each and fault.is_armed(now_ms)]

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
            self._all[asked.id] = asked
            statements.append((_COUNT, (asked.seen, asked.hits, asked.id)))
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
        first = max(self._all, default=0) + 1
        armed = [Fault(first + at, wish, scenario) for at, wish in enumerate(wishes)]
        self._all |= {fault.id: fault for fault in armed}  # at once: nobody else gets these ids
        try:
            await self._store.run([(_ARM, _row(fault)) for fault in armed])
        except BaseException:
            self._drop(armed)
            raise
        return armed

    async def disarm(self, faults: Collection[Fault]) -> None:
        """Remove faults with their counts; what they hold back is told in its time."""
        self._drop(faults)
        await self._store.run([(statement, (fault.id,)) for statement in _DISARM for fault in faults])

    async def firings(self, fault: Fault) -> list[dict[str, Any]]:
        """The last firings of one, oldest first."""
        rows = await self._store.rows(_FIRINGS, (fault.id,))
        return [
            {"hit": hit, "at_ms": at_ms, fault.given["on"]: name, "about": about} for hit, at_ms, name, about in rows
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

    def forget(self) -> None:
        """Drop everything from memory; the file is the caller's matter."""
        self._all.clear()

    def _drop(self, faults: Collection[Fault]) -> None:
        for fault in faults:
            self._all.pop(fault.id, None)

    def _fired(self, fault: Fault, subject: Subject) -> list[Statement]:
        at_ms = self._clock.now_ms()
        return [
            (_FIRED, (fault.id, fault.hits, at_ms, subject.name, subject.about)),
            (_FORGET_FIRED, (fault.id, fault.hits - SHOWN_FIRINGS)),
        ]


_SHOWN: Final = (
    "label", "on", "call", "webhook", *FILTERS, "when", "what", "until_ms", "seed",
)  # fmt: skip


def _row(fault: Fault) -> Row:
    body = msgspec.json.encode(fault.given).decode()
    return (fault.id, body, fault.scenario, fault.seen, fault.hits)
