"""Log records that outsiders can cause in any number: a few per minute of each kind, and the number left out."""

import logging
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

MAX_RECORDS_PER_WINDOW: Final = 10
THROTTLE_WINDOW_S: Final = 60.0


class Throttle:
    """A rate limit for events of one kind.

    Args:
        max_records: maximum number of records per window.
        window_s: length of the window, in real time.
        now_s: a monotonic clock.
    """

    def __init__(
        self,
        max_records: int = MAX_RECORDS_PER_WINDOW,
        window_s: float = THROTTLE_WINDOW_S,
        *,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_records = max_records
        self._window_s = window_s
        self._now_s = now_s
        self._began_s = now_s()
        self._records = 0
        self._left_out = 0

    def admit(self) -> int | None:
        """Return the number of events left out before this one; None: leave out this one too."""
        now_s = self._now_s()
        if now_s - self._began_s >= self._window_s:
            self._began_s, self._records = now_s, 0
        if self._records >= self._max_records:
            self._left_out += 1
            return None
        self._records += 1
        left_out, self._left_out = self._left_out, 0
        return left_out


class _Logger(Protocol):
    def info(self, event: str, **values: Any) -> Any: ...
    def warning(self, event: str, **values: Any) -> Any: ...


class ThrottledLog:
    """A logger with a bounded rate for each kind of record."""

    def __init__(self, logger: _Logger) -> None:
        self._logger = logger
        self._throttles: dict[str, Throttle] = {}

    def info(self, event: str, **values: Any) -> None:
        """Write a record, or count it."""
        left_out = self._admit(event)
        if left_out is not None:
            self._logger.info(event, **values, **_left_out_field(left_out))

    def warning(self, event: str, **values: Any) -> None:
        """Write a record, or count it."""
        left_out = self._admit(event)
        if left_out is not None:
            self._logger.warning(event, **values, **_left_out_field(left_out))

    def _admit(self, event: str) -> int | None:
        return self._throttles.setdefault(event, Throttle()).admit()


class ThrottlingFilter(logging.Filter):
    """A filter that throttles the records of a library's logger, each text by itself."""

    def __init__(self) -> None:
        super().__init__()
        self._throttles: dict[str, Throttle] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if the record is written; it then has the number of records left out."""
        left_out = self._throttles.setdefault(str(record.msg)[:200], Throttle()).admit()
        if left_out:
            record.msg = f"{record.msg} ({left_out} more were not logged)"
        return left_out is not None


def throttle_library(name: str) -> None:
    """Throttle a library's logger from now on; safe to repeat."""
    logger = logging.getLogger(name)
    if not any(isinstance(log_filter, ThrottlingFilter) for log_filter in logger.filters):
        logger.addFilter(ThrottlingFilter())


def _left_out_field(left_out: int) -> dict[str, int]:
    return {"left_out": left_out} if left_out else {}
