"""The table of routes: every partner and messaging endpoint. Router and OpenAPI document are made from it."""

from typing import Final

from waypost.api import flows, login, subscriptions, unsupported
from waypost.api.account import blocks, calling, groups, names, numbers, payments, profile, usage, usernames
from waypost.api.apps import apps, identity, keys, settings, universal_tokens, users
from waypost.api.auth.credentials import Credential
from waypost.api.media import endpoints
from waypost.api.messages import marketing, passthrough, send, status
from waypost.api.onboarding import linked_apps, links, prefilled, registration
from waypost.api.reports import deliveries, message_events
from waypost.api.route import BodyFormat, IdempotencyMode
from waypost.api.templates import analytics, check, create, edit, insights, library, lists, sync
from waypost.domain.errors import ErrorCode

_NONE, _PARTNER, _UNIVERSAL = Credential.NONE, Credential.PARTNER_TOKEN, Credential.UNIVERSAL_TOKEN
_APP_TOKEN, _KEY = Credential.APP_TOKEN, Credential.API_KEY
_ONE_TRANSACTION, _MARKED_FIRST = IdempotencyMode.ONE_TRANSACTION, IdempotencyMode.MARKED_FIRST
_FORM, _JSON, _MULTIPART, _FORM_OR_JSON = (
    BodyFormat.FORM,
    BodyFormat.JSON,
    BodyFormat.MULTIPART,
    BodyFormat.FORM_OR_JSON,
)

# The fields of forms. Each name is a row in `request_fields.py`.
# fmt: off
_SESSION: Final = ("channel", "source", "src", "destination", "src.name", "message@session", "disablePreview")
_SEND: Final = (
    "channel", "source", "src", "destination", "src.name", "template", "message@template", "postbackTexts", "sandbox",
)
_PASSTHROUGH: Final = (
    "messaging_product", "recipient_type", "to", "recipient", "type@passthrough", "context@passthrough", "category@direct",
    "ttl_seconds", "biz_opaque_callback_data", "status@read", "message_id@read", "typing_indicator", "text@passthrough",
    "image", "audio", "video", "document", "sticker", "location", "contacts", "reaction", "interactive", "template@passthrough",
)
_UPLOAD_FIELDS: Final = ("file", "file_type")
_UPLOAD_ERRORS: Final = (
    ErrorCode.FIELD_MISSING, ErrorCode.FIELD_BROKEN, ErrorCode.WRONG_FILE_TYPE, ErrorCode.FILE_TOO_LARGE, ErrorCode.NO_ROOM, ErrorCode.MEDIA_QUOTA, ErrorCode.MEDIA_NOT_FETCHED,
)
_PREFILLED_FIELDS: Final = (
    "businessName", "email@prefilled", "website", "businessPhoneCode", "businessPhoneNumber", "streetAddress1",
    "streetAddress2", "city@prefilled", "state@prefilled", "zipPostal", "country@prefilled", "timezone",
    "phoneDisplayName", "phoneCategory", "phoneDescription",
)
# fmt: on
_DIRECT_CALL_ERRORS: Final = (ErrorCode.APP_NOT_APPROVED, ErrorCode.OPERATOR_REJECTED, ErrorCode.OPERATOR_UNAVAILABLE)
_SEND_ERRORS: Final = (
    ErrorCode.FIELD_MISSING, ErrorCode.FIELD_BROKEN, ErrorCode.INVALID_DESTINATION, ErrorCode.INVALID_APP_DETAILS,
)  # fmt: skip
_READ_ERRORS: Final = (
    ErrorCode.MESSAGE_DOES_NOT_EXIST, ErrorCode.APP_NOT_APPROVED, ErrorCode.OPERATOR_REJECTED, ErrorCode.OPERATOR_UNAVAILABLE,
)  # fmt: skip
_DEPRECATED_SINCE_S: Final = 1_751_241_600  # 30 June 2025. Source: facts 9.2: `/sm/api/v1` ended then
_APP: Final = "/partner/app/{app_id}"
_KEY_APP: Final = "/wa/app/{app_id}"
_PREFILLED: Final = f"{_APP}/onboarding/embed/prefilled"
_KEY_PREFILLED: Final = f"{_KEY_APP}/onboarding/embed/prefilled"
_KEY_TEMPLATES: Final = f"{_KEY_APP}/template"
_ACCOUNT: Final = "/partner/account/api"
_PARTNER_PATH: Final = "/partner/{partner_id}"
_KEY_MEDIA: Final = "/wa/{app_id}/wa/media"
_KEY_MESSAGE: Final = "/wa/app/{app_id}/msg/{message_id}"

# fmt: off
ROUTES: Final = (  # Source: spec, "Endpoints"; facts 1.4, 3.5, 4.1
    # Partner and tokens
    *login.operation.rows,
    *keys.operation.rows,
    *universal_tokens.operation.rows,

    # Sending
    *send.operation.rows,
    *passthrough.operation.rows,
    *marketing.operation.rows,
    *status.operation.rows,

    # The deprecated paths of the messaging API. Source: facts 9.2; public clients; decision 0065

    # Media
    *endpoints.operation.rows,

    # Subscriptions

    # Apps
    *apps.operation.rows,
    *links.operation.rows,

    # Onboarding
    *registration.operation.rows,
    *unsupported.operation.rows,
    *prefilled.operation.rows,
    *linked_apps.operation.rows,

    # Account, numbers, profile, flows

    *create.operation.rows,
    *lists.operation.rows,
    *check.operation.rows,
    *edit.operation.rows,
    *sync.operation.rows,
    *library.operation.rows,
    *analytics.operation.rows,
    *insights.operation.rows,
    *subscriptions.operation.rows,
    *deliveries.operation.rows,
    *message_events.operation.rows,
    *settings.operation.rows,
    *identity.operation.rows,
    *users.operation.rows,
    *usage.operation.rows,
    *numbers.operation.rows,
    *profile.operation.rows,
    *blocks.operation.rows,
    *calling.operation.rows,
    *flows.operation.rows,
    *names.operation.rows,
    *usernames.operation.rows,
    *groups.operation.rows,
    *payments.operation.rows,
)
# fmt: on
