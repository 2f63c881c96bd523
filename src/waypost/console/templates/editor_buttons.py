"""What the editor's buttons do to what is written: add, remove and move buttons and cards, and keep it coherent."""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from waypost.console.templates.draft_text import MOST_BUTTONS, MOST_CARDS, CardWriting, Texts, Writing
from waypost.domain.templates.buttons import BUTTON_KINDS, ButtonKind
from waypost.domain.templates.types import ADDED_BY

_DEED: Final = re.compile(r"(add|remove|up|down)-(?:card-(?P<of>\d{1,2})-)?(?P<what>button|card)(?:-(?P<at>\d{1,2}))?")
_STEP: Final = {"up": -1, "down": 1}
_LEAST_CARDS: Final = 2

One = TypeVar("One")


def shape(writing: Writing, deed: str, given: Mapping[str, str]) -> None:
    """Do what a button of the editor says; a word that is none of its does nothing.

    Args:
        writing: is changed.
        deed: such as `up-card-1-button-0`.
        given: the form, for the kind of a new button.
    """
    found = _DEED.fullmatch(deed)
    if found is None:
        return
    verb, of, what = found[1], found["of"], found["what"]
    at = int(found["at"] or 0)
    if of is not None and int(of) >= len(writing.cards):
        return
    buttons = writing.buttons if of is None else writing.cards[int(of)].buttons
    if what == "card":
        _change(writing.cards, verb, at, lambda: _next_card(writing), MOST_CARDS)
    else:
        prefix = "" if of is None else f"card-{of}-"
        kind = given.get(f"{prefix}new-button-kind", "")
        _change(buttons, verb, at, lambda: new_button(kind), MOST_BUTTONS)


def settle(writing: Writing) -> None:
    """Bring along what a type or a category needs, and drop the buttons that it cannot have."""
    kind = writing.texts.get("templateType", "")
    writing.buttons = [one for one in writing.buttons if _fits(one, writing, kind)]
    if writing.is_code and not writing.buttons and not writing.edits:
        writing.buttons = [new_button(ButtonKind.OTP)]
    if writing.is_carousel and not writing.edits and not writing.cards:
        writing.cards = [_next_card(writing) for _ in range(_LEAST_CARDS)]


def new_button(kind: str) -> Texts:
    """A button of a kind, at its beginning; a quick reply where the word is no kind."""
    known = ButtonKind[kind] if kind in ButtonKind.__members__ else ButtonKind.QUICK_REPLY
    return {"type": known.value, **BUTTON_KINDS[known].initial}


def _next_card(writing: Writing) -> CardWriting:
    """A card like the first one, as all have to be alike, with nothing written on it yet."""
    if not writing.cards:
        return CardWriting({"headerType": "IMAGE"}, {}, [new_button(ButtonKind.QUICK_REPLY)])
    first = writing.cards[0]
    kinds = [new_button(one["type"]) for one in first.buttons]
    return CardWriting({"headerType": first.texts.get("headerType", "IMAGE")}, {}, kinds)


def _change(items: list[One], verb: str, at: int, make: Callable[[], One], most: int) -> None:
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
    of = ButtonKind(button["type"])
    if of is ButtonKind.OTP:
        return writing.is_code
    return ADDED_BY.get(of, kind) == kind
