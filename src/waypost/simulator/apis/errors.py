"""The operator's errors: tables of codes, and the error envelope."""

import base64
from collections.abc import Sequence
from typing import Any, Final

from waypost.base.ids import Ids
from waypost.base.object_ids import describe_other_kind

# fmt: off
TITLES: Final[dict[int, tuple[int, str]]] = {  # Source: facts 5.2; where two statuses are reported, the older table's
    # code   status  title
    0:      (401, "We were unable to authenticate the app user"),
    1:      (500, "An unknown error occurred"),
    2:      (503, "Service temporarily unavailable"),
    3:      (500, "Capability or permissions issue"),
    4:      (429, "Application request limit reached"),
    10:     (403, "Application does not have permission for this action"),
    17:     (429, "User request limit reached"),
    33:     (400, "The business phone number has been deleted"),
    100:    (400, "Invalid parameter"),
    190:    (401, "Access token has expired"),
    200:    (403, "Permissions error"),
    368:    (403, "Temporarily blocked for policies violations"),
    613:    (429, "Calls to this API have exceeded the rate limit"),
    803:    (404, "Some of the aliases you requested do not exist"),
    80007:  (429, "Rate limit issues"),
    80008:  (400, "There have been too many calls to this WhatsApp Business account"),
    130403: (400, "Business has blocked the user"),
    130429: (429, "Rate limit hit"),
    130472: (400, "User's number is part of an experiment"),
    130497: (403, "Business account is restricted from messaging users in this country"),
    131000: (500, "Something went wrong"),
    131005: (403, "Access denied"),
    131008: (400, "Required parameter is missing"),
    131009: (400, "Parameter value is not valid"),
    131016: (503, "Service unavailable"),
    131020: (400, "Bad Group"),
    131021: (400, "Recipient cannot be sender"),
    131026: (400, "Message undeliverable"),
    131030: (400, "Recipient phone number not in allowed list"),
    131031: (403, "Business account has been locked"),
    131037: (400, "Display name approval needed"),
    131041: (400, "Group unknown"),
    131042: (400, "Business eligibility payment issue"),
    131045: (500, "Incorrect certificate"),
    131047: (400, "Re-engagement message"),
    131048: (429, "Spam rate limit hit"),
    131049: (400, "This message was not delivered to maintain healthy ecosystem engagement."),
    131050: (400, "User has stopped receiving marketing messages from this business"),
    131051: (400, "Unsupported message type"),
    131052: (400, "Media download error"),
    131053: (400, "Media upload error"),
    131055: (400, "Method not allowed"),
    131056: (429, "(Business Account, Consumer Account) pair rate limit hit"),
    131057: (500, "Account in maintenance mode"),
    131062: (400, "Business-scoped user id is not supported for this message"),
    131063: (400, "Marketing templates are disabled on Cloud API"),
    131064: (400, "Messaging limit reduced for template misclassification"),
    131201: (400, "Not all operations of the request succeeded"),
    131202: (400, "Duplicate participant"),
    131204: (400, "Group participant size exceeds limit"),
    131212: (400, "Participant is not a part of the group"),
    131213: (400, "Group join request does not exist"),
    132000: (400, "Number of parameters does not match the expected number of params"),
    132001: (404, "Template name does not exist in the translation"),
    132005: (400, "Translated text too long"),
    132007: (400, "Template format character policy violated"),
    132012: (400, "Parameter format does not match format in the created template"),
    132015: (400, "Template is paused"),
    132016: (400, "Template is disabled"),
    132018: (400, "There was a problem with the template parameters"),
    132021: (400, "A template with the same name already exists. Choose a different template name"),
    132068: (400, "Flow is blocked"),
    132069: (400, "Flow is throttled"),
    133005: (400, "Two step verification PIN mismatch"),
    133006: (400, "Phone number re-verification needed"),
    133008: (400, "Too many two step verification PIN guesses"),
    133009: (400, "Two step verification PIN guessed too fast"),
    133010: (400, "Phone number not registered"),
    133015: (400, "Phone number was deleted recently"),
    133016: (400, "Account register or deregister rate limit exceeded"),
    134100: (400, "Only marketing messages are supported"),
    134101: (400, "Template is syncing"),
    134102: (500, "Template is unavailable for use"),
    135000: (400, "Generic user error"),
    137000: (400, "Identity key hash mismatch"),
    138000: (401, "Calling not enabled"),  # Source: the operator's page "Calling API"
    139200: (400, "Direct Send access is blocked"),
}

TEMPLATE_TITLES: Final[dict[int, str]] = {  # Source: facts 2.4; all are code 100
    # subcode  error_user_title
    2388019: "Message template limit reached",
    2388023: "Message template language is being deleted",
    2388024: "Content in This Language Already Exists",
    2388039: "Template status can't be changed",
    2388040: "Character Limit Exceeded",
    2388043: 'Message template "components" param is missing expected field(s)',
    2388047: "Message header format is incorrect",
    2388060: "Button format is incorrect",
    2388072: "Message body format is incorrect",
    2388073: "Message footer format is incorrect",
    2388081: "Error while adding button URL",
    2388293: "Parameters Words Ratio Exceeds Limit",
    2388299: "Leading or Trailing Params Not Allowed",
    # Source: the operator's page "Direct Send API reference"
    2388318: "Can't update a Direct Send template",
    2388330: "Can't delete a Direct Send template",
}
# fmt: on

_HELP: Final = "https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes/"


class GraphApiError(Exception):
    """Error response of the Graph API.

    Args:
        error: its member `error`, without the trace id.
        retry_after_s: delay before a retry; sent only where the settings enable it.
    """

    def __init__(self, status: int, error: dict[str, Any], *, retry_after_s: int | None = None) -> None:
        super().__init__(error.get("message"))
        self.status = status
        self.error = error
        self.retry_after_s = retry_after_s

    def envelope(self, ids: Ids) -> dict[str, Any]:
        """Return the error envelope, with a new trace id."""
        return {"error": {**self.error, "fbtrace_id": trace_id(ids)}}


def trace_id(ids: Ids) -> str:
    """Return a new `fbtrace_id`: `A` and 22 letters, digits, hyphens or underscores."""
    return "A" + base64.urlsafe_b64encode(bytes.fromhex(ids.new().replace("-", "")))[:22].decode()


def authorisation_error(message: str) -> GraphApiError:
    """Return the error for a missing or unknown credential. Source: facts 5.2, code 190."""
    return GraphApiError(401, {"message": message, "type": "OAuthException", "code": 190})


def no_such_object(method: str, object_id: str, accepted_kinds: Sequence[str] = ()) -> GraphApiError:
    """Return the error for an unknown object, or one of another account: the two must look alike. Source: facts 1.

    Args:
        accepted_kinds: the names of the ids that would be accepted; `error_data` says that it is an id of another kind.
    """
    error: dict[str, Any] = {
        "message": f"Unsupported {method.lower()} request. Object with ID '{object_id}' does not "
        "exist, cannot be loaded due to missing permissions, or does not support this operation.",
        "type": "GraphMethodException",
        "code": 100,
        "error_subcode": 33,
    }
    if other := describe_other_kind(object_id, *accepted_kinds):
        error["error_data"] = {"details": f"'{object_id}': {other}."}
    return GraphApiError(400, error)


def bad_parameter(message: str) -> GraphApiError:
    """Return the error for a missing or invalid parameter of the call: code 100 and one sentence."""
    return coded_error(100, message)


def coded_error(code: int, text: str = "", *, retry_after_s: int | None = None) -> GraphApiError:
    """Return an error with a code and one sentence, by default the code's title; its status is that of the title."""
    status, title = TITLES.get(code, (400, ""))
    error = {"message": f"(#{code}) {text or title}", "type": "OAuthException", "code": code}
    return GraphApiError(status, error, retry_after_s=retry_after_s)


def too_many_elements(name: str, at_most: int, found: int) -> GraphApiError:
    """Return the error for a list with too many elements.

    Source: the operator's page "Conversational components".
    """
    return coded_error(105, f"The parameter {name} must have at most {at_most} elements, {found} found.")


def message_error(code: int, details: str, *, retry_after_s: int | None = None) -> GraphApiError:
    """Return the error for a message that the response rejects. Source: facts 5.1."""
    status, title = TITLES[code]
    return GraphApiError(
        status,
        {
            "message": f"(#{code}) {title}",
            "type": "OAuthException",
            "code": code,
            "error_data": {"messaging_product": "whatsapp", "details": details},
        },
        retry_after_s=retry_after_s,
    )


def disk_full_error(reserved_bytes: int) -> GraphApiError:
    """Return the error for a file that does not fit on the disk; the same request may succeed later."""
    return message_error(131016, f"Fewer than {reserved_bytes // 1_000_000} MB are free on the simulator's disk.")


def template_error(subcode: int | None, message: str, title: str = "") -> GraphApiError:
    """Return the error for a template that the response rejects. Source: facts 2.4, the create error envelope.

    Args:
        subcode: a row of `TEMPLATE_TITLES`; None where the operator documents none.
        title: the title, for an error without a subcode.
    """
    error: dict[str, Any] = {"message": "Invalid parameter", "type": "OAuthException", "code": 100}
    if subcode is not None:
        error["error_subcode"] = subcode
        title = TEMPLATE_TITLES[subcode]
    error |= {"is_transient": False, "error_user_title": title or "Invalid template", "error_user_msg": message}
    return GraphApiError(400, error)


def webhook_error(code: int, details: str, title: str = "") -> dict[str, Any]:
    """Return the error object of a failed status. Source: facts 5.1: title and message are the same.

    Args:
        code: any code; `TITLES` gives its title if it has the code.
        title: for a code that is not in the table.
    """
    title = title or TITLES.get(code, (400, "Message failed"))[1]
    return {"code": code, "title": title, "message": title, "error_data": {"details": details}, "href": _HELP}
