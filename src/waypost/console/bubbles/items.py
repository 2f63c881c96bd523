"""Readers of JSON members of any type: messages come from others, so each function returns one sure type."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from waypost.base.json_values import integer_or_none, object_of, objects_in
from waypost.console.bubbles.formatting import LONG_CHARS, plain_text, safe_link


def text_of(value: object) -> str:
    """Return a text or number as text; anything else as empty."""
    if isinstance(value, str):
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else ""


def degrees_of(value: object, at_most: float) -> float | None:
    """Return a latitude or longitude; None if the value is not one."""
    try:
        degrees = float(text_of(value))
    except (ValueError, OverflowError):
        return None
    return degrees if math.isfinite(degrees) and abs(degrees) <= at_most else None


# fmt: off
_PAYMENTS: Final = {  # Source: simulator/payments/model.py
    "captured": "Paid",
    "pending":  "Pending",
    "failed":   "Failed",
}
# fmt: on
_KINDS: Final = ("order_details", "order_status")


def order_of(shown: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the type of a message about an order and its parameters; empty for any other message."""
    interactive = object_of(shown.get("interactive"))
    kind = text_of(interactive.get("type"))
    if kind not in _KINDS:
        return "", {}
    return kind, object_of(object_of(interactive.get("action")).get("parameters"))


def items_of_order(shown: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return name, quantity and price of each item of an order to pay."""
    kind, parameters = order_of(shown)
    if kind != "order_details":
        return []
    currency = text_of(parameters.get("currency"))
    return [
        (
            text_of(item.get("name")),
            text_of(item.get("quantity")),
            money(item.get("sale_amount") or item.get("amount"), currency),
        )
        for item in objects_in(object_of(parameters.get("order")).get("items"))
    ]


def facts_of_order(shown: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return further facts of an order, as names and values."""
    kind, parameters = order_of(shown)
    if not kind:
        return ()
    payment, status = object_of(shown.get("payment")), parameters
    if kind == "order_details":
        status = object_of(shown.get("order_status"))
    else:
        payment = object_of(parameters.get("payment"))
    order = object_of(status.get("order")) if status else {}
    total = money(parameters.get("total_amount"), text_of(parameters.get("currency")))
    facts = (
        ("Order", text_of(parameters.get("reference_id"))),
        ("Total", total),
        ("Status", text_of(order.get("status")).replace("_", " ").replace("-", " ").capitalize()),
        ("Note", text_of(order.get("description"))),
        ("Payment", _payment(payment)),
    )
    return tuple((name, value) for name, value in facts if value)


def is_paid(shown: dict[str, Any]) -> bool:
    """True if the phone has paid an order."""
    return object_of(shown.get("payment")).get("status") == "captured"


def money(amount: object, currency: str) -> str:
    """Return an amount in hundredths as text; empty if there is none."""
    value = integer_or_none(object_of(amount).get("value"))
    return "" if value is None else f"{value // 100}.{value % 100:02} {currency}".strip()


def _payment(payment: dict[str, Any]) -> str:
    status = text_of(payment.get("status"))
    reason = text_of(object_of(payment.get("error")).get("reason")).replace("_", " ")
    return _PAYMENTS.get(status, status) + (f": {reason}" if reason else "")


MEDIA_LABELS: Final = {  # label of each kind
    "image": "Photo", "video": "Video", "audio": "Audio", "document": "Document", "sticker": "Sticker", "gif": "GIF",
}  # fmt: skip
_PICTURES: Final = ("image", "sticker")
_MB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MediaView:
    """A file."""

    kind: str  # key of `MEDIA_LABELS`; anything but an image, audio or document is a video
    url: str = ""  # console path of its bytes; empty if there is none
    name: str = ""  # file name
    detail: str = ""  # type, pages and size as text
    external_host: str = ""  # host of an external file; pages load nothing from other hosts
    is_voice: bool = False  # True for a voice message
    is_moving: bool = False  # True for a GIF or an animated sticker

    @property
    def label(self) -> str:
        """Label of the kind."""
        return MEDIA_LABELS[self.kind]

    @property
    def is_picture(self) -> bool:
        """True if it is drawn as an image, not as a video."""
        return self.kind in _PICTURES


def media_view(kind: str, value: object) -> MediaView:
    """Return the view of a medium of a send, webhook or draft; the page may add `url`, `size_bytes`, `pages`."""
    content = object_of(value)
    url, link = text_of(content.get("url")), safe_link(text_of(content.get("link")))
    name = text_of(content.get("filename"))
    if not name and link is not None:
        name = PurePosixPath(link.path.partition("?")[0]).name
    mime_type = text_of(content.get("mime_type"))
    return MediaView(
        kind=kind if kind in MEDIA_LABELS else "document",
        url=url if _is_local_url(url) else "",
        name=name,
        detail=_detail(name, mime_type, content),
        external_host=link.host if link else "",
        is_voice=content.get("voice") is True,
        is_moving=kind == "gif" or content.get("animated") is True or mime_type == "image/gif",
    )


def location_view(value: object) -> dict[str, Any]:
    """Return a location's texts, and a `shift` of the drawn map, so that different locations look different."""
    content = object_of(value)
    latitude = degrees_of(content.get("latitude"), 90)
    longitude = degrees_of(content.get("longitude"), 180)
    return {
        "name": text_of(content.get("name")),
        "address": text_of(content.get("address")),
        "coordinates": "" if latitude is None or longitude is None else f"{latitude:.5f}, {longitude:.5f}",
        "shift": int(((latitude or 0) * 7919 + (longitude or 0) * 104729) % 60),
    }


_CONTACT_LINES: Final = (
    # list of the card, default label, members of an entry, of which the first or, of an address, all are shown
    ("phones", "Phone", ("phone", "wa_id")),
    ("emails", "E-mail", ("email",)),
    ("urls", "Web", ("url",)),
    ("addresses", "Address", ("street", "zip", "city", "state", "country")),
)


def contact_view(card: dict[str, Any]) -> dict[str, Any]:
    """Return name, company and lines (label and value) of a contact card."""
    lines: list[tuple[str, str]] = []
    for name, label, members in _CONTACT_LINES:
        for entry in objects_in(card.get(name)):
            texts = [text for member in members if (text := text_of(entry.get(member)))]
            lines.append((text_of(entry.get("type")) or label, ", ".join(texts if name == "addresses" else texts[:1])))
    lines.append(("Birthday", text_of(card.get("birthday"))))
    company = object_of(card.get("org"))
    return {
        "name": text_of(object_of(card.get("name")).get("formatted_name")) or "Contact",
        "company": ", ".join(filter(None, (text_of(company.get("title")), text_of(company.get("company"))))),
        "lines": tuple((name.capitalize(), value) for name, value in lines if value),
    }


def _detail(name: str, mime_type: str, content: dict[str, Any]) -> str:
    ending = PurePosixPath(name).suffix[1:] or mime_type.partition(";")[0].rpartition("/")[2]
    pages, size = integer_or_none(content.get("pages")), integer_or_none(content.get("size_bytes"))
    details = [
        ending.upper()[:12],
        f"{pages} {'page' if pages == 1 else 'pages'}" if pages else "",
        format_size(size) if size is not None else "",
    ]
    return " · ".join(filter(None, details))


def format_size(size_bytes: int) -> str:
    """Return a size as `12 kB` or `1.4 MB`."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    if size_bytes < _MB:
        return f"{size_bytes / 1024:.0f} kB"
    return f"{size_bytes / _MB:.1f} MB"


def _is_local_url(url: str) -> bool:
    """True if a URL is a path of this console, or a blob of the page itself."""
    return (url.startswith("/") and not url.startswith(("//", "/\\"))) or url.startswith("blob:")


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
    key = (text_of(item.get("phone_number_id")), text_of(parameters.get("reference_id")))
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
            "from": text_of(object_of(item).get("sent_from"))
            or f"the {'business' if direction == 'to_phone' else 'phone'}",
        }
        for direction, item in reacted.items()
    ]
    return [reaction for reaction in reactions if reaction["emoji"]]
