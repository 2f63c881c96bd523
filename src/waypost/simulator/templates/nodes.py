"""A template as the operator shows it: its node, and its components as they are read back."""

import hashlib
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, Final

from waypost.base.json_values import object_of, objects_in, texts_in
from waypost.simulator.apis.requests import Call
from waypost.simulator.state.nodes import NodeKind, health_status
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.templates.drafts import EXTRA_MEMBERS
from waypost.simulator.templates.template import SimulatedTemplate

AD_PREFIX: Final = "120"
"""The first digits of an ad's id; the rest is the template's id."""


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


def _read_extra(name: str, template: SimulatedTemplate) -> Any:
    return template.extras.get(name)


def _read_ad(prefix: str) -> Callable[[SimulatedTemplate], str | None]:
    """Return a reader of an id around the ad that marketing templates have."""
    return lambda template: prefix + template.template_id if template.category == "MARKETING" else None


_SAME_AS_MEMBERS: Final = (
    "name",
    "parameter_format",
    "language",
    "status",
    "category",
    "previous_category",
    "rejected_reason",
    "message_send_ttl_seconds",
    "correct_category",
    "source",
)
"""The fields that are members of a template."""
TEMPLATE_NODE: Final = NodeKind[SimulatedTemplate](  # Source: facts 2.1
    "WhatsAppMessageTemplate",
    (
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
    ),
    {
        **{name: attrgetter(name) for name in _SAME_AS_MEMBERS},
        "components": lambda template: component_views(template.components),
        "id": lambda template: template.template_id,
        "quality_score": lambda template: {"score": template.quality, "date": template.updated_ms // 1000},
        "last_updated_time": lambda template: str(template.updated_ms // 1000),
        "health_status": lambda template: health_status(
            "MESSAGE_TEMPLATE", template.template_id, "AVAILABLE" if template.status == "APPROVED" else "BLOCKED"
        ),
        "is_sms_fallback_enabled": False,
        "ad_account_id": _read_ad("31"),  # Source: the operator's page "Onboard", as the next three
        "ad_campaign_id": _read_ad("32"),
        "ad_adset_id": _read_ad("33"),
        "ad_id": _read_ad(AD_PREFIX),
        **{name: partial(_read_extra, name) for name in EXTRA_MEMBERS},
    },
)


def show_template(_state: SimulatorState, call: Call, template: SimulatedTemplate) -> dict[str, Any]:
    """Return a template as the operator shows it."""
    return TEMPLATE_NODE.show(template, call.query.get("fields"))
