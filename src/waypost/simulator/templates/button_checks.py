"""Checks of a template's buttons at submission: a table of kinds, and the combinations of kinds that are allowed."""

import itertools
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from waypost.base.json_values import integer_or_none, objects_in, text_or_none, texts_in
from waypost.simulator.apis.errors import GraphApiError, template_error
from waypost.simulator.templates.template import SimulatedTemplate
from waypost.simulator.templates.text_variables import VARIABLE, has_breaks, has_emoji, has_markup, variables

_OTP_TYPES: Final = ("COPY_CODE", "ONE_TAP", "ZERO_TAP")
_MAX_SUPPORTED_APPS: Final = 5  # Source: facts 2.2, notes
_MAX_PACKAGE_CHARS: Final = 224
_PACKAGE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+")
_SIGNATURE: Final = re.compile(r"[A-Za-z0-9+/=]{11}")
_ALLOWED_COMPONENTS: Final = frozenset({"BODY", "FOOTER", "BUTTONS"})


def authentication_malformed(draft: SimulatedTemplate) -> str | None:
    """Return the violation of an AUTHENTICATION template, or of a code button elsewhere; None if there is none.

    Source: facts 2.2, 2.3.
    """
    codes = [button for button in draft.buttons if "otp_type" in button]
    if draft.category != "AUTHENTICATION":
        has_code_button = codes or any(button["type"] == "OTP" for button in draft.buttons)
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
    if len(codes) != 1 or len(draft.buttons) != 1:
        return "An AUTHENTICATION template has one button of type OTP."
    return _code_malformed(codes[0])


def _code_malformed(button: dict[str, Any]) -> str | None:
    """Return the violation of a code button; None if there is none. Source: facts 2.3, of its apps, too."""
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
    pairs = [[text_or_none(app.get(name)) or "" for name in ("package_name", "signature_hash")] for app in apps]
    if len(set(map(tuple, pairs))) < len(apps):
        return "Your apps must contain unique package name and signature hash pairs."
    for package, signature in pairs:
        if len(package) > _MAX_PACKAGE_CHARS or not _PACKAGE.fullmatch(package):
            return (
                f"A package_name has at most {_MAX_PACKAGE_CHARS} characters, and two or more segments "
                "that each begin with a letter."
            )
        if not _SIGNATURE.fullmatch(signature):
            return "A signature_hash has exactly 11 characters."
    return None


_MAX_BUTTONS: Final = 10  # Source: facts 2.3, "Buttons total"
_MAX_LABEL_CHARS: Final = 25  # Source: facts 2.3, "Button label"
_PLAIN_LABEL_TEXT: Final = "Buttons can't have any variables, newlines, emojis or formatting characters."
_LINK: Final = re.compile(r"(?i)https?://|[a-z0-9-]{2}\.[a-z]{2}")
_OPERATOR_HOSTS: Final = ("whatsapp.com", "wa.me")
_PAYMENT_PATHS: Final = ("/pay/", "/in/bill/reminder/")


class ButtonRule(NamedTuple):
    """One row: how many buttons of a kind a template may have, and the check of one button."""

    max_count: int
    stands_alone: bool
    needs_label: bool
    find_violation: Callable[[dict[str, Any]], str | None] = lambda _: None


def check_buttons(component: dict[str, Any] | None) -> None:
    """Check the buttons against the table.

    Raises:
        GraphApiError: code 100, without a subcode: the operator documents none for buttons.

    Source: facts 2.3.
    """
    if component is None:
        return
    buttons = objects_in(component.get("buttons"))
    if not 1 <= len(buttons) <= _MAX_BUTTONS:
        raise _button_error(f"A BUTTONS component has 1 to {_MAX_BUTTONS} buttons.")
    for index, button in enumerate(buttons):
        _check_button(index, button)
    counts = Counter(button["type"] for button in buttons)
    for kind, count in counts.items():
        if count > BUTTON_RULES[kind].max_count:
            raise _button_error(f"There can be at most {BUTTON_RULES[kind].max_count} buttons of type {kind}.")
        if BUTTON_RULES[kind].stands_alone and len(buttons) > 1:
            raise _button_error(f"A button of type {kind} stands alone.")
    runs = [is_reply for is_reply, _ in itertools.groupby(buttons, lambda button: button["type"] == "QUICK_REPLY")]
    if runs.count(True) > 1 or runs.count(False) > 1:
        raise _button_error("Invalid combination of buttons: quick replies stand next to each other.")
    labels = [label.strip() for button in buttons if (label := text_or_none(button.get("text")))]
    if len(set(labels)) < len(labels):
        raise _button_error("You can't enter the same text for multiple buttons.")


def _check_button(index: int, button: dict[str, Any]) -> None:
    kind = BUTTON_RULES.get(button["type"])
    if kind is None:
        raise _button_error(f"Button {index}: the type is one of {', '.join(BUTTON_RULES)}.")
    label = text_or_none(button.get("text"))
    if kind.needs_label and not (label and label.strip()):
        raise _button_error(f"Button {index}: a text is required.")
    for text in filter(None, (label, text_or_none(button.get("autofill_text")))):
        if len(text) > _MAX_LABEL_CHARS:
            raise _button_error(f"Button {index}: the text has at most {_MAX_LABEL_CHARS} characters.")
        if "{{" in text or "}}" in text or has_breaks(text) or has_emoji(text) or has_markup(text):
            raise template_error(2388060, _PLAIN_LABEL_TEXT)
        if "otp_type" in button and _LINK.search(text):
            raise _button_error("Links are not supported in the button text.")
    if "otp_type" in button:  # whose URL is the operator's
        return
    if violation := kind.find_violation(button):
        raise _button_error(f"Button {index}: {violation}")
    if button["type"] == "URL":
        _check_url_use(button)


def _check_url_use(button: dict[str, Any]) -> None:
    """Check that a URL leads to no page of the operator but its payments, and has an example. Source: facts 2.4."""
    url = str(button["url"])
    parts = urlsplit(VARIABLE.sub("", url))
    host = (parts.hostname or "").lower()
    is_operators = any(host == name or host.endswith(f".{name}") for name in _OPERATOR_HOSTS)
    if is_operators and not f"{parts.path}/".startswith(_PAYMENT_PATHS):
        raise template_error(2388081, "Direct links to WhatsApp aren't allowed for buttons.")
    example = button.get("example")
    samples = texts_in(example) or ([example] if isinstance(example, str) else [])
    if variables(url) and not any(sample and not variables(sample) for sample in samples):
        raise template_error(2388043, "component of type BUTTONS is missing expected field(s) (example)")


def _button_error(message: str) -> GraphApiError:
    return template_error(None, message, "Message template buttons are incorrect")


def _url_violation(button: dict[str, Any]) -> str | None:
    url = text_or_none(button.get("url")) or ""
    if not url or len(url) > 2000:
        return "the url has 1 to 2000 characters."
    plain_url = VARIABLE.sub("", url)
    try:
        parts = urlsplit(plain_url)
    except ValueError:
        return "the url is a valid address."
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"[\s{}]", plain_url):
        return "the url is a valid address with http or https."
    names = variables(url)
    if not names:
        return None
    if names != ["1"] or not url.endswith("{{1}}") or url.count("{{") > 1:
        return "the url can have one variable, {{1}}, at its very end."
    return None


def _phone_number_violation(button: dict[str, Any]) -> str | None:
    number = text_or_none(button.get("phone_number")) or ""
    if not re.fullmatch(r"\+?[0-9 ()-]{5,20}", number) or len(number) > 20:
        return "the phone_number is a phone number of at most 20 characters."
    return None


def _copy_code_violation(button: dict[str, Any]) -> str | None:
    example = button.get("example")
    code = example if isinstance(example, str) else next(iter(texts_in(example)), "")
    return None if 1 <= len(code) <= 20 else "the example has 1 to 20 characters."


# fmt: off
BUTTON_RULES: Final = {  # Source: facts 2.3
    #                                 max      alone  label  violation
    "QUICK_REPLY":          ButtonRule(10, False, True),
    "URL":                  ButtonRule(2,  False, True,  _url_violation),
    "PHONE_NUMBER":         ButtonRule(1,  False, True,  _phone_number_violation),
    "COPY_CODE":            ButtonRule(1,  False, False, _copy_code_violation),
    "OTP":                  ButtonRule(1,  True,  False),
    "FLOW":                 ButtonRule(1,  False, True),
    "CATALOG":              ButtonRule(1,  True,  True),
    "MPM":                  ButtonRule(1,  True,  True),
    "SPM":                  ButtonRule(1,  True,  True),
    "VOICE_CALL":           ButtonRule(1,  False, True),
    "REQUEST_CONTACT_INFO": ButtonRule(1,  False, True),
}
# fmt: on
