"""Texts of templates: their variables, and what rules are about: emoji, markup, line breaks, number of words."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
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


@lru_cache(maxsize=4096)
def plan_text(text: str) -> TextPlan:
    """Split a text at its variables; remembered, because a template's texts are filled for each message."""
    segments = VARIABLE.split(text)
    segments[1::2] = [name.strip() for name in segments[1::2]]
    names = dict.fromkeys(segments[1::2])
    numbers = sorted((name for name in names if name.isascii() and name.isdigit()), key=int)
    return TextPlan(tuple(segments), (*numbers, *(name for name in names if name not in numbers)))


def variables(text: str) -> list[str]:
    """Return the distinct variables of a text: numbers in order, then names by first appearance."""
    return list(plan_text(text).names)


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


_EMOJI_RANGES: Final = (  # Source: Unicode, emoji-data.txt; characters that are pictures without a selector
    "231A-231B 23CF 23E9-23FA 2600-2604 260E 2611 2614-2615 2618 261D 2620 2622-2623 2626 262A 262E-262F 2638-263A "
    "2640 2642 2648-2653 265F-2660 2663 2665-2666 2668 267B 267E-267F 2692-2697 2699 269B-269C 26A0-26A1 26A7 "
    "26AA-26AB 26B0-26B1 26BD-26BE 26C4-26C5 26C8 26CE-26CF 26D1 26D3-26D4 26E9-26EA 26F0-26F5 26F7-26FA 26FD 2702 "
    "2705 2708-270D 270F 2712 2714 2716 271D 2721 2728 2733-2734 2744 2747 274C 274E 2753-2755 2757 2763-2764 "
    "2795-2797 27A1 27B0 27BF 2B05-2B07 2B1B-2B1C 2B50 2B55 1F000-1FAFF"
)
_EMOJI_SELECTORS: Final = (0xFE0F, 0x20E3)
"""What makes a picture of the character before it."""


def _read_ranges(ranges: str) -> frozenset[int]:
    ends = (item.partition("-") for item in ranges.split())
    return frozenset(code for low, _, high in ends for code in range(int(low, 16), int(high or low, 16) + 1))


_EMOJI: Final = _read_ranges(_EMOJI_RANGES) | frozenset(_EMOJI_SELECTORS)
_MARKUP: Final = re.compile(
    "|".join(rf"(?<![^\W_])[{mark}](?!\s)[^{mark}\n]+(?<!\s)[{mark}](?![^\W_])" for mark in "*_~") + "|```"
)
_BREAKS: Final = frozenset("\t\n\v\f\r\x85\u2028\u2029")


def has_emoji(text: str) -> bool:
    """True if a text has an emoji; a sign such as © is one only before a selector."""
    return not _EMOJI.isdisjoint(map(ord, text))


def has_markup(text: str) -> bool:
    """True if the phone would show part of a text as bold, italic, struck through or typewritten. Source: facts 2.4."""
    return _MARKUP.search(text) is not None


def has_breaks(text: str) -> bool:
    """True if a text has line breaks or tabs."""
    return not _BREAKS.isdisjoint(text)


_INVISIBLE: Final = dict.fromkeys(
    [0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065), 0xFEFF]
)
_SCRIPTS: Final = (  # written without spaces; Source: facts 2.4
    #  first    last     characters of a word
    (0x0E00, 0x0EFF, 7),  # Thai, Lao
    (0x1000, 0x109F, 7),  # Burmese
    (0x1780, 0x17FF, 7),  # Khmer
    (0x3005, 0x3007, 1),
    (0x3040, 0x30FF, 1),  # Japanese
    (0x31F0, 0x31FF, 1),
    (0x3400, 0x4DBF, 1),  # Chinese, as the following
    (0x4E00, 0x9FFF, 1),
    (0xF900, 0xFAFF, 1),
    (0xFF66, 0xFF9F, 1),
    (0x20000, 0x3FFFF, 1),
)


_VARIABLE_MARK: Final = "\0"


def _word_chars(char: str) -> int:
    """Return how many characters of its script are a word; 0: its script has spaces, -1: no letter, -2: a variable."""
    code = ord(char)
    for first, last, count in _SCRIPTS:
        if first <= code <= last:
            return count
    return 0 if char.isalnum() or char == "_" else -2 if char == _VARIABLE_MARK else -1


def count_words(text: str) -> int:
    """Return the number of words of a text beside its variables.

    Words are separated by spaces. Of a token with variables, or with characters of a script that is written without
    spaces, these characters and the other letters count.

    Source: facts 2.4, "Too many variables".
    """
    words, unspaced = 0, 0
    for token in VARIABLE.sub(_VARIABLE_MARK, text).translate(_INVISIBLE).split():
        runs = [(chars, sum(1 for _ in run)) for chars, run in groupby(token, _word_chars)]
        if all(chars in (0, -1) for chars, _ in runs):
            words += 1
            continue
        words += sum(length if chars == 1 else 1 for chars, length in runs if chars in (0, 1))
        unspaced += sum(length for chars, length in runs if chars > 1)
    return words + math.ceil(unspaced / 7)
