"""Texts with variables: finding them, and filling them in."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import objects_in, text_or_none

VARIABLE: Final = re.compile(r"\{\{([^{}]*)\}\}")


@dataclass(frozen=True)
class TextPlan:
    """A text cut at its variables: literal, name, literal, name, … literal.

    `names` are the different variables: numbers in their order, then names as they appear.
    """

    pieces: tuple[str, ...]
    names: tuple[str, ...]

    def fill(self, values: Mapping[str, str]) -> str:
        """The text with a value in the place of each variable; there must be one for each."""
        if not self.names:
            return self.pieces[0]
        pieces = list(self.pieces)
        for place in range(1, len(pieces), 2):
            pieces[place] = values[pieces[place]]
        return "".join(pieces)


def plan_text(text: str) -> TextPlan:
    """Cut a text at its variables."""
    pieces = VARIABLE.split(text)
    pieces[1::2] = [name.strip() for name in pieces[1::2]]
    return TextPlan(tuple(pieces), tuple(sorted(dict.fromkeys(pieces[1::2]), key=_by_number)))


def variables(text: str) -> list[str]:
    """The different variables of a text: numbers in their order, then names as they appear."""
    return list(plan_text(text).names)


def without_variables(text: str) -> str:
    """The text with a space in the place of each variable."""
    return VARIABLE.sub(" ", text)


def texts_of(components: Iterable[dict[str, Any]]) -> list[str]:
    """The texts of components, and of the cards among them."""
    texts: list[str] = []
    for component in components:
        texts.append(text_or_none(component.get("text")) or "")
        for card in objects_in(component.get("cards")):
            texts += texts_of(objects_in(card.get("components")))
    return texts


def says_any(texts: Iterable[str], words: Iterable[str]) -> bool:
    """Whether one of the words is in one of the texts, in capitals or not."""
    whole = "\n".join(texts).casefold()
    return any(word.casefold() in whole for word in words)


def _by_number(name: str) -> tuple[int, int]:
    return (0, int(name)) if name.isascii() and name.isdigit() else (1, 0)
