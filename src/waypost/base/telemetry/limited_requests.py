"""Requests that a rate has limited, counted for a few minutes in the memory of one process, for the console."""

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from waypost.base.clock import MINUTE_MS, Clock

COUNTED_FOR_MS: Final = 10 * MINUTE_MS
MAX_COUNTED_PAIRS: Final = 1_000
MAX_COUNTED_REQUESTS: Final = 1_000


class LimitedRate(NamedTuple):
    """A rate that has limited an app.

    Attributes:
        name: the row of the table of rates.
        requests: how many within the last minutes; at `MAX_COUNTED_REQUESTS` there may have been more.
        last_ms: the last one.
    """

    name: str
    requests: int
    last_ms: int


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
