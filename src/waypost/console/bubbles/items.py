"""The items of an inbox made ready for `bubble`: reactions and replies joined to what they are about."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from waypost.base.json_values import object_of, objects_in
from waypost.console.bubbles.formatting import LONG_CHARS, plain_text
from waypost.console.bubbles.json_fields import text_of
from waypost.console.bubbles.media import WORDS
from waypost.console.bubbles.orders import order_of, reference_of

FindMedium = Callable[[str], Mapping[str, Any]]
"""Gives what the page knows of a medium by its id: `url`, and perhaps `size_bytes` and `filename`."""

_FORMATS: Final = ("image", "video", "document", "gif")
_QUOTED_CHARS: Final = 160
_WORDS: Final = {  # of what has no text
    **WORDS,
    "location": "Location", "contacts": "Contact", "order": "Order", "template": "Template",
    "interactive": "Message", "unsupported": "Message",
}  # fmt: skip


def prepared(messages: Iterable[dict[str, Any]], find: FindMedium) -> list[dict[str, Any]]:
    """The items that are drawn, in their order; nothing of what came is changed.

    A reaction is no item of its own: it is under the message it is about, the newest of each side. An
    order has what was last said of it in `order_status`.
    """
    items = [with_media(one, find) for one in messages]
    by_id = {text_of(one.get("wamid")): one for one in items}
    orders: dict[tuple[str, str], dict[str, Any]] = {}
    drawn: list[dict[str, Any]] = []
    for one in items:
        if one.get("type") == "reaction":
            about = by_id.get(text_of(object_of(one.get("reaction")).get("message_id")))
            if about is not None:
                reacted = {**object_of(about.get("reactions")), text_of(one.get("direction")): one}
                about["reactions"] = reacted
            continue
        _join_order(one, orders)
        quoted = by_id.get(text_of(one.get("context_id")))
        if quoted is not None and quoted is not one:
            one["quoted"] = quote_of(quoted)
        drawn.append(one)
    for one in drawn:
        one["reactions"] = _emoji(object_of(one.get("reactions")))
    return drawn


def _join_order(one: dict[str, Any], orders: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Remember an order, or tell the one that a status is of."""
    kind, parameters = order_of(one)
    key = (text_of(one.get("phone_number_id")), reference_of(one))
    if kind == "order_details":
        orders[key] = one
    elif kind and key in orders:
        orders[key]["order_status"] = parameters


def with_media(shown: dict[str, Any], find: FindMedium) -> dict[str, Any]:
    """A message whose media have what the page knows of them; a copy."""
    changed = dict(shown)
    media = object_of(shown.get("media"))
    if media:
        changed["media"] = _found(media, find)
    if shown.get("header"):
        changed["header"] = _with_header(object_of(shown.get("header")), find)
    if shown.get("cards"):
        changed["cards"] = [
            {**card, "header": _with_header(object_of(card.get("header")), find)}
            for card in objects_in(shown.get("cards"))
        ]
    return changed


def quote_of(item: dict[str, Any]) -> dict[str, str]:
    """What a reply shows of the message it answers."""
    kind = text_of(item.get("type"))
    media = object_of(item.get("media"))
    text = plain_text(text_of(item.get("text"))[:LONG_CHARS])
    word = _WORDS.get(text_of(media.get("kind")) or kind, "Message")
    return {
        "wamid": text_of(item.get("wamid")),
        "who": "Business" if item.get("direction") == "to_phone" else "You",
        "text": text[:_QUOTED_CHARS] or word,
        "kind": word if media or kind in _WORDS else "",
    }


def _with_header(header: dict[str, Any], find: FindMedium) -> dict[str, Any]:
    changed = dict(header)
    for name in _FORMATS:
        if isinstance(header.get(name), dict):
            changed[name] = _found(object_of(header[name]), find)
    return changed


def _found(medium: dict[str, Any], find: FindMedium) -> dict[str, Any]:
    media_id = text_of(medium.get("id"))
    return {**medium, **(find(media_id) if media_id else {})}


def _emoji(reacted: dict[str, Any]) -> list[dict[str, str]]:
    """The reactions that still stand; one without an emoji took it away."""
    found = [
        {
            "emoji": text_of(object_of(object_of(one).get("reaction")).get("emoji")),
            "who": "business" if direction == "to_phone" else "phone",
        }
        for direction, one in reacted.items()
    ]
    return [one for one in found if one["emoji"]]
