"""Logging: one record per line, without message texts, tokens and full phone numbers.

A record has `time`, `level`, `logger` and `event` in this order, and then its own fields. Records of libraries and
warnings of Python have the same form.
"""

import contextlib
import json
import logging
import re
import select
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Protocol, cast

from waypost.base.clock import Clock
from waypost.base.extras import hide_package
from waypost.base.telemetry.tracing import TraceRecord, tracer

with hide_package("rich"):  # for coloured tracebacks, which our records never have
    import structlog

_WRITE_CHARS: Final = 1_000
"""Characters. A writable pipe accepts 4,096 bytes (PIPE_BUF), and a character has at most four."""
_READER_TIMEOUT_MS: Final = 100
"""Maximum wait of the first record for a slow reader; later ones do not wait until it has read."""
_ROW_DETAIL: Final = re.compile(
    r"^DETAIL: .*?(?=^\[SQL: |^The above exception |^During handling |\Z)", re.DOTALL | re.MULTILINE
)
"""What PostgreSQL says of a row, up to the statement or to the next exception of a chain."""
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
        """Return the file descriptor. Raises OSError: there is none."""
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
    render = _record_renderer(clock, as_json=as_json, worker=worker)
    structlog.configure(
        processors=[render],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(lossy_stream),  # one write for each record
        cache_logger_on_first_use=True,
    )
    tracer.log_to(_write_step, include_successes=level.lower() == "debug")
    logging.basicConfig(level=logging.WARNING, handlers=[_LibraryHandler(lossy_stream, render)])


def log_everything(clock: Clock, *, as_json: bool, worker: int | None = None) -> Callable[[str], str]:
    """Log what Python prints by itself too; return a function that formats a line for standard output.

    Called once in a process, after `set_up_logs`. Python prints warnings, and errors that end a thread or the process
    or that nobody can receive. They become records. With `as_json` a formatted line is a record too, at every level.

    Args:
        clock: for the time of each record.
        as_json: as in `set_up_logs`.
        worker: as in `set_up_logs`.
    """
    logging.captureWarnings(capture=True)
    logger = log("python")

    def record_error(event: str, error: BaseException | None) -> None:
        logger.error(event, exc_info=error)

    if as_json:
        previous = sys.excepthook

        def end_process(kind: type[BaseException], error: BaseException, trace: Any) -> None:
            if issubclass(kind, KeyboardInterrupt):
                previous(kind, error, trace)
            else:
                record_error("the process ends after a defect", error)

        sys.excepthook = end_process
        threading.excepthook = lambda args: record_error("a thread ended after a defect", args.exc_value)
        sys.unraisablehook = lambda args: record_error(args.err_msg or "a defect in a destructor", args.exc_value)
    render = _record_renderer(clock, as_json=True, worker=worker)

    def format_line(text: str) -> str:
        return str(render(None, "info", {"part": "cli", "event": text})) if as_json else text

    return format_line


def log(name: str) -> structlog.typing.FilteringBoundLogger:
    """Return the logger of one part; `name` is its folder."""
    return structlog.get_logger(part=name)  # structlog has an argument `logger` of its own


def _write_step(record: TraceRecord) -> None:
    row = record.step.value
    facts = {name: value for name, value in record.facts.items() if value is not None}
    if record.took_ns:
        facts["took_ms"] = round(record.took_ns / 1_000_000, 1)
    logger = structlog.get_logger(part=row.part)
    log_step = logger.info if record.failed else logger.debug
    log_step(row.text, message_id=record.message_id, **facts)


class _LibraryHandler(logging.Handler):
    """Writes the records of Python's own logging, which libraries use, in our format."""

    def __init__(self, stream: LogStream, render: structlog.typing.Processor) -> None:
        super().__init__()
        self._stream = stream
        self._render = render

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; a library's record that cannot be formatted is written unformatted."""
        try:
            event = record.getMessage()
        except Exception:  # noqa: BLE001  logging must not raise
            event = str(record.msg)
        fields: dict[str, Any] = {"part": record.name, "event": event.rstrip()}
        if record.exc_info:
            fields["exc_info"] = record.exc_info
        self._stream.write(f"{self._render(None, record.levelname.lower(), fields)}\n")


def _record_renderer(clock: Clock, *, as_json: bool, worker: int | None) -> structlog.typing.Processor:
    """Return a processor that makes a line of a record; it never raises."""
    processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        _head(clock, worker),
        structlog.processors.format_exc_info,
        _redact,
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=False, timestamp_key="time"),
    ]

    def render(logger: Any, method: str, record: structlog.typing.EventDict) -> Any:
        event = record.get("event")
        rendered: Any = record
        try:
            for processor in processors:
                rendered = processor(logger, method, rendered)
        except structlog.DropEvent:
            raise
        except Exception as error:  # noqa: BLE001  logging must not raise
            text = f"a record could not be rendered: {event!a:.100} ({type(error).__name__})"
            time = format_time(clock.now_ms())
            return json.dumps({"time": time, "level": "error", "logger": "base", "event": text}) if as_json else text
        return rendered

    return render


def format_time(at_ms: int) -> str:
    """Return a time as text in UTC, such as `2026-11-27T02:15:00.123Z`.

    Source: RFC 3339, section 5.6.
    """
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _head(clock: Clock, worker: int | None) -> structlog.typing.Processor:
    """Return a processor that puts what every record has before its own fields."""
    worker_field = {} if worker is None else {"worker": worker}

    def add(_logger: Any, method: str, record: structlog.typing.EventDict) -> structlog.typing.EventDict:
        level = "error" if method == "exception" else method
        head = {"time": format_time(clock.now_ms()), "level": level, "logger": record.pop("part", None)}
        return {**head, "event": record.get("event"), **worker_field, **record}

    return add


def _redact(_logger: Any, _method: str, record: structlog.typing.EventDict) -> structlog.typing.EventDict:
    for key in record:
        if key.lower() in _NEVER_LOGGED:
            record[key] = "(not logged)"
    if "exception" in record:  # a database's detail of an error quotes the row, which may hold messages of people
        record["exception"] = _ROW_DETAIL.sub(r"DETAIL:  (not logged)\n", record["exception"])
    return record
