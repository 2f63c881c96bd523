"""The table of routes: every partner and messaging endpoint. Router and OpenAPI document are made from it."""

from typing import Final

from waypost.api import flows, login, subscriptions
from waypost.api.account import blocks, calling, groups, names, numbers, payments, profile, usage, usernames
from waypost.api.apps import apps, identity, keys, settings, universal_tokens, users
from waypost.api.auth.credentials import Credential
from waypost.api.media.endpoints import (
    delete_media,
    download_media,
    upload_for_handle,
    upload_for_sending,
    upload_through_messaging,
)
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
from waypost.api.onboarding import linked_apps
from waypost.api.onboarding.links import link_app_by_linking_token, link_app_by_token, onboarding_link
from waypost.api.onboarding.prefilled import change_prefilled, delete_prefilled, set_prefilled, show_prefilled
from waypost.api.onboarding.registration import deregister_number, register_number, request_sync
from waypost.api.reports import deliveries, message_events
from waypost.api.route import BodyFormat, IdempotencyMode, RouteRow
from waypost.api.templates import analytics, check, create, edit, insights, library, lists, sync
from waypost.api.unsupported import reject_app_call, reject_partner_call
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
    RouteRow("POST",   f"{_APP}/upload/media",                               upload_for_handle,                   _APP_TOKEN, "upload",        (200, 400, 401),      "handle_id",      "spec, Upload media, handle id", _MULTIPART, _UPLOAD_FIELDS, calls_out=True, errors=_UPLOAD_ERRORS, idempotency=_ONE_TRANSACTION),
    RouteRow("POST",   f"{_APP}/media",                                      upload_for_sending,                  _APP_TOKEN, "upload",        (200, 400, 401),      "media_id",       "spec, Upload media, media id", _MULTIPART, _UPLOAD_FIELDS, calls_out=True, errors=(*_UPLOAD_ERRORS, ErrorCode.NOT_A_CLOUD_APP), idempotency=_ONE_TRANSACTION),
    RouteRow("GET",    f"{_APP}/media/{{media_id}}",                         download_media,                      _APP_TOKEN, "download",      (200, 400, 401, 404, 503), "file",           "ledger 1.6; facts 8", query=("fileName",), calls_out=True, errors=(ErrorCode.FIELD_BROKEN, ErrorCode.NOT_FOR_THIS_APP, ErrorCode.INVALID_MEDIA_ID, ErrorCode.UNKNOWN_MEDIA_ID, ErrorCode.TOO_MANY_INVALID_MEDIA_CALLS, ErrorCode.NO_ROOM, ErrorCode.OPERATOR_UNAVAILABLE), other_app=ErrorCode.APP_NOT_FOUND),
    RouteRow("DELETE", f"{_APP}/media/{{media_id}}",                         delete_media,                        _APP_TOKEN, "partner_call",  (200, 400, 401, 404), "message",        "ledger 1.6", errors=(ErrorCode.MEDIA_NOT_DELETED, ErrorCode.MEDIA_ALREADY_DELETED)),
    RouteRow("POST",   _KEY_MEDIA,                                           upload_through_messaging,            _KEY,       "upload",        (200, 400, 401),      "stored_media",   "facts 8", _MULTIPART, _UPLOAD_FIELDS, calls_out=True, errors=_UPLOAD_ERRORS, idempotency=_ONE_TRANSACTION),
    RouteRow("POST",   f"{_KEY_MEDIA}/v2",                                   upload_through_messaging,            _KEY,       "upload",        (200, 400, 401),      "stored_media",   "facts 8", _MULTIPART, _UPLOAD_FIELDS, calls_out=True, errors=_UPLOAD_ERRORS, idempotency=_ONE_TRANSACTION),

    # Subscriptions

    # Apps
    *apps.operation.rows,
    RouteRow("POST",   f"{_ACCOUNT}/auth/appLink",                           link_app_by_token,                   _PARTNER,   "partner_call",  (200, 400, 401, 404), "app_linked_by_token", "ledger 1.2, `auth/appLink`", _FORM_OR_JSON, ("appId", "token@link"), errors=(ErrorCode.FIELD_MISSING, ErrorCode.RESOURCE_NOT_FOUND, ErrorCode.INVALID_APP_DETAILS)),
    RouteRow("GET",    f"{_APP}/onboarding/embed/link",                      onboarding_link,                     _PARTNER,   "partner_call",  (200, 400, 401),      "link",           "ledger 1.3; facts 2", query=("regenerate", "user", "lang"), errors=(ErrorCode.QUERY_EMPTY, ErrorCode.FIELD_MISSING, ErrorCode.FIELD_BROKEN, ErrorCode.LINK_EXPIRED)),

    # Onboarding
    RouteRow("POST",   f"{_APP}/onboarding/register",                        register_number,                     _APP_TOKEN, "partner_call",  (200, 400, 401, 403, 503), "done",      "ledger 1.3", _FORM_OR_JSON, ("region", "pin"), calls_out=True, errors=(ErrorCode.FIELD_BROKEN, ErrorCode.INVALID_REGION, *_DIRECT_CALL_ERRORS), wrong_credential=ErrorCode.UNAUTHORIZED_ACCESS, other_app=ErrorCode.FORBIDDEN_ACCESS),
    RouteRow("POST",   f"{_APP}/onboarding/deregister",                      deregister_number,                   _APP_TOKEN, "partner_call",  (200, 400, 401, 403, 503), "done",      "ledger 1.3", calls_out=True, errors=_DIRECT_CALL_ERRORS, wrong_credential=ErrorCode.UNAUTHORIZED_ACCESS, other_app=ErrorCode.FORBIDDEN_ACCESS),
    RouteRow("POST",   f"{_APP}/onboarding/contact/email/resend",            reject_app_call,                     _PARTNER,   "partner_call",  (400, 401),           "",               "ledger 1.3; decision 0025", errors=(ErrorCode.NO_MEANING,), other_app=ErrorCode.AUTHENTICATION_FAILED),
    RouteRow("POST",   f"{_APP}/onboarding/phoneMigration",                  reject_app_call,                     _PARTNER,   "partner_call",  (400, 401),           "",               "ledger 1.3; decision 0025", _FORM_OR_JSON, ("migrationStatus",), errors=(ErrorCode.NO_MEANING,), other_app=ErrorCode.AUTHENTICATION_FAILED),
    RouteRow("POST",   "/partner/solution/migrate/intent",                   reject_partner_call,                 _PARTNER,   "partner_call",  (400, 401),           "",               "ledger 1.3; decision 0025", _FORM_OR_JSON, ("email@intent", "app_list"), errors=(ErrorCode.NO_MEANING,), wrong_credential=ErrorCode.UNAUTHORIZED_ACCESS),
    RouteRow("GET",    "/partner/solution/migrate/intent/status",            reject_partner_call,                 _PARTNER,   "partner_call",  (400, 401),           "",               "ledger 1.3; decision 0025", errors=(ErrorCode.NO_MEANING,), wrong_credential=ErrorCode.UNAUTHORIZED_ACCESS),
    RouteRow("POST",   f"{_APP}/obotoembed/whitelist",                       reject_app_call,                     _APP_TOKEN, "app_token",     (400, 401),           "",               "ledger 1.3; decision 0025", errors=(ErrorCode.NO_MEANING,)),
    RouteRow("GET",    f"{_APP}/obotoembed/verify",                          reject_app_call,                     _APP_TOKEN, "app_token",     (400, 401),           "",               "ledger 1.3; decision 0025", errors=(ErrorCode.NO_MEANING,)),
    RouteRow("POST",   "/partner/admin/bspsignal/{business_id}",             reject_partner_call,                 _PARTNER,   "partner_call",  (400, 401),           "",               "ledger 1.3; decision 0025", errors=(ErrorCode.NO_MEANING,)),
    RouteRow("GET",    "/partner/admin/bspsignal/{business_id}/whatsapp_business_submissions_status", reject_partner_call, _PARTNER, "partner_call", (400, 401), "",               "ledger 1.3; decision 0025", errors=(ErrorCode.NO_MEANING,)),
    RouteRow("PUT",    f"{_APP}/update/solution/provider",                   reject_app_call,                     _APP_TOKEN, "partner_call",  (400, 401),           "",               "ledger 1.2; decision 0025", _FORM_OR_JSON, ("provider",), errors=(ErrorCode.NO_MEANING,)),
    RouteRow("GET",    f"{_APP}/subscription/billing/monthly",               reject_app_call,                     _APP_TOKEN, "partner_call",  (400, 401),           "",               "ledger 1.9; decision 0025", errors=(ErrorCode.NO_MEANING,)),
    RouteRow("GET",    f"{_APP}/template/{{template_id}}/ads",               reject_app_call,                     _APP_TOKEN, "partner_call",  (400, 401),           "",               "ledger 1.5; decision 0025", errors=(ErrorCode.NO_MEANING,)),
    RouteRow("PUT",    "/partner/users/{user_id}/active",                    reject_partner_call,                 _PARTNER,   "partner_call",  (400, 401),           "",               "ledger 1.9; decision 0025", errors=(ErrorCode.NO_MEANING,)),
    RouteRow("DELETE", "/partner/users/{user_id}",                           reject_partner_call,                 _PARTNER,   "partner_call",  (400, 401),           "",               "ledger 1.9; decision 0025", errors=(ErrorCode.NO_MEANING,)),
    RouteRow("GET",    "/partner/users/communications",                      reject_partner_call,                 _PARTNER,   "partner_call",  (400, 401),           "",               "ledger 1.9; decision 0025", errors=(ErrorCode.NO_MEANING,)),
    RouteRow("POST",   f"{_PARTNER_PATH}/app-link/partner-link-token",       reject_partner_call,                 _PARTNER,   "partner_call",  (400, 401),           "",               "ledger 1.11; decision 0025", _FORM_OR_JSON, ("regenerate@token", "expiryDays"), errors=(ErrorCode.NO_MEANING,)),
    RouteRow("POST",   f"{_PARTNER_PATH}/app-link/app-token",                link_app_by_linking_token,           _PARTNER,   "partner_call",  (200, 400, 401, 403), "app_linked_by_linking_token", 'ledger 1.11', _FORM_OR_JSON, ("token@linking",), errors=(ErrorCode.FIELD_BROKEN, ErrorCode.FORBIDDEN_ACCESS)),
    RouteRow("POST",   f"{_PARTNER_PATH}/app-link/status",                   reject_partner_call,                 _PARTNER,   "partner_call",  (400, 401),           "",               "ledger 1.11; decision 0025", _FORM_OR_JSON, ("id@link_request", "action@link_request"), errors=(ErrorCode.NO_MEANING,)),
    RouteRow("POST",  _KEY_PREFILLED,                                      set_prefilled,                       _KEY,       "partner_call",  (200, 400, 401),      "prefilled",      "ledger 1.3", _FORM_OR_JSON, _PREFILLED_FIELDS, errors=(ErrorCode.INVALID_PREFILLED,)),
    RouteRow("PUT",   _KEY_PREFILLED,                                      change_prefilled,                    _KEY,       "partner_call",  (200, 400, 401),      "prefilled",      "ledger 1.3", _FORM_OR_JSON, _PREFILLED_FIELDS, errors=(ErrorCode.INVALID_PREFILLED,)),
    RouteRow("GET",   _KEY_PREFILLED,                                      show_prefilled,                      _KEY,       "partner_call",  (200, 401),           "prefilled",      "ledger 1.3"),
    RouteRow("DELETE",_KEY_PREFILLED,                                      delete_prefilled,                    _KEY,       "partner_call",  (200, 401),           "success",        "ledger 1.3"),
    RouteRow("POST",  _PREFILLED,                                          set_prefilled,                       _APP_TOKEN, "partner_call",  (200, 400, 401),      "prefilled",      "ledger 1.3", _FORM_OR_JSON, _PREFILLED_FIELDS, errors=(ErrorCode.INVALID_PREFILLED,)),
    RouteRow("PUT",   _PREFILLED,                                          change_prefilled,                    _APP_TOKEN, "partner_call",  (200, 400, 401),      "prefilled",      "ledger 1.3", _FORM_OR_JSON, _PREFILLED_FIELDS, errors=(ErrorCode.INVALID_PREFILLED,)),
    RouteRow("GET",   _PREFILLED,                                          show_prefilled,                      _APP_TOKEN, "partner_call",  (200, 401),           "prefilled",      "ledger 1.3"),
    RouteRow("DELETE",_PREFILLED,                                          delete_prefilled,                    _APP_TOKEN, "partner_call",  (200, 401),           "success",        "ledger 1.3"),
    *linked_apps.operation.rows,
    RouteRow("POST",   f"{_APP}/coex/sync",                                  request_sync,                        _APP_TOKEN, "app_token",     (200, 400, 401, 503), "sync",           "ledger 1.3", _FORM_OR_JSON, ("syncType",), calls_out=True, errors=(ErrorCode.INVALID_SYNC_TYPE, *_DIRECT_CALL_ERRORS)),

    # Account, numbers, profile, flows
    RouteRow("POST",   f"{_ACCOUNT}/wallet/balance/transfer",                reject_partner_call,                 _PARTNER,   "partner_call",  (400, 401),           "",               "facts 13; decision 0025", _FORM_OR_JSON, ("walletName", "customerId", "amount"), errors=(ErrorCode.NO_MEANING,)),
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
