"""The `{{1}}` variables of a template's texts: finding them, reading their examples."""

import re
from typing import Final

_VARIABLE: Final = re.compile(r"\{\{([^{}]*)\}\}")


def variables(text: str | None) -> list[str]:
    """The names of the variables in the order they stand, repeats included."""
    return _VARIABLE.findall(text or "")


def variable_count(text: str | None) -> int:
    """How many parameters the text takes; a variable used twice takes one."""
    return len(set(variables(text)))


def without_variables(text: str) -> list[str]:
    """What stands before, between and behind the variables: one piece more than there are variables."""
    return _VARIABLE.split(text)[0::2]


def has_unfinished(text: str) -> bool:
    """Whether two braces open or close without a variable."""
    return any("{{" in piece or "}}" in piece for piece in without_variables(text))


def named_examples(text: str, example: str) -> dict[str, str] | None:
    """The value of each variable that turns the text into its example, or None when they do not fit together.

    The API takes the example as the filled text; the operator wants the values. Values may stand
    in square brackets (`Hi [Anil]`), which are taken away.

    Source: facts 3.1, `example`; operator's facts 12, "content + example".
    """
    names = variables(text)
    first, *pieces = without_variables(text)
    if not example.startswith(first):
        return None
    values: dict[str, str] = {}
    at = len(first)
    for left, name, piece in zip(range(len(names), 0, -1), names, pieces, strict=True):
        is_last = left == 1
        # The nearest place serves: what stands between is at least one character. No regular
        # expression, whose time would explode on a hostile example.
        end = len(example) - len(piece) if is_last else example.find(piece, at + 1)
        if end <= at or not example.startswith(piece, end):
            return None
        values.setdefault(name, _unbracketed(example[at:end]))
        at = end + len(piece)
    return values if at == len(example) else None


def example_values(text: str, example: str) -> list[str] | None:
    """The values of an example, of {{1}} first, or None when it does not fit; names in the order they stand."""
    values = named_examples(text, example)
    if values is None:
        return None
    return [values[name] for name in sorted(values, key=_number)]


def _number(name: str) -> int:
    return int(name) if name.isascii() and name.isdecimal() and len(name) < 5 else 0


def _unbracketed(value: str) -> str:
    return value[1:-1] if len(value) > 2 and value[0] == "[" and value[-1] == "]" else value
