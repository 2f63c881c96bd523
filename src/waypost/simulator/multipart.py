"""Multipart forms read part by part, with at most one chunk in memory."""

from collections import deque
from collections.abc import AsyncIterator

from waypost.base.http.multipart import MultipartReader, PartHead
from waypost.simulator.errors import GraphApiError, bad_parameter


def unreadable_form(reason: str) -> GraphApiError:
    """Return the error for a body that cannot be read."""
    return bad_parameter(f"The request body is not a readable form: {reason}.")


class MultipartForm:
    """One multipart body: call `next_part`, then `chunks` or `text` for its content, and repeat.

    Args:
        content_type: the request's header.
        body: the chunks of the body.

    Raises:
        GraphApiError: the header names no boundary.
    """

    def __init__(self, content_type: str, body: AsyncIterator[bytes]) -> None:
        self._reader = MultipartReader(content_type, make_error=unreadable_form)
        self._body = body
        self._read: deque[PartHead | bytes] = deque()
        self._is_complete = False

    async def next_part(self) -> PartHead | None:
        """Return the next part's head, skipping the rest of the part before; None after the last.

        Raises:
            GraphApiError: the body is no readable form.
        """
        while await self._has_more():
            item = self._read.popleft()
            if isinstance(item, PartHead):
                return item
        return None

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the content of the part whose head was read last.

        Raises:
            GraphApiError: the body is no readable form.
        """
        while await self._has_more() and isinstance(chunk := self._read[0], bytes):
            self._read.popleft()
            yield chunk

    async def text(self, *, max_bytes: int) -> str:
        """Return the content of a plain field.

        Raises:
            GraphApiError: it has more than `max_bytes`, or is not UTF-8.
        """
        content = bytearray()
        async for chunk in self.chunks():
            content += chunk
            if len(content) > max_bytes:
                raise unreadable_form(f"a field has more than {max_bytes} bytes")
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise unreadable_form("a field is not UTF-8") from error

    async def _has_more(self) -> bool:
        while not self._read and not self._is_complete:
            chunk = await anext(self._body, None)
            if chunk is None:
                self._reader.finish()
                self._is_complete = True
            else:
                self._read.extend(self._reader.feed(chunk))
        return bool(self._read)
