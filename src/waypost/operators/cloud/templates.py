"""Templates to request bodies."""

from typing import Any

from waypost.domain.buttons import Button, ButtonKind
from waypost.domain.template import Template
from waypost.domain.variables import example_values


def template_body(template: Template) -> dict[str, Any]:
    """The body of `POST /{business_account}/message_templates`.

    Source: operator's facts 2.1, 2.2 and 12.
    """
    draft = template.draft
    components: list[dict[str, Any]] = []
    if draft.header:
        header: dict[str, Any] = {"type": "HEADER", "format": "TEXT", "text": draft.header}
        values = _values(draft.header, draft.example_header)
        if values:
            header["example"] = {"header_text": values}
        components.append(header)
    body: dict[str, Any] = {"type": "BODY", "text": draft.content}
    values = _values(draft.content or "", draft.example)
    if values:
        body["example"] = {"body_text": [values]}
    components.append(body)
    if draft.footer:
        components.append({"type": "FOOTER", "text": draft.footer})
    if draft.buttons:
        components.append({"type": "BUTTONS", "buttons": [_button(one) for one in draft.buttons]})
    return {
        "name": draft.element_name,
        "language": draft.language_code,
        "category": template.category.value,
        "allow_category_change": draft.allow_template_category_change,
        "components": components,
    }


def _values(text: str, example: str | None) -> list[str]:
    """The variables' sample values; an example that does not fit goes as it is, for the review to judge."""
    values = example_values(text, example or "")
    if values is None:
        return [example] if example else []
    return values


def _button(button: Button) -> dict[str, Any]:
    body: dict[str, Any] = {"type": button.kind.value, "text": button.text}
    match button.kind:
        case ButtonKind.URL:
            body["url"] = button.url
            if button.example:
                body["example"] = list(button.example)
        case ButtonKind.PHONE_NUMBER:
            body["phone_number"] = button.phone_number
        case ButtonKind.QUICK_REPLY:
            pass
    return body
