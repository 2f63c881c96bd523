"""Durable counts of the operator's limits over hours or days: one row per counted key with its latest time.

A row is written in the transaction of the counted request, so that a crash neither loses an accepted
request's count nor keeps a failed one's.
"""

from collections.abc import Mapping
from operator import itemgetter
from typing import Final

from waypost.base.clock import DAY_MS, Clock
from waypost.simulator.keyed_store import CachedKeyedValues
from waypost.simulator.store import Statement, Store

CREATIONS: Final = "creation"
FLOW_SENDS: Final = "flow"
REACHED: Final = "reached"
REGISTRATIONS: Final = "registration"
"""The kinds: templates created, by account; messages sent, by flow; users messaged outside their window,
by account; registrations, by number."""


class UsageCounts:
    """Counts each key once, at its latest time; holds the last three days in memory."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._seen = CachedKeyedValues(store, "usage_count", int)  # by key, of a kind and a subject

    async def open(self) -> None:
        """Delete entries older than three days, and sort the rest by time."""
        old_ms = self._clock.now_ms() - 3 * DAY_MS
        seen = self._seen.items()
        self._seen.clear()
        for owner, key, at_ms in sorted(seen, key=itemgetter(2)):
            if at_ms > old_ms:
                self._seen.put(at_ms, key, owner)
        old = [(owner, key) for owner, key, at_ms in seen if at_ms <= old_ms]
        await self._store.run([self._seen.delete_statement(key, owner) for owner, key in old])

    def count(self, kind: str, subject: str, *, within_ms: int) -> int:
        """Return the number of keys counted within a time of at most three days."""
        owner = _owner(kind, subject)
        for key in _oldest(self._seen.values_of(owner), self._clock.now_ms() - within_ms):
            self._seen.pop(key, owner)
        return len(self._seen.values_of(owner))

    def has(self, kind: str, subject: str, key: str, *, within_ms: int) -> bool:
        """True if this key was counted within this time."""
        at_ms = self._seen.values_of(_owner(kind, subject)).get(key)
        return at_ms is not None and at_ms > self._clock.now_ms() - within_ms

    def record(self, kind: str, subject: str, key: str) -> Statement:
        """Count a key now; return the statement, which the caller writes."""
        at_ms, owner = self._clock.now_ms(), _owner(kind, subject)
        self._seen.pop(key, owner)  # keep the order by time
        self._seen.put(at_ms, key, owner)
        return self._seen.save_statement(at_ms, key, owner)


def _owner(kind: str, subject: str) -> str:
    return f"{kind} {subject}"


def _oldest(seen: Mapping[str, int], until_ms: int) -> list[str]:
    old: list[str] = []
    for key, at_ms in seen.items():
        if at_ms > until_ms:
            break
        old.append(key)
    return old
