"""Session messages to what the operator's request body holds beside the recipient."""

from collections.abc import Mapping
from typing import Any

from waypost.domain.message import (
    MediaRef,
    Place,
    SessionContacts,
    SessionList,
    SessionLocation,
    SessionLocationRequest,
    SessionMedia,
    SessionProducts,
    SessionQuickReply,
    SessionText,
    SessionUrlButton,
)
from waypost.domain.postback import reply_id_of

Body = dict[str, Any]
SessionContent = (
    SessionText
    | SessionMedia
    | SessionLocation
    | SessionContacts
    | SessionList
    | SessionQuickReply
    | SessionProducts
    | SessionUrlButton
    | SessionLocationRequest
)


def session_body(content: SessionContent, message_id: str, copies: Mapping[str, str]) -> Body:
    """The members `type` and the one that the type names.

    Args:
        content: what the message says.
        message_id: ours; choices refer to it.
        copies: the operator's media ids by ours.

    Source: operator's facts 4.1.
    """
    match content:
        case SessionText():
            kind: str = "text"
            body: Any = {"body": content.text, "preview_url": content.preview_url}
        case SessionMedia():
            kind = content.kind.value
            body = medium(content.media, copies, content.file_name if kind == "document" else "")
            if content.caption and kind in ("image", "video", "document"):
                body["caption"] = content.caption
        case SessionLocation():
            kind, body = "location", location(content.place)
        case SessionContacts():
            kind, body = "contacts", content.contacts
        case SessionList():
            kind, body = "interactive", _list(content, message_id)
        case SessionQuickReply():
            kind, body = "interactive", _quick_reply(content, message_id, copies)
        case SessionProducts():
            kind, body = "interactive", _products(content)
        case SessionUrlButton():
            kind, body = "interactive", _url_button(content, copies)
        case SessionLocationRequest():
            action = {"name": "send_location"}
            body = _interactive("location_request_message", action, None, content.body, "")
            kind = "interactive"
    return {"type": kind, kind: body}


def medium(media: MediaRef, copies: Mapping[str, str], file_name: str = "") -> Body:
    """A medium by the operator's id, or by its address."""
    body: Body = {"link": media.link} if media.id is None else {"id": copies.get(media.id, media.id)}
    if file_name:
        body["filename"] = file_name
    return body


def location(place: Place) -> Body:
    """A place; there is no caption. Source: operator's facts 4.1: numbers."""
    body: Body = {"latitude": place.latitude, "longitude": place.longitude}
    for name, text in (("name", place.name), ("address", place.address)):
        if text:
            body[name] = text
    return body


def _text(text: str) -> Body:
    return {"text": text}


def _interactive(kind: str, action: Body, header: Body | None, body: str, footer: str) -> Body:
    made: Body = {"type": kind}
    if header:
        made["header"] = header
    if body:
        made["body"] = _text(body)
    if footer:
        made["footer"] = _text(footer)
    return made | {"action": action}


def _text_header(text: str) -> Body | None:
    return {"type": "text", "text": text} if text else None


def _list(content: SessionList, message_id: str) -> Body:
    number = 0
    sections: list[Body] = []
    for section in content.sections:
        rows: list[Body] = []
        for choice in section.choices:
            number += 1
            reply_id = reply_id_of(message_id, number, choice.postback_text)
            row: Body = {"id": reply_id, "title": choice.title}
            if choice.description:
                row["description"] = choice.description
            rows.append(row)
        made: Body = {"title": section.title} if section.title else {}
        sections.append(made | {"rows": rows})
    action: Body = {"button": content.button, "sections": sections}
    return _interactive(
        "list", action, _text_header(content.title), content.body, content.footer
    )  # fmt: skip


def _quick_reply(content: SessionQuickReply, message_id: str, copies: Mapping[str, str]) -> Body:
    header = _text_header(content.header)
    if content.media_kind is not None:
        kind = content.media_kind.value
        name = content.file_name if kind == "document" else ""
        header = {"type": kind, kind: medium(content.media, copies, name)}
    buttons: list[Body] = [
        {"type": "reply", "reply": {"id": reply_id_of(message_id, number, choice.postback_text), "title": choice.title}}
        for number, choice in enumerate(content.choices, 1)
    ]
    return _interactive("button", {"buttons": buttons}, header, content.text, content.footer)


def _products(content: SessionProducts) -> Body:
    action: Body
    match content.sub_type:
        case "product":
            action = {"catalog_id": content.catalog_id, "product_retailer_id": content.product_id}
        case "product_list":
            action = {
                "catalog_id": content.catalog_id,
                "sections": [product_section(section.title, section.product_ids) for section in content.sections],
            }
        case _:
            action = {"name": "catalog_message"}
            if content.thumbnail_id:
                thumbnail = {"thumbnail_product_retailer_id": content.thumbnail_id}
                action["parameters"] = thumbnail
    header = _text_header(content.header) if content.sub_type == "product_list" else None
    return _interactive(content.sub_type, action, header, content.body, content.footer)


def _url_button(content: SessionUrlButton, copies: Mapping[str, str]) -> Body:
    header: Body | None = None
    if content.media_kind is not None:
        kind = content.media_kind.value
        header = {"type": kind, kind: medium(content.media, copies)}
    parameters = {"display_text": content.label, "url": content.url}
    action: Body = {"name": "cta_url", "parameters": parameters}
    return _interactive("cta_url", action, header, content.body, content.footer)


def product_section(title: str, product_ids: tuple[str, ...]) -> Body:
    """A titled part of a product list."""
    made: Body = {"title": title} if title else {}
    return made | {"product_items": [{"product_retailer_id": one} for one in product_ids]}
