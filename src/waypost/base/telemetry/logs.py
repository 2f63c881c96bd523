"""Logging: one record per line, without message texts, tokens and full phone numbers."""

import contextlib
import logging
import select
import sys
from collections.abc import Sequence
from typing import Any, Final, Protocol, cast

from waypost.base.clock import Clock
from waypost.base.lazy_imports import hide_package
from waypost.base.telemetry.tracing import TraceRecord, tracer

with hide_package("rich"):  # for coloured tracebacks, which our records never have
    import structlog

_WRITE_CHARS: Final = 1_000
"""Characters. A writable pipe accepts 4,096 bytes (PIPE_BUF), and a character has at most four."""
_READER_TIMEOUT_MS: Final = 100
"""Maximum wait of the first record for a slow reader; later ones do not wait until it has read."""
_NEVER_LOGGED = frozenset(
    {"token", "apikey", "api_key", "password", "secret", "authorization", "text", "body", "message_text"}
)


class LogStream(Protocol):
    """The output of log records."""

    def write(self, text: str, /) -> int:
        """Write a text."""
        ...

    def flush(self) -> None:
        """Flush the buffer."""
        ...

    def fileno(self) -> int:
        """Return the file descriptor.

        Raises:
            OSError: there is none.
        """
        ...


class CurrentStderr:
    """The current standard error: code that replaces it for a while gets our records meanwhile.

    Loggers live long. With a stream that has been closed, every record would raise an error in the code
    that logs.
    """

    def write(self, text: str, /) -> int:
        """Write a text."""
        return sys.stderr.write(text)

    def flush(self) -> None:
        """Flush the stream."""
        sys.stderr.flush()

    def fileno(self) -> int:
        """Return the file descriptor."""
        return sys.stderr.fileno()


class LossyStream:
    """A stream that drops what it cannot write: a full disk, a closed or unread pipe, no stream at all.

    A log that cannot be written must not affect the code that logs: no response, and no loop.

    Attributes:
        lost: number of records that were not written, or only in part.
    """

    def __init__(self, stream: LogStream) -> None:
        self._stream = stream
        self._is_whole = True
        self._is_read = True
        self.lost = 0

    def write(self, text: str, /) -> int:
        """Write a text, or drop it or its end."""
        whole = text if self._is_whole else f"\n{text}"  # on a line of its own after a record whose end was lost
        try:
            for begin in range(0, len(whole), _WRITE_CHARS):
                if not self._has_room():
                    self.lost += 1
                    self._is_whole = self._is_whole and begin == 0
                    return len(text)
                self._stream.write(whole[begin : begin + _WRITE_CHARS])
                self._stream.flush()
                self._is_whole = begin + _WRITE_CHARS >= len(whole)
        except Exception:  # noqa: BLE001  there is nowhere else to report it
            self.lost += 1
        return len(text)

    def _has_room(self) -> bool:
        """True if the stream can be written at once. A pipe with a stopped reader would block the whole process."""
        try:
            poll = select.poll()  # not on Windows
            poll.register(self._stream.fileno(), select.POLLOUT)
        except (AttributeError, OSError, ValueError):
            return True
        self._is_read = bool(poll.poll(_READER_TIMEOUT_MS if self._is_read else 0))
        return self._is_read

    def flush(self) -> None:
        """Flush the stream, if possible."""
        with contextlib.suppress(Exception):
            self._stream.flush()


def set_up_logs(
    clock: Clock, *, as_json: bool, level: str, stream: LogStream | None = None, worker: int | None = None
) -> None:
    """Send our records, and those of the libraries, to one stream in one format.

    Args:
        clock: for the time of each record.
        as_json: one JSON object per record, for programs; else a line for people.
        level: the lowest level that is written.
        stream: the output; None: standard error.
        worker: the number of this process among several with the same output; in each record.
    """
    lossy_stream = cast("Any", LossyStream(stream or CurrentStderr()))
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        _stamp(clock),
        *([] if worker is None else [_add_worker(worker)]),
        _redact,
        structlog.processors.format_exc_info,
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[_never_raising([*shared, renderer])],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(lossy_stream),  # one write for each record
        cache_logger_on_first_use=True,
    )
    tracer.log_to(_write_step, include_successes=level.lower() == "debug")
    worker_prefix = "" if worker is None else f"worker {worker} "
    logging.basicConfig(
        stream=lossy_stream, level=logging.WARNING, format=f"%(levelname)s {worker_prefix}%(name)s %(message)s"
    )


def log(name: str) -> structlog.typing.FilteringBoundLogger:
    """Return the logger of one part; `name` is its folder."""
    return structlog.get_logger(part=name)


def _write_step(record: TraceRecord) -> None:
    row = record.step.value
    facts = {name: value for name, value in record.facts.items() if value is not None}
    if record.took_ns:
        facts["took_ms"] = round(record.took_ns / 1_000_000, 1)
    logger = structlog.get_logger(part=row.part)
    log_step = logger.info if record.failed else logger.debug
    log_step(row.text, message_id=record.message_id, **facts)


def _never_raising(processors: Sequence[structlog.typing.Processor]) -> structlog.typing.Processor:
    """Return one processor for all of them, which replaces a record that cannot be rendered by its event."""

    def render(logger: Any, method: str, record: structlog.typing.EventDict) -> Any:
        event = record.get("event")
        rendered: Any = record
        try:
            for processor in processors:
                rendered = processor(logger, method, rendered)
        except structlog.DropEvent:
            raise
        except Exception as error:  # noqa: BLE001  logging must not raise
            return f"a record could not be rendered: {event!a:.100} ({type(error).__name__})"
        return rendered

    return render


def _stamp(clock: Clock) -> structlog.typing.Processor:
    def stamp(_logger: Any, _method: str, record: structlog.typing.EventDict) -> structlog.typing.EventDict:
        record["at_ms"] = clock.now_ms()
        return record

    return stamp


def _add_worker(worker: int) -> structlog.typing.Processor:
    def add(_logger: Any, _method: str, record: structlog.typing.EventDict) -> structlog.typing.EventDict:
        record["worker"] = worker
        return record

    return add


def _redact(_logger: Any, _method: str, record: structlog.typing.EventDict) -> structlog.typing.EventDict:
    for key in record:
        if key.lower() in _NEVER_LOGGED:
            record[key] = "(not logged)"
    return record
