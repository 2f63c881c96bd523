"""Readers of direct call responses. Tolerant: a missing or invalid value becomes an empty one."""

from collections.abc import Sequence
from typing import Any, Final

from waypost.base.json_values import boolean_of, list_of, object_of
from waypost.domain.direct_calls import (
    BusinessStatus,
    CallResult,
    MissingWebhookField,
    OperatorBusiness,
    OperatorMedium,
    OperatorTemplate,
    TokenStatus,
    WebhookSubscription,
)
from waypost.domain.outcome import OperatorUnavailable
from waypost.operators.cloud.numbers import webhook_url
from waypost.operators.cloud.templates import parse_template
from waypost.operators.cloud.tolerant_json import parse_number, parse_text
from waypost.operators.cloud.webhook_items import NEEDED_FIELDS

APPROVED: Final = "APPROVED"
REQUIRED_PERMISSIONS: Final = ("whatsapp_business_messaging", "whatsapp_business_management")
"""The permissions that our token needs. Source: operator's facts 1, "Permissions"."""
TOKEN_STATUS_UNSUPPORTED_CODES: Final = frozenset({1, 3, 10, 100})
"""Error codes of an operator that does not report on tokens."""


def call_result(response: dict[str, Any]) -> CallResult:
    """Return the result of a call; a response that does not deny success is a success."""
    return CallResult(boolean_of(response.get("success"), default=True), parse_text(response.get("reason")))


def business_status(response: dict[str, Any]) -> BusinessStatus:
    """Return the status of a business account: ACTIVE if the operator's review approved it."""
    review = parse_text(response.get("account_review_status"))
    return BusinessStatus(
        "ACTIVE" if review == APPROVED else review,
        parse_text(response.get("ownership_type")),
        parse_text(response.get("marketing_messages_lite_api_status")).upper(),
    )


def operator_business(response: dict[str, Any]) -> OperatorBusiness:
    """Return a business account."""
    review = parse_text(response.get("account_review_status"))
    return OperatorBusiness(
        name=parse_text(response.get("name")),
        namespace=parse_text(response.get("message_template_namespace")),
        review="" if review == APPROVED else review,
    )


def token_status(response: dict[str, Any]) -> TokenStatus:
    """Return the state of a token. Source: operator's page "Debug-Token"."""
    data = object_of(response.get("data"))
    scopes = data.get("scopes")
    expires_at = data.get("expires_at")
    return TokenStatus(
        is_valid=boolean_of(data.get("is_valid"), default=False),
        reason=parse_text(object_of(data.get("error")).get("message")),
        missing_permissions=[
            permission for permission in REQUIRED_PERMISSIONS if isinstance(scopes, list) and permission not in scopes
        ],
        expires_at_s=max(expires_at, 0) if isinstance(expires_at, int) else 0,
    )


def subscription(app_id: str, apps: Sequence[Any], numbers: Sequence[Any]) -> WebhookSubscription:
    """Return the webhook URLs, from the subscribed apps and the numbers' own URLs."""
    by_id = {
        parse_text(object_of(object_of(item).get("whatsapp_business_api_data")).get("id")): object_of(item)
        for item in apps
    }
    override = parse_text(by_id.get(app_id, {}).get("override_callback_uri"))
    urls = {parse_text(object_of(item).get("id")): override or webhook_url(object_of(item)) for item in numbers}
    return WebhookSubscription(
        subscriber=app_id,
        is_subscribed=app_id in by_id,
        others=[item for item in by_id if item not in ("", app_id)],
        urls={number_id: url for number_id, url in {"": override, **urls}.items() if url},
    )


def missing_fields(subscriptions: Sequence[Any]) -> list[MissingWebhookField]:
    """Return the fields that we need and an app is not subscribed to. Source: operator's page "App subscriptions"."""
    subscribed = {
        parse_text(object_of(item).get("name")) or parse_text(item)
        for entry in map(object_of, subscriptions)
        if entry.get("object") == "whatsapp_business_account"
        for item in list_of(entry.get("fields"))
    }
    return [field for field in NEEDED_FIELDS if field.name not in subscribed]


def operator_templates(items: list[Any]) -> list[OperatorTemplate] | OperatorUnavailable:
    """Return every template of a list; a list with anything else in it is not reliable."""
    templates = [parse_template(item) for item in items]
    valid = [item for item in templates if item is not None]
    return valid if len(valid) == len(templates) else OperatorUnavailable("the operator's list has what is no template")


def operator_template(response: dict[str, Any]) -> OperatorTemplate | OperatorUnavailable:
    """Return one template."""
    return parse_template(response) or OperatorUnavailable("the operator's response is no template")


def medium(response: dict[str, Any]) -> OperatorMedium:
    """Return type and size of a media file."""
    return OperatorMedium(parse_text(response.get("mime_type")), parse_number(response.get("file_size")))
