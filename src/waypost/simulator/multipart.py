"""Multipart forms that are read part by part, as they come: never more than a chunk in memory."""

from collections import deque
from collections.abc import AsyncIterator

from waypost.base.http.multipart import MultipartReader, PartHead
from waypost.simulator.errors import GraphRefused, bad_parameter


def unreadable_form(why: str) -> GraphRefused:
    """The error for a body that cannot be read."""
    return bad_parameter(f"The request body is not a readable form: {why}.")


class MultipartForm:
    """One multipart body: `next_part`, then `chunks` or `text` for its content, and so on.

    Args:
        content_type: the request's header.
        body: the chunks of the body.

    Raises:
        GraphRefused: the header names no boundary.
    """

    def __init__(self, content_type: str, body: AsyncIterator[bytes]) -> None:
        self._reader = MultipartReader(content_type, refused=unreadable_form)
        self._body = body
        self._read: deque[PartHead | bytes] = deque()
        self._is_complete = False

    async def next_part(self) -> PartHead | None:
        """The next part's head, skipping what is left of the one before; None after the last.

        Raises:
            GraphRefused: the body is no readable form.
        """
        while await self._holds_more():
            one = self._read.popleft()
            if isinstance(one, PartHead):
                return one
        return None

    async def chunks(self) -> AsyncIterator[bytes]:
        """The content of the part whose head was read last.

        Raises:
            GraphRefused: the body is no readable form.
        """
        while await self._holds_more() and isinstance(chunk := self._read[0], bytes):
            self._read.popleft()
            yield chunk

    async def text(self, *, at_most: int) -> str:
        """The content of a plain field.

        Raises:
            GraphRefused: it has more bytes than `at_most`, or is not UTF-8.
        """
        gathered = bytearray()
        async for chunk in self.chunks():
            gathered += chunk
            if len(gathered) > at_most:
                raise unreadable_form(f"a field has more than {at_most} bytes")
        try:
            return gathered.decode()
        except UnicodeDecodeError as error:
            raise unreadable_form("a field is not UTF-8") from error

    async def _holds_more(self) -> bool:
        while not self._read and not self._is_complete:
            chunk = await anext(self._body, None)
            if chunk is None:
                self._reader.finish()
                self._is_complete = True
            else:
                self._read.extend(self._reader.feed(chunk))
        return bool(self._read)
