"""Parameters of a Graph call, declared as the members of a struct: reading, checks, and the operator's error texts.

A member's check is that of its annotation, or that it is a text; a check returns the value, or raises the error for
it. A member without a default is required: its check gets None if the parameter is absent.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, TypeVar, get_args

from msgspec import Struct
from msgspec.structs import fields as members_of

from waypost.simulator.apis.errors import GraphApiError, bad_parameter

Parameters = TypeVar("Parameters", bound=Struct)
ParameterCheck = Callable[[str, Any], Any]
"""Returns the value of a parameter with this name; raises the error for an invalid one."""


def read_parameters(struct: type[Parameters], fields: Mapping[str, Any]) -> Parameters:
    """Return the parameters of a call; a null text is absent.

    Raises:
        GraphApiError: 100, a parameter is missing or invalid: the first, in the order of the members.
    """
    values: dict[str, Any] = {}
    for name, is_required, check in _checks(struct):
        value = fields.get(name)
        if is_required or (name in fields and (value is not None or check is not check_text)):
            values[name] = check(name, value)
    return struct(**values)


def is_missing(name: str) -> GraphApiError:
    """Return the error for a parameter that is missing."""
    return bad_parameter(f"The parameter {name} is required.")


def check_text(name: str, value: Any) -> str:
    """Check that a parameter is a text."""
    if not isinstance(value, str):
        raise bad_parameter(f"Param {name} must be a string.")
    return value


def check_filled_text(name: str, value: Any) -> str:
    """Check that a parameter is a text that is not blank."""
    if value in (None, ""):
        raise is_missing(name)
    if not check_text(name, value).strip():
        raise bad_parameter(f"Param {name} must be a string.")
    return str(value)


def check_id(name: str, value: Any) -> str:
    """Check that a parameter is an id, which is a text."""
    if not isinstance(value, str) or not value:
        raise is_missing(name)
    return value


def read_text(_name: str, value: Any) -> str:
    """Return a parameter that is a text; an empty text for any other value."""
    return value if isinstance(value, str) else ""


def check_boolean(name: str, value: Any) -> bool:
    """Return a parameter that is true or false, or a text that says so."""
    text = str(value).lower()
    if text not in ("true", "false"):
        raise bad_parameter(f"Param {name} must be a boolean.")
    return text == "true"


def must(rule: str, is_valid: Callable[[Any], bool]) -> ParameterCheck:
    """Return the check of a rule, which is the rest of the error's text after "Param x must"."""

    def check(name: str, value: Any) -> Any:
        if not is_valid(value):
            raise bad_parameter(f"Param {name} must {rule}.")
        return value

    return check


def text_between(min_chars: int, max_chars: int) -> ParameterCheck:
    """Return the check that a parameter is a text of a length."""
    rule = f"have {min_chars} to {max_chars} characters"
    return must(rule, lambda value: isinstance(value, str) and min_chars <= len(value) <= max_chars)


def one_of(*choices: str) -> ParameterCheck:
    """Return the check that a parameter is one of these texts."""
    return must(f"be one of {{{', '.join(choices)}}}", lambda value: value in choices)


def check_product(name: str, value: Any) -> str:
    """Check the parameter that names the product; another product counts as none."""
    if value != "whatsapp":
        raise is_missing(name)
    return str(value)


def given_parameters(struct: type[Parameters], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a call that it has, without the product.

    Raises:
        GraphApiError: as for `read_parameters`.
    """
    read = read_parameters(struct, fields)
    members = [field.encode_name for field in members_of(struct) if field.encode_name != "messaging_product"]
    return {name: getattr(read, name) for name in members if name in fields}


class ProductParameters(Struct, frozen=True):
    """The parameter that calls about messages begin with."""

    messaging_product: Annotated[str, check_product]


@cache
def _checks(struct: type[Struct]) -> tuple[tuple[str, bool, ParameterCheck], ...]:
    return tuple(
        (
            field.encode_name,
            field.required,
            get_args(field.type)[1] if get_args(field.type) else check_filled_text if field.required else check_text,
        )
        for field in members_of(struct)
    )
