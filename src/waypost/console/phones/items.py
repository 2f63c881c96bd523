"""The messages of a chat as its page shows them: in the order in which they came to the phone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import object_of
from waypost.console.bubbles.items import prepared, quote_of
from waypost.console.bubbles.json_fields import text_of

_NAMED: Final = ("location", "contacts", "order", "unsupported")
"""Types whose name says more than their text does."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A message of a chat.

    Attributes:
        key: of the element that shows it.
        came_ms: when it came to the phone, or was written on it.
        item: as the control door shows it, and what its bubble needs besides (see bubbles/bubble.html).
    """

    key: str
    came_ms: int
    item: dict[str, Any]

    @property
    def is_own(self) -> bool:
        """Whether the phone wrote it."""
        return bool(self.item["direction"] == "from_phone")

    @property
    def own_reaction(self) -> str:
        """What the phone's owner has reacted with."""
        own = [one["emoji"] for one in self.item["reactions"] if one["who"] == "phone"]
        return str(own[0]) if own else ""

    @property
    def summary(self) -> str:
        """One line of it, for a quote."""
        return summary_of(self.item)


def entries_of(items: Sequence[dict[str, Any]], quoted: Sequence[dict[str, Any]], phone: str) -> list[Entry]:
    """The messages, oldest first; reactions are on what they are about.

    Args:
        items: of one chat.
        quoted: what they refer to and is not among them.
        phone: whose they are.
    """
    ordered = sorted(items, key=lambda item: (_came_ms(item), item["position"]))
    beside = {item["wamid"] for item in quoted}
    return [
        Entry(f"i-{phone}-{item['position']}", _came_ms(item), item)
        for item in prepared([*quoted, *ordered], _medium)
        if item["wamid"] not in beside
    ]


def summary_of(item: dict[str, Any]) -> str:
    """One line that says what a message is: for lists of chats, and for quotes."""
    if item["type"] == "reaction":
        emoji = text_of(object_of(item.get("reaction")).get("emoji"))
        return f"Reacted {emoji}" if emoji else "Took a reaction away"
    told = quote_of(item)
    if told["kind"] in ("", told["text"]) or not (item.get("media") or item["type"] in _NAMED):
        return told["text"]
    return f"{told['kind']} · {told['text']}"


def _came_ms(item: dict[str, Any]) -> int:
    """When the phone got it, or wrote it."""
    delivered_ms = item.get("delivered_ms")
    return int(delivered_ms if delivered_ms is not None else item["at_ms"])


def _medium(media_id: str) -> dict[str, str]:
    is_known = media_id.isascii() and media_id.isdigit()
    return {"url": f"/phones/media/{media_id}"} if is_known else {}
