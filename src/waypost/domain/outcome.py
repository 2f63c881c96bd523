"""What the operator made of a submission."""

from dataclasses import dataclass
from typing import Final

INVALID_ANSWER: Final = 4002
"""The partner-facing code where the operator gave no answer that can be read. Source: facts 12."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The operator has it, and this is its id for it.

    Attributes:
        recipient: the operator's spelling of the destination, where it gave one.
        status: of a template, where the operator's answer already has one.
        category: likewise; it may be another than was asked for.
    """

    operator_id: str
    recipient: str | None = None
    status: str | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """The operator refuses it for good."""

    code: int
    text: str


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The operator certainly does not have it; try again later.

    Attributes:
        code: the operator's error code, 0 when it was not reached.
        retry_after_s: the operator's wish, where it stated one.
    """

    text: str
    code: int = 0
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Uncertain:
    """The operator may have it; it is not sent again on a guess."""

    text: str


Outcome = Sent | Rejected | Unavailable | Uncertain
