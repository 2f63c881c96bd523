"""Kinds of values that a property of Flow JSON may have, with their limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from waypost.flow_json.versions import Version

ALWAYS: Final[Version] = (2, 1)


@dataclass(frozen=True)
class TextKind:
    """A text.

    Attributes:
        pattern: a regular expression that it must match.
        rule: what the pattern means, for the message.
    """

    max_chars: int | None = None
    may_be_blank: bool = True
    pattern: str = ""
    rule: str = ""


@dataclass(frozen=True)
class BooleanKind:
    """True or false."""


@dataclass(frozen=True)
class NumberKind:
    """A number.

    Attributes:
        is_integer: True if it must have no fraction.
        may_be_text: True if it may be written as a text of digits.
    """

    minimum: float | None = None
    maximum: float | None = None
    is_integer: bool = True
    may_be_text: bool = False


@dataclass(frozen=True)
class EnumKind:
    """One of some texts; others may come with a version."""

    values: tuple[str, ...]


@dataclass(frozen=True)
class DateKind:
    """A day: YYYY-MM-DD from 5.0 on, before milliseconds since 1970 as a text."""


@dataclass(frozen=True)
class PictureKind:
    """A JPEG, PNG or WEBP file in base64, at most so many kilobytes."""

    max_kb: int | None = None


@dataclass(frozen=True)
class ReferenceKind:
    """One reference, such as `${data.x}`, and nothing else."""


@dataclass(frozen=True)
class ConditionKind:
    """An expression that is true or false."""


@dataclass(frozen=True)
class ListKind:
    """A list of values of one kind."""

    kind: "Kind"
    min_items: int = 0
    max_items: int | None = None


@dataclass(frozen=True)
class MapKind:
    """An object whose members have names that the author chooses, and values of one kind."""

    kind: "Kind"


@dataclass(frozen=True)
class ObjectKind:
    """An object with declared members."""

    properties: tuple["Property", ...]
    name: str


@dataclass(frozen=True)
class EitherKind:
    """A value of one of several kinds, which differ by their JSON type."""

    kinds: tuple["Kind", ...]


@dataclass(frozen=True)
class ActionKind:
    """An action; which ones are allowed depends on the version.

    Attributes:
        names: of each allowed action the version that brought it here.
    """

    names: Mapping[str, Version]


@dataclass(frozen=True)
class ComponentsKind:
    """A list of components.

    Attributes:
        allowed: of each allowed type the version that brought it here; None: every type.
        may_be_empty: False if there must be one.
    """

    allowed: Mapping[str, Version] | None = None
    may_be_empty: bool = True


@dataclass(frozen=True)
class AnyKind:
    """Any value: payloads and declarations of data, which have rules of their own."""

    json_types: tuple[str, ...] = ()


Kind: TypeAlias = (
    TextKind
    | BooleanKind
    | NumberKind
    | EnumKind
    | DateKind
    | PictureKind
    | ReferenceKind
    | ConditionKind
    | ListKind
    | MapKind
    | ObjectKind
    | EitherKind
    | ActionKind
    | ComponentsKind
    | AnyKind
)


@dataclass(frozen=True)
class Property:
    """A declared member.

    Attributes:
        required: the version from which it must be there; None: never.
        is_dynamic: True if it may be a reference or, from 6.0, a nested expression.
        since: the version that brought it.
        until: the first version that has it no more.
    """

    name: str
    kind: Kind
    required: Version | None = None
    is_dynamic: bool = False
    since: Version = ALWAYS
    until: Version | None = None

    def exists(self, version: Version) -> bool:
        """Return True if a version of Flow JSON has it."""
        return self.since <= version and (self.until is None or version < self.until)


# Source: the operator's page "Flow JSON", properties: the types that a reference may have where a kind is expected.
_TYPES: Final[dict[type, tuple[str, ...]]] = {
    TextKind: ("string",),
    BooleanKind: ("boolean",),
    EnumKind: ("string",),
    DateKind: ("string",),
    PictureKind: ("string",),
    ConditionKind: ("boolean",),
    ListKind: ("array",),
    MapKind: ("object",),
    ObjectKind: ("object",),
}


def json_types(kind: Kind) -> tuple[str, ...]:
    """Return the JSON types that a value of a kind may have; empty: all."""
    match kind:
        case NumberKind():
            return ("number", "string") if kind.may_be_text else ("number",)
        case EitherKind():
            return tuple(dict.fromkeys(name for one in kind.kinds for name in json_types(one)))
        case AnyKind():
            return kind.json_types
        case _:
            return _TYPES.get(type(kind), ())
