"""A JSON text as a tree of nodes that know where they stand, so that an error can name line and column."""

import bisect
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, cast

MAX_DEPTH: Final = 100
"""Nested deeper, a text is rejected: no Flow needs a tenth of it."""
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Span:
    """The place of a text: where it begins and ends, in characters; the end is the last character's."""

    start: int
    end: int


@dataclass(slots=True, eq=False)
class Node:
    """A value of a JSON text.

    Attributes:
        value: a dict of names to nodes, a list of nodes, or a text, number, boolean or None.
        span: of the value.
        key_span: of its name with the quotes; None in a list and at the root.
        path: names and indexes from the root.
    """

    value: Any
    span: Span
    path: tuple[str | int, ...] = ()
    key_span: Span | None = None

    @property
    def members(self) -> dict[str, "Node"]:
        """The members of an object; of any other value none."""
        return cast("dict[str, Node]", self.value) if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list["Node"]:
        """The items of a list; of any other value none."""
        return cast("list[Node]", self.value) if isinstance(self.value, list) else []

    @property
    def text(self) -> str | None:
        """The text; None if it is something else."""
        return self.value if isinstance(self.value, str) else None

    @property
    def plain(self) -> Any:
        """The value without positions."""
        if isinstance(self.value, dict):
            return {name: node.plain for name, node in self.members.items()}
        return [node.plain for node in self.items] if isinstance(self.value, list) else self.value

    @property
    def type_name(self) -> str:
        """The JSON type, as the operator's messages name it."""
        return json_type(self.value)

    def texts(self) -> Iterator["Node"]:
        """Yield each text in it, at any depth, in order."""
        if isinstance(self.value, str):
            yield self
        for node in [*self.members.values(), *self.items]:
            yield from node.texts()


def json_type(value: Any) -> str:
    """Return the JSON type of a value: string, number, boolean, object, array or null."""
    if isinstance(value, bool):
        return "boolean"
    types = ((str, "string"), ((int, float), "number"), (dict, "object"), (list, "array"))
    return next((name for kind, name in types if isinstance(value, kind)), "null")


@dataclass(frozen=True)
class JsonText:
    """A text and its lines."""

    text: str
    line_starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Find where lines begin."""
        starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        object.__setattr__(self, "line_starts", starts)

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column of a character; the first are 1."""
        line = bisect.bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1


class InvalidJsonError(ValueError):
    """The text is no JSON. Attributes: the reason in words, and where."""

    def __init__(self, reason: str, offset: int = 0) -> None:
        """Remember reason and place."""
        super().__init__(reason)
        self.reason = reason
        self.offset = offset


def parse_json(text: str) -> Node:
    """Return the tree of a text.

    Raises:
        InvalidJsonError: it is no JSON, has a number that JSON has not, or is nested deeper than `MAX_DEPTH`.
    """
    try:
        json.loads(text, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        raise InvalidJsonError(f"{error.msg} at line {error.lineno}, column {error.colno}", error.pos) from None
    except InvalidJsonError:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidJsonError("a number is too long" if isinstance(error, ValueError) else _TOO_DEEP) from None
    node, _ = _scan(text, _skip(text, 0), ())
    return node


_TOO_DEEP: Final = f"values are nested deeper than {MAX_DEPTH}"


def _reject_constant(name: str) -> NoReturn:
    raise InvalidJsonError(f"{name} is no number of JSON")


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space is not None else at


def _scan(text: str, at: int, path: tuple[str | int, ...]) -> tuple[Node, int]:
    """Return the node that begins at a character, and where the text goes on. The text is known to be JSON."""
    if len(path) > MAX_DEPTH:
        raise InvalidJsonError(_TOO_DEEP, at)
    character = text[at]
    value: Any
    if character == "{":
        value, end = _scan_object(text, at + 1, path)
    elif character == "[":
        value, end = _scan_list(text, at + 1, path)
    else:
        value, end = _DECODER.raw_decode(text, at)
    return Node(value, Span(at, end - 1), path), end


def _scan_object(text: str, at: int, path: tuple[str | int, ...]) -> tuple[dict[str, Node], int]:
    members: dict[str, Node] = {}
    at = _skip(text, at)
    while text[at] != "}":
        name, after_name = _DECODER.raw_decode(text, at)
        key_span = Span(at, after_name - 1)
        at = _skip(text, _skip(text, after_name) + 1)
        members[name], at = _scan(text, at, (*path, name))
        members[name].key_span = key_span
        at = _skip(text, at)
        at = _skip(text, at + 1) if text[at] == "," else at
    return members, at + 1


def _scan_list(text: str, at: int, path: tuple[str | int, ...]) -> tuple[list[Node], int]:
    items: list[Node] = []
    at = _skip(text, at)
    while text[at] != "]":
        node, at = _scan(text, at, (*path, len(items)))
        items.append(node)
        at = _skip(text, at)
        at = _skip(text, at + 1) if text[at] == "," else at
    return items, at + 1
