"""Counters of a component's own work: plain numbers, read by the metrics.

Counting is on the hottest paths, so it is only an addition. There is no lock: each counter has only
one writing thread, and a reader may see a number that is one behind.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from waypost.base.clock import MINUTE_MS, Clock

# fmt: off
CALL_BUCKETS_S: Final = (  # of outgoing and incoming calls
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
)
COMMIT_BUCKETS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
LAG_BUCKETS_S: Final = (  # from the due time to the start of the work; with pacing it can be hours
    0.005, 0.025, 0.1, 0.5, 1, 5, 30, 60, 300, 900, 3600, 14400, 86400,
)
BATCH_SIZE_BUCKETS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
# fmt: on


class Histogram:
    """A histogram: counts of measured values between bounds, and their sum.

    Args:
        bounds: the upper bounds, ascending; an unbounded last bucket is added.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds: Final = tuple(bounds)
        self.counts: Final = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count one value; a value equal to a bound belongs below it."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def merge(self, other: "Histogram") -> None:
        """Add the counts of another histogram with the same bounds."""
        self.counts[:] = [own + more for own, more in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    @property
    def count(self) -> int:
        """Number of values counted."""
        return sum(self.counts)


@dataclass(slots=True)
class CommitCounters:
    """Counters of one writer, or of all writers of a process."""

    items: Histogram = field(default_factory=lambda: Histogram(BATCH_SIZE_BUCKETS))  # number of items per transaction
    # from the begin of a transaction to the end of its flush
    took_s: Histogram = field(default_factory=lambda: Histogram(COMMIT_BUCKETS_S))
    split_batches: int = 0  # transactions that failed and whose items were retried alone
    failed: int = 0  # items that failed, each with an error of its own or of the store's
    failed_reads: int = 0  # reads that failed

    def record_commit(self, items: int, took_s: float) -> None:
        """Count a transaction."""
        self.items.counts[bisect_left(BATCH_SIZE_BUCKETS, items)] += 1
        self.items.total += items
        self.took_s.counts[bisect_left(COMMIT_BUCKETS_S, took_s)] += 1
        self.took_s.total += took_s

    def merge(self, other: "CommitCounters") -> None:
        """Add the counts of another writer."""
        self.items.merge(other.items)
        self.took_s.merge(other.took_s)
        self.split_batches += other.split_batches
        self.failed += other.failed
        self.failed_reads += other.failed_reads


@dataclass(slots=True)
class QueueCounters:
    """Counters of one queue in one process."""

    claimed: int = 0  # jobs that were claimed
    completed: int = 0  # jobs that were completed, with the state change
    retried_later: int = 0  # jobs that will be retried later
    abandoned: int = 0  # jobs returned unchanged, because no work had begun
    defects: int = 0  # jobs returned because of a defect in our code
    dead_letters: int = 0  # jobs that became dead letters after the last defect; a person decides
    # time from a job's due time to its claim
    lag_s: Histogram = field(default_factory=lambda: Histogram(LAG_BUCKETS_S))


@dataclass(slots=True)
class CallCounters:
    """Counters of outgoing calls: outcomes and durations."""

    # by labels of the outcome; few, and never a name or phone number
    outcomes: Counter[tuple[str, ...]] = field(default_factory=Counter[tuple[str, ...]])
    took_s: dict[str, Histogram] = field(default_factory=dict[str, Histogram])  # by the first label

    def add(self, took_s: float, *labels: str) -> None:
        """Count one call.

        Args:
            took_s: its duration.
            labels: at least one label.
        """
        self.outcomes[labels] += 1
        spread = self.took_s.get(labels[0])
        if spread is None:
            spread = self.took_s[labels[0]] = Histogram(CALL_BUCKETS_S)
        spread.counts[bisect_left(CALL_BUCKETS_S, took_s)] += 1
        spread.total += took_s


class LabelLimiter:
    """Limits the values of a label: the first values stay unchanged, all later ones become `right`.

    For values that others choose, such as error codes, which could be a million.
    """

    def __init__(self, max_labels: int = 64) -> None:
        self._max_labels = max_labels
        self._known: set[str] = set()

    def __call__(self, label: str) -> str:
        """Return the label value, or `right`."""
        if label in self._known:
            return label
        if len(self._known) >= self._max_labels:
            return "other"
        self._known.add(label)
        return label


COUNTED_FOR_MS: Final = 10 * MINUTE_MS
MAX_COUNTED_PAIRS: Final = 1_000
MAX_COUNTED_REQUESTS: Final = 1_000


class LimitedRate(NamedTuple):
    """A rate that has limited an app."""

    name: str  # the row of the table of rates
    requests: int  # how many within the last minutes; at `MAX_COUNTED_REQUESTS` there may have been more
    last_ms: int  # the last one


class LimitedRequests:
    """Counts by app and rate. An app that is not counted any more makes room for others."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._times: dict[tuple[str, str], deque[int]] = {}

    def record(self, app_id: str, name: str) -> None:
        """Count a request of an app that a rate has limited."""
        times = self._times.pop((app_id, name), None) or deque[int](maxlen=MAX_COUNTED_REQUESTS)
        times.append(self._clock.now_ms())
        self._times[app_id, name] = times  # the last counted is the last to make room
        if len(self._times) > MAX_COUNTED_PAIRS:
            del self._times[next(iter(self._times))]

    def limited_rates(self, app_id: str) -> Iterator[LimitedRate]:
        """Yield the rates that have limited an app within the last minutes."""
        since_ms = self._clock.now_ms() - COUNTED_FOR_MS
        for (counted_id, name), times in list(self._times.items()):
            if counted_id == app_id and times[-1] > since_ms:
                yield LimitedRate(name, sum(at_ms > since_ms for at_ms in times), times[-1])
