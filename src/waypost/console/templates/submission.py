"""The partner API's form, made from the content of the editor or from a stored draft."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from waypost.console.templates.draft_text import CODE_LINE, CardWriting, Texts, Writing, names_of
from waypost.domain.templates.buttons import BUTTON_KINDS, ButtonKind
from waypost.domain.templates.fields import (
    CHANGEABLE,
    TEMPLATE_FIELDS,
    Draft,
    FieldFormat,
    TemplateField,
    TemplatePart,
    has_part,
)
from waypost.domain.templates.variables import variables
from waypost.wire.templates.components import submitted_buttons, submitted_cards

_PART: Final = {field.name: field.part for field in TEMPLATE_FIELDS}
_VARIABLE: Final = re.compile(r"\{\{([^{}]*)\}\}")


def fields_of(writing: Writing, *, gaps: bool = False) -> dict[str, str]:
    """Return the API's form. Empty fields are left out; an edit sends them empty, which removes them.

    Args:
        writing: the content of the editor.
        gaps: for a preview: a variable without a sample value stays as it is.
    """
    texts = writing.texts
    fields = {name: value for name, value in texts.items() if has(writing, name)}
    if writing.is_code:
        fields["content"] = _code_text(texts.get("content", ""))
        fields["example"] = fields["content"].replace("{{1}}", writing.values.get("1") or "123456")
    else:
        fields["example"] = filled(texts.get("content", ""), writing.values, gaps=gaps)
    header = fields.get("header", "")
    if variables(header):
        value = dict.fromkeys(names_of(header), writing.header_value)
        fields["exampleHeader"] = filled(header, value, gaps=gaps)
    fields["enableSample"] = "true" if writing.type_row.medium and _has_sample(texts) else ""
    for name in writing.flags:
        if has(writing, name):
            fields[name] = "true"
    if "isLTO" in writing.flags and not writing.is_code:
        fields["hasExpiration"] = "true" if "hasExpiration" in writing.flags else "false"
    if writing.is_carousel:
        fields["cards"] = _json([_card(card, gaps=gaps) for card in writing.cards])
    fields["buttons"] = _json([_button(button) for button in writing.buttons])
    if writing.edits:
        return {name: fields.get(name, "") for name in CHANGEABLE if _may_change(writing, name)}
    return {name: value for name, value in fields.items() if value not in ("", "[]")}


def filled(text: str, values: Mapping[str, str], *, gaps: bool = False) -> str:
    """Return a text with each variable replaced by its sample; empty if one is missing, unless `gaps` is set."""
    if not gaps and not all(values.get(name) for name in variables(text)):
        return ""
    return _VARIABLE.sub(lambda match: values.get(match[1]) or match[0], text)


def fields_of_draft(draft: Draft) -> dict[str, str]:
    """Return the API's form that creates a stored draft."""
    values = {field.name: _submitted(field, draft) for field in TEMPLATE_FIELDS}
    if draft.example_media:
        values |= {"mediaId": None, "mediaUrl": None}
    return {name: _text(value) for name, value in values.items() if value is not None}


def _submitted(field: TemplateField, draft: Draft) -> object:
    """Return the value of a field as it was submitted; None if it is not set."""
    value = getattr(draft, field.attribute)
    match field.format:
        case FieldFormat.BUTTONS:
            return _json(submitted_buttons(value)) if value else None
        case FieldFormat.CARDS:
            return _json(submitted_cards(value)) if value else None
        case FieldFormat.FLAG:
            return value or None
        case _:
            return value


def has(writing: Writing, name: str) -> bool:
    """True if a template of this type has the field; values of other fields are not sent."""
    part = _PART.get(name, TemplatePart.ANY)
    return has_part(part, writing.type_row, writing.flags, is_code=writing.is_code)


def _may_change(writing: Writing, name: str) -> bool:
    """True if an edit submits the field: media of a carousel cannot change, and only carousels have cards."""
    if name == "cards":
        return writing.is_carousel
    of_header = _PART[name] in (TemplatePart.HEADER, TemplatePart.MEDIA) and name != "exampleHeader"
    return name != "mediaId" and not (writing.is_carousel and of_header)


def _has_sample(texts: Texts) -> bool:
    return bool(texts.get("exampleMedia") or texts.get("mediaUrl"))


def _code_text(typed: str) -> str:
    """Return the body of a template with a code: the stored one, or the operator's sentence."""
    return typed if "is your verification code." in typed else CODE_LINE


def _card(card: CardWriting, *, gaps: bool) -> dict[str, Any]:
    texts = card.texts
    fields: dict[str, Any] = {
        "headerType": texts.get("headerType", ""),
        "exampleMedia": texts.get("exampleMedia", ""),
        "mediaUrl": "" if texts.get("exampleMedia") else texts.get("mediaUrl", ""),
        "body": texts.get("body", ""),
        "sampleText": filled(texts.get("body", ""), card.values, gaps=gaps),
        "buttons": [_button(button) for button in card.buttons],
    }
    return {name: value for name, value in fields.items() if value not in ("", [])}


def _button(texts: Texts) -> dict[str, Any]:
    kind = ButtonKind(texts["type"])
    fields: dict[str, Any] = {"type": kind.value}
    fields |= {name: texts[name] for name in BUTTON_KINDS[kind].typed if texts.get(name)}
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


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
