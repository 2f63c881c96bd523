"""A webhook's body as received, and what it splits into."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WebhookItem:
    """One status, message or template change.

    Attributes:
        dedupe_key: the same whenever the operator tells the same thing again.
        group: the business number, or the business account.
        ordering_key: whom or what it is about.
        place: where in the body it stands.
        item: JSON of the item with what the body says around it.
    """

    dedupe_key: str
    group: str
    ordering_key: str
    place: str
    item: bytes


@dataclass(frozen=True, slots=True)
class InboundWebhook:
    """A webhook's body, kept once, and its items."""

    id: str
    operator_account_id: str
    received_on_ms: int
    body: bytes
    items: tuple[WebhookItem, ...]
