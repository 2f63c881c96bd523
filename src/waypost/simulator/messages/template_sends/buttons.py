"""The buttons of a template message: a table of kinds, the parameters each takes, and its action on the phone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import object_or_none, objects_in, text_or_none
from waypost.simulator.errors import message_refused
from waypost.simulator.messages.template_sends.plans import ButtonPlan
from waypost.simulator.messages.template_sends.texts import check_text

_PAYLOAD_AT_MOST: Final = 256  # Source: facts 4.2, unconfirmed
_CODE_AT_MOST: Final = 15  # Source: facts 2.3, "OTP code at send"
_COUPON_AT_MOST: Final = 20  # Source: facts 2.3: 15 or 20, so the simulator takes 20
_SECTIONS_AT_MOST: Final = 10  # Source: facts 2.3, "MPM at send"
_PRODUCTS_AT_MOST: Final = 30  # Source: facts 2.3, "MPM at send"
_SECTION_TITLE_AT_MOST: Final = 24  # Source: facts 2.3, "MPM at send"

Parameter = dict[str, Any]


@dataclass(frozen=True)
class SendKind:
    """One row.

    Args:
        name: of the kind, in the operator's error texts.
        sub_type: of the kind, in a request.
        is_needed: whether a request must have a parameter for this button.
        shown: returns the members of the rendered button besides type and label; the parameter is empty
            if the request has none.
    """

    name: str
    sub_type: str
    is_needed: Callable[[ButtonPlan], bool]
    shown: Callable[[str, ButtonPlan, Parameter], dict[str, Any]]


def shown_button(place: str, index: int, plan: ButtonPlan, component: dict[str, Any] | None) -> dict[str, Any]:
    """Return one button as the phone shows it: `index`, `type`, `text`, and its action.

    Args:
        place: empty, or the card, for error texts.
        index: of the button.
        plan: the template's button.
        component: the request's component for it, if any.

    Raises:
        GraphApiError: 131008 for a missing parameter, 132018 for another type, 131009 and 132000 for
            a wrong parameter.

    Source: facts 4.2, 5.2.
    """
    kind = KINDS[plan.type]
    error_prefix = f"{place}buttons: Button at index {index}"
    parameter: Parameter = {}
    if component is None:
        if kind.is_needed(plan):
            raise message_refused(131008, f"{error_prefix} of type {kind.name} requires a parameter")
    else:
        if str(component.get("sub_type", "")).lower() != kind.sub_type:
            raise message_refused(132018, f"{error_prefix} must be of type {kind.name}")
        parameter = next(iter(objects_in(component.get("parameters"))), Parameter())
    rendered: dict[str, Any] = {"index": index, "type": plan.type, "text": plan.text}
    return rendered | kind.shown(error_prefix, plan, parameter)


def _text(words: str, plan: ButtonPlan, parameter: Parameter, member: str) -> str:
    text = text_or_none(parameter.get(member))
    if not text:
        name = KINDS[plan.type].name
        raise message_refused(131008, f"{words} of type {name} requires a parameter")
    return text


def _action(parameter: Parameter) -> dict[str, Any]:
    return object_or_none(parameter.get("action")) or {}


def _quick_reply(words: str, plan: ButtonPlan, parameter: Parameter) -> dict[str, Any]:
    """Return the payload of the request, or the label if it has none. Source: facts 4.2."""
    if not parameter:
        return {"payload": plan.text}
    payload = _text(words, plan, parameter, "payload")
    if len(payload) > _PAYLOAD_AT_MOST:
        raise message_refused(131009, f"{words}: the payload has at most {_PAYLOAD_AT_MOST} characters")
    return {"payload": payload}


def _url(words: str, plan: ButtonPlan, parameter: Parameter) -> dict[str, Any]:
    if not plan.url.names:
        if parameter:
            raise message_refused(
                132000, "buttons: number of localizable_params (1) does not match the expected number of params (0)"
            )
        return {"url": plan.url.fill({})}
    text = _text(words, plan, parameter, "text")
    check_text("buttons", text)
    return {"url": plan.url.fill({plan.url.names[0]: text})}


def _phone_number(_words: str, plan: ButtonPlan, _parameter: Parameter) -> dict[str, Any]:
    return {"phone_number": plan.given("phone_number")}


def _copy_code(words: str, plan: ButtonPlan, parameter: Parameter) -> dict[str, Any]:
    code = _text(words, plan, parameter, "coupon_code")
    if len(code) > _COUPON_AT_MOST:
        raise message_refused(131009, f"{words}: the coupon_code has at most {_COUPON_AT_MOST} characters")
    return {"code": code}


def _one_time_code(words: str, plan: ButtonPlan, parameter: Parameter) -> dict[str, Any]:
    code = _text(words, plan, parameter, "text")
    check_code(words, code)
    rendered = {"otp_type": plan.given("otp_type"), "code": code}
    if plan.given("autofill_text"):
        rendered["autofill_text"] = plan.given("autofill_text")
    return rendered


def check_code(words: str, code: str) -> None:
    """Check a one-time code.

    Raises:
        GraphApiError: 132018.

    Source: facts 2.3, "OTP code at send".
    """
    check_text(words, code)
    if len(code) > _CODE_AT_MOST:
        raise message_refused(132018, f"{words}: a code has at most {_CODE_AT_MOST} characters")
    if "://" in code or not code.isprintable() or any(ord(character) > 0x2000 for character in code):
        raise message_refused(132018, f"{words}: a code holds no address and no emoji")


def _flow(_words: str, plan: ButtonPlan, parameter: Parameter) -> dict[str, Any]:
    action = _action(parameter)
    rendered: dict[str, Any] = {
        "flow_id": str(plan.submitted.get("flow_id") or ""),
        "flow_token": text_or_none(action.get("flow_token")) or "unused",
        "flow_action": plan.given("flow_action").lower() or "navigate",
    }
    optional_members = {
        "flow_name": plan.given("flow_name"),
        "screen": plan.given("navigate_screen"),
        "flow_action_data": object_or_none(action.get("flow_action_data")),
    }
    return rendered | {name: value for name, value in optional_members.items() if value}


def _catalog(_words: str, _plan: ButtonPlan, parameter: Parameter) -> dict[str, Any]:
    thumbnail = text_or_none(_action(parameter).get("thumbnail_product_retailer_id"))
    return {"thumbnail_product_retailer_id": thumbnail} if thumbnail else {}


def _products(words: str, plan: ButtonPlan, parameter: Parameter) -> dict[str, Any]:
    sections = objects_in(_action(parameter).get("sections"))
    return _catalog(words, plan, parameter) | {"sections": checked_sections(words, sections)}


def checked_sections(words: str, sections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Check sections of products: at most 10, with at most 30 products in all.

    Raises:
        GraphApiError: 131008 or 131009.

    Source: facts 2.3, "MPM at send".
    """
    if not sections:
        raise message_refused(131008, f"{words} requires sections with products")
    if len(sections) > _SECTIONS_AT_MOST:
        raise message_refused(131009, f"{words}: at most {_SECTIONS_AT_MOST} sections")
    count = 0
    for section in sections:
        title = text_or_none(section.get("title")) or ""
        if len(title) > _SECTION_TITLE_AT_MOST or (not title and len(sections) > 1):
            raise message_refused(131009, f"{words}: a section's title has 1 to {_SECTION_TITLE_AT_MOST} characters")
        items = objects_in(section.get("product_items"))
        if not items or not all(text_or_none(item.get("product_retailer_id")) for item in items):
            raise message_refused(131008, f"{words}: a section has product_items, each with a product_retailer_id")
        count += len(items)
    if count > _PRODUCTS_AT_MOST:
        raise message_refused(131009, f"{words}: at most {_PRODUCTS_AT_MOST} products")
    return sections


def _nothing(_words: str, _plan: ButtonPlan, _parameter: Parameter) -> dict[str, Any]:
    return {}


def _always(_plan: ButtonPlan) -> bool:
    return True


def _never(_plan: ButtonPlan) -> bool:
    return False


def _has_variable(plan: ButtonPlan) -> bool:
    return bool(plan.url.names)


# fmt: off
KINDS: Final = {  # Source: facts 4.2
    #                                 name                  sub_type                 needed         render
    "QUICK_REPLY":          SendKind("QuickReply",          "quick_reply",           _never,        _quick_reply),
    "URL":                  SendKind("Url",                 "url",                   _has_variable, _url),
    "PHONE_NUMBER":         SendKind("PhoneNumber",         "phone_number",          _never,        _phone_number),
    "COPY_CODE":            SendKind("CopyCode",            "copy_code",             _always,       _copy_code),
    "OTP":                  SendKind("Url",                 "url",                   _always,       _one_time_code),
    "FLOW":                 SendKind("Flow",                "flow",                  _never,        _flow),
    "CATALOG":              SendKind("Catalog",             "catalog",               _never,        _catalog),
    "MPM":                  SendKind("Mpm",                 "mpm",                   _always,       _products),
    "SPM":                  SendKind("Spm",                 "spm",                   _never,        _nothing),
    "VOICE_CALL":           SendKind("VoiceCall",           "voice_call",            _never,        _nothing),
    "REQUEST_CONTACT_INFO": SendKind("RequestContactInfo",  "request_contact_info",  _never,        _nothing),
}
# fmt: on
