"""Bubble items from messages in the operator's format, sent or received."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from waypost.base.json_values import object_of, objects_in
from waypost.console.bubbles.json_fields import text_of

_MEDIA_TYPES: Final = ("image", "video", "audio", "document", "sticker")
_REPLIES: Final = ("button_reply", "list_reply")
_decode_json = msgspec.json.Decoder().decode


def read_inbound_message(item: bytes | None) -> Mapping[str, Any]:
    """Return the message of a stored webhook item; empty if it was deleted or cannot be read."""
    if not item:
        return {}
    try:
        return object_of(object_of(_decode_json(item)).get("message"))
    except (msgspec.DecodeError, RecursionError):
        return {}


def operator_item(kind: str, value: Any) -> dict[str, Any]:
    """Return the members of a bubble item (see bubbles/bubble.html) for a message in the operator's format.

    Args:
        kind: the operator's `type`.
        value: the member of that name.

    Source: operator's facts 4.1 for messages sent, 7.4 for messages received.
    """
    members = object_of(value)
    if kind in _MEDIA_TYPES:
        return {"type": kind, "media": {**members, "kind": kind}, "text": text_of(members.get("caption"))}
    match kind:
        case "text" | "system":
            return {"type": "text", "text": text_of(members.get("body"))}
        case "button":
            return {"type": "text", "text": text_of(members.get("text"))}
        case "location":
            return {"type": kind, "location": members}
        case "contacts":
            return {"type": kind, "contacts": value}
        case "order":
            return {"type": kind, "order": members, "text": text_of(members.get("text"))}
        case "reaction":
            return {"type": kind, "reaction": members}
        case "interactive":
            return _interactive(members)
        case _:
            return {"type": "unsupported", "unsupported": {"type": kind}}


def _interactive(members: Mapping[str, Any]) -> dict[str, Any]:
    kind = text_of(members.get("type"))
    if kind in _REPLIES:
        reply = object_of(members.get(kind))
        text = "\n".join(filter(None, (text_of(reply.get("title")), text_of(reply.get("description")))))
        return {"type": "text", "text": text}
    if kind == "nfm_reply":
        reply = object_of(members.get(kind))
        return {
            "type": "interactive",
            "text": text_of(reply.get("body")),
            "response": _form_values(text_of(reply.get("response_json"))),
        }
    item: dict[str, Any] = {
        "type": "interactive",
        "text": text_of(object_of(members.get("body")).get("text")),
        "footer": text_of(object_of(members.get("footer")).get("text")),
        "buttons": _buttons(kind, object_of(members.get("action"))),
    }
    header = object_of(members.get("header"))
    form = text_of(header.get("type"))
    if form:
        item["header"] = {"format": form.upper(), form: header.get(form)}
    return item


def _form_values(text: str) -> dict[str, Any]:
    try:
        return object_of(_decode_json(text)) if text else {}
    except (msgspec.DecodeError, RecursionError):
        return {}


def _buttons(kind: str, action: Mapping[str, Any]) -> list[dict[str, Any]]:
    if kind == "cta_url":
        parameters = object_of(action.get("parameters"))
        return [
            {"index": 0, "type": "URL", "text": text_of(parameters.get("display_text")), "url": parameters.get("url")}
        ]
    if kind == "list":
        rows = [
            {"type": "LIST_ROW", "text": text_of(row.get("title")), "section": text_of(section.get("title"))}
            for section in objects_in(action.get("sections"))
            for row in objects_in(section.get("rows"))
        ]
        return [{"index": index, **row} for index, row in enumerate(rows)]
    titles = [text_of(object_of(button.get("reply")).get("title")) for button in objects_in(action.get("buttons"))]
    return [{"index": index, "type": "QUICK_REPLY", "text": title} for index, title in enumerate(titles)]
