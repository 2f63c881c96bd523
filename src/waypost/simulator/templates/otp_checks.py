"""Checks of AUTHENTICATION templates: their components, and the one-time code button."""

import re
from typing import Any, Final

from waypost.base.json_values import integer_or_none, object_or_none, objects_in, text_or_none
from waypost.simulator.templates.drafts import SubmittedTemplate

_OTP_TYPES: Final = ("COPY_CODE", "ONE_TAP", "ZERO_TAP")
_MAX_SUPPORTED_APPS: Final = 5  # Source: facts 2.2, notes
_MAX_PACKAGE_CHARS: Final = 224
_PACKAGE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+")
_SIGNATURE: Final = re.compile(r"[A-Za-z0-9+/=]{11}")
_ALLOWED_COMPONENTS: Final = frozenset({"BODY", "FOOTER", "BUTTONS"})


def authentication_malformed(draft: SubmittedTemplate) -> str | None:
    """Return the violation of an AUTHENTICATION template, or of a code button elsewhere; None if there is none.

    Source: facts 2.2, 2.3.
    """
    codes = [button for button in draft.buttons() if "otp_type" in button]
    if draft.category != "AUTHENTICATION":
        has_code_button = codes or any(button["type"] == "OTP" for button in draft.buttons())
        return "An OTP button is for AUTHENTICATION templates." if has_code_button else None
    extra = sorted(set(draft.components_by_type) - _ALLOWED_COMPONENTS)
    if extra:
        return f"An AUTHENTICATION template has no component of type {extra[0]}."
    recommends = draft.components_by_type.get("BODY", {}).get("add_security_recommendation", False)
    if not isinstance(recommends, bool):
        return "The add_security_recommendation is true or false."
    footer = draft.components_by_type.get("FOOTER")
    if footer is not None:
        minutes = integer_or_none(footer.get("code_expiration_minutes"))
        if minutes is None or not 1 <= minutes <= 90:
            return "The code_expiration_minutes are 1 to 90."
    if len(codes) != 1 or len(draft.buttons()) != 1:
        return "An AUTHENTICATION template has one button of type OTP."
    return _code_malformed(codes[0])


def _code_malformed(button: dict[str, Any]) -> str | None:
    otp_type = button["otp_type"]
    if otp_type not in _OTP_TYPES:
        return f"The otp_type is one of {', '.join(_OTP_TYPES)}."
    if otp_type == "COPY_CODE":
        return None
    if "package_name" in button or "signature_hash" in button:  # Source: facts 2.2: until v20
        return "The package_name and the signature_hash belong into supported_apps."
    if otp_type == "ZERO_TAP" and button.get("zero_tap_terms_accepted") is not True:
        return "A ZERO_TAP button needs zero_tap_terms_accepted to be true."
    apps = objects_in(button.get("supported_apps"))
    if not 1 <= len(apps) <= _MAX_SUPPORTED_APPS:
        return f"A {otp_type} button has 1 to {_MAX_SUPPORTED_APPS} supported_apps."
    pairs = {(text_or_none(app.get("package_name")), text_or_none(app.get("signature_hash"))) for app in apps}
    if len(pairs) < len(apps):
        return "Your apps must contain unique package name and signature hash pairs."
    for app in apps:
        violation = _app_malformed(object_or_none(app) or {})
        if violation:
            return violation
    return None


def _app_malformed(app: dict[str, Any]) -> str | None:
    """Return the violation of an app; None if there is none. Source: facts 2.3, `package_name` and `signature_hash`."""
    package = text_or_none(app.get("package_name")) or ""
    if len(package) > _MAX_PACKAGE_CHARS or not _PACKAGE.fullmatch(package):
        return (
            f"A package_name has at most {_MAX_PACKAGE_CHARS} characters, and two or more segments "
            "that each begin with a letter."
        )
    if not _SIGNATURE.fullmatch(text_or_none(app.get("signature_hash")) or ""):
        return "A signature_hash has exactly 11 characters."
    return None
