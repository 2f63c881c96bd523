"""Limited requests are counted by app and rate for ten minutes, and no more of them than fit."""

import pytest

from tests.support.manual_clock import ManualClock
from waypost.base.telemetry import counters
from waypost.base.telemetry.counters import COUNTED_FOR_MS, LimitedRate, LimitedRequests


def test_requests_are_counted_by_app_and_rate_until_their_time_is_over() -> None:
    clock = ManualClock()
    limited = LimitedRequests(clock)
    first_ms = clock.now_ms()
    for app_id, name in (("a", "templates"), ("a", "templates"), ("a", "session"), ("b", "templates")):
        limited.record(app_id, name)
    clock.advance(ms=COUNTED_FOR_MS - 1)
    limited.record("a", "session")

    counted = list(limited.limited_rates("a"))
    clock.advance(ms=1)
    later = list(limited.limited_rates("a"))

    last_ms = first_ms + COUNTED_FOR_MS - 1
    assert counted == [LimitedRate("templates", 2, first_ms), LimitedRate("session", 2, last_ms)]
    assert later == [LimitedRate("session", 1, last_ms)]


def test_app_that_was_limited_longest_ago_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "MAX_COUNTED_PAIRS", 2)
    limited = LimitedRequests(ManualClock())
    for app_id in ("a", "b", "a", "c"):
        limited.record(app_id, "session")

    assert [len(list(limited.limited_rates(app_id))) for app_id in "abc"] == [1, 0, 1]
