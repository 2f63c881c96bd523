"""Reading multipart forms as they come: strict, bounded, and never more than a chunk in memory.

Each byte is looked at once, apart from the few at a chunk's end that may begin a delimiter.
"""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

_HEAD_AT_MOST: Final = 8 * 1024
_PARTS_AT_MOST: Final = 64
_BOUNDARY: Final = re.compile(r';\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))', re.IGNORECASE)
_PARAMETER: Final = re.compile(r';\s*([A-Za-z*]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))')


class Unreadable(Exception):
    """The body is no multipart form; says what is wrong with it."""


@dataclass(frozen=True)
class PartHead:
    """What a part says of itself.

    Args:
        file_name: None for a plain field.
        content_type: in lower case, without its parameters; empty when the part has none.
    """

    name: str
    file_name: str | None
    content_type: str


class Multipart:
    """One multipart body: `next_part`, then `chunks` or `text` for its content, and so on.

    Args:
        content_type: the request's header.
        body: the chunks of the body.

    Raises:
        Unreadable: the header names no boundary.

    Source: RFC 7578 and RFC 2046, section 5.1.
    """

    def __init__(self, content_type: str, body: AsyncIterator[bytes]) -> None:
        found = _BOUNDARY.search(content_type)
        if found is None:
            raise Unreadable("the content type names no boundary")
        self._delimiter = b"\r\n--" + (found[1] or found[2]).encode("latin-1")
        self._body = body
        # The first delimiter has no line before it: with this one it looks like the others.
        self._held = bytearray(b"\r\n")
        self._parts = 0
        self._inside = False

    async def next_part(self) -> PartHead | None:
        """The next part's head, skipping what is left of the one before; None after the last.

        Raises:
            Unreadable: there is something else, or too many parts.
        """
        if self._parts == 0:
            await self._expect(self._delimiter)
        elif self._inside:
            async for _ in self.chunks():
                pass
        await self._hold(2)
        if self._held.startswith(b"--"):
            return None
        await self._expect(b"\r\n")
        self._parts += 1
        if self._parts > _PARTS_AT_MOST:
            raise Unreadable(f"it has more than {_PARTS_AT_MOST} parts")
        head = _read_head(await self._head_lines())
        self._inside = True
        return head

    async def chunks(self) -> AsyncIterator[bytes]:
        """The content of the part whose head was read last."""
        keep = len(self._delimiter) - 1
        while True:
            place = self._held.find(self._delimiter)
            if place >= 0:
                last = bytes(self._held[:place])
                del self._held[: place + len(self._delimiter)]
                self._inside = False
                if last:
                    yield last
                return
            if len(self._held) > keep:
                yield bytes(self._held[:-keep])
                del self._held[:-keep]
            await self._more()

    async def text(self, *, at_most: int) -> str:
        """The content of a plain field.

        Raises:
            Unreadable: it has more bytes than `at_most`, or is not UTF-8.
        """
        gathered = bytearray()
        async for chunk in self.chunks():
            gathered += chunk
            if len(gathered) > at_most:
                raise Unreadable(f"a field has more than {at_most} bytes")
        try:
            return gathered.decode()
        except UnicodeDecodeError as error:
            raise Unreadable("a field is not UTF-8") from error

    async def _head_lines(self) -> bytes:
        looked = 0
        while (place := self._held.find(b"\r\n\r\n", max(0, looked - 3))) < 0:
            looked = len(self._held)
            if looked > _HEAD_AT_MOST:
                raise Unreadable(f"a part's head has more than {_HEAD_AT_MOST} bytes")
            await self._more()
        if place > _HEAD_AT_MOST:
            raise Unreadable(f"a part's head has more than {_HEAD_AT_MOST} bytes")
        head = bytes(self._held[:place])
        del self._held[: place + 4]
        return head

    async def _expect(self, text: bytes) -> None:
        await self._hold(len(text))
        if not self._held.startswith(text):
            raise Unreadable("a delimiter is missing")
        del self._held[: len(text)]

    async def _hold(self, count: int) -> None:
        while len(self._held) < count:
            await self._more()

    async def _more(self) -> None:
        try:
            self._held += await anext(self._body)
        except StopAsyncIteration:
            raise Unreadable("it ends before its last delimiter") from None


def _read_head(raw: bytes) -> PartHead:
    headers: dict[str, str] = {}
    for line in raw.decode("utf-8", "replace").split("\r\n"):
        name, colon, value = line.partition(":")
        if not colon:
            raise Unreadable("a part's head has a line without a colon")
        headers[name.strip().lower()] = value.strip()
    disposition = headers.get("content-disposition", "")
    if disposition.partition(";")[0].strip().lower() != "form-data":
        raise Unreadable("a part is no form-data")
    parameters = {
        found[1].lower(): re.sub(r"\\(.)", r"\1", found[2]) if found[2] is not None else found[3]
        for found in _PARAMETER.finditer(disposition)
    }
    if "name" not in parameters:
        raise Unreadable("a part has no name")
    file_name = parameters.get("filename")
    extended = parameters.get("filename*", "")
    if extended.lower().startswith("utf-8''"):  # Source: RFC 5987
        file_name = unquote(extended[7:])
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    return PartHead(parameters["name"], file_name, content_type)
