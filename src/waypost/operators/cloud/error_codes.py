"""The table of the operator's error codes: the meaning of each, and what it does to a submission.

`docs/reference/operator-codes.md` is made from it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from waypost.base.json_values import boolean_of, object_of
from waypost.domain.direct_calls import OperatorProblem
from waypost.domain.outcome import (
    NotAccepted,
    OperatorRejected,
    OperatorUnavailable,
    OutcomeUncertain,
    RetryReason,
    RetryScope,
)
from waypost.operators.cloud.tolerant_json import parse_number

INTERNAL_ERROR: Final = 500
"""The partner's code for what only we can fix: "internal server error". Source: partner's facts 12."""
RATE_LIMITED: Final = 4001
"""The partner's code for a submission that a rate limit blocked until the end. Source: partner's facts 12."""
OPERATOR_UNREACHABLE: Final = 4002
"""The partner's code for an operator that cannot be reached. Source: partner's facts 12."""
INVALID_PARAMETER: Final = 100
"""Almost any invalid parameter: only the error text shows if it is about a media file."""
MEDIA_CODES: Final = frozenset({INVALID_PARAMETER, 131009, 131053})
"""The codes for a media id that the operator does not have (any more). Source: operator's facts 1, 5.2."""

_NAMES_MEDIA: Final = re.compile(r"media|does not exist|\bids?\b", re.IGNORECASE)


class ReportMode(StrEnum):
    """The way in which the operator reports a code. Source: operator's facts 5.2."""

    RESPONSE = "response"
    LATER = "failed status"
    EITHER = "response or failed status"
    INBOUND = "inbound message"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class OperatorErrorRow:
    """One error code, or a range of codes."""

    code: int  # of the error object; the first of a range where `last` is set
    meaning: str  # a short description
    report_mode: ReportMode  # the way in which the operator reports it
    # selects the retry schedule of a submission that gets this code; None: it is final
    retry_reason: RetryReason | None = None
    retry_scope: RetryScope = RetryScope.JOB  # what else is paused
    partner_code: int | None = None  # the code of the partner's `failed` callback; None: the operator's own
    subcode: int | None = None  # set where the row is about one subcode of the code
    last_code: int | None = None  # the last of a range of codes

    def resolve_partner_code(self, code: int) -> int:
        """Return the code of the partner's `failed` callback for a code of this row."""
        return code if self.partner_code is None else self.partner_code


_S, _A, _SA, _IN, _UNKNOWN = (
    ReportMode.RESPONSE,
    ReportMode.LATER,
    ReportMode.EITHER,
    ReportMode.INBOUND,
    ReportMode.UNKNOWN,
)
_SOURCE, _BUSINESS, _ACCOUNT = RetryScope.SOURCE, RetryScope.BUSINESS, RetryScope.ACCOUNT
_FINAL: Final = None

OPERATOR_ERROR_ROWS: Final = (
    # A code that is not here: see `error_outcome`. Source: operator's facts 2.4, 5.2, 5.3, 8; partner's facts 12;
    # the operator's page "Direct Send API reference"
    # code, meaning, mode, retry, scope
    OperatorErrorRow(0, "our token is not accepted", _S, RetryReason.CREDENTIAL, _ACCOUNT, INTERNAL_ERROR),
    OperatorErrorRow(1, "unknown error", _S, RetryReason.OUTAGE, partner_code=OPERATOR_UNREACHABLE),
    OperatorErrorRow(2, "the operator is temporarily down", _S, RetryReason.OUTAGE, partner_code=OPERATOR_UNREACHABLE),
    OperatorErrorRow(3, "our app lacks the capability", _S, _FINAL, partner_code=INTERNAL_ERROR),
    OperatorErrorRow(4, "too many calls of our app", _S, RetryReason.CALLS, _ACCOUNT, RATE_LIMITED),
    OperatorErrorRow(
        4, "too many calls of our app, temporarily", _S, RetryReason.CALLS, _ACCOUNT, RATE_LIMITED, 2446079
    ),
    OperatorErrorRow(10, "our app lacks the permission", _S, _FINAL, partner_code=INTERNAL_ERROR),
    OperatorErrorRow(17, "too many calls of our user", _S, RetryReason.CALLS, _ACCOUNT, RATE_LIMITED),
    OperatorErrorRow(33, "the business's number was deleted", _S, _FINAL),
    OperatorErrorRow(100, "a parameter is not valid", _S, _FINAL),
    OperatorErrorRow(100, "no such object, or not one of ours", _S, _FINAL, subcode=33),
    OperatorErrorRow(100, "the account has the maximum number of templates", _S, _FINAL, subcode=2388019),
    OperatorErrorRow(100, "the template's name is being deleted, or locked for 30 days", _S, _FINAL, subcode=2388023),
    OperatorErrorRow(100, "the template's name already exists in its language", _S, _FINAL, subcode=2388024),
    OperatorErrorRow(100, "the template cannot be edited in its status", _S, _FINAL, subcode=2388039),
    OperatorErrorRow(100, "a part of the template is too long", _S, _FINAL, subcode=2388040),
    OperatorErrorRow(100, "the template's header is malformed", _S, _FINAL, subcode=2388047),
    OperatorErrorRow(100, "the template's body is malformed", _S, _FINAL, subcode=2388072),
    OperatorErrorRow(100, "the template's footer is malformed", _S, _FINAL, subcode=2388073),
    OperatorErrorRow(100, "the template has too many variables for its length", _S, _FINAL, subcode=2388293),
    OperatorErrorRow(100, "the template begins or ends with a variable", _S, _FINAL, subcode=2388299),
    OperatorErrorRow(100, "a template of Direct Send cannot be edited", _S, _FINAL, subcode=2388318),
    OperatorErrorRow(100, "a template of Direct Send cannot be deleted", _S, _FINAL, subcode=2388330),
    OperatorErrorRow(190, "our token is no longer valid", _S, RetryReason.CREDENTIAL, _ACCOUNT, INTERNAL_ERROR),
    OperatorErrorRow(190, "our token has expired", _S, RetryReason.CREDENTIAL, _ACCOUNT, INTERNAL_ERROR, subcode=463),
    OperatorErrorRow(200, "our token lacks the permission", _S, _FINAL, partner_code=INTERNAL_ERROR, last_code=299),
    OperatorErrorRow(368, "temporarily blocked for violating the operator's policy", _S, _FINAL),
    OperatorErrorRow(613, "too many calls", _S, RetryReason.CALLS, _ACCOUNT, RATE_LIMITED),
    OperatorErrorRow(803, "no such object", _S, _FINAL),
    OperatorErrorRow(
        80007, "too many calls for the business account", _S, RetryReason.ACCOUNT_CALLS, _BUSINESS, RATE_LIMITED
    ),
    OperatorErrorRow(
        80008, "too many calls to manage the business account", _S, RetryReason.ACCOUNT_CALLS, _BUSINESS, RATE_LIMITED
    ),
    OperatorErrorRow(130403, "the business has blocked the recipient", _UNKNOWN, _FINAL),
    OperatorErrorRow(130429, "the number exceeds its throughput", _S, RetryReason.THROUGHPUT, _SOURCE),
    OperatorErrorRow(130472, "the recipient is in an experiment of the operator", _A, _FINAL),
    OperatorErrorRow(130497, "the business may not send to this country", _A, _FINAL),
    OperatorErrorRow(131000, "something went wrong at the operator", _SA, RetryReason.OUTAGE),
    OperatorErrorRow(131005, "our token lacks the permission", _S, _FINAL, partner_code=INTERNAL_ERROR),
    OperatorErrorRow(131008, "a parameter is missing", _S, _FINAL),
    OperatorErrorRow(131009, "a parameter's value is not valid", _S, _FINAL),
    OperatorErrorRow(131016, "the service is not available", _SA, RetryReason.OUTAGE),
    OperatorErrorRow(131021, "the recipient is the sender", _SA, _FINAL),
    OperatorErrorRow(131026, "cannot be delivered: not on WhatsApp, or an old client", _A, _FINAL),
    OperatorErrorRow(131030, "a test number may send to its five recipients only", _S, _FINAL),
    OperatorErrorRow(131031, "the business account is locked", _SA, _FINAL),
    OperatorErrorRow(131037, "the number needs an approved display name", _A, _FINAL),
    OperatorErrorRow(131042, "the business account has a problem with its payment", _A, _FINAL),
    OperatorErrorRow(131045, "the number is not correctly registered", _SA, _FINAL),
    OperatorErrorRow(131047, "the 24-hour window is closed: only a template may be sent", _SA, _FINAL),
    OperatorErrorRow(131048, "the number is restricted: too many people reported it", _SA, RetryReason.SPAM, _SOURCE),
    OperatorErrorRow(131049, "the recipient gets no more marketing for at least 24 hours", _A, _FINAL),
    OperatorErrorRow(131050, "the recipient has stopped this business's marketing", _A, _FINAL),
    OperatorErrorRow(131051, "the operator does not know this type of message", _S, _FINAL),
    OperatorErrorRow(131052, "the recipient's medium cannot be downloaded", _IN, _FINAL),
    OperatorErrorRow(131053, "the medium cannot be fetched or used", _SA, RetryReason.ONCE),
    OperatorErrorRow(131055, "a call of the marketing API only", _S, _FINAL),
    OperatorErrorRow(131056, "too many messages to this recipient", _S, RetryReason.PAIR),
    OperatorErrorRow(131057, "the number is being upgraded", _S, RetryReason.MAINTENANCE, _SOURCE),
    OperatorErrorRow(131062, "this message needs a phone number as its recipient", _S, _FINAL),
    OperatorErrorRow(131063, "marketing templates are not accepted for this account", _S, _FINAL),
    OperatorErrorRow(131064, "the messaging limit was cut for miscategorized templates", _UNKNOWN, _FINAL),
    OperatorErrorRow(132000, "the number of parameters differs from the template's", _S, _FINAL),
    OperatorErrorRow(132001, "no approved template of this name and language", _S, _FINAL),
    OperatorErrorRow(132005, "the text is too long with its parameters", _SA, _FINAL),
    OperatorErrorRow(132007, "the text violates the operator's policy", _S, _FINAL),
    OperatorErrorRow(132012, "a parameter's format differs from the template's", _SA, _FINAL),
    OperatorErrorRow(132015, "the template is paused", _SA, _FINAL),
    OperatorErrorRow(132016, "the template is disabled", _S, _FINAL),
    OperatorErrorRow(132018, "a template's parameter is not valid", _S, _FINAL),
    OperatorErrorRow(132021, "an ordinary template has the name", _A, _FINAL),
    OperatorErrorRow(132068, "the flow is blocked", _S, _FINAL),
    OperatorErrorRow(132069, "the flow is throttled: ten an hour", _S, _FINAL),
    OperatorErrorRow(133005, "the number's PIN is wrong", _S, _FINAL),
    OperatorErrorRow(133006, "the number must be verified first", _S, _FINAL),
    OperatorErrorRow(133008, "the number's PIN was tried too often", _S, _FINAL),
    OperatorErrorRow(133009, "the number's PIN was tried too fast", _S, _FINAL),
    OperatorErrorRow(133010, "the number is not registered", _S, _FINAL),
    OperatorErrorRow(133015, "the number was deleted recently", _S, _FINAL),
    OperatorErrorRow(133016, "the number was registered too often", _S, RetryReason.ACCOUNT_CALLS, _SOURCE),
    OperatorErrorRow(134100, "a call of the marketing API only", _S, _FINAL, last_code=134102),
    OperatorErrorRow(135000, "something is wrong with the request", _SA, _FINAL),
    OperatorErrorRow(137000, "the recipient's identity has changed", _S, _FINAL),
    OperatorErrorRow(138000, "calls are not enabled for the number", _S, _FINAL),
    OperatorErrorRow(138018, "the account has no subscription to calls", _S, _FINAL),
    OperatorErrorRow(139200, "Direct Send is blocked for the account", _S, _FINAL),
)

_BY_CODE: Final = {
    (code, row.subcode): row for row in OPERATOR_ERROR_ROWS for code in range(row.code, (row.last_code or row.code) + 1)
}


def error_outcome(error: Mapping[str, Any], *, status: int, retry_after_s: float | None) -> NotAccepted:
    """Return the outcome of a submission that got this error object.

    For a code in the table, neither the status nor anything else counts (operator's facts, fact 2).
    An unknown code is retried if the operator calls it transient, uncertain if it was the
    operator's own failure (5xx), and final otherwise.

    Args:
        error: with a whole number as `code`.
        retry_after_s: the wait that the operator requested.
    """
    code, text = int(error["code"]), partner_text(error)
    row = _BY_CODE.get((code, parse_number(error.get("error_subcode")))) or _BY_CODE.get((code, None))
    if row is None:
        if boolean_of(error.get("is_transient"), default=False):
            return OperatorUnavailable(text, code, retry_after_s)
        if status >= 500:
            return OutcomeUncertain(f"the operator gave the unknown code {code} with status {status}")
        return OperatorRejected(code, text)
    partner_code = row.resolve_partner_code(code)
    if row.retry_reason is None or row.retry_reason is RetryReason.ONCE:
        operator_code = code if partner_code != code else None
        # Whether the operator may have no such media file (any more).
        is_about_media = code in MEDIA_CODES and (code != INVALID_PARAMETER or bool(_NAMES_MEDIA.search(text)))
        return OperatorRejected(partner_code, text, row.retry_reason is RetryReason.ONCE, operator_code, is_about_media)
    return OperatorUnavailable(text, code, retry_after_s, row.retry_reason, row.retry_scope, partner_code)


def name_conflict(error: Mapping[str, Any]) -> OperatorRejected:
    """Return the rejection of a template whose name already exists, with the operator's text."""
    return OperatorRejected(INVALID_PARAMETER, partner_text(error))


def reject_conflict(response: dict[str, Any] | NotAccepted) -> dict[str, Any] | NotAccepted:
    """Return a response; in place of the error object of a template whose name already exists, its rejection."""
    match response:
        case {"error": error}:
            return name_conflict(object_of(error))
        case _:
            return response


def partner_text(error: Mapping[str, Any]) -> str:
    """Return the text for the partner: the most specific one that there is. Source: operator's facts 5.1."""
    data = error.get("error_data")
    details = data if isinstance(data, str) else object_of(data).get("details")
    for text in (error.get("error_user_msg"), details, error.get("message")):
        if isinstance(text, str) and text:
            return text
    return "rejected without a reason"


_PROBLEMS: Final = (  # Source: operator's facts 1, 5.2
    # codes, serious, meaning, fix hint
    (
        (0, 190),
        True,
        "the token is no longer valid",
        "create a new token for the system user, then: waypost account token {account}",
    ),
    (
        (3, 10, *range(200, 300)),
        True,
        "the token lacks a permission",
        "give it whatsapp_business_messaging and whatsapp_business_management, then: waypost account token {account}",
    ),
    (
        (33, 100, 803),
        True,
        "the operator has no such object, or does not show it to this token",
        "check the id, and that the system user has been assigned the business account with full control",
    ),
    ((368, 131031), True, "the operator has blocked the account", "read its notices in the operator's console"),
    ((4, 17, 613, 80007, 80008, 130429), False, "the operator accepts no more calls for now", "wait; nothing is lost"),
    ((1, 2, 131000, 131016), False, "the operator is not available", "wait, then check again"),
)
_PROBLEM_BY_CODE: Final = {
    code: OperatorProblem(is_serious, text, fix_hint)
    for codes, is_serious, text, fix_hint in _PROBLEMS
    for code in codes
}


def explain(code: int) -> OperatorProblem | None:
    """Return the problem that the error code of a direct call points to; None if the code has no more to explain."""
    return _PROBLEM_BY_CODE.get(code)
