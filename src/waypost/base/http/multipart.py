"""A reader of multipart bodies: gets bytes as they come, returns part heads and the bytes of the parts.

Source: RFC 7578 and RFC 2046, section 5.1.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_to_bytes

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError, MultipartParseError
from python_multipart.multipart import parse_options_header

MAX_PARTS: Final = 32
MAX_PART_HEADERS: Final = 16
MAX_PART_HEADER_BYTES: Final = 2048
MAX_FILE_NAME_CHARS: Final = 240
_EXTENDED_NAME: Final = re.compile(r";\s*filename\*=utf-8'[^']*'([^;\s]*)", re.IGNORECASE)
"""A file name encoded by RFC 5987: RFC 7578 forbids it in forms, some clients send it, and the library drops it."""


@dataclass(frozen=True, slots=True)
class PartHead:
    """The head of a part."""

    name: str
    file_name: str | None  # the last segment only; None if the part has none, empty if it is empty
    content_type: str  # in lower case, without parameters; empty if there is none


class MultipartReader:
    """A reader of one body. It stores nothing.

    Args:
        content_type: the request's header.
        make_error: makes the error to raise, from a text about the body.
        max_parts: maximum number of parts.
        errors: handling of heads that are not UTF-8, as in `bytes.decode`.

    Raises:
        the error of `make_error`: no boundary.
    """

    def __init__(
        self,
        content_type: str,
        *,
        make_error: Callable[[str], Exception],
        max_parts: int = MAX_PARTS,
        errors: str = "replace",
    ) -> None:
        self._make_error = make_error
        _, options = parse_options_header(_replace_non_ascii(content_type))
        boundary = options.get(b"boundary")
        if not boundary:
            raise make_error("the Content-Type has no boundary")
        events = self._events = _ParserEvents(max_parts, errors)
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": events.begin_part,
                    "on_header_field": events.add_to_field,
                    "on_header_value": events.add_to_value,
                    "on_header_end": events.end_header,
                    "on_headers_finished": events.end_headers,
                    "on_part_data": events.add_data,
                    "on_end": events.end,
                },
                max_header_count=MAX_PART_HEADERS,
                max_header_size=MAX_PART_HEADER_BYTES,
            )
        except FormParserError as error:
            raise make_error(_describe_broken_form(error)) from error

    def feed(self, chunk: bytes) -> list[PartHead | bytes]:
        """Return what these bytes complete.

        Raises:
            the error of `make_error`: a broken body, or more parts or headers than any client sends.
        """
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise self._make_error(_describe_broken_form(error)) from error
        return self._events.drain()

    def finish(self) -> None:
        """End the body. Raises The error of `make_error`: it ends before its last boundary."""
        try:
            self._parser.finalize()
        except FormParserError as error:
            raise self._make_error(_describe_broken_form(error)) from error
        if not self._events.ended:
            raise self._make_error("it ends before its last boundary")


def _describe_broken_form(error: FormParserError) -> str:
    text = str(error)
    if not isinstance(error, MultipartParseError) and "Boundary length" not in text:
        return text  # ours, of `_ParserEvents`
    if "header count" in text:
        return f"a part has more than {MAX_PART_HEADERS} headers"
    if "header size" in text:
        return f"a header of a part has more than {MAX_PART_HEADER_BYTES} bytes"
    if "Boundary length" in text:
        return "the boundary in the Content-Type is too long"
    return "a boundary, or the head of a part, is not as RFC 7578 has it"


class _ParserEvents:
    """The heads and bytes that the parser has completed since the last call of `drain`."""

    def __init__(self, max_parts: int, errors: str) -> None:
        self._max_parts = max_parts
        self._errors = errors
        self._completed: list[PartHead | bytes] = []
        self._headers: dict[str, str] = {}
        self._field = b""
        self._value = b""
        self._parts = 0
        self.ended = False

    def drain(self) -> list[PartHead | bytes]:
        completed, self._completed = self._completed, []
        return completed

    def begin_part(self) -> None:
        self._parts += 1
        if self._parts > self._max_parts:
            raise FormParserError(f"it has more than {self._max_parts} parts")
        self._headers = {}

    def add_to_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def add_to_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def end_header(self) -> None:
        name = self._field.decode("latin-1").strip().lower()
        self._headers[name] = self._value.decode("utf-8", self._errors).strip()
        self._field = self._value = b""

    def end_headers(self) -> None:
        self._completed.append(_parse_part_head(self._headers))

    def add_data(self, data: bytes, start: int, end: int) -> None:
        self._completed.append(data[start:end])

    def end(self) -> None:
        self.ended = True


def _parse_part_head(headers: dict[str, str]) -> PartHead:
    # The library returns latin-1, which is the header encoding of the standard it follows. Browsers
    # and clients send UTF-8.
    disposition = headers.get("content-disposition", "").encode("utf-8").decode("latin-1")
    kind, options = parse_options_header(disposition)
    name = options.get(b"name")
    if kind != b"form-data" or not name:
        raise FormParserError("a part has no name")
    extended = _EXTENDED_NAME.search(headers["content-disposition"])
    file_name = unquote_to_bytes(extended[1]) if extended else options.get(b"filename")
    content_type, _ = parse_options_header(_replace_non_ascii(headers.get("content-type", "")))
    return PartHead(
        name=name.decode("utf-8", "replace"),
        file_name=None if file_name is None else _last_segment(file_name),
        content_type=content_type.decode("latin-1").lower(),
    )


def _replace_non_ascii(header: str) -> str:
    """Replace the letters that the library, which reads latin-1, cannot return."""
    return header.encode("ascii", "replace").decode()


def _last_segment(name: bytes) -> str:
    text = name.decode("utf-8", "replace").replace("\\", "/").rpartition("/")[2]
    return "".join(char for char in text if char.isprintable())[:MAX_FILE_NAME_CHARS]
