"""A template message held against its template, and filled in: what the phone will show."""

import re
from collections.abc import Mapping
from typing import Any, Final

from waypost.simulator.errors import message_refused
from waypost.simulator.loose import a_list, a_text, an_integer, an_object, objects
from waypost.simulator.template_plans import ButtonPlan, TemplatePlan
from waypost.simulator.template_texts import TextPlan

_BAD_TEXT: Final = re.compile(r"[\n\t]| {5}")
_BODY_AT_MOST: Final = 1024  # Source: facts 2.3: also after the variables are filled
_PAYLOAD_AT_MOST: Final = 256  # Source: facts 4.2, unconfirmed

# fmt: off
_BUTTON_NAMES: Final = {  # how the operator's error texts spell a button's type; Source: facts 5.2
    "QUICK_REPLY": "QuickReply", "URL": "Url", "PHONE_NUMBER": "PhoneNumber", "COPY_CODE": "CopyCode",
    "FLOW": "Flow", "CATALOG": "Catalog", "MPM": "Mpm", "SPM": "Spm",
}
_MEDIA: Final = ("IMAGE", "VIDEO", "DOCUMENT", "GIF", "LOCATION", "PRODUCT")
_ALWAYS_SENT: Final = ("IMAGE", "VIDEO", "DOCUMENT", "GIF", "LOCATION")  # Source: facts 4.2, media headers
# fmt: on

Shown = dict[str, Any]
"""What a phone shows: `text`, and where there are any `header`, `footer` and `buttons`."""


def shown_template(plan: TemplatePlan, given: Any) -> Shown:
    """Check the components of a send and fill the template in.

    Args:
        plan: the template.
        given: the send's `components`; may be absent.

    Raises:
        GraphRefused: for the first thing that does not fit the template.

    Source: facts 4.2, 5.2.
    """
    header: list[Any] = []
    body: list[Any] = []
    buttons: dict[int, dict[str, Any]] = {}
    cards = 0
    for component in _components(given):
        kind = str(component.get("type", "")).lower()
        parameters = a_list(component.get("parameters")) or []
        match kind:
            case "header":
                header = parameters
            case "body":
                body = parameters
            case "button":
                place = an_integer(component.get("index"))
                if place is None or not 0 <= place < len(plan.buttons):
                    raise message_refused(
                        131009, f"buttons: Button at index {component.get('index')} does not exist"
                    )
                buttons[place] = component
            case "carousel":
                cards = len(objects(component.get("cards")))
            case "limited_time_offer" | "footer" | "order_status":
                pass
            case _:
                raise message_refused(131009, f"components: unknown type {kind!r}")
    shown: Shown = {}
    if plan.header_format:
        shown["header"] = _header(plan, header)
    is_named = plan.template.parameter_format == "NAMED"
    shown["text"] = _filled("body", plan.body, body, is_named=is_named)
    if len(shown["text"]) > _BODY_AT_MOST:
        raise message_refused(132005, f"body: longer than {_BODY_AT_MOST} characters")
    if cards != plan.cards:
        raise message_refused(
            132012,
            f"carousel: number of cards ({cards}) does not match the template's ({plan.cards})",
        )
    if plan.footer:
        shown["footer"] = plan.footer
    if plan.buttons:
        shown["buttons"] = [
            _button(place, button, buttons.get(place)) for place, button in enumerate(plan.buttons)
        ]
    return shown


def _components(given: Any) -> list[dict[str, Any]]:
    if given is None:
        return []
    listed = a_list(given)
    components = objects(given)
    if listed is None or len(components) != len(listed):
        raise message_refused(131009, "components: must be an array of objects")
    return components


def _header(plan: TemplatePlan, given: list[Any]) -> dict[str, Any]:
    if plan.header_format == "TEXT":
        is_named = plan.template.parameter_format == "NAMED"
        text = _filled("header", plan.header, given, is_named=is_named)
        return {"format": "TEXT", "text": text}
    first = an_object(given[0]) if given else None
    received = str((first or {}).get("type", "UNKNOWN")).upper()
    if first is None and plan.header_format not in _ALWAYS_SENT:
        return {"format": plan.header_format}
    if first is None or received != plan.header_format:
        raise message_refused(
            132012,
            f"header: Format mismatch, expected {plan.header_format}, "
            f"received {received if received in (*_MEDIA, 'TEXT') else 'UNKNOWN'}",
        )
    content = an_object(first.get(received.lower()))
    if not content:
        raise message_refused(
            131008, f"header: Parameter of type {received.lower()} is missing its value"
        )
    return {"format": plan.header_format, received.lower(): content}


def _filled(component: str, plan: TextPlan, given: list[Any], *, is_named: bool) -> str:
    if len(given) != len(plan.names):
        raise message_refused(
            132000,
            f"{component}: number of localizable_params ({len(given)}) does not match the expected "
            f"number of params ({len(plan.names)})",
        )
    if not plan.names:
        return plan.fill({})
    values: dict[str, str] = {}
    for name, one in zip(plan.names, given, strict=True):
        parameter = an_object(one)
        if parameter is None:
            raise message_refused(131009, f"{component}: a parameter must be an object")
        values[_name(component, plan, parameter) if is_named else name] = _value(
            component, parameter
        )
    if len(values) != len(plan.names):
        raise message_refused(132000, f"{component}: a parameter_name is given twice")
    return plan.fill(values)


def _name(component: str, plan: TextPlan, parameter: Mapping[str, Any]) -> str:
    name = a_text(parameter.get("parameter_name"))
    if name is None or name not in plan.names:
        raise message_refused(
            132000, f"{component}: parameter_name {name!r} is none of {', '.join(plan.names)}"
        )
    return name


def _value(component: str, parameter: Mapping[str, Any]) -> str:
    match str(parameter.get("type", "")).lower():
        case "text":
            text = parameter.get("text")
        case "currency" | "date_time" as kind:  # the fallback is always what is shown
            text = (an_object(parameter.get(kind)) or {}).get("fallback_value")
        case kind:
            raise message_refused(
                132012,
                f"{component}: Format mismatch, expected TEXT, received {kind.upper() or 'UNKNOWN'}",
            )
    if not isinstance(text, str):
        raise message_refused(131008, f"{component}: Parameter of type text is missing text value")
    if not text:
        raise message_refused(132018, f"{component}: Param text cannot be empty")
    if _BAD_TEXT.search(text):
        raise message_refused(
            132018,
            "Param text cannot have new-line/tab characters or more than 4 consecutive spaces",
        )
    return text


def _button(place: int, plan: ButtonPlan, component: dict[str, Any] | None) -> dict[str, Any]:
    shown: dict[str, Any] = {"index": place, "type": plan.type, "text": plan.text}
    if component is None:
        if plan.needs_parameter:
            raise message_refused(
                131008,
                f"buttons: Button at index {place} of type {_BUTTON_NAMES[plan.type]} requires a parameter",
            )
        parameter: dict[str, Any] = {}
    else:
        sub_type = str(component.get("sub_type", "")).upper()
        if sub_type != plan.type:
            raise message_refused(
                132018,
                f"buttons: Button at index {place} must be of type "
                f"{_BUTTON_NAMES.get(plan.type, plan.type)}",
            )
        parameter = next(iter(objects(component.get("parameters"))), dict[str, Any]())
    match plan.type:
        case "QUICK_REPLY":
            shown["payload"] = _payload(place, plan, component, parameter)
        case "URL":
            shown["url"] = _url(place, plan, parameter)
        case "COPY_CODE":
            shown["code"] = _text_of(place, "CopyCode", parameter, "coupon_code")
        case "PHONE_NUMBER":
            shown["phone_number"] = plan.phone_number
        case _:
            pass
    return shown


def _payload(
    place: int, plan: ButtonPlan, component: dict[str, Any] | None, parameter: dict[str, Any]
) -> str:
    """The payload of the send, else the label. Source: facts 4.2."""
    if component is None or not parameter:
        return plan.text
    payload = _text_of(place, "QuickReply", parameter, "payload")
    if len(payload) > _PAYLOAD_AT_MOST:
        raise message_refused(
            131009,
            f"buttons: the payload at index {place} has at most {_PAYLOAD_AT_MOST} characters",
        )
    return payload


def _url(place: int, plan: ButtonPlan, parameter: dict[str, Any]) -> str:
    if not plan.url.names:
        if parameter:
            raise message_refused(
                132000,
                "buttons: number of localizable_params (1) does not match the expected number of "
                "params (0)",
            )
        return plan.url.fill({})
    return plan.url.fill({plan.url.names[0]: _text_of(place, "Url", parameter, "text")})


def _text_of(place: int, kind: str, parameter: dict[str, Any], member: str) -> str:
    text = a_text(parameter.get(member))
    if not text:
        raise message_refused(
            131008, f"buttons: Button at index {place} of type {kind} requires a parameter"
        )
    return text
