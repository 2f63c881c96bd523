"""The table of routes: every partner and messaging endpoint. Router and OpenAPI document are made from it."""

from typing import Final

from waypost.api import flows, login, subscriptions, unsupported
from waypost.api.account import blocks, calling, groups, names, numbers, payments, profile, usage, usernames
from waypost.api.apps import apps, identity, keys, settings, universal_tokens, users
from waypost.api.auth.credentials import Credential
from waypost.api.media import endpoints
from waypost.api.messages.marketing import enable_marketing_messages, send_marketing_message, show_marketing_link
from waypost.api.messages.passthrough import send_passthrough
from waypost.api.messages.send import (
    send_older_session_message,
    send_partner_session_message,
    send_partner_template_message,
    send_session_message,
    send_template_message,
)
from waypost.api.messages.status import post_event, put_message_read, show_message
from waypost.api.onboarding import linked_apps, links, prefilled, registration
from waypost.api.reports import deliveries, message_events
from waypost.api.route import BodyFormat, IdempotencyMode, RouteRow
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
    RouteRow("POST",   "/wa/api/v1/msg",                                     send_session_message,                _KEY,       "session",       (200, 400, 401),      "submitted",      "spec, Send session text message; facts 9.1", BodyFormat.FORM_OR_JSON, _SESSION, errors=(ErrorCode.NESTED_AUTHENTICATION_FAILED, *_SEND_ERRORS), idempotency=_ONE_TRANSACTION),
    RouteRow("POST",   "/wa/api/v1/template/msg",                            send_template_message,               _KEY,       "send_template", (200, 400, 401),      "submitted",      "spec, Send template message with postback texts; facts 9.2", BodyFormat.FORM_OR_JSON, _SEND, errors=(ErrorCode.INVALID_TEMPLATE, *_SEND_ERRORS), idempotency=_ONE_TRANSACTION),
    RouteRow("POST",   f"{_APP}/msg",                                        send_partner_session_message,        _APP_TOKEN, "session",       (200, 400, 401),      "submitted",      "facts 9.1", BodyFormat.FORM_OR_JSON, _SESSION, errors=(ErrorCode.NESTED_AUTHENTICATION_FAILED, *_SEND_ERRORS), idempotency=_ONE_TRANSACTION),
    RouteRow("POST",   f"{_APP}/template/msg",                               send_partner_template_message,       _APP_TOKEN, "send_template", (200, 400, 401),      "submitted",      "spec, Send template message (image, location); facts 9.2", BodyFormat.FORM_OR_JSON, _SEND, errors=(ErrorCode.INVALID_TEMPLATE, *_SEND_ERRORS), idempotency=_ONE_TRANSACTION),
    RouteRow("POST",   f"{_KEY_TEMPLATES}/v1/msg",                           send_partner_template_message,       _KEY,       "send_template", (200, 400, 401),      "submitted",      "facts 9.2; by API key as public clients call it", BodyFormat.FORM_OR_JSON, _SEND, errors=(ErrorCode.INVALID_TEMPLATE, *_SEND_ERRORS), idempotency=_ONE_TRANSACTION),
    RouteRow("POST",   f"{_APP}/v3/message",                                 send_passthrough,                    _APP_TOKEN, "partner_call",  (200, 400, 401, 503), "passthrough",    "spec, Flow passthrough message; facts 9.3", BodyFormat.FORM_OR_JSON, _PASSTHROUGH, calls_out=True, errors=(*_SEND_ERRORS, ErrorCode.CALLBACK_BILLING_OFF, *_READ_ERRORS), idempotency=_ONE_TRANSACTION),
    RouteRow("POST",   f"{_APP}/onboarding/marketing/msg",                   send_marketing_message,              _APP_TOKEN, "partner_call",  (200, 400, 401),      "passthrough",    "ledger 1.7, `onboarding/marketing/msg`", BodyFormat.FORM_OR_JSON, _PASSTHROUGH, errors=(*_SEND_ERRORS, ErrorCode.CALLBACK_BILLING_OFF, ErrorCode.MM_LITE_OFF), idempotency=_ONE_TRANSACTION),
    RouteRow("POST",   f"{_APP}/v3/mmlite/message",                          send_marketing_message,              _APP_TOKEN, "partner_call",  (200, 400, 401),      "passthrough",    "facts 9.3, MM Lite", BodyFormat.FORM_OR_JSON, _PASSTHROUGH, errors=(*_SEND_ERRORS, ErrorCode.CALLBACK_BILLING_OFF, ErrorCode.MM_LITE_OFF), idempotency=_ONE_TRANSACTION),
    RouteRow("PUT",    f"{_KEY_MESSAGE}/read",                               put_message_read,                    _KEY,       "partner_call",  (200, 400, 401, 503), "success",        "facts 9.1, read receipts", calls_out=True, errors=_READ_ERRORS),
    RouteRow("GET",    _KEY_MESSAGE,                                         show_message,                        _KEY,       "partner_call",  (200, 400, 401),      "message_state",  "facts 9.1; the response format is ours", errors=(ErrorCode.MESSAGE_DOES_NOT_EXIST,)),
    RouteRow("POST",   f"{_APP}/v1/event",                                   post_event,                          _APP_TOKEN, "partner_call",  (200, 400, 401, 503), "success",        "facts 9.1, read receipts; ledger 1.7, voice-event", _JSON, ("type@event", "message@event", "voice@event"), calls_out=True, errors=(ErrorCode.EVENT_NOT_SUPPORTED, ErrorCode.INVALID_JSON_PAYLOAD, ErrorCode.WRONG_TYPE, *_READ_ERRORS)),

    # The deprecated paths of the messaging API. Source: facts 9.2; public clients; decision 0065
    RouteRow("POST",   "/sm/api/v1/msg",                                     send_older_session_message,          _KEY,       "session",       (200, 400, 401),      "submitted",      "facts 9.2; public clients", BodyFormat.FORM_OR_JSON, _SESSION, errors=(ErrorCode.NESTED_AUTHENTICATION_FAILED, *_SEND_ERRORS), idempotency=_ONE_TRANSACTION, deprecated_s=_DEPRECATED_SINCE_S),
    RouteRow("POST",   "/sm/api/v1/template/msg",                            send_template_message,               _KEY,       "send_template", (200, 400, 401),      "submitted",      "facts 9.2; public clients", BodyFormat.FORM_OR_JSON, _SEND, errors=(ErrorCode.INVALID_TEMPLATE, *_SEND_ERRORS), idempotency=_ONE_TRANSACTION, deprecated_s=_DEPRECATED_SINCE_S),

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
    RouteRow("POST",   f"{_APP}/mmlite/msg/enable",                          enable_marketing_messages,           _APP_TOKEN, "mmlite",        (200, 400, 401, 503), "success",        "ledger 1.7, `mmlite/msg/enable`; facts 11", calls_out=True, errors=(ErrorCode.MM_LITE_OFF, *_DIRECT_CALL_ERRORS)),
    RouteRow("GET",    f"{_APP}/mmlite/link",                                show_marketing_link,                 _APP_TOKEN, "partner_call",  (200, 400, 401),      "link",           "ledger 1.7, `mmlite/link`", query=("lang@marketing",), errors=(ErrorCode.MM_LITE_NOT_LIVE, ErrorCode.APP_NOT_APPROVED)),

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
