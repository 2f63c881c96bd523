"""Reading of submitted templates: enums in upper case, components by type."""

import re
from collections.abc import Mapping
from typing import Any, Final

from waypost.base.json_values import integer_or_none, list_or_none, object_or_none, objects_in
from waypost.simulator.apis.errors import bad_parameter, template_error
from waypost.simulator.apis.languages import LANGUAGES
from waypost.simulator.templates.template import SimulatedTemplate

CATEGORIES: Final = ("UTILITY", "MARKETING", "AUTHENTICATION")
COMPONENT_TYPES: Final = ("HEADER", "BODY", "FOOTER", "BUTTONS", "LIMITED_TIME_OFFER", "CAROUSEL")
CARD_COMPONENT_TYPES: Final = ("HEADER", "BODY", "BUTTONS")  # Source: facts 2.2, CAROUSEL
_TEMPLATE_NAME: Final = re.compile(r"[a-z0-9_]{1,512}")
SUB_CATEGORIES: Final = (  # Source: facts 3.1
    "ORDER_DETAILS", "ORDER_STATUS", "RICH_ORDER_STATUS", "BOOKING_STATUS",
    "FLIGHT_DELAY_AND_GATE_CHANGE_ALERT", "FRAUD_ALERT", "CALL_PERMISSIONS_REQUEST", "CUSTOM",
)  # fmt: skip
EXTRA_MEMBERS: Final = (  # Source: facts 2.1: members of a submission without an effect here
    "sub_category",
    "display_format",
    "cta_url_link_tracking_opted_out",
    "is_primary_device_delivery_only",
    "degrees_of_freedom_spec",
    "library_template_name",
)


def read_draft(fields: Mapping[str, Any], *, any_language: bool = False) -> SimulatedTemplate:
    """Read a submission; its template has no ids yet.

    Args:
        any_language: whether languages outside the operator's list are accepted.

    Raises:
        GraphApiError: code 100, for an invalid name, language, category or structure.

    Source: facts 2.1 to 2.3, 2.5.
    """
    name = fields.get("name")
    language = fields.get("language")
    if not isinstance(name, str) or not _TEMPLATE_NAME.fullmatch(name):
        raise template_error(
            None,
            "The name of a message template has 1 to 512 characters: lowercase letters, digits and underscores.",
            "Invalid template name",
        )
    if not isinstance(language, str) or not (language in LANGUAGES or (any_language and language)):
        raise bad_parameter(f"Param language must be a supported language code - got {language!r}.")
    category = str(fields.get("category", "")).upper()
    if category not in CATEGORIES:
        raise bad_parameter(f"Param category must be one of {{{', '.join(CATEGORIES)}}} - got {category!r}.")
    parameter_format = str(fields.get("parameter_format") or "POSITIONAL").upper()
    if parameter_format not in ("POSITIONAL", "NAMED"):
        raise bad_parameter("Param parameter_format must be one of {POSITIONAL, NAMED}.")
    ttl = fields.get("message_send_ttl_seconds")
    if ttl is not None and ttl != -1 and integer_or_none(ttl) is None:
        raise bad_parameter("Param message_send_ttl_seconds must be an integer.")
    components = fill_preset_texts(category, _read_components("components", fields.get("components"), COMPONENT_TYPES))
    return SimulatedTemplate(
        template_id="",
        waba_id="",
        name=name,
        language=language,
        category=category,
        components=components,
        parameter_format=parameter_format,
        message_send_ttl_seconds=integer_or_none(ttl),
        extras=_read_extras(fields),
    )


def _read_extras(fields: Mapping[str, Any]) -> dict[str, Any]:
    extras = {name: fields[name] for name in EXTRA_MEMBERS if fields.get(name) is not None}
    if "sub_category" in extras:
        extras["sub_category"] = str(extras["sub_category"]).upper()
        if extras["sub_category"] not in SUB_CATEGORIES:
            raise bad_parameter(f"Param sub_category must be one of {{{', '.join(SUB_CATEGORIES)}}}.")
    return extras


def _read_components(path: str, value: Any, types: tuple[str, ...]) -> list[dict[str, Any]]:
    raw_components = list_or_none(value)
    if raw_components is None or not raw_components:
        raise bad_parameter(f"Param {path} must be an array of components.")
    components: list[dict[str, Any]] = []
    for index, raw_component in enumerate(raw_components):
        component = object_or_none(raw_component)
        kind = str((component or {}).get("type", "")).upper()
        if component is None or kind not in types:
            raise bad_parameter(f"Param {path}[{index}]['type'] must be one of {{{', '.join(types)}}}.")
        if any(other["type"] == kind for other in components):
            raise template_error(None, f"There can be only one component of type {kind}.")
        components.append(_normalise_component(f"{path}[{index}]", {**component, "type": kind}))
    return components


def _normalise_component(path: str, component: dict[str, Any]) -> dict[str, Any]:
    match component["type"]:
        case "HEADER":
            component["format"] = str(component.get("format", "TEXT")).upper()
        case "BUTTONS":
            component["buttons"] = [
                {**button, "type": str(button.get("type", "")).upper()}
                for button in objects_in(component.get("buttons"))
            ]
        case "CAROUSEL":
            component["cards"] = [
                {
                    **card,
                    "components": _read_components(
                        f"{path}['cards'][{index}]['components']", card.get("components"), CARD_COMPONENT_TYPES
                    ),
                }
                for index, card in enumerate(objects_in(component.get("cards")))
            ]
        case _:
            pass
    return component


# Source: facts 2.2, "AUTHENTICATION preset text (English)"
_BODY: Final = "*{{1}}* is your verification code."
_SECURITY: Final = " For your security, do not share this code."
_FOOTER: Final = "This code expires in {minutes} minute{plural}."
_OTP_URL: Final = "https://www.whatsapp.com/otp/code/?otp_type={otp_type}&code=otp{{{{1}}}}"


def fill_preset_texts(category: str, components: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the components with the operator's own texts; those of other categories are unchanged.

    Source: facts 2.1, "Read-back differences", and 2.2.
    """
    if category != "AUTHENTICATION":
        return components
    return [_fill_component(component) for component in components]


def _fill_component(component: dict[str, Any]) -> dict[str, Any]:
    match component["type"]:
        case "BODY":
            security = _SECURITY if component.get("add_security_recommendation") is True else ""
            if component.get("text") not in (None, "", _BODY, _BODY + _SECURITY):
                raise template_error(2388072, "The body of an AUTHENTICATION template has no text of its own.")
            return {**component, "text": _BODY + security, "example": {"body_text": [["123456"]]}}
        case "FOOTER" if integer_or_none(component.get("code_expiration_minutes")) is not None:
            minutes = integer_or_none(component["code_expiration_minutes"])
            return {**component, "text": _FOOTER.format(minutes=minutes, plural="" if minutes == 1 else "s")}
        case "BUTTONS":
            return {**component, "buttons": [_fill_otp_button(button) for button in objects_in(component["buttons"])]}
        case _:
            return component


def _fill_otp_button(button: dict[str, Any]) -> dict[str, Any]:
    if button.get("type") != "OTP":
        return button
    otp_type = str(button.get("otp_type", "COPY_CODE")).upper()
    url = _OTP_URL.format(otp_type=otp_type)
    return {
        **button,
        "type": "URL",
        "otp_type": otp_type,
        "text": button.get("text") or "Copy code",
        "url": url,
        "example": [url.replace("{{1}}", "123456")],
    }
