"""The words of the editor's labels, in place of the wire's names in the text of a finding."""

import re
from collections.abc import Mapping
from typing import Final

from waypost.domain.templates.fields import TEMPLATE_FIELDS
from waypost.domain.templates.types import TEMPLATE_TYPES

# fmt: off
KIND_LABELS: Final = {
    "QUICK_REPLY": "Quick reply", "URL": "Open URL", "PHONE_NUMBER": "Call number", "COPY_CODE": "Copy offer code",
    "OTP": "One-time code", "FLOW": "Open flow", "MPM": "View products", "CATALOG": "View catalogue",
}
OTP_LABELS: Final = {"COPY_CODE": "Copy code", "ONE_TAP": "One-tap autofill", "ZERO_TAP": "Zero-tap"}
CATEGORY_LABELS: Final = {"UTILITY": "Utility", "MARKETING": "Marketing", "AUTHENTICATION": "Authentication"}
FIELD_NAMES: Final = {  # by the wire's name; fields with a label of their own are added from the table of fields
    "elementName": "Name", "languageCode": "Language", "category": "Category", "templateType": "Type",
    "vertical": "Topic", "content": "Body", "example": "Sample of the body", "header": "Header",
    "exampleHeader": "Sample of the header", "footer": "Footer", "buttons": "Buttons", "cards": "Cards",
    "exampleMedia": "Sample file", "mediaId": "Sample file", "mediaUrl": "Public URL of the sample",
    "enableSample": "Sample", "isLTO": "Limited-time offer", "limitedOfferText": "Offer text",
    "hasExpiration": "Show expiry time", "addSecurityRecommendation": "Recommendation not to share the code",
    "codeExpirationMinutes": "Code expiry", "messageValidity": "Validity period", "parameterFormat": "Variable format",
    **{field.name: field.label for field in TEMPLATE_FIELDS if field.label},
}
BUTTON_FIELD_NAMES: Final = {
    "type": "kind", "text": "Label", "url": "URL", "example": "Sample", "phone_number": "Phone number",
    "otp_type": "Code delivery", "autofill_text": "Label of the autofill button", "package_name": "Your Android apps",
    "signature_hash": "Your Android apps", "supported_apps": "Your Android apps",
    "zero_tap_terms_accepted": "Terms for zero-tap codes", "flow_id": "Flow ID", "flow_action": "Start with",
    "navigate_screen": "First screen", "icon": "Icon", "payment_link_preview": "Payment link preview",
}
CARD_FIELD_NAMES: Final = {
    "headerType": "Media", "body": "Card text", "sampleText": "Sample of the card text", "exampleMedia": "Sample file",
    "mediaId": "Sample file", "mediaUrl": "Public URL of the sample", "buttons": "Buttons",
}
_VALUE_LABELS: Final = {  # values that the editor shows in other words
    **CATEGORY_LABELS, **{name: row.label for name, row in TEMPLATE_TYPES.items()},
    "POSITIONAL": "numbered", "NAMED": "named", "NAVIGATE": "a screen", "DATA_EXCHANGE": "a request to your endpoint",
}
# fmt: on
_PLACE: Final = re.compile(r"(?:cards\[(\d+)\]\.?)?(?:buttons\[(\d+)\]\.?)?([\w.\[\]]*)")
_SINGULAR: Final = re.compile(r"^is ")
_FLAG_VALUES: Final = re.compile(r"\b(must be|is) (true|false)\b")
_NAMES_IN_TEXT: Final = (
    {  # of the wire, not words of the language
        name: label[:1].lower() + label[1:]
        for names in (FIELD_NAMES, BUTTON_FIELD_NAMES, CARD_FIELD_NAMES)
        for name, label in names.items()
        if not name.islower() or "_" in name
    }
    | {"mediaId": "media ID"}
)


def field_label(field: str) -> str:
    """Return the label of a field that a finding names, such as `Card 2, button 1, URL` for `cards[1].buttons[0].url`."""
    match = _PLACE.fullmatch(field)
    if match is None:
        return field
    card, button, name = match[1], match[2], re.split(r"[.\[]", match[3])[0]
    parts = [
        f"Card {int(card) + 1}" if card else "",
        f"{'b' if card else 'B'}utton {int(button) + 1}" if button else "",
    ]
    names: Mapping[str, str] = BUTTON_FIELD_NAMES if button else CARD_FIELD_NAMES if card else FIELD_NAMES
    return ", ".join(part for part in (*parts, names.get(name, name)) if part)


def label_text(text: str, field: str, rule: str = "") -> str:
    """Return the text of a finding in the words of the labels.

    Args:
        text: begins with the field, or does not name it.
        field: such as `buttons[0].url`.
        rule: its id: buttons of one-time codes name some values differently.
    """
    if not field or not text.startswith(f"{field} "):
        return _replace_names(text, field, rule)
    label, rest = field_label(field), _replace_names(text[len(field) + 1 :], field, rule)
    return f"{label} {_SINGULAR.sub('are ', rest) if label.endswith('s') else rest}"


def _replace_names(text: str, field: str, rule: str) -> str:
    is_code = rule.startswith("otp-") or "otp_type" in field
    kinds = {name: label for name, label in KIND_LABELS.items() if name != "URL"}  # a word of the language, too
    words = {**kinds, **_VALUE_LABELS, **_NAMES_IN_TEXT}
    if "button" in field:
        words |= kinds
    if is_code:
        words |= OTP_LABELS
    text = _FLAG_VALUES.sub(lambda match: f"{match[1]} {'on' if match[2] == 'true' else 'off'}", text)
    return re.sub(r"(?<![{\w])\w+(?![}\w])", lambda match: words.get(match[0], match[0]), text)
