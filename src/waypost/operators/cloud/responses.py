"""Reading of operator responses: the response's object, or the outcome of the submission.

The rule behind every line: nothing is sent twice on a guess. Only an error object or a rejected
request (4xx) proves that the operator has not accepted a submission; every other response that
cannot be read is uncertain.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from waypost.domain.outcome import (
    INVALID_RESPONSE_CODE,
    NotAccepted,
    OperatorRejected,
    OperatorUnavailable,
    OutcomeUncertain,
    RetryReason,
    RetryScope,
)
from waypost.operators.cloud.error_codes import RATE_LIMITED, error_outcome
from waypost.operators.cloud.tolerant_json import NOT_JSON, decode

NAME_EXISTS_SUBCODE: Final = 2388024  # Source: operator's facts 2.4
NOT_ACCEPTED_YET_STATUSES: Final = (425, 429)
"""Statuses of a server that has not accepted a request yet, even without a readable reason."""
REQUEST_TIMEOUT: Final = 408
"""A gateway may have forwarded the request before it gave up."""

MAX_ERROR_CODE: Final = 2**53
"""Maximum error code; a greater number is not a code, and no storage engine need hold it."""


def read_operator_response(status: int, content: bytes, retry_after_s: float | None) -> dict[str, Any] | NotAccepted:
    """Return a response's object; if it is not an object or its error is unreadable, the status decides.

    An error object is returned in one case: the template name already exists, which needs a check.

    Args:
        retry_after_s: the wait that the operator requested.
    """
    try:
        response: Any = decode(content)
    except NOT_JSON:
        response = None
    match response:
        case {"error": {"error_subcode": subcode}} if subcode == NAME_EXISTS_SUBCODE:
            return response
        case {"error": _, "messages": [_, *_]}:  # it has a message id, so the operator may have accepted the message
            return OutcomeUncertain(f"the operator returned status {status} with an error and a message at once")
        case {"error": {"code": int(code)}} if not isinstance(code, bool) and abs(code) <= MAX_ERROR_CODE:
            return error_outcome(response["error"], status=status, retry_after_s=retry_after_s)
        case dict() if 200 <= status < 300 and "error" not in response:
            return response  # pyright: ignore[reportUnknownVariableType]
        case _ if status in NOT_ACCEPTED_YET_STATUSES:
            text = f"the operator returned status {status}"
            return OperatorUnavailable(text, 4, retry_after_s, RetryReason.CALLS, RetryScope.JOB, RATE_LIMITED)
        case _ if 400 <= status < 500 and status != REQUEST_TIMEOUT:
            return OperatorRejected(INVALID_RESPONSE_CODE, f"the operator returned status {status} without a reason")
        case _:
            return OutcomeUncertain(f"the operator gave an unreadable response with status {status}")


def retry_uncertain(response: dict[str, Any] | NotAccepted) -> dict[str, Any] | OperatorRejected | OperatorUnavailable:
    """Return a response; an uncertain one as unavailable, where a call may be repeated."""
    return OperatorUnavailable(response.text) if isinstance(response, OutcomeUncertain) else response


def parse_retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `Retry-After`, sent as seconds or as a date; None if there is none.

    A date is compared with the response's own `Date` if it has one, so that neither a wrong clock
    here nor a virtual one that is ahead shortens the wait.

    Source: operator's facts 1, "Useful response headers"; RFC 9110, 10.2.3.
    """
    text = headers.get("Retry-After")
    if text is None:
        return None
    if text.isascii() and text.isdecimal() and len(text) < 9:
        return float(text)
    until = _parse_date(text)
    if until is None:
        return None
    now = _parse_date(headers.get("Date", "")) or datetime.now(UTC)
    return max(0.0, (until - now).total_seconds())


def _parse_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
