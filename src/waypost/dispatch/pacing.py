"""Keeps each source under the operator's throughput and each pair under its rate, by due time."""

from dataclasses import dataclass
from typing import Final

from waypost.journal.entry import Entry
from waypost.journal.waiting import Hold

# fmt: off
PAIR_EVERY_MS: Final = 6_000  # Source: operator's facts 8: one message per 6 s to the same recipient …
PAIR_BURST: Final = 45        # … and a burst of 45, borrowed from the future
MOST_PAIRS: Final = 200_000   # remembered; the oldest are forgotten and the operator's own limit holds
# fmt: on


@dataclass(slots=True)
class _Bucket:
    """`free_ms` is when the bucket would be full again if nothing more were taken."""

    free_ms: float = 0

    def wait_ms(self, now_ms: int, every_ms: float, burst: float) -> int:
        """0 and one taken, or how long until one can be."""
        debt = max(0.0, self.free_ms - now_ms)
        over = debt + every_ms - burst * every_ms
        if over > 0:
            return max(1, round(over))
        self.free_ms = now_ms + debt + every_ms
        return 0


class Pacer:
    """Says of each message whether it may go now.

    Args:
        per_second: throughput of a source that has none of its own.
    """

    def __init__(self, *, per_second: int) -> None:
        self._default = per_second
        self._per_second: dict[str, int] = {}
        self._sources: dict[str, _Bucket] = {}
        self._pairs: dict[str, _Bucket] = {}

    def learn(self, source: str, per_second: int | None) -> None:
        """A source has a throughput of its own, or has it no longer."""
        if per_second is None:
            self._per_second.pop(source, None)
        else:
            self._per_second[source] = per_second

    def __call__(self, entry: Entry, now_ms: int, in_flight: int) -> Hold | None:
        """None to go now, and its slot is spent. Templates are not paced."""
        del in_flight  # the journal's share per source bounds it
        if not entry.ref.startswith("message "):
            return None
        pair = self._pairs.get(entry.order_key)
        if pair is None:
            if len(self._pairs) >= MOST_PAIRS:
                self._pairs.clear()
            pair = self._pairs[entry.order_key] = _Bucket()
        before = pair.free_ms
        wait = pair.wait_ms(now_ms, PAIR_EVERY_MS, PAIR_BURST)
        if wait:
            return Hold(now_ms + wait, whole_group=False)
        rate = self._per_second.get(entry.group, self._default)
        source = self._sources.setdefault(entry.group, _Bucket())
        wait = source.wait_ms(now_ms, 1000 / rate, max(1.0, rate / 10))
        if wait:
            pair.free_ms = before
            return Hold(now_ms + wait, whole_group=True)
        return None
