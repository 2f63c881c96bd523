"""The operator's nodes: tables of the fields of each kind of object, and selection by a request's `fields`."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from waypost.base.json_values import object_or_none, objects_in, texts_in
from waypost.simulator.accounts.accounts import Account, GraphApp, GraphSubscription, Number
from waypost.simulator.accounts.businesses import owner_id
from waypost.simulator.messages.marketing import AD_PREFIX
from waypost.simulator.nodes import Fields, app_data, node_fields
from waypost.simulator.templates.drafts import EXTRA_MEMBERS
from waypost.simulator.templates.template import SimulatedTemplate


@dataclass(frozen=True)
class AccountView:
    """A business account with its subscriptions, and whether its owner has accepted the terms for marketing messages."""

    account: Account
    subscriptions: Sequence[GraphSubscription]
    marketing_status: str


@dataclass(frozen=True)
class NumberView:
    """A business number with the data of its fields, as one app sees it.

    Args:
        app: the app; None if there is none.
        status_record: the quality, limit and statuses that the control API has set.
        automation: its conversational components.
        names: its requested display name, official account and username.
        status: of its sending restriction; empty if there is none.
        override_uri: its own callback URI; empty if it has none.
        account_uri: the callback URI of the account; empty if it has none.
        is_limited: it may message only the phones on its list.
        has_pin: it has a PIN for two-step verification.
        needs_code: it must be verified by a code before it is registered.
    """

    number: Number
    account: Account
    app: GraphApp | None
    status_record: Mapping[str, Any]
    automation: Mapping[str, Any]
    names: Mapping[str, Any] = field(default_factory=dict[str, Any])
    status: str = ""
    override_uri: str = ""
    account_uri: str = ""
    is_limited: bool = False
    has_pin: bool = False
    needs_code: bool = False

    def status_value(self, name: str, usual: str) -> str:
        """Return a member of `status_record`, or the default."""
        return str(self.status_record.get(name, usual))


def _display(number: Number) -> str:
    # Imported on first use: the tables of the world's numbering plans are large.
    import phonenumbers

    try:
        parsed = phonenumbers.parse("+" + number.phone_number)
    except phonenumbers.NumberParseException:
        return "+" + number.phone_number
    return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.INTERNATIONAL)


def _dial_code(view: NumberView) -> str | None:
    import phonenumbers

    try:
        return str(phonenumbers.parse("+" + view.number.phone_number).country_code)
    except phonenumbers.NumberParseException:
        return None


def _country(view: NumberView) -> str | None:
    import phonenumbers

    code = _dial_code(view)
    return phonenumbers.region_code_for_country_code(int(code)) if code is not None else None


def subscribed_apps(view: AccountView) -> dict[str, Any]:
    """Return the apps subscribed to an account, with their overriding callback URIs. Source: facts 1."""
    return {"data": [_subscribed_app(view.account, subscription) for subscription in view.subscriptions]}


def _subscribed_app(account: Account, subscription: GraphSubscription) -> dict[str, Any]:
    app: dict[str, Any] = {"whatsapp_business_api_data": app_data(account, subscription.app_id)}
    if subscription.override_uri:
        app["override_callback_uri"] = subscription.override_uri
    return app


def _level(number: Number) -> dict[str, str]:
    return {"level": "STANDARD" if number.throughput <= 80 else "HIGH"}


def _webhooks(view: NumberView) -> dict[str, str] | None:
    """Return the callback URIs of a number, by their source. Source: facts 7.1, "One callback per app"."""
    uris = {
        "phone_number": view.override_uri,
        "whatsapp_business_account": view.account_uri,
        "application": view.app.callback_uri if view.app is not None else "",
    }
    return {name: uri for name, uri in uris.items() if uri} or None


def _automation(view: NumberView) -> dict[str, Any]:
    default = {"prompts": list[str](), "commands": list[Any](), "enable_welcome_message": False}
    return {**default, **view.automation, "id": view.number.phone_number_id}


def _health(kind: str, node_id: str) -> dict[str, Any]:
    entity = {"entity_type": kind, "id": node_id, "can_send_message": "AVAILABLE"}
    return {"can_send_message": "AVAILABLE", "entities": [entity]}


def _template_health(template: SimulatedTemplate) -> dict[str, Any]:
    can_send = "AVAILABLE" if template.status == "APPROVED" else "BLOCKED"
    entity = {"entity_type": "MESSAGE_TEMPLATE", "id": template.template_id}
    return {"can_send_message": can_send, "entities": [{**entity, "can_send_message": can_send}]}


def _extra(name: str) -> Callable[[SimulatedTemplate], Any]:
    return lambda template: template.extras.get(name)


def _quality(template: SimulatedTemplate) -> dict[str, Any]:
    return {"score": template.quality, "date": template.updated_ms // 1000}


def _ad_reader(prefix: str) -> Callable[[SimulatedTemplate], str | None]:
    """Return a reader of an id around the ad that marketing templates have."""
    return lambda template: prefix + template.template_id if template.category == "MARKETING" else None


ACCOUNT_FIELDS: Final[Fields[AccountView]] = {  # Source: facts 1, "WABA node"
    "id": lambda view: view.account.waba_id,
    "name": lambda view: view.account.name,
    "timezone_id": lambda _: "1",
    "message_template_namespace": lambda view: view.account.namespace,
    "account_review_status": lambda _: "APPROVED",
    "business_verification_status": lambda _: "verified",
    "currency": lambda _: "USD",
    "country": lambda _: "US",
    "status": lambda _: "ACTIVE",
    "ownership_type": lambda _: "CLIENT_OWNED",
    "health_status": lambda view: _health("WABA", view.account.waba_id),
    "subscribed_apps": subscribed_apps,
    "is_enabled_for_insights": lambda _: True,
    "owner_business_info": lambda view: {"id": owner_id(view.account), "name": view.account.name},
    "on_behalf_of_business_info": lambda _: None,
    "primary_funding_id": lambda _: None,
    "purchase_order_number": lambda _: None,
    "marketing_messages_lite_api_status": lambda view: view.marketing_status,
    "marketing_messages_onboarding_status": lambda view: view.marketing_status,
    "disable_marketing_messages_on_cloud_api": lambda _: False,
}
ACCOUNT_DEFAULT: Final = ("id", "name", "timezone_id", "message_template_namespace")

NUMBER_FIELDS: Final[Fields[NumberView]] = {  # Source: facts 1, "Phone node"
    "id": lambda view: view.number.phone_number_id,
    "display_phone_number": lambda view: _display(view.number),
    "verified_name": lambda view: view.number.name,
    "quality_rating": lambda view: view.status_value("quality_rating", "GREEN"),
    "quality_score": lambda view: {"score": view.status_value("quality_rating", "GREEN")},
    "throughput": lambda view: _level(view.number),
    "status": lambda view: view.status or view.status_value("status", "CONNECTED"),
    "code_verification_status": lambda view: "NOT_VERIFIED" if view.needs_code else "VERIFIED",
    "name_status": lambda view: view.status_value("name_status", "APPROVED"),
    "platform_type": lambda _: "CLOUD_API",
    "account_mode": lambda view: "SANDBOX" if view.is_limited else "LIVE",
    "is_pin_enabled": lambda view: view.has_pin,
    "is_official_business_account": lambda view: view.names.get("oba_status") == "APPROVED",
    "whatsapp_business_manager_messaging_limit": lambda view: view.status_value("messaging_limit", "TIER_UNLIMITED"),
    "messaging_limit_tier": lambda view: view.status_value("messaging_limit", "TIER_UNLIMITED"),
    "webhook_configuration": _webhooks,
    "conversational_automation": _automation,
    "health_status": lambda view: _health("PHONE_NUMBER", view.number.phone_number_id),
    "country_dial_code": _dial_code,
    "country_code": _country,
    "is_on_biz_app": lambda view: view.number.is_on_business_app,
    "is_preverified_number": lambda _: False,
    "search_visibility": lambda _: "NON_VISIBLE",
    "eligibility_for_api_business_global_search": lambda _: "NON_ELIGIBLE_UNDEFINED_COUNTRY",
    "last_onboarded_time": lambda _: None,
    "new_name_status": lambda view: view.names.get("requested_status", "NONE"),
    "new_display_name": lambda view: view.names.get("requested_name"),
    "official_business_account": lambda view: {"oba_status": view.names.get("oba_status", "NOT_STARTED")},
    "certificate": lambda _: None,
    "new_certificate": lambda _: None,
}
NUMBER_DEFAULT: Final = ("id", "display_phone_number", "verified_name", "quality_rating")

TEMPLATE_FIELDS: Final[Fields[SimulatedTemplate]] = {  # Source: facts 2.1
    "name": lambda template: template.name,
    "parameter_format": lambda template: template.parameter_format,
    "components": lambda template: component_views(template.components),
    "language": lambda template: template.language,
    "status": lambda template: template.status,
    "category": lambda template: template.category,
    "id": lambda template: template.template_id,
    "previous_category": lambda template: template.previous_category,
    "rejected_reason": lambda template: template.rejected_reason,
    "quality_score": _quality,
    "message_send_ttl_seconds": lambda template: template.message_send_ttl_seconds,
    "last_updated_time": lambda template: str(template.updated_ms // 1000),
    "correct_category": lambda template: template.correct_category,
    "health_status": _template_health,
    "is_sms_fallback_enabled": lambda _: False,
    "source": lambda template: template.source,
    "ad_account_id": _ad_reader("31"),  # Source: the operator's page "Onboard", as the next three
    "ad_campaign_id": _ad_reader("32"),
    "ad_adset_id": _ad_reader("33"),
    "ad_id": _ad_reader(AD_PREFIX),
    **{name: _extra(name) for name in EXTRA_MEMBERS},
}
TEMPLATE_DEFAULT: Final = (
    "name",
    "parameter_format",
    "components",
    "language",
    "status",
    "category",
    "sub_category",
    "previous_category",
    "correct_category",
    "source",
    "id",
)  # fmt: skip


def account_node(view: AccountView, requested: str | None) -> dict[str, Any]:
    """Return a business account as the operator shows it."""
    return node_fields(ACCOUNT_FIELDS, view, requested, ACCOUNT_DEFAULT, "WhatsAppBusinessAccount")


def number_node(view: NumberView, requested: str | None) -> dict[str, Any]:
    """Return a business phone number as the operator shows it."""
    return node_fields(NUMBER_FIELDS, view, requested, NUMBER_DEFAULT, "WhatsAppBusinessPhoneNumber")


def template_node(template: SimulatedTemplate, requested: str | None) -> dict[str, Any]:
    """Return a template as the operator shows it."""
    return node_fields(TEMPLATE_FIELDS, template, requested, TEMPLATE_DEFAULT, "WhatsAppMessageTemplate")


def component_views(components: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return components as the operator returns them: upload handles are replaced by URLs.

    Source: facts 2.1, "Read-back differences".
    """
    return [_component_view(component) for component in components]


def _component_view(component: dict[str, Any]) -> dict[str, Any]:
    example = object_or_none(component.get("example")) or {}
    handles = texts_in(example.get("header_handle"))
    if handles:
        urls = [_header_url(handle) for handle in handles]
        return {**component, "example": {**example, "header_handle": urls}}
    if component.get("type") == "CAROUSEL":
        cards = [
            {**card, "components": component_views(objects_in(card.get("components")))}
            for card in objects_in(component.get("cards"))
        ]
        return {**component, "cards": cards}
    return component


def _header_url(handle: str) -> str:
    return f"https://scontent.whatsapp.net/v/t61.29466-34/{hashlib.sha256(handle.encode()).hexdigest()[:32]}"
