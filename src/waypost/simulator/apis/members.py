"""Members of JSON objects as data: faults and steps of scripts are read by their tables, which clients see too."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from waypost.base.json_values import list_or_none, object_or_none
from waypost.simulator.apis.control_error import ControlApiError


@dataclass(frozen=True)
class MemberDeclaration:
    """One member of an object, and its accepted values."""

    name: str
    # `whole`, `number` and `fraction` are numbers within the bounds; `pair` is a whole number, or two in order; `true`
    # accepts only true
    type: Literal["whole", "number", "fraction", "pair", "boolean", "true", "text", "choice", "object", "list"]
    at_least: int = 0  # lower bound of a number, exclusive for a fraction
    at_most: int = 0  # upper bound of a number, or of a text's characters
    choices: tuple[str, ...] = ()  # of a `choice`
    description: str = ""  # of the accepted values; empty: derived from the type

    def accepts(self, value: object) -> bool:
        """True if the value is accepted."""
        match self.type:
            case "true":
                return value is True
            case "boolean":
                return isinstance(value, bool)
            case "text":
                return isinstance(value, str) and 0 < len(value) <= self.at_most
            case "choice":
                return value in self.choices
            case "object":
                return object_or_none(value) is not None
            case "list":
                items = list_or_none(value)
                return items is not None and self.at_least <= len(items) <= self.at_most
            case "whole":
                return self._is_whole(value)
            case "pair":
                pair = list_or_none(value) or [value, value]
                return len(pair) == 2 and all(map(self._is_whole, pair)) and pair[0] <= pair[1]
            case "number" | "fraction":
                if not isinstance(value, int | float) or isinstance(value, bool):
                    return False
                return self.at_least <= value <= self.at_most and (self.type == "number" or value > self.at_least)

    def _is_whole(self, value: object) -> bool:
        return type(value) is int and self.at_least <= value <= self.at_most

    @property
    def accepted(self) -> str:
        """A text of the accepted values."""
        if self.description:
            return self.description
        match self.type:
            case "true":
                return "true"
            case "boolean":
                return "true or false"
            case "text":
                return f"1 to {self.at_most} characters"
            case "choice":
                return " or ".join((", ".join(self.choices[:-1]), self.choices[-1]))
            case "object":
                return "an object"
            case "list":
                return f"a list of {self.at_least} to {self.at_most}"
            case "whole":
                return f"a whole number from {self.at_least} to {self.at_most}"
            case "number":
                return f"{self.at_least} to {self.at_most}"
            case "pair":
                return f"{self.at_least} to {self.at_most}, or [least, most]"
            case "fraction":
                return f"a number above {self.at_least}, up to {self.at_most}"


def check_names(names: Iterable[str], known: Collection[str], path: str) -> None:
    """Check that every member is known.

    Args:
        path: of the object, with a dot at its end; empty for the body.

    Raises:
        ControlApiError: names the first unknown member, and the known ones.
    """
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise ControlApiError(f"{path}{unknown[:64]}", "is unknown", ", ".join(known))


def check_values(declarations: Iterable[MemberDeclaration], members: dict[str, Any], path: str, rule: str = "") -> None:
    """Check the values of members; absent ones are not checked.

    Args:
        path: of the object, with a dot at its end; empty for the body.
        rule: the text of an error; empty: it names the value.

    Raises:
        ControlApiError: names the first invalid member, and what it accepts.
    """
    for declared in declarations:
        name = declared.name
        if name in members and not declared.accepts(members[name]):
            raise ControlApiError(f"{path}{name}", rule or describe_invalid(members[name]), declared.accepted)


def describe_invalid(value: object) -> str:
    """Return the rule of an error that names the value that was sent."""
    text = repr(value)
    return f"cannot be {text if len(text) <= 80 else text[:77] + '...'}"
