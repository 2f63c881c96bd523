"""The price of a message in billing callbacks, the same in both versions."""

from typing import Any

from waypost.base.json_values import boolean_of
from waypost.domain.event import StatusEvent


def deductions(event: StatusEvent) -> dict[str, Any]:
    """Return the `deductions` of a billing event: pricing model, category, and if it is billable.

    Source: facts 6.7; operator's facts 7.3, pricing.
    """
    pricing = event.pricing or {}
    category = pricing.get("category")
    body: dict[str, Any] = {
        "type": pricing.get("type") or category,
        "model": pricing.get("pricing_model"),
        "source": "whatsapp",
        "billable": boolean_of(pricing.get("billable"), default=True),
        "category": category,
    }
    origin = (event.conversation or {}).get("origin")
    if isinstance(origin, dict) and origin.get("type") == "free_entry_point":  # pyright: ignore[reportUnknownMemberType]
        body["conversationType"] = "FTC"
    return body
