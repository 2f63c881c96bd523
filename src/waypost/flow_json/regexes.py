"""Read the regular expression of a `pattern` without running it: a handset does, with its author's own pace."""

from typing import Final

_QUANTIFIERS: Final = "*+?"
_GROUPS: Final = ("?:", "?=", "?!", "?<=", "?<!")


def is_regex(text: str) -> bool:
    """Return True if a text is a regular expression by its parentheses, classes and quantifiers.

    It never compiles or matches it: a catastrophic pattern takes no longer than its length. What it cannot judge, such
    as the name of a Unicode property, it accepts.
    """
    at, depth, repeatable = 0, 0, False
    while at < len(text):
        character = text[at]
        if character == "\\":
            if at + 1 == len(text):
                return False
            at, repeatable = at + 2, True
            continue
        if character == "[":
            at = _class_end(text, at + 1)
            if at < 0:
                return False
            repeatable = True
        elif character == "(":
            kind = _group_length(text, at + 1)
            if kind < 0:
                return False
            at, depth, repeatable = at + kind, depth + 1, False
        elif character == ")":
            depth, repeatable = depth - 1, True
            if depth < 0:
                return False
        elif character in _QUANTIFIERS:
            if not repeatable:
                return False
            at, repeatable = at + (text[at + 1 : at + 2] == "?"), False
        else:
            repeatable = character not in "|^"
        at += 1
    return depth == 0


def _class_end(text: str, at: int) -> int:
    """Return where a class of characters ends; -1 if it does not."""
    while at < len(text):
        if text[at] == "]":
            return at
        at += 2 if text[at] == "\\" else 1
    return -1


def _group_length(text: str, at: int) -> int:
    """Return how many characters say what kind of group follows; -1 if there is no such kind."""
    if text[at : at + 1] != "?":
        return 0
    plain = next((one for one in _GROUPS if text.startswith(one, at)), None)
    if plain is not None:
        return len(plain)
    end = text.find(">", at, at + 100)
    return end + 1 - at if text.startswith("?<", at) and end > 0 else -1
