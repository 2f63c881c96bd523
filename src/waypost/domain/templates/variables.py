"""The texts of a template: their variables, the values in their examples, their words, emoji and formatting."""

import re
from functools import lru_cache
from typing import Final

_VARIABLE_PATTERN: Final = re.compile(r"\{\{([^{}]*)\}\}")


def variable_names(text: str | None) -> list[str]:
    """Return the names of the variables in text order, with repetitions."""
    return _VARIABLE_PATTERN.findall(text or "")


def parameter_names(text: str | None) -> list[str]:
    """Return the names of a text's variables, each once, in the order of a send's parameters."""
    return sorted(dict.fromkeys(variable_names(text)), key=_variable_number)


@lru_cache(maxsize=4096)
def variable_count(text: str | None) -> int:
    """Return the number of a text's parameters; a variable that is used twice needs one."""
    return len(set(variable_names(text)))


def split_at_variables(text: str) -> list[str]:
    """Return the text before, between and after the variables: one piece more than there are variables."""
    return _VARIABLE_PATTERN.split(text)[0::2]


def variable_context(text: str, name: str, max_chars: int) -> tuple[str, str]:
    """Return the text before and after the first use of a variable, each of at most so many characters beside it."""
    before, found, after = text.partition(f"{{{{{name}}}}}")
    if not found:
        return "", ""
    start, end = "…" if len(before) > max_chars else "", "…" if len(after) > max_chars else ""
    return start + before[-max_chars:], after[:max_chars] + end


def has_unclosed_variable(text: str) -> bool:
    """True if two braces open or close without a variable."""
    return any("{{" in piece or "}}" in piece for piece in split_at_variables(text))


def named_examples(text: str, example: str) -> dict[str, str] | None:
    """Return the value of each variable in an example; None when the example does not match the text.

    The API accepts the filled text as the example; the operator requires the values. Values may be in
    square brackets (`Hi [Anil]`), which are removed.

    Source: facts 3.1, `example`; operator's facts 12, "content + example".
    """
    names = variable_names(text)
    first, *pieces = split_at_variables(text)
    if not example.startswith(first):
        return None
    values: dict[str, str] = {}
    position = len(first)
    for left, name, piece in zip(range(len(names), 0, -1), names, pieces, strict=True):
        is_last = left == 1
        # The nearest match is used; a value has at least one character. Not a regular expression,
        # whose run time would explode on a hostile example.
        end = len(example) - len(piece) if is_last else example.find(piece, position + 1)
        if end <= position or not example.startswith(piece, end):
            return None
        value = example[position:end]
        is_bracketed = len(value) > 2 and value[0] == "[" and value[-1] == "]"
        values.setdefault(name, value[1:-1] if is_bracketed else value)
        position = end + len(piece)
    return values if position == len(example) else None


def example_values(text: str, example: str) -> list[str] | None:
    """Return the values of an example, {{1}} first, names in text order; None when it does not match."""
    values = named_examples(text, example)
    if values is None:
        return None
    return [values[name] for name in sorted(values, key=_variable_number)]


def _variable_number(name: str) -> int:
    return int(name) if name.isascii() and name.isdecimal() and len(name) < 5 else 0


EMOJI: Final = (
    r"[\U0001f000-\U0001faff\u231a\u231b\u23cf\u23e9-\u23fa\u2600-\u2604\u260e\u2611\u2614\u2615\u2618\u261d\u2620"
    r"\u2622\u2623\u2626\u262a\u262e\u262f\u2638-\u263a\u2640\u2642\u2648-\u2653\u265f\u2660\u2663\u2665\u2666\u2668"
    r"\u267b\u267e\u267f\u2692-\u2697\u2699\u269b\u269c\u26a0\u26a1\u26a7\u26aa\u26ab\u26b0\u26b1\u26bd\u26be\u26c4"
    r"\u26c5\u26c8\u26ce\u26cf\u26d1\u26d3\u26d4\u26e9\u26ea\u26f0-\u26f5\u26f7-\u26fa\u26fd\u2702\u2705\u2708-\u270d"
    r"\u270f\u2712\u2714\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763\u2764"
    r"\u2795-\u2797\u27a1\u27b0\u27bf\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u20e3\ufe0f]"
)
"""A pattern of emoji. Source: Unicode's `emoji-data.txt`; ©, ™, ↔ and the like are emoji only before U+FE0F."""

FORMATTING: Final = (
    r"(?<![^\W_])\*[^\s*](?:[^*\n]*[^\s*])?\*(?![^\W_])|(?<![^\W_])_[^\s_](?:[^_\n]*[^\s_])?_(?![^\W_])"
    r"|(?<![^\W_])~[^\s~](?:[^~\n]*[^\s~])?~(?![^\W_])|```"
)
"""A pattern of marked-up text: `*bold*`, `_italic_`, `~struck~`, and three backticks. Source: operator's facts 2.4."""

LINE_BREAKS: Final = r"[\t\n\v\f\r\x85\u2028\u2029]"
"""A pattern of line breaks and tabs."""

_INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_IDEOGRAPHIC: Final = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_UNSPACED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_IDEOGRAPH: Final = re.compile(f"[{_IDEOGRAPHIC}]")
_UNSPACED_LETTER: Final = re.compile(f"[{_UNSPACED}]")
_NO_WORD: Final = re.compile(f"[{_IDEOGRAPHIC}{_UNSPACED}\x00]+")
_UNSPACED_WORD_CHARS: Final = 7


def word_count(text: str) -> int:
    """Return the number of words of a text beside its variables, as the operator counts them.

    A word is what stands between spaces. In Chinese and Japanese each character is one; in Thai, Lao, Khmer and
    Burmese seven characters are one, over the whole text. Beside these, and beside a variable, only letters and
    digits are words. Invisible characters do not count.

    Source: operator's facts 2.4; decision 0019.
    """
    plain = _INVISIBLE.sub("", "\0".join(split_at_variables(text)))
    words = -(-len(_UNSPACED_LETTER.findall(plain)) // _UNSPACED_WORD_CHARS)
    for token in plain.split():
        others = _NO_WORD.sub(" ", token)
        words += 1 if others == token else len(_IDEOGRAPH.findall(token)) + len(re.findall(r"\w+", others))
    return words
