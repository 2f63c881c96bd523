"""Why a partner's request is not carried out."""

from enum import StrEnum, auto
from typing import Final


class Reason(StrEnum):
    """Every reason there is. Status and text of each are one row in `wire/errors.py`."""

    AUTHENTICATION_FAILED = auto()
    NOT_FOR_THIS_APP = auto()
    TOO_MANY_REQUESTS = auto()
    BODY_TOO_LARGE = auto()
    UNREADABLE = auto()
    FIELD_MISSING = auto()
    FIELD_BROKEN = auto()
    INVALID_CATEGORY = auto()
    INVALID_ELEMENT_NAME = auto()
    TEMPLATE_EXISTS = auto()
    INVALID_TEMPLATE = auto()
    INVALID_DESTINATION = auto()
    INVALID_APP_DETAILS = auto()
    INVALID_URL = auto()
    DUPLICATE_TAG = auto()
    TOO_MANY_SUBSCRIPTIONS = auto()
    SUBSCRIPTION_DOES_NOT_EXIST = auto()
    NOT_FOUND = auto()
    METHOD_NOT_ALLOWED = auto()
    MEDIA_TYPE = auto()
    FORBIDDEN_ORIGIN = auto()
    ALREADY_EXISTS = auto()


class Refused(Exception):
    """The request will not be carried out, and nothing of it was kept.

    Args:
        reason: which row of the error table answers.
        explanation: field, rule and what would be accepted, in one sentence. Where the row has
            a documented text it travels in the header `Waypost-Reason`; elsewhere it is the text.
        retry_after_s: when the same request may succeed; whole seconds, at least 1.
    """

    def __init__(
        self, reason: Reason, explanation: str = "", *, retry_after_s: int | None = None
    ) -> None:
        super().__init__(reason.value, explanation)
        self.reason: Final = reason
        self.explanation: Final = explanation
        self.retry_after_s: Final = retry_after_s
