"""Bubble items from messages in the operator's format, sent or received."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from waypost.base.encryption import hash_secret
from waypost.base.json_values import object_of, objects_in
from waypost.console.bubbles.items import prepare_messages, text_of
from waypost.console.bubbles.previews import draft_message
from waypost.console.conversations.listing import RECEIVED_LABELS
from waypost.console.messages.list_rows import kind_label
from waypost.console.messages.trace import delivery_problem, message_texts
from waypost.domain.message import Passthrough, TemplateSend
from waypost.domain.session_messages.content import SendContext, SessionContent
from waypost.domain.templates.rendering import render_body, split_parameters
from waypost.domain.templates.template import Template
from waypost.store.encoding import decode_retained_content, short_text
from waypost.wire.redaction import TextVisibility, redact_preview

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


_MAX_COUNTED_CHARS: Final = 100_000
_TICKED_STATES: Final = ("sent", "delivered", "read", "failed")


ThreadEntry = dict[str, Any]
"""One message of a conversation.

Members: `key` of its HTML element; our `id` of a message sent, the operator's of one received; `at_ms`; `is_sent`;
`item` for `bubble`; `what`: the template's name, or the kind; `state`; `unconfirmed`; `problem`: why it failed, or
None; `can_be_revealed`: its text is hidden, and is no one-time code.
"""


@dataclass(frozen=True, slots=True)
class ThreadContext:
    """The templates and media that the entries of a page refer to."""

    templates: Mapping[str, Template]  # by id
    media_keys: Mapping[str, str]  # of received media that were fetched, by the operator's media id
    show_text: bool  # true if texts are shown without a reveal
    business_name: str  # above quotes of messages sent
    recipient_name: str  # above quotes of messages received


def thread_entries(rows: Sequence[Mapping[str, Any]], context: ThreadContext) -> list[ThreadEntry]:
    """Return the entries of a page, oldest first; a reaction whose message is shown is part of that message.

    Args:
        rows: as `search_thread` returns them, newest first.
    """
    entries = [
        _received_entry(row["received"], context) if row["sent"] is None else _sent_entry(row["sent"], context)
        for row in reversed(rows)
    ]
    known = {entry["item"]["wamid"] for entry in entries}
    for entry in entries:
        reaction = object_of(entry["item"].get("reaction"))
        if entry["item"]["type"] == "reaction" and text_of(reaction.get("message_id")) not in known:
            emoji = text_of(reaction.get("emoji"))
            text = f"Reacted {emoji} to an older message" if emoji else "Removed a reaction from an older message"
            entry["item"] |= {"type": "text", "text": text, "reactions": []}
    drawn = {item["key"]: item for item in prepare_messages([entry["item"] for entry in entries], lambda _media_id: {})}
    shown = [{**entry, "item": drawn[entry["key"]]} for entry in entries if entry["key"] in drawn]
    return sorted(shown, key=lambda entry: (entry["at_ms"], entry["id"]))


def media_ids_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the operator's ids of media that were received."""
    ids = {
        text_of(object_of(message.get(kind)).get("id"))
        for row in rows
        if row["received"] is not None
        for message in (read_inbound_message(row["received"]["item"]),)
        for kind in (text_of(message.get("type")),)
        if kind in _MEDIA_TYPES
    }
    return sorted(ids - {""})


def _sent_entry(row: Mapping[str, Any], context: ThreadContext) -> ThreadEntry:
    sight = TextVisibility(context.show_text, row["holds_code"])
    template = context.templates.get(row["template_id"] or "")
    hidden = redact_preview(short_text(row["content"], _MAX_COUNTED_CHARS), sight)
    if not row["content"]:
        item = {"type": "text", "text": ""}
    elif sight.is_open:
        item = _sent_item(row, template)
    elif context.show_text and template is not None:  # a one-time code: the text around it is the template's
        texts = message_texts(_StoredContent(row["kind"], row["content"]), template, holds_code=True)
        item = {"type": "text", "text": "\n".join(texts)}
    else:
        item = {"type": "text", "text": hidden}
        stored = decode_retained_content(row["kind"], row["content"])
        media_kind = getattr(stored, "kind", None) if isinstance(stored, SessionContent) else None
        if media_kind in _MEDIA_TYPES:  # without its name and address
            item |= {"type": str(media_kind), "media": {"kind": str(media_kind)}}
    name = "" if template is None else f"{template.draft.element_name} ({template.draft.language_code})"
    state = row["state"]
    return _make_entry(
        row["id"],
        row["accepted_on_ms"],
        is_sent=True,
        item={
            **item,
            "author": context.business_name,
            "wamid": row["operator_message_id"] or row["id"],
            "direction": "to_phone",
            "state": state if state in _TICKED_STATES else "",
        },
        what=name or kind_label(row["kind"], row["content"]),
        state=state,
        unconfirmed=row["unconfirmed"],
        problem=delivery_problem(row),
        can_be_revealed=bool(row["content"]) and not sight.text and not sight.holds_code,
    )


def _received_entry(row: Mapping[str, Any], context: ThreadContext) -> ThreadEntry:
    sight = TextVisibility(context.show_text, row["holds_code"])
    message = read_inbound_message(row["item"])
    kind = text_of(message.get("type")) or row["kind"]
    if sight.is_open:
        item: dict[str, Any] = operator_item(kind, message.get(kind)) if message else {"type": "text", "text": ""}
        media = object_of(item.get("media"))
        key = context.media_keys.get(text_of(media.get("id")))
        if key:
            item["media"] = {**media, "url": f"/media/{key}"}
    else:
        item = {"type": "text", "text": redact_preview(row["text"] or "", sight)}
        if kind in _MEDIA_TYPES:
            item |= {"type": kind, "media": {"kind": kind}}
    return _make_entry(
        row["operator_message_id"],
        row["received_on_ms"],
        is_sent=False,
        item={
            **item,
            "author": context.recipient_name,
            "wamid": row["operator_message_id"],
            "direction": "from_phone",
            "state": "",
            "context_id": row["replies_to"] or "",
        },
        what=RECEIVED_LABELS.get(row["kind"], row["kind"]),
        state="",
        unconfirmed=False,
        problem=None,
        can_be_revealed=(bool(row["text"]) or kind in _MEDIA_TYPES) and not sight.text and not sight.holds_code,
    )


def _make_entry(message_id: str, at_ms: int, *, item: dict[str, Any], is_sent: bool, **more: Any) -> ThreadEntry:
    key = f"t-{hash_secret(message_id)[:24]}"
    item = {"text": "", **item, "at_ms": at_ms, "key": key, "who": "Sent" if is_sent else "Received"}
    return {"key": key, "id": message_id, "at_ms": at_ms, "is_sent": is_sent, "item": item, **more}


@dataclass(frozen=True, slots=True)
class _StoredContent:
    kind: str
    content: bytes


def _sent_item(row: Mapping[str, Any], template: Template | None) -> dict[str, Any]:
    content = decode_retained_content(row["kind"], row["content"])
    match content:
        case TemplateSend() if template is not None:
            return _template_item(content, template, row)
        case Passthrough(type=kind, body=body) if kind != "template":
            return operator_item(kind, body)
        case SessionContent():
            return operator_item(*content.operator_body(SendContext(row["id"], None, {})))
        case _:
            return {"type": "text", "text": short_text(row["content"], _MAX_COUNTED_CHARS)}


def _template_item(content: TemplateSend, template: Template, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a template as it was sent: its current text with the values of this message."""
    draft = template.draft
    item = draft_message(draft, until_ms=content.expiration_ms)
    parameters = split_parameters(draft, content.params)
    texts = message_texts(_StoredContent(row["kind"], row["content"]), template)
    header = object_of(item.get("header"))
    if header.get("format") == "TEXT" and draft.header and texts:
        item["header"] = {"format": "TEXT", "text": texts[0]}
    body_place = 1 if draft.header and texts else 0
    if render_body(draft) and len(texts) > body_place:
        item["text"] = texts[body_place]
    cards = [dict(card) for card in item.get("cards", ())]
    for card, texts_of_card, values in zip(cards, draft.cards or (), parameters.cards, strict=False):
        card["text"] = " · ".join(values.body) if values.body else text_of(texts_of_card.body)
    return {**item, "cards": cards} if cards else item
