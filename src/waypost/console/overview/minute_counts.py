"""How many messages of each minute stand where: counted a piece at a time, and remembered.

A message accepted this morning may be read this evening, so no minute is ever counted for good. Each
look counts the newest minutes, goes on where the count of the day had come to, and then counts older
minutes anew in turn; it reads so many messages at most, whatever a day holds.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from waypost.base.clock import DAY_MS, MINUTE_MS
from waypost.store.console.overview import Counts

MOST_NEW: Final = 12_000
"""Messages read of the newest minutes, in one look."""
MOST_BACK: Final = 12_000
"""Messages read of the rest of the day, until all of it has been counted once."""
MOST_AGAIN: Final = 3_000
"""Messages read anew of older minutes, in one look."""
NEWEST: Final = 2
"""Minutes whose messages change most."""
MOST_APPS: Final = 200
FRESH_S: Final = 1.0
"""So long a look serves whoever else looks at the same app."""

CountOf = Callable[[int, int, int], Awaitable[Counts]]
"""Counts from a time, before a time, so many messages at most."""

Key = tuple[str, int | None]
"""A state, and the code of a failure."""


@dataclass(slots=True)
class Tally:
    """One app's day, as far as it has been counted.

    Attributes:
        minutes: of each minute how many messages stand where.
        reasons: of each code of a failure what was said, once.
        counted_from_ms: nothing older has been counted yet.
    """

    minutes: dict[int, Counter[Key]] = field(default_factory=dict[int, Counter[Key]])
    reasons: dict[int | None, str] = field(default_factory=dict[int | None, str])
    counted_from_ms: int = 0
    looked_ms: int = -1
    again_before_ms: int = 0
    looked_s: float = float("-inf")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def is_whole(self, now_ms: int) -> bool:
        """Whether all of today and of the last hour has been counted."""
        return self.counted_from_ms <= begin_of(now_ms)

    def between(self, from_ms: int, before_ms: int) -> Counter[Key]:
        """How many messages that were accepted in a span of whole minutes stand where."""
        found: Counter[Key] = Counter()
        for minute, counts in self.minutes.items():
            if from_ms <= minute * MINUTE_MS < before_ms:
                found.update(counts)
        return found

    async def look(self, count: CountOf, now_ms: int) -> None:
        """Count what has become of it since the last look, unless somebody just has."""
        loop = asyncio.get_running_loop()
        async with self.lock:
            if loop.time() < self.looked_s + FRESH_S:
                return
            await self._count(count, now_ms)
            self.looked_s = loop.time()

    async def _count(self, count: CountOf, now_ms: int) -> None:
        begin_ms, until_ms = begin_of(now_ms), now_ms + 1
        if now_ms < self.looked_ms:
            self._forget()
        is_first = self.looked_ms < 0
        last_ms = self.looked_ms // MINUTE_MS * MINUTE_MS
        newest_ms = begin_ms if is_first else max(begin_ms, last_ms - (NEWEST - 1) * MINUTE_MS)
        found = await count(newest_ms, until_ms, MOST_NEW)
        if is_first or found.from_ms > max(last_ms + MINUTE_MS, begin_ms):
            self._forget()  # whole minutes since the last look are more than one look reads
            self.counted_from_ms = found.from_ms
        self._put(found, found.from_ms, until_ms)
        if self.counted_from_ms > begin_ms and not is_first:
            await self._count_back(count, begin_ms)
        elif not is_first:
            await self._count_again(count, begin_ms, newest_ms)
        self.looked_ms = now_ms
        for minute in [one for one in self.minutes if one * MINUTE_MS < begin_ms]:
            del self.minutes[minute]

    async def _count_back(self, count: CountOf, begin_ms: int) -> None:
        """Go on where the count had come to."""
        before_ms = self.counted_from_ms
        found = await count(begin_ms, before_ms, MOST_BACK)
        self._put(found, found.from_ms, before_ms)
        self.counted_from_ms = min(found.from_ms, before_ms)

    async def _count_again(self, count: CountOf, begin_ms: int, newest_ms: int) -> None:
        """Count some older minutes anew: the next in turn."""
        before_ms = self.again_before_ms
        if not begin_ms < before_ms <= newest_ms:
            before_ms = newest_ms
        if before_ms > begin_ms:
            found = await count(begin_ms, before_ms, MOST_AGAIN)
            self._put(found, found.from_ms, before_ms)
            self.again_before_ms = found.from_ms

    def _put(self, found: Counts, from_ms: int, before_ms: int) -> None:
        """Take what was counted of a span in place of what was known of it."""
        for minute in [m for m in self.minutes if from_ms <= m * MINUTE_MS < before_ms]:
            del self.minutes[minute]
        for one in found.rows:
            counts = self.minutes.setdefault(one.minute, Counter())
            counts[one.state, one.code] += one.messages
            if one.reason is not None:
                self.reasons[one.code] = one.reason

    def _forget(self) -> None:
        self.minutes.clear()
        self.reasons.clear()
        self.again_before_ms = 0
        self.looked_ms = -1


class Tallies:
    """The tallies of the apps that were looked at last."""

    def __init__(self) -> None:
        self._of_apps: OrderedDict[str, Tally] = OrderedDict()

    def of(self, app_id: str) -> Tally:
        """An app's, begun with its first look."""
        tally = self._of_apps.setdefault(app_id, Tally())
        self._of_apps.move_to_end(app_id)
        while len(self._of_apps) > MOST_APPS:
            self._of_apps.popitem(last=False)
        return tally


def begin_of(now_ms: int) -> int:
    """Where a tally begins: today, in UTC, and the last hour."""
    an_hour_ago = (now_ms // MINUTE_MS - 59) * MINUTE_MS
    return min(now_ms // DAY_MS * DAY_MS, an_hour_ago)


def of_states(counted: Counter[Key], states: Iterable[str]) -> int:
    """How many stand in one of some states."""
    wanted = set(states)
    return sum(count for (state, _), count in counted.items() if state in wanted)
