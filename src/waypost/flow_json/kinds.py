"""Kinds of values that a property of Flow JSON may have, with their limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from waypost.flow_json.versions import Version

ALWAYS: Final[Version] = (2, 1)


@dataclass(frozen=True)
class TextPattern:
    """A regular expression that a text must match.

    Attributes:
        rule: what it means, for the message after "should".
        since: the version that brought it.
    """

    pattern: str
    rule: str
    since: Version = ALWAYS


@dataclass(frozen=True)
class TextKind:
    """A text.

    Attributes:
        filled: the version from which it must not be blank; None: it may always be.
        min_chars: counts in versions in which it may be blank.
        patterns: the last one that a version has counts.
        format: `uri` or `regex`; empty: any.
    """

    max_chars: int | None = None
    filled: Version | None = (6, 0)
    min_chars: int = 0
    patterns: tuple[TextPattern, ...] = ()
    format: str = ""


@dataclass(frozen=True)
class NameKind:
    """A name of a component: from 6.0 on neither a reference nor a nested expression."""


@dataclass(frozen=True)
class BooleanKind:
    """True or false."""


@dataclass(frozen=True)
class NumberKind:
    """A number.

    Attributes:
        is_integer: True if it must have no fraction.
    """

    minimum: float | None = None
    maximum: float | None = None
    is_integer: bool = False


@dataclass(frozen=True)
class EnumKind:
    """One of some texts.

    Attributes:
        is_constant: True if the operator checks each of them for itself, which gives another error.
    """

    values: tuple[str, ...]
    is_constant: bool = False


@dataclass(frozen=True)
class DateKind:
    """A day: YYYY-MM-DD from 5.0 on, before milliseconds since 1970 as a text."""


@dataclass(frozen=True)
class PictureKind:
    """A JPEG, PNG or WEBP file in base64, at most so many kilobytes.

    Attributes:
        is_checked: True if the operator checks that it is base64.
    """

    max_kb: int | None = None
    is_checked: bool = False


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
    """More are not shown, unless the operator refuses them."""
    has_hard_maximum: bool = False


@dataclass(frozen=True)
class MapKind:
    """An object whose members have names that the author chooses, and values of one kind.

    Attributes:
        patterns: of the names.
    """

    kind: "Kind"
    patterns: tuple[TextPattern, ...] = ()


@dataclass(frozen=True)
class ObjectKind:
    """An object with declared members.

    Attributes:
        is_open: True if other members are no error of the shape.
    """

    properties: tuple["Property", ...]
    name: str
    is_open: bool = False


@dataclass(frozen=True)
class EitherKind:
    """A value of one of several kinds, which differ by their JSON type."""

    kinds: tuple["Kind", ...]


@dataclass(frozen=True)
class ActionKind:
    """An action; which ones are allowed depends on the version.

    Attributes:
        names: of each allowed action the version that brought it here.
        is_selection: True for an action of a selection: the operator gives other errors, and it needs a payload.
    """

    names: Mapping[str, Version]
    is_selection: bool = False


@dataclass(frozen=True)
class ComponentsKind:
    """A list of components.

    Attributes:
        allowed: of each allowed type the version that brought it here; None: every type.
    """

    allowed: Mapping[str, Version] | None = None


@dataclass(frozen=True)
class AnyKind:
    """Any value: payloads and declarations of data, which have rules of their own."""

    json_types: tuple[str, ...] = ()


Kind: TypeAlias = (
    TextKind
    | NameKind
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
    NameKind: ("string",),
    BooleanKind: ("boolean",),
    EnumKind: ("string",),
    DateKind: ("string",),
    PictureKind: ("string",),
    ConditionKind: ("boolean",),
    ListKind: ("array",),
    MapKind: ("object",),
    ObjectKind: ("object",),
}


def pattern_of(patterns: tuple[TextPattern, ...], version: Version) -> TextPattern | None:
    """Return the pattern that counts in a version."""
    return next((one for one in reversed(patterns) if one.since <= version), None)


def json_types(kind: Kind) -> tuple[str, ...]:
    """Return the JSON types that a value of a kind may have; empty: all."""
    match kind:
        case NumberKind():
            return ("integer",) if kind.is_integer else ("number",)
        case EitherKind():
            return tuple(dict.fromkeys(name for one in kind.kinds for name in json_types(one)))
        case AnyKind():
            return kind.json_types
        case _:
            return _TYPES.get(type(kind), ())
