"""Fleets: many phones by one row. Which they are, how they behave, and what became of their messages."""

import asyncio
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from waypost.simulator.phones.phone import Phone
from waypost.simulator.phones.script_steps import Step, read_steps
from waypost.simulator.store import Row, Statement, Store

PHONES_AT_MOST: Final = 1_000_000
_KEEP: Final = "INSERT INTO fleets VALUES (?,?)"
_DROP: Final = "DELETE FROM fleets WHERE name=?"
_OF_PHONES: Final = (
    "phones", "phone_users", "phone_habits", "phone_blocks", "phone_scripts", "marketing_stops",
    "windows", "waiting", "planned_acts", "script_uses",
)  # fmt: skip
_RANGE: Final = "phone BETWEEN ? AND ? AND length(phone)=?"
_COUNTS: Final = f"""
SELECT count(*) FILTER (WHERE is_inbound=0),
    count(*) FILTER (WHERE is_inbound=0 AND (delivered_ms<=:now OR read_ms<=:now)),
    count(*) FILTER (WHERE is_inbound=0 AND read_ms<=:now),
    count(*) FILTER (WHERE failed_ms<=:now),
    count(*) FILTER (WHERE type='button' OR type='interactive' AND is_inbound=1
        AND json_extract(shown, '$.interactive.type') IN ('button_reply', 'list_reply')),
    count(*) FILTER (WHERE is_inbound=1 AND type='text'),
    count(*) FILTER (WHERE is_inbound=1 AND type='reaction'),
    count(*) FILTER (WHERE is_inbound=1 AND type='interactive'
        AND json_extract(shown, '$.interactive.type') NOT IN ('button_reply', 'list_reply'))
FROM messages WHERE {_RANGE.replace("?", ":first", 1).replace("?", ":last", 1).replace("?", ":size", 1)}
"""  # noqa: S608
_COUNTED: Final = (
    "received", "delivered", "read", "failed", "taps", "answers", "reactions", "forms",
)  # fmt: skip


@dataclass(frozen=True)
class Fleet:
    """Phones with consecutive numbers.

    Args:
        name: letters, digits, hyphens and underscores.
        first: the first phone's number.
        count: how many there are.
        seed: where the script's chance comes from.
        steps: the script; may be empty.
        habits: members of `Phone` that all of them have.
        window_number_id: the business number to which each wrote when the fleet was made; may be
            empty.
        made_ms: when that was.
    """

    name: str
    first: int
    count: int
    seed: str
    steps: tuple[Step, ...] = ()
    habits: dict[str, Any] = field(default_factory=dict[str, Any])
    window_number_id: str = ""
    made_ms: int = 0

    @property
    def last(self) -> int:
        """The last phone's number."""
        return self.first + self.count - 1

    @property
    def owner(self) -> str:
        """Under which its script is counted."""
        return f"fleet {self.name}"

    @property
    def range(self) -> tuple[str, str, int]:
        """First and last phone, and how many digits they have: between them there are no others."""
        return str(self.first), str(self.last), len(str(self.first))


class Fleets:
    """Every fleet; in memory, written through to the file."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._firsts: list[int] = []
        self._in_order: list[Fleet] = []
        self.by_name: dict[str, Fleet] = {}
        self.turn = asyncio.Lock()
        """Held while fleets are checked and changed."""

    async def open(self) -> None:
        """Read everything from the file."""
        rows = await self._store.rows("SELECT body FROM fleets ORDER BY name")
        self._learn([_fleet_of(msgspec.json.decode(body)) for (body,) in rows])

    async def make(self, fleet: Fleet, also: list[Statement]) -> None:
        """Keep a new fleet, on disk, together with further statements; its phones begin anew."""
        keep: Statement = (_KEEP, (fleet.name, _body_of(fleet)))
        before = list(self.by_name.values())
        self._learn([*before, fleet])  # first: what is taken from now on is for its phones
        try:
            await self._store.run([*_forgetting_phones(fleet), keep, *also])
        except BaseException:
            self._learn(before)
            raise

    async def drop(self, fleet: Fleet, also: list[Statement]) -> None:
        """Drop a fleet and all that its phones had become; what was said stays."""
        # Out of memory first: whatever is taken from now on is for ordinary phones.
        self._learn([one for one in self.by_name.values() if one is not fleet])
        await self._store.run([*_forgetting_phones(fleet), (_DROP, (fleet.name,)), *also])

    def of(self, phone: str) -> Fleet | None:
        """The fleet that a phone belongs to."""
        if not self._firsts or phone[0] == "0":
            return None
        number = int(phone)
        place = bisect_right(self._firsts, number) - 1
        if place < 0:
            return None
        fleet = self._in_order[place]
        return fleet if number <= fleet.last else None

    def overlapping(self, fleet: Fleet) -> Fleet | None:
        """A fleet that has some of the same numbers."""
        for one in self._in_order:
            if one.first <= fleet.last and fleet.first <= one.last:
                return one
        return None

    def phone_of(self, phone: str) -> Phone | None:
        """A fleet's phone as it is as long as nothing has changed on it alone."""
        fleet = self.of(phone)
        if fleet is None:
            return None
        return Phone(phone, f"{fleet.name} {int(phone) - fleet.first}", **fleet.habits)

    def wrote_ms(self, phone_number_id: str, phone: str) -> int | None:
        """When a fleet's phone wrote to a number by being made."""
        fleet = self.of(phone)
        if fleet is None or fleet.window_number_id != phone_number_id:
            return None
        return fleet.made_ms

    async def counts(self, fleet: Fleet, now_ms: int) -> dict[str, int]:
        """What became of the messages to its phones, and what the phones sent."""
        first, last, size = fleet.range
        values = {"now": now_ms, "first": first, "last": last, "size": size}
        [row] = await self._store.read(lambda connection: connection.execute(_COUNTS, values).fetchall())
        [(waiting,)] = await self._store.rows(
            f"SELECT count(*) FROM waiting WHERE {_RANGE}",  # noqa: S608
            fleet.range,
        )
        return dict(zip(_COUNTED, row, strict=True)) | {"waiting": waiting}

    async def failures(self, fleet: Fleet, now_ms: int) -> dict[str, int]:
        """How many messages failed with which code."""
        rows: list[Row] = await self._store.rows(
            f"SELECT failed_code, count(*) FROM messages WHERE {_RANGE} AND failed_ms<=? "  # noqa: S608
            "GROUP BY failed_code",
            (*fleet.range, now_ms),
        )
        return {str(code): count for code, count in rows}

    def forget(self) -> None:
        """Drop everything from memory; the file is the caller's matter."""
        self._learn([])

    def _learn(self, fleets: list[Fleet]) -> None:
        self.by_name = {fleet.name: fleet for fleet in fleets}
        self._in_order = sorted(fleets, key=lambda fleet: fleet.first)
        self._firsts = [fleet.first for fleet in self._in_order]


def _forgetting_phones(fleet: Fleet) -> list[Statement]:
    return [
        (f"DELETE FROM {table} WHERE {_RANGE}", fleet.range)  # noqa: S608
        for table in _OF_PHONES
    ]


def _body_of(fleet: Fleet) -> str:
    members = {
        "name": fleet.name,
        "first": fleet.first,
        "count": fleet.count,
        "seed": fleet.seed,
        "script": [step.raw for step in fleet.steps],
        "habits": fleet.habits,
        "window_number_id": fleet.window_number_id,
        "made_ms": fleet.made_ms,
    }
    return msgspec.json.encode(members).decode()


def _fleet_of(members: dict[str, Any]) -> Fleet:
    return Fleet(steps=read_steps(members.pop("script")), **members)
