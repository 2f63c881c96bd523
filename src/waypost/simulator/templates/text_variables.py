"""Texts with variables: parsing and filling."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import objects_in, text_or_none

VARIABLE: Final = re.compile(r"\{\{([^{}]*)\}\}")


@dataclass(frozen=True)
class TextPlan:
    """A text split at its variables: literal, name, literal, name, … literal.

    `names` are the distinct variables: numbers in order, then names by first appearance.
    """

    segments: tuple[str, ...]
    names: tuple[str, ...]

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the text with each variable replaced by its value; every variable must have one."""
        if not self.names:
            return self.segments[0]
        segments = list(self.segments)
        for index in range(1, len(segments), 2):
            segments[index] = values[segments[index]]
        return "".join(segments)


def plan_text(text: str) -> TextPlan:
    """Split a text at its variables."""
    segments = VARIABLE.split(text)
    segments[1::2] = [name.strip() for name in segments[1::2]]
    return TextPlan(tuple(segments), tuple(sorted(dict.fromkeys(segments[1::2]), key=_variable_order)))


def variables(text: str) -> list[str]:
    """Return the distinct variables of a text: numbers in order, then names by first appearance."""
    return list(plan_text(text).names)


def strip_variables(text: str) -> str:
    """Return the text with each variable replaced by a space."""
    return VARIABLE.sub(" ", text)


def component_texts(components: Iterable[dict[str, Any]]) -> list[str]:
    """Return the texts of components, and of the cards among them."""
    texts: list[str] = []
    for component in components:
        texts.append(text_or_none(component.get("text")) or "")
        for card in objects_in(component.get("cards")):
            texts += component_texts(objects_in(card.get("components")))
    return texts


def contains_any(texts: Iterable[str], phrases: Iterable[str]) -> bool:
    """True if one of the texts contains one of the phrases, ignoring case."""
    joined_texts = "\n".join(texts).casefold()
    return any(phrase.casefold() in joined_texts for phrase in phrases)


def _variable_order(name: str) -> tuple[int, int]:
    return (0, int(name)) if name.isascii() and name.isdigit() else (1, 0)
