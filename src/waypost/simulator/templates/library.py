"""The template library: predefined utility templates with our own texts, and creating a template from it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import object_or_none, objects_in, text_or_none
from waypost.simulator.apis.errors import bad_parameter, template_error


@dataclass(frozen=True)
class SimulatedLibraryTemplate:
    """One predefined template; its category is always UTILITY.

    Args:
        buttons: kind (`URL` or `PHONE_NUMBER`) and label; the business supplies the URL or number.
    """

    id: str
    name: str
    language: str
    topic: str
    usecase: str
    industry: tuple[str, ...]
    header: str
    body: str
    body_params: tuple[str, ...]  # an example for each variable of the body
    param_types: tuple[str, ...]  # the type of each variable
    buttons: tuple[tuple[str, str], ...]


_SHOPS: Final = ("E_COMMERCE",)
_BANKS: Final = ("FINANCIAL_SERVICES",)

LIBRARY: Final = (  # the texts are ours: the operator's own library is not reproduced here
    SimulatedLibraryTemplate(
        "9000000000000101", "order_on_its_way", "en_US", "ORDER_MANAGEMENT", "SHIPMENT_CONFIRMATION",
        _SHOPS, "Your order has left us",
        "Hello {{1}}, your order {{2}} left our warehouse today. We expect it at your address on "
        "{{3}}, and will write again when it is at the door.",
        ("Ann", "PX-9", "5 May"), ("TEXT", "TEXT", "DATE"), (("URL", "Follow the parcel"),),
    ),
    SimulatedLibraryTemplate(
        "9000000000000102", "order_on_its_way", "en_GB", "ORDER_MANAGEMENT", "SHIPMENT_CONFIRMATION",
        _SHOPS, "Your order has left us",
        "Hello {{1}}, your order {{2}} left our depot today. We expect it at your house on {{3}}, "
        "and will write again when it is on the doorstep.",
        ("Ann", "PX-9", "5 May"), ("TEXT", "TEXT", "DATE"), (("URL", "Follow the parcel"),),
    ),
    SimulatedLibraryTemplate(
        "9000000000000103", "order_ready_to_collect", "en_US", "ORDER_MANAGEMENT", "ORDER_PICK_UP",
        _SHOPS, "Ready for you",
        "Hello {{1}}, everything in your order {{2}} is packed and waits for you in our shop until "
        "{{3}}. Please bring this message along when you come.",
        ("Ann", "PX-9", "5 May"), ("TEXT", "TEXT", "DATE"), (("PHONE_NUMBER", "Call the shop"),),
    ),
    SimulatedLibraryTemplate(
        "9000000000000104", "payment_is_due", "en_US", "PAYMENTS", "PAYMENT_DUE_REMINDER",
        _BANKS, "A payment is due",
        "Hello {{1}}, this is a reminder that your payment of {{2}} is due on {{3}}. If you have "
        "already paid, there is nothing left for you to do.",
        ("Ann", "$24.00", "5 May"), ("TEXT", "AMOUNT", "DATE"),
        (("URL", "Pay now"), ("PHONE_NUMBER", "Call us")),
    ),
    SimulatedLibraryTemplate(
        "9000000000000105", "appointment_tomorrow", "en_US", "EVENT_REMINDER",
        "APPOINTMENT_REMINDER", ("HEALTH", "BEAUTY"), "See you soon",
        "Hello {{1}}, your appointment is tomorrow at {{2}}. If you cannot come, please tell us "
        "today, so that another customer can have your place.",
        ("Ann", "10:30"), ("TEXT", "TEXT"), (("URL", "Change the time"),),
    ),
    SimulatedLibraryTemplate(
        "9000000000000106", "how_was_it", "en_US", "CUSTOMER_FEEDBACK", "FEEDBACK_SURVEY",
        _SHOPS, "",
        "Hello {{1}}, thank you for your order {{2}} with us. Would you answer three short "
        "questions, so that the next one goes even better?",
        ("Ann", "PX-9"), ("TEXT", "TEXT"), (("URL", "Answer now"),),
    ),
)  # fmt: skip

_PLACEHOLDERS: Final = {"URL": "https://www.example.com/", "PHONE_NUMBER": "+15550001111"}
_PHONE_NUMBER: Final = re.compile(r"\+?[0-9][0-9 ()-]{6,24}")


def library_view(template: SimulatedLibraryTemplate) -> dict[str, Any]:
    """Return a template of the library as the operator shows it."""
    view: dict[str, Any] = {
        "name": template.name,
        "language": template.language,
        "category": "UTILITY",
        "topic": template.topic,
        "usecase": template.usecase,
        "industry": list(template.industry),
        "body": template.body,
        "body_params": list(template.body_params),
        "body_param_types": list(template.param_types),
        "buttons": [_build_button(kind, label, {}) for kind, label in template.buttons],
        "id": template.id,
    }
    if template.header:
        view["header"] = template.header
    return view


def draft_from_library(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the submission for a request that names a template of the library.

    Raises:
        GraphApiError: the library has no such template, or the category is not UTILITY.

    Source: facts 2.1; the operator's page "Template library".
    """
    library_name, language = fields.get("library_template_name"), fields.get("language")
    matches = [template for template in LIBRARY if template.name == library_name and template.language == language]
    if not matches:
        raise template_error(
            None,
            f"There is no template {library_name} in {language} in the template library.",
            "Library template not found",
        )
    if str(fields.get("category", "UTILITY")).upper() != "UTILITY":
        raise bad_parameter("Param category must be UTILITY for a template of the library.")
    template = matches[0]
    components: list[dict[str, Any]] = []
    if template.header:
        components.append({"type": "HEADER", "format": "TEXT", "text": template.header})
    example = {"body_text": [list(template.body_params)]}
    components.append({"type": "BODY", "text": template.body, "example": example})
    inputs = objects_in(fields.get("library_template_button_inputs"))
    buttons = [
        _build_button(kind, label, _find_button_input(kind, inputs, index))
        for index, (kind, label) in enumerate(template.buttons)
    ]
    components.append({"type": "BUTTONS", "buttons": buttons})
    return {
        "name": fields.get("name"),
        "language": template.language,
        "category": "UTILITY",
        "components": components,
        "library_template_name": template.name,
    }


def _find_button_input(kind: str, inputs: list[dict[str, Any]], index: int) -> dict[str, Any]:
    if not inputs:
        return {}
    if index >= len(inputs) or str(inputs[index].get("type", "")).upper() != kind:
        raise bad_parameter(f"Param library_template_button_inputs must have an input of type {kind} at index {index}.")
    return inputs[index]


def _build_button(kind: str, label: str, button_input: dict[str, Any]) -> dict[str, Any]:
    button: dict[str, Any] = {"type": kind, "text": label}
    if kind == "PHONE_NUMBER":
        number = text_or_none(button_input.get("phone_number")) or _PLACEHOLDERS[kind]
        if not _PHONE_NUMBER.fullmatch(number):
            raise bad_parameter("Param library_template_button_inputs has no readable phone_number.")
        return {**button, "phone_number": number}
    url = object_or_none(button_input.get("url")) or {}
    button["url"] = text_or_none(url.get("base_url")) or _PLACEHOLDERS[kind]
    suffix = text_or_none(url.get("url_suffix_example"))
    if suffix and button["url"].endswith("{{1}}"):
        button["example"] = [suffix]
    return button


_FILTERED_MEMBERS: Final = ("language", "topic", "usecase", "industry")


def _matches_value(value: str | tuple[str, ...], filter_value: str | None) -> bool:
    options = {option.strip().strip('"').upper() for option in (filter_value or "").strip("[]").split(",")}
    values = {value} if isinstance(value, str) else set(value)
    return not filter_value or bool({member.upper() for member in values} & options)


def is_in_library_query(template: SimulatedLibraryTemplate, query: Mapping[str, str]) -> bool:
    """True if a template passes every filter of a query. Source: the operator's page "Template library"."""
    phrase = (query.get("search") or query.get("name_or_content") or "").lower()
    return (
        any(phrase in text.lower() for text in (template.name, template.header, template.body))
        and query.get("name") in (None, "", template.name)
        and all(_matches_value(getattr(template, name), query.get(name)) for name in _FILTERED_MEMBERS)
    )
