"""Pages that are the same for everybody: made once, and kept as bytes with their compressed form."""

import asyncio
import gzip
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

SLICE_BYTES: Final = 32 * 1024
"""A response is written in slices: one that nobody reads keeps no more of a connection's memory."""


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A page as it is sent.

    Attributes:
        plain: its slices; every response refers to the same ones.
        compressed: the same with gzip.
        tag: of both, without quotes.
    """

    plain: tuple[bytes, ...]
    compressed: tuple[bytes, ...]
    tag: str
    headers: Mapping[str, str]

    def respond(self, request: Request) -> Response:
        """Return the response to a request: 304 to a client that has the page."""
        is_compressed = _accepts_gzip(request.headers.get("accept-encoding", ""))
        tag = f'"{self.tag}-gzip"' if is_compressed else f'"{self.tag}"'
        headers = {**self.headers, "Cache-Control": "no-cache", "ETag": tag, "Vary": "Accept-Encoding"}
        known = {each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")}
        if tag in known or "*" in known:
            return Response(None, 304, headers)
        if is_compressed:
            headers["Content-Encoding"] = "gzip"
        return _SlicedResponse(self.compressed if is_compressed else self.plain, headers)


class _SlicedResponse(Response):
    """A response that waits between its slices until the client has read."""

    def __init__(self, slices: tuple[bytes, ...], headers: Mapping[str, str]) -> None:
        super().__init__(None, headers={**headers, "Content-Length": str(sum(map(len, slices)))})
        self._slices = slices

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        *others, last = self._slices
        for each in others:
            await send({"type": "http.response.body", "body": each, "more_body": True})
        await send({"type": "http.response.body", "body": last})


class KeptPages:
    """The pages that were requested, by name; each is made once, on a thread."""

    def __init__(self) -> None:
        self._pages: dict[str, asyncio.Task[KeptPage]] = {}

    async def respond(
        self, name: str, make: Callable[[], bytes], headers: Mapping[str, str], request: Request
    ) -> Response:
        """Return the response with a page.

        Args:
            name: of the page; there are only so many.
            make: returns its bytes.
            headers: with the media type.
            request: the request.

        Raises:
            whatever `make` raises; the next request makes the page again.
        """
        task = self._pages.get(name)
        if task is None:
            task = self._pages[name] = asyncio.create_task(asyncio.to_thread(_keep, make, headers))
        try:
            page = await asyncio.shield(task)
        except Exception:
            self._pages.pop(name, None)
            raise
        return page.respond(request)


def _keep(make: Callable[[], bytes], headers: Mapping[str, str]) -> KeptPage:
    content = make()
    tag = hashlib.sha256(content).hexdigest()[:32]
    return KeptPage(_slices(content), _slices(gzip.compress(content, mtime=0)), tag, headers)


def _slices(content: bytes) -> tuple[bytes, ...]:
    return tuple(content[start : start + SLICE_BYTES] for start in range(0, len(content), SLICE_BYTES)) or (b"",)


def _accepts_gzip(accepted: str) -> bool:
    """True if a header `Accept-Encoding` names gzip, or everything, and not with a weight of 0."""
    for each in accepted.lower().split(","):
        coding, _, weight = each.partition(";")
        if coding.strip() in ("gzip", "*"):
            return weight.strip().removeprefix("q=").strip("0. ") != "" or not weight
    return False
