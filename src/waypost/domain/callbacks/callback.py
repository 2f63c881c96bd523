"""Callbacks to partners, and the attempts to deliver them."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

CALLBACK_CONTENT_TYPE: Final = "application/json; charset=utf-8"  # Source: facts 4.6


class Callback(NamedTuple):
    """One body for one subscription, rendered once; every attempt sends these bytes.

    Attributes:
        headers: set by the partner.
        sequence: number per subscription and recipient, from 1.
        keys: signing keys, newest first.
    """

    id: str
    subscription_id: str
    url: str
    headers: dict[str, str]
    sequence: int
    body: bytes
    keys: tuple[bytes, ...] = ()


class AttemptKind(StrEnum):
    """The reason of an attempt."""

    INITIAL = "initial"  # the first attempt
    RETRY = "retry"  # an earlier attempt was not delivered
    REPLAY = "replay"  # requested by a person or a program


_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class CallbackAttempt(NamedTuple):
    """One attempt and its result.

    Attributes:
        status: HTTP status of the response; None when there was none.
        response: the first 4 KiB of the response body.
        error: why there was no response.
        request_headers: as sent; of the partner's own headers the names only.
        response_headers: as received, with lower-case names.
    """

    at_ms: int
    duration_ms: int
    status: int | None
    response: bytes = b""
    error: str | None = None
    request_headers: Mapping[str, str] = _NO_HEADERS
    response_headers: Mapping[str, str] = _NO_HEADERS

    @property
    def delivered(self) -> bool:
        """True if the receiver responded with 2xx. Source: facts 4.6."""
        return self.status is not None and 200 <= self.status < 300
