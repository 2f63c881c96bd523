"""One record per line. Message text, tokens and full phone numbers never reach it."""

import logging
import sys
from typing import Any, TextIO

import structlog

from waypost.base.clock import Clock

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


def set_up_logs(clock: Clock, *, as_json: bool, level: str, to: TextIO | None = None) -> None:
    """Send our records, and those of the libraries, to one stream in one shape."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        _stamp(clock),
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
        logger_factory=structlog.PrintLoggerFactory(to or sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(
        stream=to or sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s %(message)s"
    )


def log(name: str) -> structlog.typing.FilteringBoundLogger:
    """The logger of one part; `name` is its folder."""
    return structlog.get_logger(part=name)


def _stamp(clock: Clock) -> structlog.typing.Processor:
    def stamp(
        _logger: Any, _method: str, record: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        record["at_ms"] = clock.now_ms()
        return record

    return stamp


def _redact(
    _logger: Any,
    _method: str,
    record: structlog.typing.EventDict,
) -> structlog.typing.EventDict:
    for key in record:
        if key.lower() in _NEVER_LOGGED:
            record[key] = "(not logged)"
    return record
