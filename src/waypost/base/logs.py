"""One record per line. Message text, tokens and full phone numbers never reach it."""

import logging
import sys
from typing import Any, Protocol, cast

from waypost.base.clock import Clock
from waypost.base.sparing import without
from waypost.base.steps import Told, steps

with without("rich"):  # for coloured tracebacks, which no record of ours has
    import structlog

_NEVER_LOGGED = frozenset(
    {
        "token",
        "apikey",
        "api_key",
        "password",
        "secret",
        "authorization",
        "text",
        "body",
        "message_text",
    }
)


class Stream(Protocol):
    """Where records go."""

    def write(self, text: str, /) -> int:
        """Take a text."""
        ...

    def flush(self) -> None:
        """Let go of what was taken."""
        ...


class WhereverStderrIs:
    """The standard error of the moment: whoever exchanges it for a while has our records meanwhile.

    Loggers live long. One that held on to a stream that has been closed would make each record a defect
    of whoever writes it.
    """

    def write(self, text: str, /) -> int:
        """Write to it; nothing, where it has been closed."""
        try:
            return sys.stderr.write(text)
        except ValueError:
            return len(text)

    def flush(self) -> None:
        """Flush it, where it is open."""
        if not sys.stderr.closed:
            sys.stderr.flush()


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
    stream = cast("Any", to or WhereverStderrIs())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        _stamp(clock),
        *([] if worker is None else [_of(worker)]),
        _redact,
        structlog.processors.format_exc_info,
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    steps.log_to(_write_step, all_of_it=level.lower() == "debug")
    who = "" if worker is None else f"worker {worker} "
    logging.basicConfig(
        stream=stream, level=logging.WARNING, format=f"%(levelname)s {who}%(name)s %(message)s"
    )


def log(name: str) -> structlog.typing.FilteringBoundLogger:
    """The logger of one part; `name` is its folder."""
    return structlog.get_logger(part=name)


def _write_step(told: Told) -> None:
    row = told.step.value
    facts = {name: value for name, value in told.facts.items() if value is not None}
    if told.took_ns:
        facts["took_ms"] = round(told.took_ns / 1_000_000, 1)
    write = structlog.get_logger(part=row.part)
    say = write.info if told.failed else write.debug
    say(row.says, message_id=told.message_id, **facts)


def _stamp(clock: Clock) -> structlog.typing.Processor:
    def stamp(
        _logger: Any, _method: str, record: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        record["at_ms"] = clock.now_ms()
        return record

    return stamp


def _of(worker: int) -> structlog.typing.Processor:
    def add(
        _logger: Any, _method: str, record: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        record["worker"] = worker
        return record

    return add


def _redact(
    _logger: Any,
    _method: str,
    record: structlog.typing.EventDict,
) -> structlog.typing.EventDict:
    for key in record:
        if key.lower() in _NEVER_LOGGED:
            record[key] = "(not logged)"
    return record
