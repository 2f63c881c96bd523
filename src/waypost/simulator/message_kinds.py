"""Free-form messages: a table of kinds, what each must carry, and what the phone shows of it."""

from collections.abc import Callable
from typing import Any, Final

from waypost.simulator.errors import GraphRefused, bad_parameter
from waypost.simulator.loose import a_list, a_text, an_object, objects
from waypost.simulator.template_sends import Shown

_TEXT_AT_MOST: Final = 4096  # Source: facts 4.1
_CAPTION_AT_MOST: Final = 1024  # Source: facts 4.1


def _missing(path: str) -> GraphRefused:
    return bad_parameter(f"The parameter {path} is required.")


def _too_long(path: str, at_most: int) -> GraphRefused:
    return bad_parameter(f"Param {path} must be at most {at_most} characters long.")


def _text(content: dict[str, Any]) -> Shown:
    body = a_text(content.get("body"))
    if not body:
        raise _missing("text['body']")
    if len(body) > _TEXT_AT_MOST:
        raise _too_long("text['body']", _TEXT_AT_MOST)
    return {"text": body}


def _media(kind: str) -> Callable[[dict[str, Any]], Shown]:
    def shown(content: dict[str, Any]) -> Shown:
        sources = [name for name in ("id", "link") if a_text(content.get(name))]
        if len(sources) != 1:
            raise bad_parameter(f"Param {kind} must have exactly one of ['id'] and ['link'].")
        caption = a_text(content.get("caption")) or ""
        if len(caption) > _CAPTION_AT_MOST:
            raise _too_long(f"{kind}['caption']", _CAPTION_AT_MOST)
        return {"text": caption, "media": {"kind": kind, **content}}

    return shown


def _location(content: dict[str, Any]) -> Shown:
    for name in ("latitude", "longitude"):
        try:
            float(content[name])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise _missing(f"location['{name}']") from error
    place = ", ".join(str(content[name]) for name in ("name", "address") if content.get(name))
    return {"text": place, "location": content}


def _contacts(content: list[Any]) -> Shown:
    cards = objects(content)
    names = [(an_object(card.get("name")) or {}).get("formatted_name") for card in cards]
    if not cards or not all(isinstance(name, str) and name for name in names):
        raise _missing("contacts[0]['name']['formatted_name']")
    return {"text": ", ".join(map(str, names)), "contacts": content}


def _reaction(content: dict[str, Any]) -> Shown:
    if not a_text(content.get("message_id")):
        raise _missing("reaction['message_id']")
    if not isinstance(content.get("emoji"), str):
        raise _missing("reaction['emoji']")
    return {"text": content["emoji"], "reaction": content}


def _interactive(content: dict[str, Any]) -> Shown:
    action = an_object(content.get("action"))
    if not a_text(content.get("type")):
        raise _missing("interactive['type']")
    if action is None:
        raise _missing("interactive['action']")
    body = an_object(content.get("body")) or {}
    shown: Shown = {"text": a_text(body.get("text")) or "", "interactive": content}
    buttons = _reply_buttons(action) + _list_rows(action)
    if content["type"] in ("button", "list") and not buttons:
        raise _missing("interactive['action']['buttons' or 'sections']")
    if buttons:
        shown["buttons"] = [{"index": place, **button} for place, button in enumerate(buttons)]
    return shown


def _reply_buttons(action: dict[str, Any]) -> list[dict[str, Any]]:
    replies = [an_object(button.get("reply")) or {} for button in objects(action.get("buttons"))]
    if not all(a_text(reply.get("id")) and a_text(reply.get("title")) for reply in replies):
        raise _missing("interactive['action']['buttons'][0]['reply']['id' and 'title']")
    return [{"type": "REPLY", "text": reply["title"], "payload": reply["id"]} for reply in replies]


def _list_rows(action: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [
        row for section in objects(action.get("sections")) for row in objects(section.get("rows"))
    ]
    if not all(a_text(row.get("id")) and a_text(row.get("title")) for row in rows):
        raise _missing("interactive['action']['sections'][0]['rows'][0]['id' and 'title']")
    return [
        {"type": "LIST_ROW", "text": row["title"], "payload": row["id"]}
        | ({"description": row["description"]} if row.get("description") else {})
        for row in rows
    ]


# fmt: off
KINDS: Final[dict[str, Callable[[Any], Shown]]] = {  # Source: facts 4.1
    "text":        _text,
    "image":       _media("image"),
    "video":       _media("video"),
    "audio":       _media("audio"),
    "document":    _media("document"),
    "sticker":     _media("sticker"),
    "location":    _location,
    "contacts":    _contacts,
    "reaction":    _reaction,
    "interactive": _interactive,
}
# fmt: on


def shown_message(kind: str, content: Any) -> Shown:
    """Check a free-form message and say what the phone will show.

    Args:
        kind: a row of `KINDS`.
        content: the member of the request that bears the kind's name.

    Raises:
        GraphRefused: code 100, for what is missing or too long.
    """
    readable = a_list(content) if kind == "contacts" else an_object(content)
    if readable is None:
        raise _missing(kind)
    return KINDS[kind](readable)
