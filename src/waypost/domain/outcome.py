"""Outcomes: the operator's result for a submitted message or template."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

INVALID_RESPONSE_CODE: Final = 4002
"""The partner's error code where the operator gave no readable response. Source: facts 12."""
MAX_OPERATOR_ID_CHARS: Final = 500
"""Of an operator's id: the indexes allow no much longer one, and real ids have about thirty characters."""


class RetryReason(StrEnum):
    """Why the operator cannot accept a submission now; decides the retry schedule."""

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


class RetryScope(StrEnum):
    """The scope of the delay when a submission has to be retried later."""

    JOB = "this one"
    SOURCE = "the source"
    BUSINESS = "the business account"
    ACCOUNT = "the operator account"


@dataclass(frozen=True, slots=True)
class OperatorAccepted:
    """The operator has accepted the submission, under this id."""

    operator_id: str
    recipient: str | None = None  # the operator's spelling of the destination, where it gave one
    status: str | None = None  # of a template, where the response already has one
    category: str | None = None  # of a template, where the response has one; may differ from the requested one


@dataclass(frozen=True, slots=True)
class OperatorRejected:
    """The operator has rejected the submission; final."""

    code: int  # for the partner; usually the operator's own
    text: str
    retry_once: bool = False  # one retry may succeed; its result is final
    operator_code: int | None = None  # the operator's own, where the partner gets another code
    is_about_media: bool = False  # the operator may no longer have a medium of the submission
    existing_id: str | None = None  # of a template: the operator's id of another one with its name, which is the reason


@dataclass(frozen=True, slots=True)
class OperatorUnavailable:
    """The operator certainly does not have the submission; retry later."""

    text: str
    code: int = 0  # the operator's error code; 0: it was not reached
    retry_after_s: float | None = None  # as requested by the operator, if it was
    retry_reason: RetryReason = RetryReason.OUTAGE  # decides the retry schedule
    retry_scope: RetryScope = RetryScope.JOB  # what else is delayed
    partner_code: int = INVALID_RESPONSE_CODE  # the partner's error code when the retries are exhausted


@dataclass(frozen=True, slots=True)
class OutcomeUncertain:
    """The operator may have the submission; it is not sent again on a guess."""

    text: str


NotAccepted = OperatorRejected | OperatorUnavailable | OutcomeUncertain
Outcome = OperatorAccepted | NotAccepted
