"""The `{{1}}` variables of a template's texts, and the values in their examples."""

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
        values.setdefault(name, _strip_brackets(example[position:end]))
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


def _strip_brackets(value: str) -> str:
    return value[1:-1] if len(value) > 2 and value[0] == "[" and value[-1] == "]" else value
