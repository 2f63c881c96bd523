"""Preset texts of AUTHENTICATION templates, and one-time code buttons as they are read back."""

from typing import Any, Final

from waypost.base.json_values import integer_or_none, objects_in
from waypost.simulator.errors import template_error

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
