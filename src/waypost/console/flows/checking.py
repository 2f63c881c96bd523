"""Checks of Flow JSON while its author types: what is wrong, by line."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import list_of, object_of
from waypost.console.page_request import PageRequest
from waypost.console.web.errors import InvalidPageRequest
from waypost.domain.errors import ApiError, ErrorCode
from waypost.flow_json.validator import MAX_FLOW_JSON_BYTES, check_flow_json

MAX_CHECKS: Final = 4
"""Texts that are held in memory and checked at once; a large one takes seconds."""
_BUSY_S: Final = 1
_check_slots: Final = threading.BoundedSemaphore(MAX_CHECKS)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error or a warning of a text; lines and columns begin with 1, the last column is inclusive."""

    message: str
    name: str  # the operator's name of the error
    place: str  # the operator's path, such as `screens[0].layout`; empty: the whole text
    is_warning: bool  # the operator accepts it, and the handset cuts it or leaves it out
    line: int
    column: int
    line_end: int
    column_end: int


async def read_text(request: PageRequest) -> str:
    """Return the Flow JSON of a form: a file, or the text field of a page without scripts.

    Raises:
        InvalidPageRequest: it is too large, or not UTF-8.
    """
    file = await request.file("file")
    if file is None:
        return (await request.field("text")).replace("\r\n", "\n")
    if (file.size or 0) > MAX_FLOW_JSON_BYTES:
        raise InvalidPageRequest(
            f"The Flow JSON has more than {MAX_FLOW_JSON_BYTES // 1024**2} MB.", "Use smaller pictures."
        )
    try:
        return (await file.read()).decode()
    except UnicodeDecodeError as error:
        raise InvalidPageRequest("The Flow JSON is not UTF-8.", "Save the file as UTF-8.") from error


async def check_text(text: str) -> list[Diagnostic]:
    """Return the errors and the warnings of a text, in order of their places.

    Raises:
        ApiError: too many texts are being checked.
    """
    if not _check_slots.acquire(blocking=False):
        message = f"Only {MAX_CHECKS} texts are checked at once; try again shortly."
        raise ApiError(ErrorCode.TOO_MANY_REQUESTS, message, retry_after_s=_BUSY_S)
    try:
        checked = await asyncio.to_thread(check_flow_json, text)
    finally:
        _check_slots.release()
    return read_diagnostics(checked.errors, checked.warnings)


def read_diagnostics(
    errors: Sequence[Mapping[str, Any]], warnings: Sequence[Mapping[str, Any]] = ()
) -> list[Diagnostic]:
    """Return what the operator's errors, and warnings in the same form, say."""
    both = [(error, False) for error in errors] + [(warning, True) for warning in warnings]
    return sorted(
        (_read_diagnostic(error, is_warning=is_warning) for error, is_warning in both),
        key=lambda one: (one.line, one.column, one.is_warning),
    )


def _read_diagnostic(error: Mapping[str, Any], *, is_warning: bool) -> Diagnostic:
    pointers = [object_of(pointer) for pointer in list_of(error.get("pointers"))]
    line, column = _position(error, "line_start"), _position(error, "column_start")
    return Diagnostic(
        message=str(error.get("message") or error.get("error_message") or ""),
        name=str(error.get("error", "")),
        place=str(pointers[0].get("path", "")) if pointers else "",
        is_warning=is_warning,
        line=line,
        column=column,
        line_end=max(line, _position(error, "line_end")),
        column_end=max(column, _position(error, "column_end")),
    )


def _position(error: Mapping[str, Any], name: str) -> int:
    value = error.get(name)
    return max(1, value) if isinstance(value, int) else 1
