"""One record per line. Message text, tokens and full phone numbers never reach it."""

import contextlib
import logging
import select
import sys
from collections.abc import Sequence
from typing import Any, Final, Protocol, cast

from waypost.base.clock import Clock
from waypost.base.lazy_imports import without
from waypost.base.telemetry.tracing import TraceRecord, tracer

with without("rich"):  # for coloured tracebacks, which no record of ours has
    import structlog

_AT_ONCE: Final = 1_000
"""Characters. A pipe that says it has room takes 4,096 bytes (PIPE_BUF), and a character has four at most."""
_PATIENCE_MS: Final = 100
"""How long the first record waits for a reader that is behind; those after it do not wait, until it has read."""
_NEVER_LOGGED = frozenset(
    {"token", "apikey", "api_key", "password", "secret", "authorization", "text", "body", "message_text"}
)


class Stream(Protocol):
    """Where records go."""

    def write(self, text: str, /) -> int:
        """Take a text."""
        ...

    def flush(self) -> None:
        """Let go of what was taken."""
        ...

    def fileno(self) -> int:
        """The number of its file.

        Raises:
            OSError: it has none.
        """
        ...


class WhereverStderrIs:
    """The standard error of the moment: whoever exchanges it for a while has our records meanwhile.

    Loggers live long. One that held on to a stream that has been closed would make each record a defect
    of whoever writes it.
    """

    def write(self, text: str, /) -> int:
        """Write to it."""
        return sys.stderr.write(text)

    def flush(self) -> None:
        """Flush it."""
        sys.stderr.flush()

    def fileno(self) -> int:
        """The number of its file."""
        return sys.stderr.fileno()


class LossyStream:
    """A stream that loses what it cannot write: a full disk, a closed pipe, one that nobody reads, no stream at all.

    A log that cannot be written must change nothing for whoever logs: no answer, and no loop.

    Attributes:
        lost: how many records were not written, or not whole.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._is_whole = True
        self._is_read = True
        self.lost = 0

    def write(self, text: str, /) -> int:
        """Write a text, or lose it, or its end."""
        whole = text if self._is_whole else f"\n{text}"  # apart from a record whose end was lost
        try:
            for begin in range(0, len(whole), _AT_ONCE):
                if not self._has_room():
                    self.lost += 1
                    self._is_whole = self._is_whole and begin == 0
                    return len(text)
                self._stream.write(whole[begin : begin + _AT_ONCE])
                self._stream.flush()
                self._is_whole = begin + _AT_ONCE >= len(whole)
        except Exception:  # noqa: BLE001  there is nowhere else to say it
            self.lost += 1
        return len(text)

    def _has_room(self) -> bool:
        """Whether the stream takes a piece at once. A pipe whose reader stopped would hold up the whole process."""
        try:
            poll = select.poll()  # not on Windows
            poll.register(self._stream.fileno(), select.POLLOUT)
        except (AttributeError, OSError, ValueError):
            return True
        self._is_read = bool(poll.poll(_PATIENCE_MS if self._is_read else 0))
        return self._is_read

    def flush(self) -> None:
        """Flush, where that can be done."""
        with contextlib.suppress(Exception):
            self._stream.flush()


def set_up_logs(
    clock: Clock, *, as_json: bool, level: str, to: Stream | None = None, worker: int | None = None
) -> None:
    """Send our records, and those of the libraries, to one stream in one shape.

    Args:
        clock: stamps each.
        as_json: one JSON object a record, for programs; else a line for people.
        level: the least that is written.
        to: standard error, unless given.
        worker: the number of this process among several that write to one place; in each record.
    """
    stream = cast("Any", LossyStream(to or WhereverStderrIs()))
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        _stamp(clock),
        *([] if worker is None else [_of(worker)]),
        _redact,
        structlog.processors.format_exc_info,
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[_never_raising([*shared, renderer])],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(stream),  # one write for each record
        cache_logger_on_first_use=True,
    )
    tracer.log_to(_write_step, all_of_it=level.lower() == "debug")
    who = "" if worker is None else f"worker {worker} "
    logging.basicConfig(stream=stream, level=logging.WARNING, format=f"%(levelname)s {who}%(name)s %(message)s")


def log(name: str) -> structlog.typing.FilteringBoundLogger:
    """The logger of one part; `name` is its folder."""
    return structlog.get_logger(part=name)


def _write_step(told: TraceRecord) -> None:
    row = told.step.value
    facts = {name: value for name, value in told.facts.items() if value is not None}
    if told.took_ns:
        facts["took_ms"] = round(told.took_ns / 1_000_000, 1)
    write = structlog.get_logger(part=row.part)
    say = write.info if told.failed else write.debug
    say(row.says, message_id=told.message_id, **facts)


def _never_raising(processors: Sequence[structlog.typing.Processor]) -> structlog.typing.Processor:
    """All of them as one, which loses a record that cannot be rendered and says which it was."""

    def render(logger: Any, method: str, record: structlog.typing.EventDict) -> Any:
        event = record.get("event")
        rendered: Any = record
        try:
            for processor in processors:
                rendered = processor(logger, method, rendered)
        except structlog.DropEvent:
            raise
        except Exception as error:  # noqa: BLE001  whoever logs has other things to do
            return f"a record could not be rendered: {event!a:.100} ({type(error).__name__})"
        return rendered

    return render


def _stamp(clock: Clock) -> structlog.typing.Processor:
    def stamp(_logger: Any, _method: str, record: structlog.typing.EventDict) -> structlog.typing.EventDict:
        record["at_ms"] = clock.now_ms()
        return record

    return stamp


def _of(worker: int) -> structlog.typing.Processor:
    def add(_logger: Any, _method: str, record: structlog.typing.EventDict) -> structlog.typing.EventDict:
        record["worker"] = worker
        return record

    return add


def _redact(_logger: Any, _method: str, record: structlog.typing.EventDict) -> structlog.typing.EventDict:
    for key in record:
        if key.lower() in _NEVER_LOGGED:
            record[key] = "(not logged)"
    return record
