"""What the operator says a message costs, as both versions of a callback tell it."""

from typing import Any

from waypost.domain.event import StatusEvent


def deductions(event: StatusEvent) -> dict[str, Any]:
    """The `deductions` of a billing event: in what model, of which category, whether anything is due.

    Source: facts 6.7; operator's facts 7.3, pricing.
    """
    pricing = event.pricing or {}
    category = pricing.get("category")
    told: dict[str, Any] = {
        "type": pricing.get("type") or category,
        "model": pricing.get("pricing_model"),
        "source": "whatsapp",
        "billable": pricing.get("billable") is not False,
        "category": category,
    }
    origin = (event.conversation or {}).get("origin")
    if isinstance(origin, dict) and origin.get("type") == "free_entry_point":  # pyright: ignore[reportUnknownMemberType]
        told["conversationType"] = "FTC"
    return told
