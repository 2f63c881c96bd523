"""Preparation of a phone's messages for `bubble`: reactions, quotes, media and order statuses are merged in."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from waypost.base.json_values import object_of, objects_in
from waypost.console.bubbles.formatting import LONG_CHARS, plain_text
from waypost.console.bubbles.json_fields import text_of
from waypost.console.bubbles.media import MEDIA_LABELS
from waypost.console.bubbles.orders import order_of, reference_of

MediaFinder = Callable[[str], Mapping[str, Any]]
"""Returns what the page knows of a media file by its id: `url`, and optionally `size_bytes` and `filename`."""

_FORMATS: Final = ("image", "video", "document", "gif")
_QUOTED_CHARS: Final = 160
_LABELS: Final = {  # labels of messages without a text
    **MEDIA_LABELS,
    "location": "Location", "contacts": "Contact", "order": "Order", "template": "Template",
    "interactive": "Message", "unsupported": "Message",
}  # fmt: skip


def prepare_messages(messages: Iterable[dict[str, Any]], find: MediaFinder) -> list[dict[str, Any]]:
    """Return the items to draw, in order, as copies.

    A reaction is not an item of its own: the newest of each side is added to its message. An order has its
    last status in `order_status`.
    """
    items = [add_media_data(message, find) for message in messages]
    by_id = {text_of(item.get("wamid")): item for item in items}
    orders: dict[tuple[str, str], dict[str, Any]] = {}
    drawn: list[dict[str, Any]] = []
    for item in items:
        if item.get("type") == "reaction":
            target = by_id.get(text_of(object_of(item.get("reaction")).get("message_id")))
            if target is not None:
                target["reactions"] = {**object_of(target.get("reactions")), text_of(item.get("direction")): item}
            continue
        _join_order(item, orders)
        quoted = by_id.get(text_of(item.get("context_id")))
        if quoted is not None and quoted is not item:
            item["quoted"] = quote_of(quoted)
        drawn.append(item)
    for item in drawn:
        item["reactions"] = _emoji(object_of(item.get("reactions")))
    return drawn


def _join_order(item: dict[str, Any], orders: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Remember an order, or add a status to its order."""
    kind, parameters = order_of(item)
    key = (text_of(item.get("phone_number_id")), reference_of(item))
    if kind == "order_details":
        orders[key] = item
    elif kind and key in orders:
        orders[key]["order_status"] = parameters


def add_media_data(shown: dict[str, Any], find: MediaFinder) -> dict[str, Any]:
    """Return a copy of a message with the page's data added to its media."""
    changed = dict(shown)
    media = object_of(shown.get("media"))
    if media:
        changed["media"] = _add_known_data(media, find)
    if shown.get("header"):
        changed["header"] = _add_header_data(object_of(shown.get("header")), find)
    if shown.get("cards"):
        changed["cards"] = [
            {**card, "header": _add_header_data(object_of(card.get("header")), find)}
            for card in objects_in(shown.get("cards"))
        ]
    return changed


def quote_of(item: dict[str, Any]) -> dict[str, str]:
    """Return the quote of a message that a reply shows, under the name of its `author` if the item has one."""
    kind = text_of(item.get("type"))
    media = object_of(item.get("media"))
    text = plain_text(text_of(item.get("text"))[:LONG_CHARS])
    label = _LABELS.get(text_of(media.get("kind")) or kind, "Message")
    return {
        "wamid": text_of(item.get("wamid")),
        "who": text_of(item.get("author")) or ("Business" if item.get("direction") == "to_phone" else "You"),
        "text": text[:_QUOTED_CHARS] or label,
        "kind": label if media or kind in _LABELS else "",
    }


def _add_header_data(header: dict[str, Any], find: MediaFinder) -> dict[str, Any]:
    changed = dict(header)
    for name in _FORMATS:
        if isinstance(header.get(name), dict):
            changed[name] = _add_known_data(object_of(header[name]), find)
    return changed


def _add_known_data(medium: dict[str, Any], find: MediaFinder) -> dict[str, Any]:
    media_id = text_of(medium.get("id"))
    return {**medium, **(find(media_id) if media_id else {})}


def _emoji(reacted: dict[str, Any]) -> list[dict[str, str]]:
    """Return the current reactions; one without an emoji removed an earlier one."""
    reactions = [
        {
            "emoji": text_of(object_of(object_of(item).get("reaction")).get("emoji")),
            "who": "business" if direction == "to_phone" else "phone",
        }
        for direction, item in reacted.items()
    ]
    return [reaction for reaction in reactions if reaction["emoji"]]
