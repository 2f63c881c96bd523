"""Streaming of files from the simulator to the browser, without holding a whole file in memory."""

import re
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from waypost.base.telemetry.logs import log
from waypost.client.api_client import ApiUnreachable, StreamedResponse
from waypost.console.api_clients import ControlClient
from waypost.console.web.page_request import PageRequest

# fmt: off
_RANGE_HEADERS: Final = ("range", "if-range")
_FORWARDED_HEADERS: Final = (  # response headers that are passed on; the console sets the media type itself
    "content-length", "content-range", "etag", "last-modified",
)
# fmt: on
_log = log("console")
_ONE_RANGE: Final = re.compile("bytes=(?:([0-9]{1,15})-([0-9]{0,15})|-[0-9]{1,15})")


async def open_file(control: ControlClient, page_request: PageRequest, path: str) -> StreamedResponse:
    """Open a file, or the one range of it that the browser requested.

    The caller passes the result to `proxy_response` or closes it.

    Raises:
        ApiUnreachable: the simulator does not respond.
    """
    headers = page_request.request.headers
    range_headers = {name: headers[name] for name in _RANGE_HEADERS if name in headers}
    if not _is_one_range(range_headers.get("range", "")):
        range_headers = {}
    return await control.open(path, method=page_request.request.method, range_headers=range_headers)


def proxy_response(source: StreamedResponse, headers: Mapping[str, str], *, media_type: str) -> Response:
    """Return the response that streams a file: 200, 206 for a range, or 416 for an impossible range."""
    source_headers = {name: source.headers[name] for name in _FORWARDED_HEADERS if name in source.headers}
    return _ProxyResponse(source, {"accept-ranges": "bytes", **source_headers, **headers}, media_type)


class _ProxyResponse(StreamingResponse):
    """Streams a source and always closes it; a source that fails midway ends the connection."""

    def __init__(self, source: StreamedResponse, headers: Mapping[str, str], media_type: str) -> None:
        super().__init__(source, source.status, headers, media_type)
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exclude_from_drain(scope)
        try:
            await super().__call__(scope, receive, send)
        except ApiUnreachable as error:
            _log.warning("file transfer interrupted", reason=str(error))
        finally:
            await self._source.aclose()


def exclude_from_drain(scope: Mapping[str, Any]) -> None:
    """Let a snapshot load or reset proceed without this request, which causes it or lasts as long as a page is open."""
    open_request = scope.get("extensions", {}).get("waypost.open_request")
    if open_request is not None:
        open_request.exclude_from_drain()


def _is_one_range(value: str) -> bool:
    """True for one valid byte range; others may be ignored. Source: RFC 9110, 14.2."""
    match = _ONE_RANGE.fullmatch(value)
    if match is None:
        return False
    first, last = match[1], match[2]
    return not (first and last) or int(first) <= int(last)
