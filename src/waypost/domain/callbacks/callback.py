"""Callbacks: what we tell a partner, and each try."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Callback:
    """One body for one subscription, rendered once; every try sends these bytes.

    Attributes:
        headers: the partner's own.
        sequence: counts up per subscription and recipient, from 1.
        keys: that sign it, the newest first.
    """

    id: str
    subscription_id: str
    url: str
    headers: dict[str, str]
    sequence: int
    body: bytes
    keys: tuple[bytes, ...] = ()


class AttemptKind(StrEnum):
    """Why a callback was sent at this time."""

    INITIAL = "initial"  # the first try
    RETRY = "retry"  # it was tried before, and not delivered
    REPLAY = "replay"  # somebody asked for it to be sent again


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try and what came of it.

    Attributes:
        status: the answer's HTTP status, None when there was none.
        answer: the first 4 KiB of the answer.
        error: why there was no answer.
        sent: the headers that were sent; of the partner's own ones the names only.
        told: the headers of the answer.
    """

    at_ms: int
    duration_ms: int
    status: int | None
    answer: bytes = b""
    error: str | None = None
    sent: Mapping[str, str] = field(default_factory=dict[str, str])
    told: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def delivered(self) -> bool:
        """Whether the receiver took it: any 2xx. Source: facts 4.6."""
        return self.status is not None and 200 <= self.status < 300
