"""Multipart bodies, read as they arrive: parts with their heads, and the bytes between."""

from collections.abc import AsyncIterator

from waypost.api.http.form_parts import broken_multipart
from waypost.api.http.requests import Request
from waypost.base.http.multipart import MultipartReader, PartHead


async def read_parts(request: Request) -> AsyncIterator[PartHead | bytes]:
    """The heads of the parts, each followed by its bytes as they arrive. Nothing of it is kept here.

    Raises:
        Refused: no boundary, a broken body, or more parts or headers than any client sends.
        ConnectionError: the client went away.
    """
    reader = MultipartReader(request.header(b"content-type") or "", refused=broken_multipart)
    keyed = request.keyed
    async for chunk in body_chunks(request):
        for one in reader.feed(chunk):
            if keyed is not None:
                keyed.fingerprint.add_part(one)
            yield one
    reader.finish()


async def body_chunks(request: Request) -> AsyncIterator[bytes]:
    """The body's bytes as they arrive.

    Raises:
        ConnectionError: the client went away.
    """
    if request.receive is None:
        raise RuntimeError("the body has been read already")
    more = True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the client went away")
        more = message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        if chunk:
            yield chunk
