"""The error table: the HTTP status and text of each error code."""

import json
from dataclasses import dataclass
from typing import Any, Final

from waypost.domain.errors import ApiError, ErrorCode


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """A row of the error table."""

    status: int
    text: str | None  # the whole `message` where one is documented; None: the explanation is the text
    source: str  # of status and text
    nested: bool = False  # true if `message` is an object with the text, as one page shows it


_CATEGORY = "Invalid category provided, kindly use category from these option AUTHENTICATION, MARKETING, UTILITY."
_NOT_FOR_APP = "Unauthorised access to the resource. Please review request parameters and headers and retry"
_NO_PERMISSION = "You do not have the required permissions to access this API"
_KEY_LIMIT = "Error: Maximum limit reached for secondary api keys.  Please delete to create a new one"
_EXISTS = "Template Already exists with same namespace and elementName and languageCode"
_NO_USER_ID_FLAG = "At least one of enableBSUID or enableBSUIDV3 must be provided"
_NAME_LENGTH = "App name should be between 6 to 150 charecters in length"
_WRONG_WABA = "WABA id is invalid or given phone is not associated with WABA"
_KEY_OF_ANOTHER = "API key is not associated with partner"
_COMPARISON_WINDOW = (
    "The difference between start and end times should be the number of seconds in "
    "604800(7 days), 2592000(30 days), 5184000(60 days), 7776000(90 days)."
)
_COMPARISON_ENDS_FIRST = "The parameter start_timestamp should be less than end_timestamp."
_TOO_FEW_SENDS = (
    "Invalid parameter - Templates not eligible for comparison, Templates must have been sent "
    "at least 1,000 times in the specified time frame."
)
_NOT_APPROVED = "One or more templates in the list is not approved."
_GROUP_PICTURE = "Group profile photo size is greater than permitted size"
_FLOW_FILE = "Unable to upload Flow JSON Asset as media size is greater than permitted size"
_FLOW_NAME = (
    "Flow name should be unique within one WhatsApp Business Account. Please select another name for your Flow."
)
_NO_LIST = "(#100) The parameter template_ids is required. - null, null"
_BILLING = "Callback Billing must be enabled for this API"
INTERNAL_TEXT: Final = (  # Source: spec, "Errors", 500; facts 3.3 without the vendor's name
    "Internal server error. Please try again later. If the issue still persists, then contact developer support"
)

ERROR_HEADER: Final = "Waypost-Error"
"""Response header for our own programs: the error as JSON of `field`, `rule` and `accepted`.

The rule is the error code; the other two are empty where the error has none.
"""
_MAX_ACCEPTED: Final = 1000
UPLOAD_FAILED_TEXT: Final = "Unable to upload requested Media"  # Source: facts 8, 500

# Source: spec, "Errors"; facts 3.3, 4.1, 10. Where no text is documented, ours names field, rule and what is accepted.
ERRORS: Final = {
    # code, status, text, source
    ErrorCode.AUTHENTICATION_FAILED: ErrorRow(401, "Authentication Failed", "spec, Errors; facts 1.2, 10"),
    ErrorCode.NOT_FOR_THIS_APP: ErrorRow(401, _NOT_FOR_APP, "facts 3.3, 10, 15"),
    ErrorCode.ACCOUNT_UNKNOWN: ErrorRow(403, "Account Does not exist", "ledger 1.1; decision 0005"),
    ErrorCode.LOGIN_FAILED: ErrorRow(403, "Failed to authenticate", "ledger 1.1; decision 0005"),
    ErrorCode.INVALID_ACCESS_TOKEN: ErrorRow(403, "Invalid Access Token", "ledger 1.1"),
    ErrorCode.NO_PERMISSION: ErrorRow(403, _NO_PERMISSION, "ledger 0"),
    ErrorCode.PARTNER_NOT_AUTHORIZED: ErrorRow(400, "Partner is not authorized", "ledger 1.11"),
    ErrorCode.APP_NOT_LINKED: ErrorRow(403, "Application is not linked to the partner", "ledger 1.1"),
    ErrorCode.TOO_MANY_REQUESTS: ErrorRow(429, "Too Many Requests", "spec, Errors"),
    ErrorCode.BODY_TOO_LARGE: ErrorRow(413, None, "ours"),
    ErrorCode.UNREADABLE: ErrorRow(400, None, "decision 0077"),
    ErrorCode.FIELD_MISSING: ErrorRow(400, None, "ledger 0; facts 3.3: the text names the parameter"),
    ErrorCode.FIELD_BROKEN: ErrorRow(400, None, "ours"),
    ErrorCode.WRONG_TYPE: ErrorRow(400, "Please review the request parameters and retry", "ledger 0"),
    ErrorCode.INVALID_CATEGORY: ErrorRow(400, _CATEGORY, "spec, Errors, rule 1; facts 3.3"),
    ErrorCode.INVALID_ELEMENT_NAME: ErrorRow(400, "Invalid element name provided", "facts 3.3"),
    ErrorCode.TEMPLATE_EXISTS: ErrorRow(400, _EXISTS, "facts 3.3"),
    ErrorCode.INVALID_TEMPLATE: ErrorRow(400, None, "spec, Send template message; text not shown"),
    ErrorCode.INVALID_DESTINATION: ErrorRow(400, "Invalid Destination", "spec, Errors"),
    ErrorCode.INVALID_APP_DETAILS: ErrorRow(400, "Invalid App Details", "spec, Errors"),
    ErrorCode.INVALID_URL: ErrorRow(400, "Invalid URL Passed", "facts 4.1"),
    ErrorCode.DUPLICATE_TAG: ErrorRow(400, "Duplicate component tag", "facts 4.1"),
    ErrorCode.TOO_MANY_SUBSCRIPTIONS: ErrorRow(400, "Maximum of 5 subscriptions are allowed per app.", "ledger 1.4"),
    ErrorCode.VOICE_SUBSCRIPTION_EXISTS: ErrorRow(400, "Whatsapp voice subscription already exists", "ledger 1.4"),
    ErrorCode.SUBSCRIPTION_DOES_NOT_EXIST: ErrorRow(400, "Subscription Does Not Exist", "facts 4.1"),
    ErrorCode.NOT_SUBSCRIPTION_OWNER: ErrorRow(403, "Not Subscription Owner", "facts 4.1; within one partner only"),
    ErrorCode.KEY_NOT_ASSOCIATED: ErrorRow(400, _KEY_OF_ANOTHER, "facts 4.1"),
    ErrorCode.NOT_FOUND: ErrorRow(404, None, "ours"),
    ErrorCode.METHOD_NOT_ALLOWED: ErrorRow(405, None, "ours"),
    ErrorCode.MEDIA_TYPE: ErrorRow(415, None, "ours"),
    ErrorCode.FORBIDDEN_ORIGIN: ErrorRow(403, None, "decision 0081"),
    ErrorCode.ALREADY_EXISTS: ErrorRow(409, None, "ours, administration"),
    ErrorCode.UNAUTHORIZED_ACCESS: ErrorRow(401, "Unauthorized Access", "facts 10, 15: the calls listed there"),
    ErrorCode.FORBIDDEN_ACCESS: ErrorRow(403, "Unauthorized Access", "facts 2, 10; within one partner only"),
    ErrorCode.FORBIDDEN_PARTNER: ErrorRow(403, "Forbidden Access", "ledger 1.11"),
    ErrorCode.INVALID_APP_NAME: ErrorRow(400, "Invalid characters used in app name", "facts 2"),
    ErrorCode.APP_NAME_LENGTH: ErrorRow(400, _NAME_LENGTH, "ledger 1.2: the text has the vendor's spelling"),
    ErrorCode.APP_EXISTS: ErrorRow(409, "Bot Already Exists", "facts 2"),
    ErrorCode.REGION_AFTER_LIVE: ErrorRow(400, "Cannot Change Region After Go live", "ledger 1.2, `PUT A`"),
    ErrorCode.INVALID_SYNC_TYPE: ErrorRow(
        400, text="syncType must be smb_app_state_sync or history", source="ledger 1.3, `coex/sync`"
    ),
    ErrorCode.INVALID_PREFILLED: ErrorRow(400, None, "ledger 1.3, `prefilled`: a text for each field"),
    ErrorCode.INVALID_REGION: ErrorRow(400, "Invalid Region Passed", "ledger 1.2, `PUT A`"),
    ErrorCode.NO_FIELDS: ErrorRow(400, "Fields to be updated not provided.", "ledger 1.2, `PUT A`"),
    ErrorCode.TOKEN_NAME_IN_USE: ErrorRow(409, None, "facts 1.5"),
    ErrorCode.TOO_MANY_TOKENS: ErrorRow(409, None, "facts 1.4, 1.5"),
    ErrorCode.TOO_MANY_KEYS: ErrorRow(400, _KEY_LIMIT, "ledger 1.1"),
    ErrorCode.LAST_KEY: ErrorRow(403, None, "ledger 1.1: the text names the app"),
    ErrorCode.KEY_UNKNOWN: ErrorRow(400, None, "ledger 1.1: the text names the app"),
    ErrorCode.TOKEN_HAS_EXPIRED: ErrorRow(410, None, "facts 1.5"),
    ErrorCode.QUERY_EMPTY: ErrorRow(400, "Query Params cannot be empty", "facts 2, the onboarding link"),
    ErrorCode.LINK_EXPIRED: ErrorRow(
        400, text="Link has expired, please regenerate link", source="ledger 1.3, `onboarding/embed/link`"
    ),
    ErrorCode.TOO_MANY_LINKS: ErrorRow(400, None, "ledger 1.3, `onboarding/embed/link`: the text names the service"),
    ErrorCode.CONTACT_VERIFIED: ErrorRow(
        400, text="Email is already Verified For This Container", source="ledger 1.3, `onboarding/contact/email/resend`"
    ),
    ErrorCode.CONTACT_EMAIL_NOT_SET: ErrorRow(
        400, text="Please set business email first", source="ledger 1.3, `onboarding/contact/email/resend`"
    ),
    ErrorCode.APPLICATION_NOT_FOUND: ErrorRow(
        400, text="Application not found", source="ledger 1.3, `onboarding/phoneMigration`"
    ),
    ErrorCode.INVALID_CALLBACK: ErrorRow(400, "Invalid App Details Passed", "facts 2, `callback`"),
    ErrorCode.NO_MEANING: ErrorRow(400, None, "decision 0025"),
    ErrorCode.APP_NOT_LIVE: ErrorRow(400, "App is not live.", "facts 13"),
    ErrorCode.NO_USER_ID_FLAG: ErrorRow(400, _NO_USER_ID_FLAG, "ledger 1.2, `config/bsuid`"),
    ErrorCode.NO_BUSINESS_ACCOUNT: ErrorRow(400, "Waba id not found for the given App", "facts 13"),
    ErrorCode.WRONG_BUSINESS_ACCOUNT: ErrorRow(400, _WRONG_WABA, "facts 13"),
    ErrorCode.BUSINESS_ACCOUNT_UNKNOWN: ErrorRow(400, "Error while getting waba info for given app", "facts 13"),
    ErrorCode.APP_NOT_APPROVED: ErrorRow(400, "Please Check If App Has been approved", "facts 3.6"),
    ErrorCode.MM_LITE_OFF: ErrorRow(400, "MM lite is not enabled for this app", "facts 9.3"),
    ErrorCode.RESOURCE_NOT_FOUND: ErrorRow(404, "Resource not found", "ledger 1.10"),
    ErrorCode.GROUP_PICTURE_TOO_LARGE: ErrorRow(400, _GROUP_PICTURE, "ledger 1.10"),
    ErrorCode.MM_LITE_NOT_LIVE: ErrorRow(
        400, text="MM lite onboarding is only allowed for live cloud apps", source="ledger 1.7, `mmlite/link`"
    ),
    ErrorCode.INVALID_TEMPLATE_ID: ErrorRow(
        400, text="Invalid template id provided.", source="ledger 1.5, `template/{templateId}/insights`"
    ),
    ErrorCode.OPERATOR_REJECTED: ErrorRow(400, None, "decision 0026: the operator's own words"),
    ErrorCode.OPERATOR_UNAVAILABLE: ErrorRow(503, None, "decision 0026"),
    ErrorCode.WRONG_FILE_TYPE: ErrorRow(400, None, "facts 8; the text names the types and the one received"),
    ErrorCode.FILE_TOO_LARGE: ErrorRow(413, "File size exceeds the maximum limit!", "facts 8, 10"),
    ErrorCode.NO_ROOM: ErrorRow(500, UPLOAD_FAILED_TEXT, "facts 8, 500; decision 0070"),
    ErrorCode.MEDIA_QUOTA: ErrorRow(413, None, "ours; decision 0070"),
    ErrorCode.MEDIA_NOT_FETCHED: ErrorRow(400, None, "facts 8; text not public"),
    ErrorCode.APP_NOT_FOUND: ErrorRow(400, "App not found", "ledger 1.6"),
    ErrorCode.INVALID_MEDIA_ID: ErrorRow(400, "Invalid Media Id", "ledger 1.6: no media id at all"),
    ErrorCode.UNKNOWN_MEDIA_ID: ErrorRow(404, "Invalid Media Id", "ledger 1.6"),
    ErrorCode.TOO_MANY_INVALID_MEDIA_CALLS: ErrorRow(429, None, "ledger 1.6: the text names the end of the hour"),
    ErrorCode.MEDIA_NOT_DELETED: ErrorRow(400, "Failed to delete media", "ledger 1.6: no media id at all"),
    ErrorCode.MEDIA_ALREADY_DELETED: ErrorRow(404, "Media ID not found or already deleted", "ledger 1.6"),
    ErrorCode.FLOW_FILE_TOO_LARGE: ErrorRow(400, _FLOW_FILE, "ledger 1.8"),
    ErrorCode.FLOW_NAME_IN_USE: ErrorRow(400, _FLOW_NAME, "ledger 1.8"),
    ErrorCode.APP_ID_UNKNOWN: ErrorRow(400, "Invalid app id provided", "ledger 0: list and creation of templates"),
    ErrorCode.COMPARISON_LIST_MISSING: ErrorRow(400, _NO_LIST, "ledger 1.5, compare"),
    ErrorCode.OPERATOR_ERROR_OBJECT: ErrorRow(400, None, "ledger 1.9: the operator's error is in `error`"),
    ErrorCode.INVALID_DISPLAY_NAME: ErrorRow(400, None, "ledger 1.9: the text is also in `error`"),
    ErrorCode.NOT_A_CLOUD_APP: ErrorRow(400, "Only CAPI apps allowed to generate media ID", "facts 8"),
    ErrorCode.NESTED_AUTHENTICATION_FAILED: ErrorRow(
        401, text="Authentication Failed", source="facts 10: product messages", nested=True
    ),
    ErrorCode.MESSAGE_DOES_NOT_EXIST: ErrorRow(400, None, "facts 9.1; text not public"),
    ErrorCode.EVENT_NOT_SUPPORTED: ErrorRow(400, "Outbound event not supported", "facts 9.1, `v1/event`"),
    ErrorCode.INVALID_JSON_PAYLOAD: ErrorRow(400, "Invalid JSON payload", "facts 9.1, `v1/event`"),
    ErrorCode.CALLBACK_BILLING_OFF: ErrorRow(400, _BILLING, "facts 9.3; only when strict"),
    ErrorCode.TEMPLATE_NOT_FOUND: ErrorRow(400, "No Template found for given id", "facts 3.6"),
    ErrorCode.TEMPLATE_NOT_EDITABLE: ErrorRow(400, None, "facts 3.4; operator's facts 2.6; text not public"),
    ErrorCode.TEMPLATE_NAME_UNKNOWN: ErrorRow(400, "Template Does not exists.", "facts 3.6"),
    ErrorCode.TEMPLATE_MISMATCH: ErrorRow(
        403, text="Template ID and template name does not match", source="facts 3.6, 10; within one partner only"
    ),
    ErrorCode.TEMPLATE_NOT_DELETABLE: ErrorRow(
        400, text="Template Cannot be deleted", source="facts 3.6; operator's facts 2.6: a disabled one"
    ),
    ErrorCode.SANDBOX_DELETION: ErrorRow(400, "Delete Operation is not allowed for sandbox apps", "facts 3.6"),
    ErrorCode.INVALID_APP_ID: ErrorRow(400, "Invalid App ID", "facts 3.6: no id at all; an unknown one is another's"),
    ErrorCode.NOT_APP_OWNER: ErrorRow(403, "Not App Owner", "facts 3.6, 10; within one partner only"),
    ErrorCode.TEMPLATE_NAME_MISSING: ErrorRow(400, "Template Name is missing", "facts 3.6, metalibrary"),
    ErrorCode.CATEGORY_MISSING: ErrorRow(400, "Category is missing", "facts 3.6, metalibrary"),
    ErrorCode.LANGUAGE_MISSING: ErrorRow(400, "Language is missing", "facts 3.6, metalibrary"),
    ErrorCode.LIBRARY_NAME_MISSING: ErrorRow(400, "Library Template Name is missing", "facts 3.6, metalibrary"),
    ErrorCode.ANALYTICS_TOO_OLD: ErrorRow(400, "Start time can't be older than 90 days", "facts 3.6, analytics"),
    ErrorCode.ANALYTICS_NOT_SET: ErrorRow(404, None, "facts 3.6, analytics: the text names the app"),
    ErrorCode.BAD_REQUEST: ErrorRow(400, "Bad Request", "facts 3.6, analytics"),
    ErrorCode.TOO_FEW_SENDS: ErrorRow(400, _TOO_FEW_SENDS, 'public page "Compare templates"; only when strict'),
    ErrorCode.COMPARISON_WINDOW: ErrorRow(400, _COMPARISON_WINDOW, 'public page "Compare templates"'),
    ErrorCode.COMPARISON_ENDS_FIRST: ErrorRow(400, _COMPARISON_ENDS_FIRST, 'public page "Compare templates"'),
    ErrorCode.TEMPLATE_NOT_APPROVED: ErrorRow(400, _NOT_APPROVED, 'public page "Compare templates"'),
    ErrorCode.NOT_TEMPLATE_OWNER: ErrorRow(
        400, text="Not Template Owner", source='public page "Compare templates"; within one partner only'
    ),
    ErrorCode.INVALID_DETAILS: ErrorRow(400, "Please provide valid details", "ledger 1.3, `onboarding/contact`"),
    ErrorCode.KEY_BROKEN: ErrorRow(400, None, "decision 0044"),
    ErrorCode.KEY_OF_ANOTHER_REQUEST: ErrorRow(422, None, "decision 0044; the draft of the header's standard"),
    ErrorCode.KEY_IN_USE: ErrorRow(409, None, "decision 0044; the draft of the header's standard"),
}


def error_response(error: ApiError, *, names_field: bool = False) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Return status, body and extra headers of an error response.

    A documented text is the whole `message`; the explanation is then in the header `Waypost-Reason`.

    Args:
        names_field: true if the caller is one of our own programs, which reads `ERROR_HEADER`, not the text.
    """
    row = ERRORS[error.code]
    headers: dict[str, str] = {}
    if names_field:
        named = {"field": error.field, "rule": error.code, "accepted": error.accepted[:_MAX_ACCEPTED]}
        headers[ERROR_HEADER] = json.dumps(named)  # ASCII, as headers require
    message: str | dict[str, str]
    text = error.text or row.text
    if text is None:
        message = error.explanation
    else:
        message = {"message": text} if row.nested else text
        if error.explanation:
            headers["Waypost-Reason"] = header_text(error.explanation)
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    return row.status, {"status": "error", "message": message, **error.members}, headers


def header_text(text: str) -> str:
    """Return a text for a header: printable ASCII, at most 400 characters."""
    plain = "".join(char if " " <= char <= "~" else "?" for char in text)
    return plain[:400]
