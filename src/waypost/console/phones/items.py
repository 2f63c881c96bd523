"""The messages of a chat, in the order in which they arrived on the phone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import object_of
from waypost.console.bubbles.items import prepare_messages, quote_of
from waypost.console.bubbles.json_fields import text_of

_TYPES_NAMED_IN_SUMMARY: Final = ("location", "contacts", "order", "unsupported")
"""Types that a summary names, because their text alone is unclear."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of a chat.

    Attributes:
        key: id of its HTML element.
        arrived_ms: when it arrived on the phone, or was written on it.
        item: as the control API shows it, with what its bubble needs (see bubbles/bubble.html).
    """

    key: str
    arrived_ms: int
    item: dict[str, Any]

    @property
    def is_own(self) -> bool:
        """True if the phone sent it."""
        return bool(self.item["direction"] == "from_phone")

    @property
    def own_reaction(self) -> str:
        """Return the emoji of the owner's reaction; empty if there is none."""
        own = [reaction["emoji"] for reaction in self.item["reactions"] if reaction["who"] == "phone"]
        return str(own[0]) if own else ""

    @property
    def summary(self) -> str:
        """Return one line of text for a quote."""
        return summarize_item(self.item)


def build_chat_messages(
    items: Sequence[dict[str, Any]], quoted: Sequence[dict[str, Any]], phone: str, business_name: str
) -> list[ChatMessage]:
    """Return the messages, oldest first, each with its reactions.

    Args:
        items: of one chat.
        quoted: messages that these refer to and that are not among them.
        phone: the phone's digits.
        business_name: above quotes of the business's messages.
    """

    def name_author(item: dict[str, Any]) -> dict[str, Any]:
        return {**item, "author": business_name} if item["direction"] == "to_phone" else item

    ordered = sorted(map(name_author, items), key=lambda item: (_arrived_ms(item), item["position"]))
    quoted_ids = {item["wamid"] for item in quoted}
    return [
        ChatMessage(f"i-{phone}-{item['position']}", _arrived_ms(item), item)
        for item in prepare_messages([*map(name_author, quoted), *ordered], _media_link)
        if item["wamid"] not in quoted_ids
    ]


def summarize_item(item: dict[str, Any]) -> str:
    """Return one line that describes a message, for lists of chats and for quotes."""
    if item["type"] == "reaction":
        emoji = text_of(object_of(item.get("reaction")).get("emoji"))
        return f"Reacted {emoji}" if emoji else "Removed a reaction"
    quote = quote_of(item)
    if quote["kind"] in ("", quote["text"]) or not (item.get("media") or item["type"] in _TYPES_NAMED_IN_SUMMARY):
        return quote["text"]
    return f"{quote['kind']} · {quote['text']}"


def _arrived_ms(item: dict[str, Any]) -> int:
    """Return when the message arrived on the phone, or was sent by it."""
    delivered_ms = item.get("delivered_ms")
    return int(delivered_ms if delivered_ms is not None else item["at_ms"])


def _media_link(media_id: str) -> dict[str, str]:
    is_known = media_id.isascii() and media_id.isdigit()
    return {"url": f"/phones/media/{media_id}"} if is_known else {}
