"""Fields that come in parts: `a[b][0]=x` is the JSON text `{"b":["x"]}` of the field `a`.

Many clients flatten objects in this way before they send a form. Source: the habits of real clients.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from waypost.domain.refusals import Reason, Refused

MOST_DEEP: Final = 32
Branch = dict[str, Any]
"""What a field's parts make: branches by name, texts at their ends."""

_NAME: Final = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])+)")
_encode: Final = msgspec.json.Encoder().encode


def is_part(name: str) -> bool:
    """Whether a field of this name is a part of another."""
    return _NAME.fullmatch(name) is not None


def joined(pairs: Sequence[tuple[str, str]]) -> dict[str, Branch]:
    """The fields that came in parts, by name. A name of another form is no part and is left out.

    Empty brackets count up. Where a part is given as a text and as a branch, the last counts.

    Raises:
        Refused: more than 32 parts in one name.
    """
    found: dict[str, Branch] = {}
    for name, value in pairs:
        parts = _NAME.fullmatch(name)
        if parts is None:
            continue
        path = parts[2][1:-1].split("][", MOST_DEEP)
        if len(path) > MOST_DEEP:
            raise Refused(Reason.UNREADABLE, f"The form's names must be nested at most {MOST_DEEP} deep.")
        branch = found.setdefault(parts[1], {})
        for step in path[:-1]:
            branch = _into(branch, step)
        branch[path[-1] or str(len(branch))] = value
    return found


def json_of(branch: Branch) -> str:
    """The JSON text that the parts stand for; a branch whose names are all numbers is a list."""
    return _encode(_value(branch)).decode()


def _into(branch: Branch, step: str) -> Branch:
    name = step or str(len(branch))
    inner = branch.get(name)
    if not isinstance(inner, dict):
        inner = branch[name] = Branch()
    return inner  # pyright: ignore[reportUnknownVariableType]


def _value(part: Branch | str) -> Any:
    if isinstance(part, str):
        return part
    if all(name.isascii() and name.isdigit() and len(name) < 10 for name in part):
        return [_value(part[name]) for name in sorted(part, key=int)]
    return {name: _value(inner) for name, inner in part.items()}
