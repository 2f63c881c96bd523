"""Free-form messages: a table of kinds, the content each requires, and its rendering on the phone."""

import re
from collections.abc import Callable
from typing import Any, Final

from waypost.base.json_values import list_of, list_or_none, number_or_none, object_or_none, objects_in, text_or_none
from waypost.simulator.apis.errors import GraphApiError, bad_parameter, message_error
from waypost.simulator.apis.parameters import is_missing
from waypost.simulator.media.references import KnownReferences, render_media
from waypost.simulator.messages.interactive import render_interactive
from waypost.simulator.state.script_steps import RenderedMessage

_MAX_TEXT_CHARS: Final = 4096  # Source: facts 4.1
_MAX_CAPTION_CHARS: Final = 1024  # Source: facts 4.1
_MAX_CONTACTS: Final = 257  # Source: the operator's page "Contacts messages", as are the tables below
# fmt: off
_CONTACT_LISTS: Final = {  # member of a contact, and the texts that each of its objects may have
    "phones":    ("phone", "type", "wa_id"),
    "emails":    ("email", "type"),
    "urls":      ("url", "type"),
    "addresses": ("street", "city", "state", "zip", "country", "country_code", "type"),
}
_CONTACT_OBJECTS: Final = {
    "name": ("formatted_name", "first_name", "last_name", "middle_name", "prefix", "suffix"),
    "org":  ("company", "department", "title"),
}
# fmt: on
_DATE: Final = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])")
_CAPTIONED: Final = ("image", "video", "document")  # Source: facts 4.1


def _too_long_error(path: str, max_chars: int) -> GraphApiError:
    return bad_parameter(f"Param {path} must be at most {max_chars} characters long.")


def _text(content: dict[str, Any], _references: KnownReferences | None) -> RenderedMessage:
    body = text_or_none(content.get("body"))
    if not body or body.isspace():
        raise is_missing("text['body']")
    if len(body) > _MAX_TEXT_CHARS:
        raise _too_long_error("text['body']", _MAX_TEXT_CHARS)
    return {"text": body} | ({"preview_url": True} if content.get("preview_url") is True else {})


def _media(kind: str) -> Callable[[dict[str, Any], KnownReferences | None], RenderedMessage]:
    def render(content: dict[str, Any], known: KnownReferences | None) -> RenderedMessage:
        media = render_media(kind, content, known)
        caption = text_or_none(content.get("caption")) or ""
        if caption and kind not in _CAPTIONED:
            raise bad_parameter(f"Param {kind} has no caption.")
        if len(caption) > _MAX_CAPTION_CHARS:
            raise _too_long_error(f"{kind}['caption']", _MAX_CAPTION_CHARS)
        return {"text": caption, "media": {"kind": kind, **media}}

    return render


def _location(content: dict[str, Any], _references: KnownReferences | None) -> RenderedMessage:
    for name, at_most in (("latitude", 90), ("longitude", 180)):
        degrees = number_or_none(content.get(name))
        if degrees is None:
            raise is_missing(f"location['{name}']")
        if not -at_most <= degrees <= at_most:
            raise bad_parameter(f"Param location['{name}'] is beyond {at_most} degrees.")
    for name in ("name", "address"):
        if content.get(name) is not None and not isinstance(content[name], str):
            raise bad_parameter(f"Param location['{name}'] must be a string.")
    text = ", ".join(content[name] for name in ("name", "address") if content.get(name))
    return {"text": text, "location": content}


def _contacts(content: list[Any], _references: KnownReferences | None) -> RenderedMessage:
    if len(content) > _MAX_CONTACTS:
        raise bad_parameter(f"Param contacts must have at most {_MAX_CONTACTS} entries.")
    cards = objects_in(content)
    names = [(object_or_none(card.get("name")) or {}).get("formatted_name") for card in cards]
    if not cards or len(cards) < len(content) or not all(isinstance(name, str) and name for name in names):
        raise is_missing("contacts[0]['name']['formatted_name']")
    for index, card in enumerate(cards):
        if defect := find_contact_defect(card):
            path, rule = defect
            raise bad_parameter(f"Param contacts[{index}]{''.join(f'[{part!r}]' for part in path)} {rule}.")
    return {"text": ", ".join(map(str, names)), "contacts": content}


def find_contact_defect(card: dict[str, Any]) -> tuple[tuple[str | int, ...], str] | None:
    """Return the path and the rule of the first documented member of a contact card that has another type."""
    for name, members in _CONTACT_LISTS.items():
        if card.get(name) is not None and list_or_none(card[name]) is None:
            return (name,), "must be an array"
        for index, entry in enumerate(list_of(card.get(name))):
            if defect := _find_text_defect((name, index), entry, members):
                return defect
    for name, members in _CONTACT_OBJECTS.items():
        if card.get(name) is not None and (defect := _find_text_defect((name,), card[name], members)):
            return defect
    birthday = card.get("birthday")
    if birthday is not None and not _DATE.fullmatch(text_or_none(birthday) or ""):
        return ("birthday",), "must have the form YYYY-MM-DD"
    return None


def _find_text_defect(
    path: tuple[str | int, ...], value: Any, members: tuple[str, ...]
) -> tuple[tuple[str | int, ...], str] | None:
    fields = object_or_none(value)
    if fields is None:
        return path, "must be an object"
    wrong = (name for name in members if not isinstance(fields.get(name), str | None))
    return next((((*path, name), "must be a string") for name in wrong), None)


def _reaction(content: dict[str, Any], _references: KnownReferences | None) -> RenderedMessage:
    if not text_or_none(content.get("message_id")):
        raise is_missing("reaction['message_id']")
    emoji = text_or_none(content.get("emoji"))
    if emoji is None:
        raise is_missing("reaction['emoji']")
    if emoji and not _SINGLE_EMOJI.fullmatch(emoji):
        raise message_error(131009, "reaction['emoji'] must be one emoji, or empty to remove the reaction")
    return {"text": content["emoji"], "reaction": content}


# fmt: off
FREE_FORM_KINDS: Final[dict[str, Callable[[Any, KnownReferences | None], RenderedMessage]]] = {  # Source: facts 4.1
    "text":        _text,
    "image":       _media("image"),
    "video":       _media("video"),
    "audio":       _media("audio"),
    "document":    _media("document"),
    "sticker":     _media("sticker"),
    "location":    _location,
    "contacts":    _contacts,
    "reaction":    _reaction,
    "interactive": render_interactive,
}
# fmt: on


def render_message(kind: str, content: Any, references: KnownReferences | None) -> RenderedMessage:
    """Check a free-form message, and return it as the phone will show it.

    Returns:
        `text` (body or caption), and the member of the kind: `media` (`kind`, `id` or `link`, …), `location`,
        `contacts`, `reaction`, or the result of `render_interactive`.

    Raises:
        GraphApiError: 100 for a missing or too long member, 131053 for unknown media.
    """
    checked_content = list_or_none(content) if kind == "contacts" else object_or_none(content)
    if checked_content is None:
        raise is_missing(kind)
    return FREE_FORM_KINDS[kind](checked_content, references)


_PICTURE: Final = "[\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff\u2600-\u27bf\u2b00-\u2bff]"
"""Characters that are emoji by default, without flags and skin tones."""
_SIGN: Final = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23fa\u24c2\u25aa-\u25fe\u2934"
    "\u2935\u3030\u303d\u3297\u3299]"
)
"""Characters that may be shown as emoji."""
_ELEMENT: Final = f"(?:{_PICTURE}|{_SIGN})(?:\ufe0f?[\U0001f3fb-\U0001f3ff]?)[\U000e0020-\U000e007f]*"
_FLAG: Final = "[\U0001f1e6-\U0001f1ff]{2}"
_KEYCAP: Final = "[0-9#*]\ufe0f?\u20e3"
# Source: Unicode, emoji sequences
_SINGLE_EMOJI: Final = re.compile(f"{_ELEMENT}(?:\u200d{_ELEMENT})*|{_FLAG}|{_KEYCAP}")
