"""The form element of the editor that a violation belongs to."""

import re
from collections.abc import Mapping
from typing import Any, Final

from waypost.console.requests import compact_json
from waypost.console.templates.draft_text import CODE_TEXT, CardContent, EditorContent, Texts
from waypost.domain.templates.buttons import BUTTON_KINDS, ButtonKind
from waypost.domain.templates.fields import (
    CHANGEABLE_FIELDS,
    TEMPLATE_FIELDS,
    FieldFormat,
    TemplateDraft,
    TemplateField,
    TemplatePart,
    has_part,
)
from waypost.domain.templates.types import TemplateType
from waypost.domain.templates.variables import parameter_names, variable_names
from waypost.wire.templates.record import submitted_buttons, submitted_cards

_BUTTON_FIELD: Final = re.compile(r"(?:cards\[(\d+)\]\.)?buttons(?:\[(\d+)\](?:\.(.+))?)?")
_CARD_FIELD: Final = re.compile(r"cards\[(\d+)\]\.(\w+)")

ELEMENT_BY_FIELD: Final = {  # fields that are not one control with the field's name
    "buttons": "f-new-button-kind",
    "cards": "f-add-card",
    "exampleMedia": "f-file",
    "mediaId": "f-file",
    "exampleHeader": "f-header-value",
}
_FIELDS_OF_APPS: Final = ("package_name", "signature_hash", "supported_apps")
"""Fields of a button that one control edits."""


def find_element(field: str, content: EditorContent) -> str:
    """Return the id of the control for the field of a violation, such as `cards[1].buttons[0].url`."""
    if field == "example":
        return _first_missing("f-value-", content.names, content.values) or "f-content"
    if field == "content" and content.is_code:
        return "f-category"
    if match := _BUTTON_FIELD.fullmatch(field):
        card, index, member = match[1], match[2], match[3] or ""
        prefix = "" if card is None else f"card-{card}-"
        if index is None:
            return f"f-{prefix}new-button-kind"
        name = re.split(r"[.\[]", member)[0]
        if name in ("", "type"):
            return f"{prefix}button-{index}"
        return f"f-{prefix}button-{index}-{'apps' if name in _FIELDS_OF_APPS else name}"
    if match := _CARD_FIELD.fullmatch(field):
        prefix, index, member = f"f-card-{match[1]}-", int(match[1]), match[2]
        if member == "sampleText":
            card = content.cards[index] if index < len(content.cards) else CardContent()
            return _first_missing(f"{prefix}value-", card.names, card.values) or f"{prefix}body"
        return f"{prefix}file" if member in ("exampleMedia", "mediaId") else f"{prefix}{member}"
    return ELEMENT_BY_FIELD.get(field, f"f-{field}")


def _first_missing(prefix: str, names: list[str], values: dict[str, str]) -> str:
    """Return the id of the first missing value; of the first value if none is missing."""
    missing = [name for name in names if not values.get(name)]
    return f"{prefix}{(missing or names)[0]}" if names else ""


def group_by_element(violations: list[dict[str, Any]], content: EditorContent) -> dict[str, list[dict[str, Any]]]:
    """Return violations by form element, and set `element` of each."""
    by_element: dict[str, list[dict[str, Any]]] = {}
    for violation in violations:
        violation["element"] = find_element(violation["field"], content)
        by_element.setdefault(violation["element"], []).append(violation)
    return by_element


_PART_BY_FIELD: Final = {field.name: field.part for field in TEMPLATE_FIELDS}
_VARIABLE_PATTERN: Final = re.compile(r"\{\{([^{}]*)\}\}")


def encode_content(content: EditorContent, *, gaps: bool = False) -> dict[str, str]:
    """Return the API's form. Empty fields are left out; an edit sends them empty, which removes them.

    Args:
        gaps: for a preview: a variable without a sample value stays as it is.
    """
    texts = content.texts
    fields = {name: value for name, value in texts.items() if has_field(content, name)}
    if content.is_code:
        typed = texts.get("content", "")
        fields["content"] = typed if "is your verification code." in typed else CODE_TEXT
        fields["example"] = fields["content"].replace("{{1}}", content.values.get("1") or "123456")
    else:
        fields["example"] = fill_variables(texts.get("content", ""), content.values, gaps=gaps)
    header = fields.get("header", "")
    if variable_names(header):
        value = dict.fromkeys(parameter_names(header), content.header_value)
        fields["exampleHeader"] = fill_variables(header, value, gaps=gaps)
    has_sample = texts.get("exampleMedia") or texts.get("mediaUrl")
    fields["enableSample"] = "true" if content.type_row.medium and has_sample else ""
    if _is_gif(content) and texts.get("exampleMedia"):
        fields["mediaId"] = texts.get("mediaId") or texts["exampleMedia"]  # a GIF requires it; a handle id is accepted
    for name in content.flags:
        if has_field(content, name):
            fields[name] = "true"
    if "isLTO" in content.flags and not content.is_code:
        fields["hasExpiration"] = "true" if "hasExpiration" in content.flags else "false"
    if content.is_carousel:
        fields["cards"] = compact_json([_encode_card(card, gaps=gaps) for card in content.cards])
    fields["buttons"] = compact_json([_encode_button(button) for button in content.buttons])
    if content.edited_id:
        return {name: fields.get(name, "") for name in CHANGEABLE_FIELDS if _may_change(content, name)}
    return {name: value for name, value in fields.items() if value not in ("", "[]")}


def fill_variables(text: str, values: Mapping[str, str], *, gaps: bool = False) -> str:
    """Return a text with each variable replaced by its sample; empty if one is missing, unless `gaps` is set."""
    if not gaps and not all(values.get(name) for name in variable_names(text)):
        return ""
    return _VARIABLE_PATTERN.sub(lambda match: values.get(match[1]) or match[0], text)


def encode_draft(draft: TemplateDraft) -> dict[str, str]:
    """Return the API's form that creates a stored draft."""
    values = {field.name: _submitted_value(field, draft) for field in TEMPLATE_FIELDS}
    if draft.example_media:
        is_gif = draft.template_type == TemplateType.GIF
        values |= {"exampleMedia": None} if is_gif else {"mediaId": None, "mediaUrl": None}
    formatted = {name: str(value) for name, value in values.items() if value is not None}
    return {name: text.lower() if isinstance(values[name], bool) else text for name, text in formatted.items()}


def _submitted_value(field: TemplateField, draft: TemplateDraft) -> object:
    """Return the value of a field as it was submitted; None if it is not set."""
    value = getattr(draft, field.attribute)
    match field.format:
        case FieldFormat.BUTTONS:
            return compact_json(submitted_buttons(value)) if value else None
        case FieldFormat.CARDS:
            return compact_json(submitted_cards(value)) if value else None
        case FieldFormat.FLAG:
            return value or None
        case _:
            return value


def has_field(content: EditorContent, name: str) -> bool:
    """True if a template of this type has the field; values of other fields are not sent."""
    part = _PART_BY_FIELD.get(name, TemplatePart.ANY)
    return has_part(part, content.type_row, content.flags, is_code=content.is_code)


def _may_change(content: EditorContent, name: str) -> bool:
    """True if an edit submits the field.

    Media of a carousel cannot change, only carousels have cards, and only a GIF needs a media id.
    """
    if name == "cards":
        return content.is_carousel
    of_header = _PART_BY_FIELD[name] in (TemplatePart.HEADER, TemplatePart.MEDIA) and name != "exampleHeader"
    return (name != "mediaId" or _is_gif(content)) and not (content.is_carousel and of_header)


def _is_gif(content: EditorContent) -> bool:
    medium = content.type_row.medium
    return medium is not None and medium.name == "gif"


def _encode_card(card: CardContent, *, gaps: bool) -> dict[str, Any]:
    texts = card.texts
    fields: dict[str, Any] = {
        "headerType": texts.get("headerType", ""),
        "exampleMedia": texts.get("exampleMedia", ""),
        "mediaUrl": "" if texts.get("exampleMedia") else texts.get("mediaUrl", ""),
        "body": texts.get("body", ""),
        "sampleText": fill_variables(texts.get("body", ""), card.values, gaps=gaps),
        "buttons": [_encode_button(button) for button in card.buttons],
    }
    return {name: value for name, value in fields.items() if value not in ("", [])}


def _encode_button(texts: Texts) -> dict[str, Any]:
    kind = ButtonKind(texts["type"])
    fields: dict[str, Any] = {"type": kind.value}
    fields |= {name: texts[name] for name in BUTTON_KINDS[kind].editor_fields if texts.get(name)}
    match kind:
        case ButtonKind.URL:
            if texts.get("example") and "{{" in texts.get("url", ""):
                fields["example"] = [texts["example"]]
            if texts.get("payment_link_preview"):
                fields["paymentLinkPreview"] = texts["payment_link_preview"]
        case ButtonKind.OTP:
            apps = [line.split(None, 1) for line in texts.get("apps", "").splitlines() if line.strip()]
            named = [{"package_name": app[0], "signature_hash": app[1].strip() if len(app) > 1 else ""} for app in apps]
            if texts.get("otp_type") != "COPY_CODE" and named:
                fields |= named[0] if len(named) == 1 else {"supported_apps": named}
            if texts.get("otp_type") == "ZERO_TAP":
                fields["zero_tap_terms_accepted"] = texts.get("zero_tap_terms_accepted") == "true"
        case _:
            pass
    return fields
