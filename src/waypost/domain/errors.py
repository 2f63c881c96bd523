"""Errors of the APIs: the codes, and the exception that carries one."""

from collections.abc import Mapping
from enum import StrEnum, auto
from typing import Any, Final


class ErrorCode(StrEnum):
    """The error codes. The status and text of each are one row in `wire/errors.py`."""

    AUTHENTICATION_FAILED = auto()
    NOT_FOR_THIS_APP = auto()
    ACCOUNT_UNKNOWN = auto()
    LOGIN_FAILED = auto()
    INVALID_ACCESS_TOKEN = auto()
    NO_PERMISSION = auto()
    APP_NOT_LINKED = auto()
    PARTNER_NOT_AUTHORIZED = auto()
    TOO_MANY_REQUESTS = auto()
    BODY_TOO_LARGE = auto()
    UNREADABLE = auto()
    FIELD_MISSING = auto()
    FIELD_BROKEN = auto()
    WRONG_TYPE = auto()
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
    FORBIDDEN_PARTNER = auto()
    INVALID_APP_NAME = auto()
    APP_NAME_LENGTH = auto()
    APP_EXISTS = auto()
    REGION_AFTER_LIVE = auto()
    INVALID_SYNC_TYPE = auto()
    INVALID_PREFILLED = auto()
    INVALID_REGION = auto()
    NO_FIELDS = auto()
    TOKEN_NAME_IN_USE = auto()
    TOO_MANY_TOKENS = auto()
    TOO_MANY_KEYS = auto()
    LAST_KEY = auto()
    KEY_UNKNOWN = auto()
    TOKEN_HAS_EXPIRED = auto()
    QUERY_EMPTY = auto()
    LINK_EXPIRED = auto()
    TOO_MANY_LINKS = auto()
    CONTACT_VERIFIED = auto()
    CONTACT_EMAIL_NOT_SET = auto()
    APPLICATION_NOT_FOUND = auto()
    INVALID_CALLBACK = auto()
    NO_MEANING = auto()
    APP_NOT_LIVE = auto()
    NO_USER_ID_FLAG = auto()
    NO_BUSINESS_ACCOUNT = auto()
    WRONG_BUSINESS_ACCOUNT = auto()
    BUSINESS_ACCOUNT_UNKNOWN = auto()
    APP_NOT_APPROVED = auto()
    MM_LITE_OFF = auto()
    RESOURCE_NOT_FOUND = auto()
    GROUP_PICTURE_TOO_LARGE = auto()
    MM_LITE_NOT_LIVE = auto()
    INVALID_TEMPLATE_ID = auto()
    OPERATOR_REJECTED = auto()
    OPERATOR_UNAVAILABLE = auto()
    WRONG_FILE_TYPE = auto()
    FILE_TOO_LARGE = auto()
    NO_ROOM = auto()
    MEDIA_QUOTA = auto()
    MEDIA_NOT_FETCHED = auto()
    APP_NOT_FOUND = auto()
    INVALID_MEDIA_ID = auto()
    UNKNOWN_MEDIA_ID = auto()
    TOO_MANY_INVALID_MEDIA_CALLS = auto()
    MEDIA_NOT_DELETED = auto()
    MEDIA_ALREADY_DELETED = auto()
    FLOW_FILE_TOO_LARGE = auto()
    FLOW_NAME_IN_USE = auto()
    APP_ID_UNKNOWN = auto()
    COMPARISON_LIST_MISSING = auto()
    OPERATOR_ERROR_OBJECT = auto()
    INVALID_DISPLAY_NAME = auto()
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
        text: the documented text of the response if it depends on the request; empty: that of the row.
        members: of the response, in addition to `status` and `message`.
        operator_code: the operator's error code, where the operator rejected the call; 0: none.
    """

    def __init__(
        self,
        code: ErrorCode,
        explanation: str = "",
        *,
        retry_after_s: int | None = None,
        field: str = "",
        accepted: str = "",
        text: str = "",
        members: Mapping[str, Any] | None = None,
        operator_code: int = 0,
    ) -> None:
        super().__init__(code.value, explanation)
        self.code: Final = code
        self.explanation: Final = explanation
        self.retry_after_s: Final = retry_after_s
        self.field: Final = field
        self.accepted: Final = accepted
        self.text: Final = text
        self.members: Final = members or {}
        self.operator_code: Final = operator_code


def invalid_field(field: str, accepted: str) -> ApiError:
    """Return the error of an invalid field."""
    return ApiError(ErrorCode.FIELD_BROKEN, f"{field} must be {accepted}.", field=field, accepted=accepted)


def wrong_type(field: str, accepted: str) -> ApiError:
    """Return the error of a field that cannot be read as its type. Source: ledger 0."""
    return ApiError(ErrorCode.WRONG_TYPE, f"{field} must be {accepted}.", field=field, accepted=accepted)


def missing_parameter(name: str, accepted: str, kind: str = "String") -> ApiError:
    """Return the error of a required parameter that is missing, empty or blank.

    Args:
        accepted: what it accepts.
        kind: the type that the documented text names: String, Integer, Long, Boolean or MultipartFile.

    Source: ledger 0; facts 3.3.
    """
    text = f"Required request parameter '{name}' for method parameter type {kind} is not present"
    return ApiError(
        ErrorCode.FIELD_MISSING, f"{name} is required: {accepted}.", field=name, accepted=accepted, text=text
    )


def resource_not_found(resource: str, field: str = "", value: object = "") -> ApiError:
    """Return the error of a request for a resource that does not exist.

    Args:
        field: the field that names it.
        value: the name or id; empty: it is a secret.
    """
    shown = f"{resource} {value}" if value else f"such {resource}"
    accepted = _LISTED_BY.get(resource, "")
    return ApiError(ErrorCode.NOT_FOUND, f"There is no {shown}.", field=field, accepted=accepted)


_LISTED_BY: Final = {
    "partner": "one that `waypost partner list` lists",
    "app": "one that `waypost app list` lists",
    "subscription": "one that `waypost callbacks list` lists",
    "message": "an id that a send has returned, or the operator's id; `waypost tail` shows the newest",
    "callback": "an id that `waypost trace` of its message shows",
    "request": "an id that `waypost requests` lists, or the X-Request-Id of a response",
    "dead letter": "a position that `waypost dead-letter list` lists",
    "operator account": "one that `waypost account list` lists",
    "business account": "one that `waypost account list` lists",
}
"""Where the ids of a resource are found."""
