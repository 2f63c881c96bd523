"""Inbound webhooks: the body as received, and the items in it."""

import hashlib
from dataclasses import dataclass
from typing import Final, NamedTuple

REPETITION_MS: Final = 3_600_000
"""An undated item that comes once more within this time is a repetition. Source: decision 0060."""
UNREADABLE_MARK: Final = b"\0"
"""First byte of the payload of an item that could not be read; no JSON text begins with it."""


class WebhookItem(NamedTuple):
    """One status, message or template change.

    Attributes:
        dedupe_key: the same when the operator sends the same item again.
        concurrency_group: the business number, or the business account.
        ordering_key: the user or the template that it is about.
        path: its position in the body.
        payload: JSON of the item with the members of the body that surround it; of an item that cannot be read,
            the mark and a body with this item alone, its bytes unchanged, to be split once more.
        defect: why the item cannot be read; None for one that can.
        is_undated: nothing in it says when it happened, so that an equal one much later is another event.
    """

    dedupe_key: str
    concurrency_group: str
    ordering_key: str
    path: str
    payload: bytes
    defect: str | None = None
    is_undated: bool = False


@dataclass(frozen=True, slots=True)
class InboundWebhook:
    """The body of a webhook, stored once, and its items."""

    id: str
    operator_account_id: str
    received_on_ms: int
    body: bytes
    items: tuple[WebhookItem, ...]


def unreadable_group(account_id: str) -> str:
    """Return the concurrency group of what cannot be read and names neither number nor business account."""
    return f"unreadable {account_id}"


def unreadable_item(group: str, path: str, body: bytes, defect: str) -> WebhookItem:
    """Return the item of a body, or of a part of one, that cannot be read: it becomes a dead letter.

    Args:
        group: the business number or the business account; `unreadable_group` where it names neither.
        path: its position in the body that was received.
        body: as the operator sent it; of a part, a body that has this part alone.
        defect: why it cannot be read, without its content.
    """
    # Not the key of the item itself: the operator may send it once more, whole.
    digest = hashlib.sha256(path.encode() + b" " + body).hexdigest()[:32]
    return WebhookItem(f"unreadable {digest}", group, f"unreadable {digest}", path, UNREADABLE_MARK + body, defect)


def unreadable_body(payload: bytes) -> bytes | None:
    """Return the body in the payload of an item that could not be read; None for the payload of another item."""
    return payload[len(UNREADABLE_MARK) :] if payload.startswith(UNREADABLE_MARK) else None
