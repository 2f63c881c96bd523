"""What the operator made of a submission."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

INVALID_ANSWER: Final = 4002
"""The partner-facing code where the operator gave no answer that can be read. Source: facts 12."""
MOST_ID_CHARS: Final = 500
"""Of the operator's own ids of things: no index takes a much longer one, and its own have some thirty characters."""


class Again(StrEnum):
    """What keeps the operator from taking something now; the rhythm of the next tries hangs on it."""

    NOT_REACHED = "not reached"
    OUTAGE = "outage"
    THROUGHPUT = "throughput"
    PAIR = "pair rate"
    SPAM = "spam rate"
    MAINTENANCE = "maintenance"
    CALLS = "call rate"
    ACCOUNT_CALLS = "account's call rate"
    CREDENTIAL = "credential"
    ONCE = "one more try"


class Waits(StrEnum):
    """Who waits when one submission has to."""

    ENTRY = "this one"
    SOURCE = "the source"
    BUSINESS = "the business account"
    ACCOUNT = "the operator account"


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
    """The operator refuses it for good.

    Attributes:
        code: what the partner is told; mostly the operator's own.
        one_more_try: a second try may succeed where the first did not; the refusal of that one is final.
        operator_code: the operator's own, where the partner is told another.
        is_about_media: the operator may not have (any more) a medium that the submission names.
    """

    code: int
    text: str
    one_more_try: bool = False
    operator_code: int | None = None
    is_about_media: bool = False


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The operator certainly does not have it; try again later.

    Attributes:
        code: the operator's error code, 0 when it was not reached.
        retry_after_s: the operator's wish, where it stated one.
        again: what keeps it, and so the rhythm of the next tries.
        waits: who waits besides.
        told: the code that the partner gets when it has been given up.
    """

    text: str
    code: int = 0
    retry_after_s: float | None = None
    again: Again = Again.OUTAGE
    waits: Waits = Waits.ENTRY
    told: int = INVALID_ANSWER


@dataclass(frozen=True, slots=True)
class Uncertain:
    """The operator may have it; it is not sent again on a guess."""

    text: str


Outcome = Sent | Rejected | Unavailable | Uncertain
