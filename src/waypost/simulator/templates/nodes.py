"""Templates as the operator shows them. Source: facts 2.1."""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from waypost.base.json_values import object_of, objects_in, texts_in
from waypost.simulator.state.nodes import Fields, health_status, node_fields
from waypost.simulator.templates.drafts import EXTRA_MEMBERS
from waypost.simulator.templates.template import SimulatedTemplate

AD_PREFIX: Final = "120"
"""The first digits of an ad's id; the rest is the template's id."""


def _extra(name: str, template: SimulatedTemplate) -> Any:
    return template.extras.get(name)


def _ad_reader(prefix: str) -> Callable[[SimulatedTemplate], str | None]:
    """Return a reader of an id around the ad that marketing templates have."""
    return lambda template: prefix + template.template_id if template.category == "MARKETING" else None


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
    "quality_score": lambda template: {"score": template.quality, "date": template.updated_ms // 1000},
    "message_send_ttl_seconds": lambda template: template.message_send_ttl_seconds,
    "last_updated_time": lambda template: str(template.updated_ms // 1000),
    "correct_category": lambda template: template.correct_category,
    "health_status": lambda template: health_status(
        "MESSAGE_TEMPLATE", template.template_id, "AVAILABLE" if template.status == "APPROVED" else "BLOCKED"
    ),
    "is_sms_fallback_enabled": lambda _: False,
    "source": lambda template: template.source,
    "ad_account_id": _ad_reader("31"),  # Source: the operator's page "Onboard", as the next three
    "ad_campaign_id": _ad_reader("32"),
    "ad_adset_id": _ad_reader("33"),
    "ad_id": _ad_reader(AD_PREFIX),
    **{name: partial(_extra, name) for name in EXTRA_MEMBERS},
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


def template_node(template: SimulatedTemplate, requested: str | None) -> dict[str, Any]:
    """Return a template as the operator shows it."""
    return node_fields(TEMPLATE_FIELDS, template, requested, TEMPLATE_DEFAULT, "WhatsAppMessageTemplate")


def component_views(components: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return components as the operator returns them: upload handles are replaced by URLs.

    Source: facts 2.1, "Read-back differences".
    """
    views: list[dict[str, Any]] = []
    for component in components:
        example, view = object_of(component.get("example")), component
        if handles := texts_in(example.get("header_handle")):
            digests = [hashlib.sha256(handle.encode()).hexdigest()[:32] for handle in handles]
            urls = [f"https://scontent.whatsapp.net/v/t61.29466-34/{digest}" for digest in digests]
            view = {**component, "example": {**example, "header_handle": urls}}
        elif component.get("type") == "CAROUSEL":
            cards = objects_in(component.get("cards"))
            shown = [{**card, "components": component_views(objects_in(card.get("components")))} for card in cards]
            view = {**component, "cards": shown}
        views.append(view)
    return views
