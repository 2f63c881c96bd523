"""A file of another door, handed on as it comes: however large it is, only a piece of it is held here."""

import re
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from waypost.base.telemetry.logs import log
from waypost.client.api_client import NotReached, Pieces
from waypost.console.api_clients import Control
from waypost.console.web.page_request import PageRequest

# fmt: off
_ASKED: Final = ("range", "if-range")
_TOLD: Final = (  # what the answer says of its bytes; what kind of file it is this console says itself
    "content-length", "content-range", "etag", "last-modified",
)
# fmt: on
_log = log("console")
_ONE_RANGE: Final = re.compile("bytes=(?:([0-9]{1,15})-([0-9]{0,15})|-[0-9]{1,15})")


async def open_file(control: Control, visit: PageRequest, path: str) -> Pieces:
    """The answer to what a visitor asks of a file: the whole, or one range of it.

    Whoever asks hands it to `pass_on`, or closes it.

    Raises:
        NotReached: nobody answers.
    """
    headers = visit.request.headers
    asked = {name: headers[name] for name in _ASKED if name in headers}
    if not _is_one_range(asked.get("range", "")):
        asked = {}
    return await control.open(path, method=visit.request.method, asked=asked)


def pass_on(source: Pieces, headers: Mapping[str, str], *, media_type: str) -> Response:
    """The answer that hands a file on: 200, 206 with a range, or 416 where it has no such bytes."""
    told = {name: source.headers[name] for name in _TOLD if name in source.headers}
    return _Passing(source, {"accept-ranges": "bytes", **told, **headers}, media_type)


class _Passing(StreamingResponse):
    """Lets go of its source however it ends; a source that fails in the middle ends the connection."""

    def __init__(self, source: Pieces, headers: Mapping[str, str], media_type: str) -> None:
        super().__init__(source, source.status, headers, media_type)
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        step_aside(scope)
        try:
            await super().__call__(scope, receive, send)
        except NotReached as error:
            _log.warning("a file breaks off", reason=str(error))
        finally:
            await self._source.aclose()


def step_aside(scope: Mapping[str, Any]) -> None:
    """An exchange of the state waits no more for this request: it asks for that, or lasts as long as somebody looks."""
    passage = scope.get("extensions", {}).get("waypost.gate")
    if passage is not None:
        passage.step_aside()


def _is_one_range(asked: str) -> bool:
    """Whether it is a range that can be; others may be ignored. Source: RFC 9110, 14.2."""
    found = _ONE_RANGE.fullmatch(asked)
    if found is None:
        return False
    first, last = found[1], found[2]
    return not (first and last) or int(first) <= int(last)
