"""Text parameters of a template message: checked, and inserted into the text."""

import re
from collections.abc import Mapping
from typing import Any, Final

from waypost.base.json_values import integer_or_none, object_or_none, text_or_none
from waypost.simulator.errors import message_error
from waypost.simulator.templates.text_variables import TextPlan

_BAD_TEXT: Final = re.compile(r"[\r\n\t]| {5}")
_CURRENCY_CODE: Final = re.compile(r"[A-Z]{3}")


def fill_text(component: str, plan: TextPlan, parameters: list[Any], *, is_named: bool) -> str:
    """Return a text filled with its parameters.

    Args:
        component: `header`, `body` or `card 0 body`, for error texts.
        plan: the text.
        parameters: the parameters, in order, or each with its name.
        is_named: whether parameters have names.

    Raises:
        GraphApiError: 132000 for their number, 132018 for a text with forbidden characters, 131008
            and 132012 for a parameter that is not a text.

    Source: facts 4.2, 5.2.
    """
    check_count(component, len(parameters), len(plan.names))
    if not plan.names:
        return plan.fill({})
    values: dict[str, str] = {}
    for name, raw_parameter in zip(plan.names, parameters, strict=True):
        parameter = object_or_none(raw_parameter)
        if parameter is None:
            raise message_error(131009, f"{component}: a parameter must be an object")
        values[_read_name(component, plan, parameter) if is_named else name] = _read_value(component, parameter)
    if len(values) != len(plan.names):
        raise message_error(132000, f"{component}: a parameter_name is given twice")
    return plan.fill(values)


def check_count(component: str, count: int, expected: int) -> None:
    """Check the number of a component's parameters.

    Raises:
        GraphApiError: 132000.

    Source: facts 5.2.
    """
    if count != expected:
        raise message_error(
            132000,
            f"{component}: number of localizable_params ({count}) does not match the expected "
            f"number of params ({expected})",
        )


def check_text(component: str, text: str) -> None:
    """Check the text of a parameter.

    Raises:
        GraphApiError: 132018.

    Source: facts 4.2.
    """
    if not text:
        raise message_error(132018, f"{component}: Param text cannot be empty")
    if _BAD_TEXT.search(text):
        raise message_error(132018, "Param text cannot have new-line/tab characters or more than 4 consecutive spaces")


def _read_name(component: str, plan: TextPlan, parameter: Mapping[str, Any]) -> str:
    name = text_or_none(parameter.get("parameter_name"))
    if name is None or name not in plan.names:
        raise message_error(132000, f"{component}: parameter_name {name!r} is none of {', '.join(plan.names)}")
    return name


def _read_value(component: str, parameter: Mapping[str, Any]) -> str:
    match str(parameter.get("type", "")).lower():
        case "text":
            text = parameter.get("text")
        case "currency" | "date_time" as kind:  # the fallback is always shown
            value = object_or_none(parameter.get(kind)) or {}
            text = value.get("fallback_value")
            if kind == "currency":
                _check_currency(component, value)
        case kind:
            raise message_error(
                132012, f"{component}: Format mismatch, expected TEXT, received {kind.upper() or 'UNKNOWN'}"
            )
    if not isinstance(text, str):
        raise message_error(131008, f"{component}: Parameter of type text is missing text value")
    check_text(component, text)
    return text


def _check_currency(component: str, currency: Mapping[str, Any]) -> None:
    """Check the members of an amount of money besides its text. Source: facts 4.2, "body"."""
    for name in ("code", "amount_1000"):
        if currency.get(name) is None:
            raise message_error(131008, f"{component}: Parameter of type currency is missing {name}")
    if not _CURRENCY_CODE.fullmatch(str(currency["code"])):
        raise message_error(131009, f"{component}: the code of a currency has three capital letters")
    if integer_or_none(currency["amount_1000"]) is None:
        raise message_error(131009, f"{component}: the amount_1000 of a currency is an integer")
