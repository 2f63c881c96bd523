"""What an answer of the operator's is: an object, or what it means for a submission.

The promise behind every line: nothing is sent twice on a guess. An answer proves that the operator
has not taken a submission only where it says so, by an error object or by refusing it as a request
(4xx); everything else that cannot be read leaves a doubt.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import msgspec

from waypost.domain.outcome import INVALID_ANSWER, Again, Outcome, Rejected, Unavailable, Uncertain, Waits
from waypost.operators.cloud.error_codes import RATE_LIMITED, outcome_of
from waypost.operators.cloud.tolerant_json import decode

ALREADY_THERE: Final = 2388024  # Source: operator's facts 2.4
NOT_YET: Final = (425, 429)
"""Statuses by which a server says, without a readable reason, that it has not taken a request yet."""
REQUEST_TIMEOUT: Final = 408
"""A gateway may have passed the request on before it gave up on it."""

MOST_CODE: Final = 2**53
"""Of an error; what is greater is none, and no engine need hold it."""


def read_answer(status: int, content: bytes, wish_s: float | None) -> dict[str, Any] | Outcome:
    """An answer's object; what is none, or tells of an error that cannot be read, is judged by its status.

    An error is handed on in one case: the name of a template is taken, which needs another look.

    Args:
        status: of the answer.
        content: its body.
        wish_s: how long the operator wishes us to wait.
    """
    try:
        answer: Any = decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        answer = None
    match answer:
        case {"error": {"error_subcode": subcode}} if subcode == ALREADY_THERE:
            return answer
        case {"error": _, "messages": [_, *_]}:  # it names what it has taken, whatever else it says
            return Uncertain(f"the operator answered {status} with an error and a message at once")
        case {"error": {"code": int(code)}} if not isinstance(code, bool) and abs(code) <= MOST_CODE:
            return outcome_of(answer["error"], status=status, wish_s=wish_s)
        case dict() if 200 <= status < 300 and "error" not in answer:
            return answer  # pyright: ignore[reportUnknownVariableType]
        case _ if status in NOT_YET:
            told = f"the operator answered {status}"
            return Unavailable(told, 4, wish_s, Again.CALLS, Waits.ENTRY, RATE_LIMITED)
        case _ if 400 <= status < 500 and status != REQUEST_TIMEOUT:
            return Rejected(INVALID_ANSWER, f"the operator answered {status} without a reason")
        case _:
            return Uncertain(f"the operator gave an unreadable answer with status {status}")


def wish_s(headers: Mapping[str, str]) -> float | None:
    """Seconds from `Retry-After`, given as seconds or as a date; None where there is none.

    A date is taken by the operator's own clock, where the answer tells it, so that neither a wrong
    clock here nor one that is set ahead on purpose shortens the wait.

    Source: operator's facts 1, "Useful response headers"; RFC 9110, 10.2.3.
    """
    text = headers.get("Retry-After")
    if text is None:
        return None
    if text.isascii() and text.isdecimal() and len(text) < 9:
        return float(text)
    until = _moment(text)
    if until is None:
        return None
    now = _moment(headers.get("Date", "")) or datetime.now(UTC)
    return max(0.0, (until - now).total_seconds())


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
