"""The table of refusals: which status and text each reason answers with."""

from dataclasses import dataclass
from typing import Final

from waypost.domain.refusals import Reason, Refused


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One row.

    Attributes:
        text: the whole `message` where one is documented; None where the explanation is the text.
        source: where status and text come from.
    """

    status: int
    text: str | None
    source: str


_CATEGORY = (
    "Invalid category provided, kindly use category from these option "
    "AUTHENTICATION, MARKETING, UTILITY."
)
_NOT_FOR_APP = (
    "Unauthorised access to the resource. Please review request parameters and headers and retry"
)
_EXISTS = "Template Already exists with same namespace and elementName and languageCode"
INTERNAL_TEXT: Final = (  # Source: spec, "Errors", 500; facts 3.3 without the vendor's name
    "Internal server error. Please try again later. "
    "If the issue still persists, then contact developer support"
)

# fmt: off
ERRORS: Final = {  # Source: spec, "Errors"; facts 3.3, 4.1, 10. Where no text is documented, ours names field, rule and what is accepted.
    # reason                            status  text                              source
    Reason.AUTHENTICATION_FAILED:        ErrorRow(401, "Authentication Failed",        "spec, Errors; facts 1.2, 10"),
    Reason.NOT_FOR_THIS_APP:             ErrorRow(401, _NOT_FOR_APP,                   "facts 3.3, 10, 15"),
    Reason.TOO_MANY_REQUESTS:            ErrorRow(429, "Too Many Requests",            "spec, Errors"),
    Reason.BODY_TOO_LARGE:               ErrorRow(413, None,                           "ours"),
    Reason.UNREADABLE:                   ErrorRow(400, None,                           "design, section 5"),
    Reason.FIELD_MISSING:                ErrorRow(400, None,                           "facts 3.3; exact text not public"),
    Reason.FIELD_BROKEN:                 ErrorRow(400, None,                           "ours"),
    Reason.INVALID_CATEGORY:             ErrorRow(400, _CATEGORY,                      "spec, Errors, rule 1; facts 3.3"),
    Reason.INVALID_ELEMENT_NAME:         ErrorRow(400, "Invalid element name provided", "facts 3.3"),
    Reason.TEMPLATE_EXISTS:              ErrorRow(400, _EXISTS,                        "facts 3.3"),
    Reason.INVALID_TEMPLATE:             ErrorRow(400, None,                           "spec, Send template message; text not shown"),
    Reason.INVALID_DESTINATION:          ErrorRow(400, "Invalid Destination",          "spec, Errors"),
    Reason.INVALID_APP_DETAILS:          ErrorRow(400, "Invalid App Details",          "spec, Errors"),
    Reason.INVALID_URL:                  ErrorRow(400, "Invalid URL Passed",           "facts 4.1"),
    Reason.DUPLICATE_TAG:                ErrorRow(400, "Duplicate component tag",      "facts 4.1"),
    Reason.TOO_MANY_SUBSCRIPTIONS:       ErrorRow(400, None,                           "facts 4.4; text not public"),
    Reason.SUBSCRIPTION_DOES_NOT_EXIST:  ErrorRow(400, "Subscription Does Not Exist",  "facts 4.1"),
    Reason.NOT_FOUND:                    ErrorRow(404, None,                           "ours"),
    Reason.METHOD_NOT_ALLOWED:           ErrorRow(405, None,                           "ours"),
    Reason.MEDIA_TYPE:                   ErrorRow(415, None,                           "ours"),
    Reason.FORBIDDEN_ORIGIN:             ErrorRow(403, None,                           "design, section 9"),
    Reason.ALREADY_EXISTS:               ErrorRow(409, None,                           "ours, administration"),
}
# fmt: on


def error_answer(refused: Refused) -> tuple[int, dict[str, str], dict[str, str]]:
    """Status, body and extra headers of a refusal.

    A documented text is the whole `message`; the explanation then travels in `Waypost-Reason`.
    """
    row = ERRORS[refused.reason]
    headers: dict[str, str] = {}
    if row.text is None:
        message = refused.explanation
    else:
        message = row.text
        if refused.explanation:
            headers["Waypost-Reason"] = header_text(refused.explanation)
    if refused.retry_after_s is not None:
        headers["Retry-After"] = str(refused.retry_after_s)
    return row.status, {"status": "error", "message": message}, headers


def header_text(text: str) -> str:
    """A text as a header may carry it: printable ASCII, at most 400 characters."""
    plain = "".join(char if " " <= char <= "~" else "?" for char in text)
    return plain[:400]
