"""The operator's template as a draft of ours, with every type: media, offers, codes, catalogues, cards."""

from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from waypost.base.json_values import boolean_of, list_of, object_of
from waypost.domain.direct_calls.templates import OperatorTemplate
from waypost.domain.outcome import MAX_OPERATOR_ID_CHARS
from waypost.domain.templates.buttons import ButtonKind, SupportedApp, TemplateButton
from waypost.domain.templates.cards import Card
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.template import Category
from waypost.domain.templates.types import ADDED_BUTTON_TYPES, TEMPLATE_TYPES, HeaderFormat, TemplateType
from waypost.domain.templates.variables import parameter_names
from waypost.operators.cloud.tolerant_json import parse_name, parse_number, parse_text

DELETION_STATUSES: Final = {"DELETED", "PENDING_DELETION"}
"""Statuses of a template that is deleted, or about to be."""
GENERATED_SOURCE: Final = "AUTO_GENERATED"
"""The source of templates that Direct Send has generated. Source: operator's facts 2.1."""


def parse_template(value: Any) -> OperatorTemplate | None:
    """Return a template with id, name, language and status; None if one is missing. Source: operator's facts 2.1."""
    match value:
        case {"id": str(template_id), "name": str(name), "language": str(language), "status": str(status)} if (
            len(template_id) <= MAX_OPERATOR_ID_CHARS
        ):
            members = object_of(value)
            reason = parse_text(members.get("rejected_reason"))
            draft = read_draft(members) if isinstance(members.get("components"), list) else None
            return OperatorTemplate(
                id=template_id,
                name=name,
                language=language,
                status=status.upper(),
                is_being_deleted=status.upper() in DELETION_STATUSES,
                category=parse_text(members.get("category")).upper(),
                rejected_reason=reason if reason not in ("", "NONE") else None,
                quality=parse_text(object_of(members.get("quality_score")).get("score")),
                body=None if draft is None else draft.content or None,
                footer=None if draft is None else draft.footer,
                draft=draft,
                is_generated=members.get("source") == GENERATED_SOURCE,
            )
        case _:
            return None


def read_draft(template: dict[str, Any]) -> TemplateDraft:
    """Return the draft that the operator's template corresponds to; what it does not have is empty.

    The sample of a medium is its URL at the operator; its topic is not known there.

    Source: operator's facts 2.1, "Read-back differences", and 2.2.
    """
    components = _components_by_type(template.get("components"))
    header, body, footer = (components.get(name, {}) for name in ("HEADER", "BODY", "FOOTER"))
    category = parse_text(template.get("category")).upper()
    is_code = category == Category.AUTHENTICATION
    buttons = _read_buttons(components.get("BUTTONS", {}), is_code=is_code)
    cards = components.get("CAROUSEL", {}).get("cards")
    offer = object_of(components.get("LIMITED_TIME_OFFER", {}).get("limited_time_offer"))
    kind = _template_type(header, buttons, is_carousel=cards is not None)
    row = TEMPLATE_TYPES[kind]
    has_text_header = row.header is HeaderFormat.TEXT and not is_code
    ttl = parse_number(template.get("message_send_ttl_seconds"))
    minutes = parse_number(footer.get("code_expiration_minutes"))
    parameter_format = parse_text(template.get("parameter_format")).upper()
    return TemplateDraft(
        element_name=parse_text(template.get("name")),
        language_code=parse_text(template.get("language")).replace("-", "_"),
        category=category,
        template_type=kind.value,
        vertical="",
        content=parse_text(body.get("text")),
        example=_filled(body, "body_text"),
        header=parse_text(header.get("text")) or None if has_text_header else None,
        example_header=_filled(header, "header_text") if has_text_header else None,
        footer=None if is_code else parse_text(footer.get("text")) or None,
        buttons=buttons,
        enable_sample=row.medium is not None,
        media_url=_sample_url(header) if row.medium is not None else None,
        is_lto="LIMITED_TIME_OFFER" in components,
        limited_offer_text=parse_text(offer.get("text")) or None,
        has_expiration=boolean_of(offer.get("has_expiration"), default=False) if offer else None,
        cards=None if cards is None else tuple(_read_card(object_of(card)) for card in list_of(cards)),
        add_security_recommendation=boolean_of(body.get("add_security_recommendation"), default=False),
        code_expiration_minutes=minutes if is_code else None,
        message_validity_s=ttl,
        is_call_permission_request=template.get("sub_category") == "CALL_PERMISSIONS_REQUEST",
        parameter_format="NAMED" if parameter_format == "NAMED" else None,
    )


def _template_type(header: dict[str, Any], buttons: tuple[TemplateButton, ...], *, is_carousel: bool) -> TemplateType:
    if is_carousel:
        return TemplateType.CAROUSEL
    added = next((ADDED_BUTTON_TYPES[button.kind] for button in buttons if button.kind in ADDED_BUTTON_TYPES), None)
    if added is not None:
        return added
    header_format = parse_text(header.get("format")).upper()
    is_sent = header_format in TEMPLATE_TYPES and TEMPLATE_TYPES[header_format].is_header_sent
    return TemplateType(header_format) if is_sent else TemplateType.TEXT


def _components_by_type(components: Any) -> dict[str, dict[str, Any]]:
    objects = [object_of(component) for component in list_of(components)]
    return {parse_text(component.get("type")).upper(): component for component in objects}


def _filled(component: dict[str, Any], member: str) -> str | None:
    """Return a component's text with the sample values in place of its variables; None if it has no samples."""
    text, example = parse_text(component.get("text")), object_of(component.get("example"))
    named = {
        parse_text(object_of(each).get("param_name")): parse_text(object_of(each).get("example"))
        for each in list_of(example.get(f"{member}_named_params"))
    }
    values = list_of(example.get(member))
    values = list_of(next(iter(values), None)) or values  # a body has a list of lists
    samples = named or dict(zip(parameter_names(text), map(parse_text, values), strict=False))
    if not samples:
        return None
    for name, value in samples.items():
        text = text.replace(f"{{{{{name}}}}}", value)
    return text


def _sample_url(header: dict[str, Any]) -> str | None:
    handles = list_of(object_of(header.get("example")).get("header_handle"))
    return parse_text(handles[0]) or None if handles else None


def _read_card(card: dict[str, Any]) -> Card:
    components = _components_by_type(card.get("components"))
    header, body = components.get("HEADER", {}), components.get("BODY", {})
    return Card(
        header_type=parse_text(header.get("format")).upper(),
        media_url=_sample_url(header),
        body=parse_text(body.get("text")) or None,
        sample_text=_filled(body, "body_text"),
        buttons=_read_buttons(components.get("BUTTONS", {}), is_code=False),
    )


def _read_buttons(component: dict[str, Any], *, is_code: bool) -> tuple[TemplateButton, ...]:
    """Return the buttons of the kinds that a template of ours may have."""
    buttons: list[TemplateButton] = []
    for each in map(object_of, list_of(component.get("buttons"))):
        kind = parse_text(each.get("type")).upper()
        if is_code and kind in (ButtonKind.URL, ButtonKind.OTP):
            buttons.append(_read_code_button(each))
        elif kind in ButtonKind.__members__:
            buttons.append(_read_button(ButtonKind[kind], each))
    return tuple(buttons)


def _read_button(kind: ButtonKind, button: dict[str, Any]) -> TemplateButton:
    example = button.get("example")
    return TemplateButton(
        kind=kind,
        text=parse_text(button.get("text")),
        url=parse_text(button.get("url")),
        phone_number=parse_text(button.get("phone_number")),
        example=tuple(map(parse_text, list_of(example) or ([example] if isinstance(example, str) else []))),
        flow_id=parse_name(button.get("flow_id")),
        flow_action=parse_text(button.get("flow_action")).upper(),
        navigate_screen=parse_text(button.get("navigate_screen")),
        icon=parse_text(button.get("icon")),
    )


def _read_code_button(button: dict[str, Any]) -> TemplateButton:
    """Return an OTP button, which is read back as a URL with its members in the query. Source: operator's facts 2.1."""
    query = {name: values[0] for name, values in parse_qs(urlsplit(parse_text(button.get("url"))).query).items()}
    apps = [
        SupportedApp(parse_text(app.get("package_name")), parse_text(app.get("signature_hash")))
        for app in map(object_of, list_of(button.get("supported_apps")))
    ]
    if not apps and "package_name" in query:
        apps = [SupportedApp(query["package_name"], query.get("signature_hash", ""))]
    return TemplateButton(
        kind=ButtonKind.OTP,
        text=parse_text(button.get("text")),
        otp_type=(parse_text(button.get("otp_type")) or query.get("otp_type", "")).upper(),
        autofill_text=parse_text(button.get("autofill_text")) or query.get("cta_display_name", ""),
        supported_apps=tuple(apps),
    )
