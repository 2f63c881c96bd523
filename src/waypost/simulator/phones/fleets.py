"""Fleets: many phones by one row. Which they are, how they behave, and what became of their messages."""

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from waypost.simulator.keyed_store import LoadedKind
from waypost.simulator.phones.intentions import Script
from waypost.simulator.phones.phone import Phone
from waypost.simulator.phones.script_steps import Step, read_steps
from waypost.simulator.store import Statement, Store
from waypost.simulator.tables import messages, phone_plans

PHONES_AT_MOST: Final = 1_000_000


class Fleet(msgspec.Struct, frozen=True, dict=True):
    """Phones with consecutive numbers.

    Args:
        name: letters, digits, hyphens and underscores.
        first: the first phone's number.
        count: how many there are.
        seed: where the script's chance comes from.
        script: its steps, as they were given; may be empty.
        habits: members of `Phone` that all of them have.
        window_number_id: the business number to which each wrote when the fleet was made; may be
            empty.
        made_ms: when that was.
    """

    name: str
    first: int
    count: int
    seed: str
    script: list[dict[str, Any]] = []
    habits: dict[str, Any] = {}
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

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps of its script."""
        return read_steps(self.script)

    @cached_property
    def phone_script(self) -> Script:
        """What each of its phones does."""
        return Script(self.owner, self.seed, self.steps)

    @property
    def range(self) -> tuple[str, str]:
        """First and last phone: between them there are no others with as many digits."""
        return str(self.first), str(self.last)


class Fleets:
    """Every fleet; in memory, written through to the file."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._firsts: list[int] = []
        self._in_order: list[Fleet] = []
        self._fleets = LoadedKind(store, "fleet", Fleet)
        self.by_name = self._fleets.all
        self.turn = asyncio.Lock()
        """Held while fleets are checked and changed."""
        store.at_reset(self.sort)

    def sort(self) -> None:
        """Have the fleets at hand by their numbers."""
        self._in_order = sorted(self.by_name.values(), key=lambda fleet: fleet.first)
        self._firsts = [fleet.first for fleet in self._in_order]

    async def make(self, fleet: Fleet, also: Sequence[Statement]) -> None:
        """Keep a new fleet, on disk, together with further statements."""
        self._fleets.put(fleet, fleet.name)  # first: what is taken from now on is for its phones
        self.sort()
        try:
            await self._store.run([self._fleets.save_statement(fleet, fleet.name), *also])
        except BaseException:
            self._fleets.pop(fleet.name)
            self.sort()
            raise

    async def drop(self, fleet: Fleet, also: Sequence[Statement]) -> None:
        """Drop a fleet, together with further statements; what was said stays."""
        self._fleets.pop(fleet.name)  # out of memory first: what is taken from now on is for ordinary phones
        self.sort()
        await self._store.run([*also, self._fleets.delete_statement(fleet.name)])

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
        waiting = await phone_plans.waiting_count(self._store, *fleet.range)
        return await messages.outcomes(self._store, *fleet.range, now_ms) | {"waiting": waiting}

    async def failures(self, fleet: Fleet, now_ms: int) -> dict[str, int]:
        """How many messages failed with which code."""
        return await messages.failures(self._store, *fleet.range, now_ms)
