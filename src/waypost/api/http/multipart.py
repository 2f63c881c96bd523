"""Streaming reader of multipart bodies: the heads of parts, and their bytes as they arrive."""

from collections.abc import AsyncIterator

from waypost.api.http.form_parts import unreadable_multipart_error
from waypost.api.http.requests import Request
from waypost.base.http.multipart import MultipartReader, PartHead


async def read_parts(request: Request) -> AsyncIterator[PartHead | bytes]:
    """Yield the head of each part, followed by its bytes as they arrive. Nothing is buffered here.

    Raises:
        ApiError: no boundary, an unreadable body, or more parts or headers than any client sends.
        ConnectionError: the client disconnected.
    """
    reader = MultipartReader(request.header(b"content-type") or "", make_error=unreadable_multipart_error)
    keyed = request.idempotency
    async for chunk in body_chunks(request):
        for part in reader.feed(chunk):
            if keyed is not None:
                keyed.fingerprint.add_part(part)
            yield part
    reader.finish()


async def body_chunks(request: Request) -> AsyncIterator[bytes]:
    """Yield the body's bytes as they arrive.

    Raises:
        ConnectionError: the client disconnected.
    """
    if request.receive is None:
        raise RuntimeError("the body has been read already")
    has_more = True
    while has_more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the client disconnected")
        has_more = message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        if chunk:
            yield chunk
