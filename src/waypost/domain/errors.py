"""Errors of the APIs: the codes, and the exception that carries one."""

from enum import StrEnum, auto
from typing import Final


class ErrorCode(StrEnum):
    """The error codes. The status and text of each are one row in `wire/errors.py`."""

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
    VOICE_SUBSCRIPTION_EXISTS = auto()
    SUBSCRIPTION_DOES_NOT_EXIST = auto()
    NOT_SUBSCRIPTION_OWNER = auto()
    KEY_NOT_ASSOCIATED = auto()
    NOT_FOUND = auto()
    METHOD_NOT_ALLOWED = auto()
    MEDIA_TYPE = auto()
    FORBIDDEN_ORIGIN = auto()
    ALREADY_EXISTS = auto()
    UNAUTHORIZED_ACCESS = auto()
    FORBIDDEN_ACCESS = auto()
    INVALID_APP_NAME = auto()
    APP_NAME_LENGTH = auto()
    APP_EXISTS = auto()
    TOKEN_NAME_IN_USE = auto()
    TOO_MANY_TOKENS = auto()
    TOKEN_HAS_EXPIRED = auto()
    QUERY_EMPTY = auto()
    INVALID_CALLBACK = auto()
    NO_MEANING = auto()
    APP_NOT_LIVE = auto()
    NO_BUSINESS_ACCOUNT = auto()
    WRONG_BUSINESS_ACCOUNT = auto()
    BUSINESS_ACCOUNT_UNKNOWN = auto()
    APP_NOT_APPROVED = auto()
    MM_LITE_OFF = auto()
    OPERATOR_REJECTED = auto()
    OPERATOR_UNAVAILABLE = auto()
    WRONG_FILE_TYPE = auto()
    FILE_TOO_LARGE = auto()
    NO_ROOM = auto()
    MEDIA_QUOTA = auto()
    MEDIA_NOT_FETCHED = auto()
    NOT_A_CLOUD_APP = auto()
    NESTED_AUTHENTICATION_FAILED = auto()
    MESSAGE_DOES_NOT_EXIST = auto()
    EVENT_NOT_SUPPORTED = auto()
    INVALID_JSON_PAYLOAD = auto()
    CALLBACK_BILLING_OFF = auto()
    TEMPLATE_NOT_FOUND = auto()
    TEMPLATE_NOT_EDITABLE = auto()
    TEMPLATE_NAME_UNKNOWN = auto()
    TEMPLATE_MISMATCH = auto()
    TEMPLATE_NOT_DELETABLE = auto()
    SANDBOX_DELETION = auto()
    INVALID_APP_ID = auto()
    NOT_APP_OWNER = auto()
    TEMPLATE_NAME_MISSING = auto()
    CATEGORY_MISSING = auto()
    LANGUAGE_MISSING = auto()
    LIBRARY_NAME_MISSING = auto()
    ANALYTICS_TOO_OLD = auto()
    ANALYTICS_NOT_SET = auto()
    BAD_REQUEST = auto()
    TOO_FEW_SENDS = auto()
    COMPARISON_WINDOW = auto()
    COMPARISON_ENDS_FIRST = auto()
    TEMPLATE_NOT_APPROVED = auto()
    NOT_TEMPLATE_OWNER = auto()
    INVALID_DETAILS = auto()
    KEY_BROKEN = auto()
    KEY_OF_ANOTHER_REQUEST = auto()
    KEY_IN_USE = auto()


class ApiError(Exception):
    """The request will not be carried out, and nothing of it was stored.

    Args:
        code: its row in the error table gives the response.
        explanation: field, rule and what would be accepted, in one sentence. It is the text of the
            response, or the header `Waypost-Reason` where the row has a documented text.
        retry_after_s: delay after which the same request may succeed; whole seconds, at least 1.
        field: name of the invalid field; empty: the error is not about one field.
        accepted: what the field accepts; empty: stated in the explanation only.
    """

    def __init__(
        self,
        code: ErrorCode,
        explanation: str = "",
        *,
        retry_after_s: int | None = None,
        field: str = "",
        accepted: str = "",
    ) -> None:
        super().__init__(code.value, explanation)
        self.code: Final = code
        self.explanation: Final = explanation
        self.retry_after_s: Final = retry_after_s
        self.field: Final = field
        self.accepted: Final = accepted


def invalid_field(field: str, accepted: str) -> ApiError:
    """Return the error of an invalid field."""
    return ApiError(ErrorCode.FIELD_BROKEN, f"{field} must be {accepted}.", field=field, accepted=accepted)


def resource_not_found(resource: str, field: str = "") -> ApiError:
    """Return the error of a request for a resource that does not exist."""
    return ApiError(ErrorCode.NOT_FOUND, f"There is no such {resource}.", field=field)
