"""Log records at a bounded rate, with how many were left out."""

import logging
from typing import Any

from waypost.base.telemetry.throttled_logging import (
    MAX_RECORDS_PER_WINDOW,
    THROTTLE_WINDOW_S,
    Throttle,
    ThrottledLog,
    ThrottlingFilter,
)


class Seconds:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class RecordingLog:
    """A log that keeps its records."""

    def __init__(self) -> None:
        self.records: list[tuple[str, dict[str, Any]]] = []

    def info(self, event: str, **values: Any) -> None:
        self.records.append((event, values))

    def warning(self, event: str, **values: Any) -> None:
        self.records.append((event, values))


def test_records_beyond_the_rate_are_left_out_and_the_next_reports_how_many() -> None:
    seconds = Seconds()
    throttle = Throttle(now_s=seconds)

    first = [throttle.admit() for _ in range(MAX_RECORDS_PER_WINDOW + 25)]
    seconds.now = THROTTLE_WINDOW_S
    later = [throttle.admit() for _ in range(2)]

    assert first == [0] * MAX_RECORDS_PER_WINDOW + [None] * 25
    assert later == [25, 0]


def test_each_kind_has_its_own_rate() -> None:
    recording = RecordingLog()
    log = ThrottledLog(recording)

    for number in range(100):
        log.warning("a wrong signature", number=number)
    log.info("a wrong token")

    assert len(recording.records) == MAX_RECORDS_PER_WINDOW + 1
    assert recording.records[-1] == ("a wrong token", {})


def test_records_of_a_library_are_throttled_by_their_text() -> None:
    throttling = ThrottlingFilter()

    def record(text: str) -> logging.LogRecord:
        return logging.LogRecord("library", logging.WARNING, "", 0, text, None, None)

    admitted = [throttling.filter(record("invalid request")) for _ in range(100)]

    assert sum(admitted) == MAX_RECORDS_PER_WINDOW
    assert throttling.filter(record("something else"))
