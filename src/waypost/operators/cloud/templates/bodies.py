"""Request bodies of templates."""

from collections.abc import Mapping
from typing import Any

from waypost.domain.templates.buttons import ButtonKind, TemplateButton
from waypost.domain.templates.cards import Card
from waypost.domain.templates.extras import TEMPLATE_EXTRAS
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.rendering import product_header
from waypost.domain.templates.template import Category, Template, sample_reference
from waypost.domain.templates.types import HeaderFormat, type_row
from waypost.domain.templates.variables import example_values, named_examples, variable_names

Component = dict[str, Any]


def template_body(template: Template, copies: Mapping[str, str]) -> dict[str, Any]:
    """Return the body of `POST /{business_account}/message_templates`.

    Args:
        template: the template.
        copies: the operator's handles by ours and by our media ids; one without a copy is sent unchanged.

    Source: operator's facts 2.1, 2.2 and 12.
    """
    draft = template.draft
    body: dict[str, Any] = {
        "name": draft.element_name,
        "language": draft.language_code,
        "category": template.category.value,
        "allow_category_change": draft.allow_template_category_change,
        "components": template_components(draft, copies),
    }
    if draft.parameter_format is not None:
        body["parameter_format"] = draft.parameter_format
    if draft.message_validity_s is not None:
        body["message_send_ttl_seconds"] = draft.message_validity_s
    if draft.is_call_permission_request:
        body["sub_category"] = "CALL_PERMISSIONS_REQUEST"
    return body


def template_components(draft: TemplateDraft, copies: Mapping[str, str]) -> list[Component]:
    """Return the components in the operator's order, for creation and for an edit.

    Source: operator's facts 2.2.
    """
    if draft.category == Category.AUTHENTICATION:
        components = [_code_body(draft), _code_footer(draft), _buttons(draft.buttons)]
    else:
        components = [
            _header(draft, copies),
            _text("BODY", draft.content or "", draft.example, draft.parameter_format),
            {"type": "FOOTER", "text": draft.footer} if draft.footer else None,
            *(extra.component(draft) for extra in TEMPLATE_EXTRAS),
            _buttons(draft.buttons),
            _carousel(draft, copies),
        ]
    return [component for component in components if component is not None]


def _header(draft: TemplateDraft, copies: Mapping[str, str]) -> Component | None:
    match type_row(draft.template_type).header:
        case HeaderFormat.MEDIUM:
            return _media_header(draft.template_type or "", draft, copies)
        case HeaderFormat.LOCATION:
            return {"type": "HEADER", "format": "LOCATION"}
        case HeaderFormat.FIRST_LINE:
            return {"type": "HEADER", "format": "TEXT", "text": product_header(draft.content or "")}
        case HeaderFormat.TEXT | HeaderFormat.NONE:
            text = draft.header
            return _text("HEADER", text, draft.example_header, draft.parameter_format) if text else None


def _media_header(format: str, draft: TemplateDraft | Card, copies: Mapping[str, str]) -> Component:
    header: Component = {"type": "HEADER", "format": format}
    sample = sample_reference(draft)
    if sample:
        header["example"] = {"header_handle": [copies.get(sample, sample)]}
    return header


def _text(type: str, text: str, example: str | None, parameter_format: str | None) -> Component:
    component: Component = {"type": type, "text": text}
    if type == "HEADER":
        component = {"type": type, "format": "TEXT", "text": text}
    if not variable_names(text):
        return component
    member = f"{type.lower()}_text"
    if parameter_format == "NAMED":
        named = named_examples(text, example or "")
        if named:
            component["example"] = {
                f"{member}_named_params": [{"param_name": name, "example": value} for name, value in named.items()]
            }
        return component
    values = example_values(text, example or "")
    if values is None:  # it does not match the text: the review decides
        values = [example] if example else []
    if values:
        component["example"] = {member: [values] if type == "BODY" else values}
    return component


def _code_body(draft: TemplateDraft) -> Component:
    return {"type": "BODY", "add_security_recommendation": draft.add_security_recommendation}


def _code_footer(draft: TemplateDraft) -> Component | None:
    minutes = draft.code_expiration_minutes
    return None if minutes is None else {"type": "FOOTER", "code_expiration_minutes": minutes}


def _carousel(draft: TemplateDraft, copies: Mapping[str, str]) -> Component | None:
    if not draft.cards:
        return None
    cards = [_card(card, draft.parameter_format, copies) for card in draft.cards]
    return {"type": "CAROUSEL", "cards": cards}


def _card(card: Card, parameter_format: str | None, copies: Mapping[str, str]) -> Component:
    components = [
        _media_header(card.header_type, card, copies),
        _text("BODY", card.body, card.sample_text, parameter_format) if card.body else None,
        _buttons(card.buttons),
    ]
    return {"components": [component for component in components if component is not None]}


def _buttons(buttons: tuple[TemplateButton, ...]) -> Component | None:
    return {"type": "BUTTONS", "buttons": [_button(button) for button in buttons]} if buttons else None


def _button(button: TemplateButton) -> Component:
    body: Component = {"type": button.kind.value, "text": button.text}
    match button.kind:
        case ButtonKind.URL:
            body["url"] = button.url
            if button.example:
                body["example"] = list(button.example)
        case ButtonKind.PHONE_NUMBER:
            body["phone_number"] = button.phone_number
        case ButtonKind.COPY_CODE:
            return {"type": button.kind.value, "example": next(iter(button.example), "")}
        case ButtonKind.OTP:
            return _otp(button)
        case ButtonKind.FLOW:
            body["flow_id"] = button.flow_id
            body["flow_action"] = (button.flow_action or "NAVIGATE").lower()
            if button.navigate_screen:
                body["navigate_screen"] = button.navigate_screen
            if button.icon:
                body["icon"] = button.icon
        case ButtonKind.QUICK_REPLY | ButtonKind.MPM | ButtonKind.CATALOG:
            pass
    return body


def _otp(button: TemplateButton) -> Component:
    """Return a one-time code's button, with the spec's flat fields in `supported_apps`. Source: operator's facts 2.2, notes."""
    body: Component = {"type": button.kind.value, "otp_type": button.otp_type, "text": button.text}
    if button.autofill_text:
        body["autofill_text"] = button.autofill_text
    if button.zero_tap_terms_accepted is not None:
        body["zero_tap_terms_accepted"] = button.zero_tap_terms_accepted
    if button.supported_apps:
        body["supported_apps"] = [
            {"package_name": app.package_name, "signature_hash": app.signature_hash} for app in button.supported_apps
        ]
    return body
