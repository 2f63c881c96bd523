"""Inbound webhooks: the body as received, and the items in it."""

from dataclasses import dataclass
from typing import NamedTuple


class WebhookItem(NamedTuple):
    """One status, message or template change.

    Attributes:
        dedupe_key: the same when the operator sends the same item again.
        concurrency_group: the business number, or the business account.
        ordering_key: the user or the template that it is about.
        path: its position in the body.
        payload: JSON of the item with the members of the body that surround it.
    """

    dedupe_key: str
    concurrency_group: str
    ordering_key: str
    path: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class InboundWebhook:
    """The body of a webhook, stored once, and its items."""

    id: str
    operator_account_id: str
    received_on_ms: int
    body: bytes
    items: tuple[WebhookItem, ...]
