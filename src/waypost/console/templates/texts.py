"""Texts of the template pages: labels, kinds of changes, and languages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from waypost.domain.templates.buttons import TemplateButton
from waypost.domain.templates.fields import TEMPLATE_FIELDS, FieldFormat, TemplateDraft
from waypost.domain.templates.types import LANGUAGES, TEMPLATE_TYPES, canonical_language
from waypost.domain.templates.variables import named_examples

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
    """Return the label of a field that a finding names: `Card 2, button 1, URL` for `cards[1].buttons[0].url`."""
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


_TOKENS: Final = re.compile(r"\{\{[^{}]*\}\}|\w+|\s+|.", re.DOTALL)
_PARTS: Final = (FieldFormat.BUTTONS, FieldFormat.CARDS)
_UNCOMPARED: Final = ("enableSample", "example", "exampleHeader")
"""Fields that follow from others, and the samples, which are compared by their variables."""


class TextChange(NamedTuple):
    """A part of a text; kind: `same`, `removed` or `added`."""

    kind: str
    text: str


class FieldChange(NamedTuple):
    """One field that differs, with its label in the editor; both versions in one, in order."""

    label: str
    parts: Sequence[TextChange]


def compare_drafts(approved: TemplateDraft, draft: TemplateDraft) -> list[FieldChange]:
    """Return the fields that differ, in the order of the table of fields, then buttons and cards."""
    before, after = dict(_texts(approved)), dict(_texts(draft))
    labels = [*after, *(label for label in before if label not in after)]
    return [
        FieldChange(label, compare_texts(before.get(label, ""), after.get(label, "")))
        for label in labels
        if before.get(label, "") != after.get(label, "")
    ]


def compare_texts(before: str, after: str) -> list[TextChange]:
    """Return two texts as one, with the words that were removed and added."""
    old, new = _TOKENS.findall(before), _TOKENS.findall(after)
    parts: list[TextChange] = []
    for kind, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            parts.append(TextChange("same", "".join(new[new_from:new_to])))
            continue
        if old_to > old_from:
            parts.append(TextChange("removed", "".join(old[old_from:old_to])))
        if new_to > new_from:
            parts.append(TextChange("added", "".join(new[new_from:new_to])))
    return parts


def _texts(draft: TemplateDraft) -> Iterator[tuple[str, str]]:
    for field in TEMPLATE_FIELDS:
        if field.format not in _PARTS and field.name not in _UNCOMPARED:
            yield FIELD_NAMES[field.name], _format_value(getattr(draft, field.attribute))
    yield FIELD_NAMES["exampleHeader"], _sample_values(draft.header, draft.example_header)
    yield FIELD_NAMES["example"], _sample_values(draft.content, draft.example)
    yield from _button_texts("Button", draft.buttons)
    for number, card in enumerate(draft.cards or (), 1):
        yield f"Card {number}, media", card.header_type
        yield f"Card {number}, text", card.body or ""
        yield f"Card {number}, sample", _sample_values(card.body, card.sample_text)
        yield from _button_texts(f"Card {number}, button", card.buttons)


def _button_texts(prefix: str, buttons: Sequence[TemplateButton]) -> Iterator[tuple[str, str]]:
    for number, button in enumerate(buttons, 1):
        details = (button.text, button.url, button.phone_number, *button.example, button.autofill_text, button.flow_id)
        yield f"{prefix} {number}", f"{KIND_LABELS[button.kind]}: {' · '.join(text for text in details if text)}"


def _sample_values(text: str | None, example: str | None) -> str:
    """Return the value of each variable that has one; a sample that does not fit the text as it is."""
    values = named_examples(text or "", example or "")
    if values is None:
        return example or ""
    given = {f"{{{{{name}}}}}": value for name, value in values.items()}
    return " · ".join(f"{name} {value}" for name, value in given.items() if value != name)


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return "" if value is None else str(value)


def _read_names(text: str) -> dict[str, str]:
    return dict(pair.split(" ", 1) for pair in text.split("; "))


_LANGUAGE_NAMES: Final = _read_names(  # Source: domain/templates/types.py; names as in the Unicode CLDR
    "af Afrikaans; ar Arabic; az Azerbaijani; be Belarusian; bg Bulgarian; bn Bengali; ca Catalan; cs Czech; da "
    "Danish; de German; el Greek; en English; es Spanish; et Estonian; fa Persian; fi Finnish; fil Filipino; fr "
    "French; ga Irish; gu Gujarati; ha Hausa; he Hebrew; hi Hindi; hr Croatian; hu Hungarian; id Indonesian; it "
    "Italian; ja Japanese; ka Georgian; kk Kazakh; kn Kannada; ko Korean; ky Kyrgyz; lo Lao; lt Lithuanian; lv "
    "Latvian; mk Macedonian; ml Malayalam; mr Marathi; ms Malay; nb Norwegian Bokmål; nl Dutch; pa Punjabi; pl "
    "Polish; prs Dari; ps Pashto; pt Portuguese; ro Romanian; ru Russian; rw Kinyarwanda; si Sinhala; sk Slovak; "
    "sl Slovenian; sq Albanian; sr Serbian; sv Swedish; sw Swahili; ta Tamil; te Telugu; th Thai; tr Turkish; uk "
    "Ukrainian; ur Urdu; uz Uzbek; vi Vietnamese; zh Chinese; zu Zulu"
)
_REGION_NAMES: Final = _read_names(
    "AE United Arab Emirates; AF Afghanistan; AR Argentina; AT Austria; AU Australia; BE Belgium; BR Brazil; BY "
    "Belarus; CA Canada; CH Switzerland; CI Ivory Coast; CL Chile; CN China; CO Colombia; CR Costa Rica; CRI "
    "Costa Rica, the operator's spelling; DO Dominican Republic; EC Ecuador; EG Egypt; ES Spain; GB United "
    "Kingdom; GH Ghana; HK Hong Kong; HN Honduras; IE Ireland; IN India; JM Jamaica; KG Kyrgyzstan; LB Lebanon; "
    "LK Sri Lanka; MA Morocco; MX Mexico; MY Malaysia; NZ New Zealand; PA Panama; PE Peru; PT Portugal; QA Qatar; "
    "RW Rwanda; SA Saudi Arabia; SG Singapore; TW Taiwan; UG Uganda; US United States; UY Uruguay; VE Venezuela; "
    "ZA South Africa"
)


def language_name(code: str) -> str:
    """Return the name of a language, such as `English (Ireland)`; empty for a code that the operator does not have."""
    if code not in LANGUAGES:
        return ""
    language, _, region = code.partition("_")
    name = _LANGUAGE_NAMES[language]
    return f"{name} ({_REGION_NAMES[region]})" if region else name


def find_language(text: str) -> str:
    """Return the code of a language that was typed as its code or its name, in any case; another text unchanged."""
    return _CODE_BY_NAME.get(" ".join(text.casefold().split())) or canonical_language(text)


def listed_languages() -> list[tuple[str, str]]:
    """Return the code and the name of each language, in the order of the names."""
    return sorted(((code, language_name(code)) for code in LANGUAGES), key=lambda pair: pair[1])


_CODE_BY_NAME: Final = {language_name(code).casefold(): code for code in LANGUAGES}
