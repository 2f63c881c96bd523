"""Texts and buttons of a template message: a table of kinds, the parameters each takes, and its action."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import integer_or_none, object_of, object_or_none, objects_in, text_or_none
from waypost.simulator.apis.errors import message_error
from waypost.simulator.templates.text_variables import plan_text

_BAD_TEXT: Final = re.compile(r"[\r\n\t]| {5}")
_CURRENCY_CODE: Final = re.compile(r"[A-Z]{3}")


def fill_text(component: str, text: str, parameters: list[Any], *, is_named: bool) -> str:
    """Return a template's text filled with its parameters.

    Raises:
        GraphApiError: 132000 for their number, 132018 for a text with forbidden characters, 131008
            and 132012 for a parameter that is not a text.

    Source: facts 4.2, 5.2.
    """
    plan = plan_text(text)
    check_count(component, len(parameters), len(plan.names))
    values: dict[str, str] = {}
    for name, raw_parameter in zip(plan.names, parameters, strict=True):
        parameter = object_or_none(raw_parameter)
        if parameter is None:
            raise message_error(131009, f"{component}: a parameter must be an object")
        if is_named:
            name = text_or_none(parameter.get("parameter_name"))
            if name is None or name not in plan.names:
                raise message_error(132000, f"{component}: parameter_name {name!r} is none of {', '.join(plan.names)}")
        values[name] = _read_value(component, parameter)
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


_MAX_PAYLOAD_CHARS: Final = 256  # Source: facts 4.2, unconfirmed
_MAX_CODE_CHARS: Final = 15  # Source: facts 2.3, "OTP code at send"
_MAX_COUPON_CHARS: Final = 20  # Source: facts 2.3: 15 or 20, so the simulator takes 20
_MAX_SECTIONS: Final = 10  # Source: facts 2.3, "MPM at send"
_MAX_PRODUCTS: Final = 30  # Source: facts 2.3, "MPM at send"
_MAX_SECTION_TITLE_CHARS: Final = 24  # Source: facts 2.3, "MPM at send"

Parameter = dict[str, Any]
Button = dict[str, Any]


@dataclass(frozen=True)
class ButtonSendKind:
    """One row."""

    name: str  # of the kind, in the operator's error texts
    sub_type: str  # of the kind, in a request
    needs_parameter: bool | None  # None: if its URL has a variable
    render: Callable[[str, Button, Parameter], dict[str, Any]]  # members besides type and label; {} is no parameter


def render_button(card_prefix: str, index: int, button: Button, component: dict[str, Any] | None) -> dict[str, Any]:
    """Return one button of a template as the phone shows it: `index`, `type`, `text`, and its action.

    A one-time code button has the type `OTP`, although it is read back as a URL.

    Raises:
        GraphApiError: 131008 for a missing parameter, 132018 for another type, 131009 and 132000 for
            a wrong parameter.

    Source: facts 4.2, 5.2.
    """
    button_type = "OTP" if "otp_type" in button else str(button["type"])
    kind = BUTTON_SEND_KINDS[button_type]
    error_prefix = f"{card_prefix}buttons: Button at index {index}"
    parameter: Parameter = {}
    if component is None:
        is_needed = (
            bool(plan_text(_text_of(button, "url")).names) if kind.needs_parameter is None else kind.needs_parameter
        )
        if is_needed:
            raise message_error(131008, f"{error_prefix} of type {kind.name} requires a parameter")
    else:
        if str(component.get("sub_type", "")).lower() != kind.sub_type:
            raise message_error(132018, f"{error_prefix} must be of type {kind.name}")
        parameters = objects_in(component.get("parameters"))
        if len(parameters) > 1:
            check_count("buttons", len(parameters), 1)
        parameter = next(iter(parameters), Parameter())
    label = _text_of(button, "text") or ("Copy offer code" if button_type == "COPY_CODE" else "")
    return {"index": index, "type": button_type, "text": label} | kind.render(error_prefix, button, parameter)


def _text_of(button: Button, member: str) -> str:
    return text_or_none(button.get(member)) or ""


def _require_parameter_text(error_prefix: str, kind: str, parameter: Parameter, member: str) -> str:
    text = text_or_none(parameter.get(member))
    if not text:
        raise message_error(131008, f"{error_prefix} of type {kind} requires a parameter")
    return text


def _quick_reply(error_prefix: str, button: Button, parameter: Parameter) -> dict[str, Any]:
    """Return the payload of the request, or the label if it has none. Source: facts 4.2."""
    if not parameter:
        return {"payload": _text_of(button, "text")}
    payload = _require_parameter_text(error_prefix, "QuickReply", parameter, "payload")
    if len(payload) > _MAX_PAYLOAD_CHARS:
        raise message_error(131009, f"{error_prefix}: the payload has at most {_MAX_PAYLOAD_CHARS} characters")
    return {"payload": payload}


def _url(error_prefix: str, button: Button, parameter: Parameter) -> dict[str, Any]:
    url = plan_text(_text_of(button, "url"))
    if not url.names:
        if parameter:
            check_count("buttons", 1, 0)
        return {"url": url.fill({})}
    text = _require_parameter_text(error_prefix, "Url", parameter, "text")
    check_text("buttons", text)
    return {"url": url.fill({url.names[0]: text})}


def _copy_code(error_prefix: str, _button: Button, parameter: Parameter) -> dict[str, Any]:
    code = _require_parameter_text(error_prefix, "CopyCode", parameter, "coupon_code")
    check_text("buttons", code)
    if len(code) > _MAX_COUPON_CHARS:
        raise message_error(131009, f"{error_prefix}: the coupon_code has at most {_MAX_COUPON_CHARS} characters")
    return {"code": code}


def _one_time_code(error_prefix: str, button: Button, parameter: Parameter) -> dict[str, Any]:
    code = _require_parameter_text(error_prefix, "Url", parameter, "text")
    check_code(error_prefix, code)
    autofill = _text_of(button, "autofill_text")
    return {"otp_type": _text_of(button, "otp_type"), "code": code, **({"autofill_text": autofill} if autofill else {})}


def check_code(error_prefix: str, code: str) -> None:
    """Check a one-time code.

    Raises:
        GraphApiError: 132018.

    Source: facts 2.3, "OTP code at send".
    """
    check_text(error_prefix, code)
    if len(code) > _MAX_CODE_CHARS:
        raise message_error(132018, f"{error_prefix}: a code has at most {_MAX_CODE_CHARS} characters")
    if "://" in code or not code.isprintable() or any(ord(character) > 0x2000 for character in code):
        raise message_error(132018, f"{error_prefix}: a code holds no address and no emoji")


def _flow(_error_prefix: str, button: Button, parameter: Parameter) -> dict[str, Any]:
    action = object_of(parameter.get("action"))
    optional_members = {
        "flow_name": _text_of(button, "flow_name"),
        "screen": _text_of(button, "navigate_screen"),
        "flow_action_data": object_or_none(action.get("flow_action_data")),
    }
    return {
        "flow_id": str(button.get("flow_id") or ""),
        "flow_token": text_or_none(action.get("flow_token")) or "unused",
        "flow_action": _text_of(button, "flow_action").lower() or "navigate",
        **{name: value for name, value in optional_members.items() if value},
    }


def _catalog(_error_prefix: str, _button: Button, parameter: Parameter) -> dict[str, Any]:
    thumbnail = text_or_none(object_of(parameter.get("action")).get("thumbnail_product_retailer_id"))
    return {"thumbnail_product_retailer_id": thumbnail} if thumbnail else {}


def _products(error_prefix: str, button: Button, parameter: Parameter) -> dict[str, Any]:
    sections = check_sections(error_prefix, objects_in(object_of(parameter.get("action")).get("sections")))
    return _catalog(error_prefix, button, parameter) | {"sections": sections}


def check_sections(error_prefix: str, sections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Check sections of products: at most 10, with at most 30 products in all.

    Raises:
        GraphApiError: 131008 or 131009.

    Source: facts 2.3, "MPM at send".
    """
    if not sections:
        raise message_error(131008, f"{error_prefix} requires sections with products")
    if len(sections) > _MAX_SECTIONS:
        raise message_error(131009, f"{error_prefix}: at most {_MAX_SECTIONS} sections")
    count = 0
    for section in sections:
        title = text_or_none(section.get("title")) or ""
        if len(title) > _MAX_SECTION_TITLE_CHARS or (not title and len(sections) > 1):
            raise message_error(
                131009, f"{error_prefix}: a section's title has 1 to {_MAX_SECTION_TITLE_CHARS} characters"
            )
        items = objects_in(section.get("product_items"))
        if not items or not all(text_or_none(item.get("product_retailer_id")) for item in items):
            raise message_error(131008, f"{error_prefix}: a section has product_items, each with a product_retailer_id")
        count += len(items)
    if count > _MAX_PRODUCTS:
        raise message_error(131009, f"{error_prefix}: at most {_MAX_PRODUCTS} products")
    return sections


def _no_members(_error_prefix: str, _button: Button, _parameter: Parameter) -> dict[str, Any]:
    return {}


# fmt: off
BUTTON_SEND_KINDS: Final = {  # Source: facts 4.2
    #                                      name                  sub_type                needed  render
    "QUICK_REPLY":          ButtonSendKind("QuickReply",         "quick_reply",          False,  _quick_reply),
    "URL":                  ButtonSendKind("Url",                "url",                  None,   _url),
    "PHONE_NUMBER":         ButtonSendKind("PhoneNumber",        "phone_number",         False,
                                lambda _prefix, button, _parameter: {"phone_number": _text_of(button, "phone_number")}),
    "COPY_CODE":            ButtonSendKind("CopyCode",           "copy_code",            True,   _copy_code),
    "OTP":                  ButtonSendKind("Url",                "url",                  True,   _one_time_code),
    "FLOW":                 ButtonSendKind("Flow",               "flow",                 False,  _flow),
    "CATALOG":              ButtonSendKind("Catalog",            "catalog",              False,  _catalog),
    "MPM":                  ButtonSendKind("Mpm",                "mpm",                  True,   _products),
    "SPM":                  ButtonSendKind("Spm",                "spm",                  False,  _no_members),
    "VOICE_CALL":           ButtonSendKind("VoiceCall",          "voice_call",           False,  _no_members),
    "REQUEST_CONTACT_INFO": ButtonSendKind("RequestContactInfo", "request_contact_info", False,  _no_members),
}
# fmt: on
