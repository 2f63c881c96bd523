"""What the operator counts over an hour or a day, and must not forget: rows of who and when.

A row is written in the transaction of what it counts, so that what was answered is counted and what
was refused is not, whenever the process ends.
"""

from typing import Final

from waypost.base.clock import Clock
from waypost.simulator.store import Row, Store

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
NOTE: Final = "INSERT OR REPLACE INTO ledger VALUES (?,?,?,?)"
_FORGET: Final = "DELETE FROM ledger WHERE at_ms<=?"

CREATIONS: Final = "creation"
FLOW_SENDS: Final = "flow"
REACHED: Final = "reached"
REGISTRATIONS: Final = "registration"
"""The kinds: templates made, by account; messages sent, by flow; users reached outside their window,
by account; registrations, by number."""


class Ledger:
    """Counts each `who` once, at its latest time; the last three days are kept in memory."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._seen: dict[tuple[str, str], dict[str, int]] = {}

    async def open(self) -> None:
        """Read the last three days from the file, and drop what is older."""
        await self._store.run([(_FORGET, (self._clock.now_ms() - 3 * DAY_MS,))])
        rows = await self._store.rows("SELECT * FROM ledger ORDER BY at_ms")
        for kind, subject, who, at_ms in rows:
            self._seen.setdefault((kind, subject), {})[who] = at_ms

    def count(self, kind: str, subject: str, *, within_ms: int) -> int:
        """How many have been seen in this time; a longer one than three days is not kept."""
        seen = self._seen.get((kind, subject))
        if not seen:
            return 0
        since_ms = self._clock.now_ms() - within_ms
        for who in _oldest(seen, since_ms):
            del seen[who]
        return len(seen)

    def has(self, kind: str, subject: str, who: str, *, within_ms: int) -> bool:
        """Whether this one has been seen in this time."""
        at_ms = self._seen.get((kind, subject), {}).get(who)
        return at_ms is not None and at_ms > self._clock.now_ms() - within_ms

    def note(self, kind: str, subject: str, who: str) -> tuple[str, Row]:
        """See one now; the caller writes the statement."""
        at_ms = self._clock.now_ms()
        seen = self._seen.setdefault((kind, subject), {})
        seen.pop(who, None)  # the order of the dictionary is that of time
        seen[who] = at_ms
        return NOTE, (kind, subject, who, at_ms)

    def forget(self) -> None:
        """Drop everything from memory; the file is the caller's matter."""
        self._seen.clear()


def _oldest(seen: dict[str, int], until_ms: int) -> list[str]:
    old: list[str] = []
    for who, at_ms in seen.items():
        if at_ms > until_ms:
            break
        old.append(who)
    return old
