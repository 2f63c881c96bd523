"""Actions of the editor that add, remove and move buttons and cards, and keep the template consistent."""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from waypost.console.templates.draft_text import MOST_BUTTONS, MOST_CARDS, CardWriting, Texts, Writing
from waypost.domain.templates.buttons import BUTTON_KINDS, ButtonKind
from waypost.domain.templates.types import ADDED_BY

_DEED: Final = re.compile(
    r"(add|remove|up|down)-(?:card-(?P<card>\d{1,2})-)?(?P<element>button|card)(?:-(?P<index>\d{1,2}))?"
)
_STEP: Final = {"up": -1, "down": 1}
_LEAST_CARDS: Final = 2

Element = TypeVar("Element")


def shape(writing: Writing, deed: str, given: Mapping[str, str]) -> None:
    """Apply an action of the editor; unknown actions do nothing.

    Args:
        writing: is changed.
        deed: such as `up-card-1-button-0`.
        given: the form, for the kind of a new button.
    """
    match = _DEED.fullmatch(deed)
    if match is None:
        return
    verb, card, element = match[1], match["card"], match["element"]
    index = int(match["index"] or 0)
    if card is not None and int(card) >= len(writing.cards):
        return
    buttons = writing.buttons if card is None else writing.cards[int(card)].buttons
    if element == "card":
        _change(writing.cards, verb, index, lambda: _next_card(writing), MOST_CARDS)
    else:
        prefix = "" if card is None else f"card-{card}-"
        kind = given.get(f"{prefix}new-button-kind", "")
        _change(buttons, verb, index, lambda: new_button(kind), MOST_BUTTONS)


def settle(writing: Writing) -> None:
    """Add what the type and category require, and remove buttons that they do not allow."""
    kind = writing.texts.get("templateType", "")
    writing.buttons = [button for button in writing.buttons if _fits(button, writing, kind)]
    if writing.is_code and not writing.buttons and not writing.edits:
        writing.buttons = [new_button(ButtonKind.OTP)]
    if writing.is_carousel and not writing.edits and not writing.cards:
        writing.cards = [_next_card(writing) for _ in range(_LEAST_CARDS)]


def new_button(kind: str) -> Texts:
    """Return a new button of a kind; a quick reply if the kind is unknown."""
    button_kind = ButtonKind[kind] if kind in ButtonKind.__members__ else ButtonKind.QUICK_REPLY
    return {"type": button_kind.value, **BUTTON_KINDS[button_kind].initial}


def _next_card(writing: Writing) -> CardWriting:
    """Return an empty card with the layout of the first one: all cards must have the same layout."""
    if not writing.cards:
        return CardWriting({"headerType": "IMAGE"}, {}, [new_button(ButtonKind.QUICK_REPLY)])
    first = writing.cards[0]
    buttons = [new_button(button["type"]) for button in first.buttons]
    return CardWriting({"headerType": first.texts.get("headerType", "IMAGE")}, {}, buttons)


def _change(items: list[Element], verb: str, at: int, make: Callable[[], Element], most: int) -> None:
    if verb == "add":
        if len(items) < most:
            items.append(make())
    elif at < len(items):
        if verb == "remove":
            del items[at]
        else:
            to = at + _STEP[verb]
            if 0 <= to < len(items):
                items[at], items[to] = items[to], items[at]


def _fits(button: Texts, writing: Writing, kind: str) -> bool:
    button_kind = ButtonKind(button["type"])
    if button_kind is ButtonKind.OTP:
        return writing.is_code
    return ADDED_BY.get(button_kind, kind) == kind
