"""A JSON text as a tree of nodes that know where they stand, so that an error can name line and column."""

import bisect
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, Optional, TypeAlias, cast

from waypost.base.error_texts import json_error_text

MAX_DEPTH: Final = 100
"""Nested deeper, a text is rejected: no Flow needs a tenth of it."""
MAX_PIECES: Final = 500_000
"""Names, values and brackets of a text; one of 10 MB could have ten times as many, and fill a gigabyte."""
# A text, a bracket, or a number, boolean or null, of what is known to be JSON.
_PIECE: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]|[^\s,:{}\[\]"]+')
_DECODER: Final = json.JSONDecoder()

Place: TypeAlias = tuple[Optional["Place"], str | int]
"""A path as a chain: the place around, None for the root, and the last name or index. So each node costs one step."""
Span: TypeAlias = tuple[int, int]
"""The place of a text: where it begins and ends, in characters; the end is the last character's.

A plain tuple of numbers, as there are two for each node, and the garbage collector looks at such tuples only once.
"""


@dataclass(slots=True, eq=False)
class Node:
    """A value of a JSON text.

    Attributes:
        value: a dict of names to nodes, a list of nodes, or a text, number, boolean or None.
        span: of the value.
        key_span: of its name with the quotes; None in a list and at the root.
        place: of the value; None at the root.
    """

    value: Any
    span: Span
    place: Place | None = None
    key_span: Span | None = None

    @property
    def path(self) -> tuple[str | int, ...]:
        """The names and indexes from the root."""
        steps: list[str | int] = []
        place = self.place
        while place is not None:
            place, step = place
            steps.append(step)
        return tuple(reversed(steps))

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
        InvalidJsonError: it is no JSON, has a number that JSON has not, is nested deeper than `MAX_DEPTH`, or has more
            than `MAX_PIECES`.
    """
    try:
        json.loads(text, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        raise InvalidJsonError(f"It {json_error_text(error)}", error.pos) from None
    except InvalidJsonError:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidJsonError("a number is too long" if isinstance(error, ValueError) else _TOO_DEEP) from None
    return _build(text)


_TOO_DEEP: Final = f"values are nested deeper than {MAX_DEPTH}"


def _reject_constant(name: str) -> NoReturn:
    raise InvalidJsonError(f"{name} is no number of JSON")


def _build(text: str) -> Node:
    """Return the tree of a text that is known to be JSON."""
    node = Node(None, (0, 0))
    around: list[Node] = []
    name: str | None = None
    key_span: Span | None = None
    for count, match in enumerate(_PIECE.finditer(text)):
        piece, start = match[0], match.start()
        if count > MAX_PIECES:
            raise InvalidJsonError(f"it has more than {MAX_PIECES} names and values", start)
        if piece in "}]":
            node = around.pop()
            node.span = (node.span[0], start)
            continue
        value = _value_of(piece)
        span = (start, match.end() - 1)
        owner = around[-1] if around else None
        if owner is None:
            node = Node(value, span)
        elif isinstance(owner.value, list):
            node = Node(value, span, (owner.place, len(owner.items)))
            owner.items.append(node)
        elif name is None:
            name, key_span = value, span
            continue
        else:
            node = owner.members[name] = Node(value, span, (owner.place, name), key_span)
            name = key_span = None
        if piece in "{[":
            around.append(node)
            if len(around) > MAX_DEPTH:
                raise InvalidJsonError(_TOO_DEEP, start)
    return node


def _value_of(piece: str) -> Any:
    """Return the value of a piece of JSON: of a bracket that opens, an empty object or list."""
    if piece[0] == '"' and "\\" not in piece:
        return piece[1:-1]
    if piece in "{[":
        return {} if piece == "{" else []
    return _DECODER.raw_decode(piece)[0]
