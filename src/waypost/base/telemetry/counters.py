"""What a part counts of its own work: plain numbers, read by whoever shows them.

Counting is on the busiest lines there are, so it is an addition and nothing more. No lock is taken:
each counter is added to by one thread only, and a reader may see a number that is one behind.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

# fmt: off
CALL_S: Final = (  # of a call of ours to somebody else, or of somebody else to us
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
)
COMMIT_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
LAG_S: Final = (  # from the moment work was due to the moment it was begun; pacing makes it hours
    0.005, 0.025, 0.1, 0.5, 1, 5, 30, 60, 300, 900, 3600, 14400, 86400,
)
SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
# fmt: on


class Spread:
    """How often a measured value fell between which bounds, and the sum of all.

    Args:
        bounds: the upper ends, ascending; a last one without end is added.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds: Final = tuple(bounds)
        self.counts: Final = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count one value; one that is exactly a bound belongs below it."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def take_in(self, other: "Spread") -> None:
        """Add what another with the same bounds has counted."""
        self.counts[:] = [own + more for own, more in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    @property
    def count(self) -> int:
        """How many values have been counted."""
        return sum(self.counts)


@dataclass(slots=True)
class CommitCounts:
    """Of one writer, or of all of a process.

    Attributes:
        items: how many pieces of work each transaction held.
        took_s: from the begin of a transaction to the end of its flush.
        torn: transactions that failed and whose pieces were tried again alone.
        failed: pieces that failed, each with an error of its own or of the store's.
        failed_reads: reads that failed.
    """

    items: Spread = field(default_factory=lambda: Spread(SIZES))
    took_s: Spread = field(default_factory=lambda: Spread(COMMIT_S))
    torn: int = 0
    failed: int = 0
    failed_reads: int = 0

    def take_in(self, other: "CommitCounts") -> None:
        """Add what another has counted."""
        self.items.take_in(other.items)
        self.took_s.take_in(other.took_s)
        self.torn += other.torn
        self.failed += other.failed
        self.failed_reads += other.failed_reads


@dataclass(slots=True)
class QueueCounters:
    """Of one queue, as one process works it.

    Attributes:
        claimed: entries that work was begun on.
        completed: ended for good, with the state that says what was done.
        retried_later: given back to be tried later.
        abandoned: given back as they were: nothing had been begun.
        defects: given back because our own code failed.
        dead_letters: likewise for the last time; they wait for a person.
        lag_s: how long after it was due an entry was claimed.
    """

    claimed: int = 0
    completed: int = 0
    retried_later: int = 0
    abandoned: int = 0
    defects: int = 0
    dead_letters: int = 0
    lag_s: Spread = field(default_factory=lambda: Spread(LAG_S))


@dataclass(slots=True)
class CallCounts:
    """Of calls to others: how they ended, and how long they took.

    Attributes:
        ended: by words for how; few, and none of them anybody's name or number.
        took_s: by the first of these words.
    """

    ended: Counter[tuple[str, ...]] = field(default_factory=Counter[tuple[str, ...]])
    took_s: dict[str, Spread] = field(default_factory=dict[str, Spread])

    def add(self, took_s: float, *how: str) -> None:
        """Count one call.

        Args:
            took_s: how long it took.
            how: at least one word.
        """
        self.ended[how] += 1
        spread = self.took_s.get(how[0])
        if spread is None:
            spread = self.took_s[how[0]] = Spread(CALL_S)
        spread.add(took_s)


def status_class(status: int | None) -> str:
    """`2xx` to `5xx` of an HTTP status; `none` where there was no answer."""
    return "none" if status is None else f"{status // 100}xx"


class FewWords:
    """Keeps a label few: the first so many different words as they are, all later ones as `other`.

    For what somebody else chooses, an error code for example, and who could choose a million.
    """

    def __init__(self, at_most: int = 64) -> None:
        self._at_most = at_most
        self._known: set[str] = set()

    def __call__(self, word: str) -> str:
        """The word, or `other`."""
        if word in self._known:
            return word
        if len(self._known) >= self._at_most:
            return "other"
        self._known.add(word)
        return word
