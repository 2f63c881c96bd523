"""Explains in plain words why a URL gave no response: no library's text reaches a partner."""

import socket
import ssl
from collections.abc import Iterator
from typing import Final

from waypost.base.http.connections import (
    InvalidHttpResponse,
    NotConnected,
    ResponseLost,
    ResponseTimeout,
    ResponseTooLarge,
)


class AddressNotAllowed(OSError):
    """The address is not public; nothing was connected."""


_BROKEN: Final = "the connection was closed before the response was complete"

FAILURE_REASONS: Final[
    tuple[tuple[type[BaseException], str], ...]
] = (  # the first row that matches; for the cause before its error
    (ssl.SSLCertVerificationError, "its certificate is not valid"),
    (ssl.SSLError, "no secure connection could be made (TLS)"),
    (socket.gaierror, "its name was not found"),
    (UnicodeError, "its name was not found"),
    (ResponseTimeout, "timed out: no response in time"),
    (InvalidHttpResponse, "its response is not HTTP"),
    (ResponseLost, _BROKEN),
    (ConnectionRefusedError, "could not connect: the connection was refused"),
    (ConnectionResetError, _BROKEN),
    (BrokenPipeError, _BROKEN),
    (TimeoutError, "timed out: no response in time"),
    (NotConnected, "could not connect"),
    (OSError, "could not connect"),
    (ValueError, "this is not an http or https address"),
)


def plain_reason(error: BaseException) -> str:
    """Return why a URL gave no response, for the partner that chose the URL."""
    chain = list(_cause_chain(error))
    for cause in chain:
        if isinstance(cause, (AddressNotAllowed, ResponseTooLarge)):
            return str(cause)
    if isinstance(error, NotConnected) and isinstance(error.__cause__, TimeoutError):
        return "timed out: could not connect in time"
    for cause in chain:
        for kind, reason in FAILURE_REASONS:
            if type(cause) is not NotConnected and isinstance(cause, kind):
                return reason
    return "could not connect"


def _cause_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, the causes first: they are more specific."""
    inner = error.__cause__
    if isinstance(inner, BaseException) and inner is not error:
        yield from _cause_chain(inner)
    yield error
