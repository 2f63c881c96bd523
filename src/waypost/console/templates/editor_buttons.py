"""Actions of the editor that add, remove and move buttons and cards, and keep the template consistent."""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from waypost.console.templates.draft_text import MAX_BUTTONS, MAX_CARDS, CardContent, EditorContent, Texts
from waypost.domain.templates.buttons import BUTTON_KINDS, ButtonKind
from waypost.domain.templates.types import ADDED_BUTTON_TYPES

_ACTION: Final = re.compile(
    r"(add|remove|up|down)-(?:card-(?P<card>\d{1,2})-)?(?P<element>button|card)(?:-(?P<index>\d{1,2}))?"
)
_OFFSETS: Final = {"up": -1, "down": 1}
_MIN_CARDS: Final = 2

Element = TypeVar("Element")


def apply_action(content: EditorContent, action: str, form: Mapping[str, str]) -> None:
    """Apply an action of the editor; unknown actions do nothing.

    Args:
        content: is changed.
        action: such as `up-card-1-button-0`.
        form: the form, for the kind of a new button.
    """
    match = _ACTION.fullmatch(action)
    if match is None:
        return
    verb, card, element = match[1], match["card"], match["element"]
    index = int(match["index"] or 0)
    if card is not None and int(card) >= len(content.cards):
        return
    buttons = content.buttons if card is None else content.cards[int(card)].buttons
    if element == "card":
        _change(content.cards, verb, index, lambda: _next_card(content), MAX_CARDS)
    else:
        prefix = "" if card is None else f"card-{card}-"
        kind = form.get(f"{prefix}new-button-kind", "")
        _change(buttons, verb, index, lambda: new_button(kind), MAX_BUTTONS)


def normalize(content: EditorContent) -> None:
    """Add what the type and category require, and remove buttons that they do not allow."""
    kind = content.texts.get("templateType", "")
    content.buttons = [button for button in content.buttons if _is_allowed(button, content, kind)]
    if content.is_code and not content.buttons and not content.edited_id:
        content.buttons = [new_button(ButtonKind.OTP)]
    if content.is_carousel and not content.edited_id and not content.cards:
        content.cards = [_next_card(content) for _ in range(_MIN_CARDS)]


def new_button(kind: str) -> Texts:
    """Return a new button of a kind; a quick reply if the kind is unknown."""
    button_kind = ButtonKind[kind] if kind in ButtonKind.__members__ else ButtonKind.QUICK_REPLY
    return {"type": button_kind.value, **BUTTON_KINDS[button_kind].initial}


def _next_card(content: EditorContent) -> CardContent:
    """Return an empty card with the layout of the first one: all cards must have the same layout."""
    if not content.cards:
        return CardContent({"headerType": "IMAGE"}, {}, [new_button(ButtonKind.QUICK_REPLY)])
    first = content.cards[0]
    buttons = [new_button(button["type"]) for button in first.buttons]
    return CardContent({"headerType": first.texts.get("headerType", "IMAGE")}, {}, buttons)


def _change(items: list[Element], verb: str, index: int, make: Callable[[], Element], max_count: int) -> None:
    if verb == "add":
        if len(items) < max_count:
            items.append(make())
    elif index < len(items):
        if verb == "remove":
            del items[index]
        else:
            to = index + _OFFSETS[verb]
            if 0 <= to < len(items):
                items[index], items[to] = items[to], items[index]


def _is_allowed(button: Texts, content: EditorContent, kind: str) -> bool:
    button_kind = ButtonKind(button["type"])
    if button_kind is ButtonKind.OTP:
        return content.is_code
    return ADDED_BUTTON_TYPES.get(button_kind, kind) == kind
