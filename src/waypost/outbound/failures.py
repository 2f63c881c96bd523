"""Why an address gave no response, in plain words: no library's text reaches a partner."""

import socket
import ssl
from collections.abc import Iterator
from typing import Final

import aiohttp

from waypost.base.http.post_client import AnswerLost, NotHttp, NotReached, TimedOut


class NotAllowed(OSError):
    """The address is not public; nothing was connected."""


_BROKEN: Final = "the connection was closed before the response was complete"

# fmt: off
REASONS: Final[tuple[tuple[type[BaseException], str], ...]] = (  # the first row that fits; of the cause before its error
    (ssl.SSLCertVerificationError,           "its certificate is not valid"),
    (ssl.SSLError,                           "no secure connection could be made (TLS)"),
    (aiohttp.ClientConnectorCertificateError, "its certificate is not valid"),
    (aiohttp.ClientConnectorDNSError,        "its name was not found"),
    (socket.gaierror,                        "its name was not found"),
    (UnicodeError,                           "its name was not found"),
    (TimedOut,                               "timed out: no response in time"),
    (aiohttp.ConnectionTimeoutError,         "timed out: could not connect in time"),
    (aiohttp.ServerTimeoutError,             "timed out: no response in time"),
    (NotHttp,                               "its response is not HTTP"),
    (AnswerLost,                             _BROKEN),
    (aiohttp.ServerDisconnectedError,        _BROKEN),
    (aiohttp.ClientPayloadError,             _BROKEN),
    (aiohttp.ClientResponseError,            "its response is not HTTP"),
    (aiohttp.InvalidUrlClientError,         "this is no http or https address"),
    (aiohttp.NonHttpUrlClientError,          "this is no http or https address"),
    (aiohttp.InvalidURL,                     "this is no http or https address"),
    (aiohttp.ClientConnectorError,           "could not connect"),
    (ConnectionRefusedError,                 "could not connect: the connection was refused"),
    (ConnectionResetError,                   _BROKEN),
    (BrokenPipeError,                        _BROKEN),
    (TimeoutError,                           "timed out: no response in time"),
    (NotReached,                             "could not connect"),
    (OSError,                                "could not connect"),
    (ValueError,                             "this is no http or https address"),
)
# fmt: on


def plain_reason(error: BaseException) -> str:
    """Return why an address gave no response, for whoever chose the address."""
    chain = list(_chain(error))
    for one in chain:
        if isinstance(one, NotAllowed):
            return str(one)
    if isinstance(error, NotReached) and isinstance(error.__cause__, TimeoutError):
        return "timed out: could not connect in time"
    for one in chain:
        for kind, reason in REASONS:
            if type(one) is not NotReached and isinstance(one, kind):
                return reason
    return "could not connect"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The causes first: they say more."""
    inner = getattr(error, "os_error", None) or error.__cause__
    if isinstance(inner, BaseException) and inner is not error:
        yield from _chain(inner)
    yield error
