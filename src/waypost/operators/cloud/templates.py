"""Template calls: submit, edit and delete, each safe to repeat.

Unlike with messages, a lost response is not uncertain here: the call is repeated. If the operator
then rejects it because it was done already, its template is compared with the request.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from waypost.base.json_values import boolean_of, list_of, object_of
from waypost.domain.app import OperatorAccount
from waypost.domain.direct_calls import OperatorTemplate
from waypost.domain.outcome import (
    MAX_OPERATOR_ID_CHARS,
    OperatorAccepted,
    OperatorRejected,
    OperatorUnavailable,
    Outcome,
    OutcomeUncertain,
)
from waypost.domain.templates.buttons import ButtonKind, Card, SupportedApp, TemplateButton
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.offers import offer_component
from waypost.domain.templates.rendering import product_header
from waypost.domain.templates.template import Category, Template, have_same_contents, sample_reference
from waypost.domain.templates.types import ADDED_BUTTON_TYPES, TEMPLATE_TYPES, HeaderFormat, TemplateType, type_row
from waypost.domain.templates.variables import example_values, named_examples, parameter_names, variable_names
from waypost.operators.cloud.error_codes import INVALID_PARAMETER, name_conflict
from waypost.operators.cloud.http_calls import CloudHttpClient
from waypost.operators.cloud.responses import retry_uncertain
from waypost.operators.cloud.tolerant_json import parse_name, parse_number, parse_text
from waypost.operators.contract import GraphRequest

Component = dict[str, Any]


def template_body(template: Template, copies: Mapping[str, str]) -> dict[str, Any]:
    """Return the body of `POST /{business_account}/message_templates`.

    Args:
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
        minutes = draft.code_expiration_minutes
        components = [
            {"type": "BODY", "add_security_recommendation": draft.add_security_recommendation},
            None if minutes is None else {"type": "FOOTER", "code_expiration_minutes": minutes},
            _buttons(draft.buttons),
        ]
    else:
        components = [
            _header(draft, copies),
            _text("BODY", draft.content or "", draft.example, draft.parameter_format),
            {"type": "FOOTER", "text": draft.footer} if draft.footer else None,
            offer_component(draft),
            _buttons(draft.buttons),
            {"type": "CAROUSEL", "cards": [_card(card, draft.parameter_format, copies) for card in draft.cards]}
            if draft.cards
            else None,
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
        case ButtonKind.OTP:  # with flat fields in `supported_apps`. Source: operator's facts 2.2, notes
            body = {"type": button.kind.value, "otp_type": button.otp_type, "text": button.text}
            if button.autofill_text:
                body["autofill_text"] = button.autofill_text
            if button.zero_tap_terms_accepted is not None:
                body["zero_tap_terms_accepted"] = button.zero_tap_terms_accepted
            if button.supported_apps:
                body["supported_apps"] = [asdict(app) for app in button.supported_apps]
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


NAME_TAKEN: Final = (
    "The operator already has another template of this name and language, with other contents. "
    "Synchronise the templates to have it here, or take another name."
)


async def submit(
    call: CloudHttpClient, account: OperatorAccount, template: Template, copies: Mapping[str, str]
) -> Outcome:
    """Submit a template for review.

    A name is unique at the operator. An existing template with our name and our contents is the one submitted
    before, whose response was lost; one with other contents was made elsewhere, and is not ours (decision 0021).
    """
    body, owner = template_body(template, copies), template.business_account_id
    response = retry_uncertain(
        await call(account, GraphRequest("POST", _templates_path(template), body, business=owner))
    )
    match response:
        case {"id": str(operator_id)}:
            category = parse_text(object_of(response).get("category")).upper() or None
            return OperatorAccepted(parse_name(operator_id), status=_status(response), category=category)
        case {"error": error}:  # the name already exists: every other error is an outcome already
            existing = await find(call, account, template)
            return name_conflict(object_of(error)) if existing is None else _adopt(template, existing)
        case dict():
            return OperatorUnavailable("the operator's response has no template id")
        case _:
            return response


async def edit(
    call: CloudHttpClient, account: OperatorAccount, template: Template, copies: Mapping[str, str]
) -> Outcome:
    """Submit a template in place of the operator's version; if the operator has none, as a new one.

    Source: operator's facts 2.1, 2.6.
    """
    operator_id, owner = template.operator_template_id, template.business_account_id
    if not operator_id:
        existing = await find(call, account, template)
        if existing is None:
            return await submit(call, account, template, copies)
        outcome = _adopt(template, existing)
        if not isinstance(existing, OperatorTemplate) or existing.draft is not None:
            return outcome
        operator_id = existing.id
    body = template_body(template, copies)
    changes = {name: value for name, value in body.items() if name not in ("name", "language")}
    response = retry_uncertain(await call(account, GraphRequest("POST", operator_id, changes, business=owner)))
    match response:
        case {"success": True}:
            return OperatorAccepted(operator_id, status=_status(response))
        case OperatorRejected():
            # Perhaps it was done already and the response was lost: then it must not be done twice.
            query = {"fields": "components,status"}
            current = retry_uncertain(
                await call(account, GraphRequest("GET", operator_id, query=query, business=owner))
            )
            if isinstance(current, OperatorUnavailable):
                return current
            theirs = read_draft({"category": template.category.value, **object_of(current)})
            is_done = have_same_contents(template.draft, theirs)
            return OperatorAccepted(operator_id, status=_status(current)) if is_done else response
        case dict():
            return OperatorUnavailable("the operator does not say that it has changed the template")
        case _:
            return response


async def delete(call: CloudHttpClient, account: OperatorAccount, template: Template) -> Outcome:
    """Delete one template; return `OperatorAccepted` also where the operator has none.

    Source: operator's facts 2.1: by id and name, so that other languages of the name stay.
    """
    operator_id, owner = template.operator_template_id, template.business_account_id
    if not operator_id:
        existing = await find(call, account, template)
        if not isinstance(existing, OperatorTemplate):
            return OperatorAccepted("") if existing is None else existing
        if not _is_same(template, existing):  # made elsewhere under its name
            return OperatorAccepted("")
        operator_id = existing.id
    query = {"hsm_id": operator_id, "name": str(template.draft.element_name)}
    request = GraphRequest("DELETE", _templates_path(template), query=query, business=owner)
    response = retry_uncertain(await call(account, request))
    match response:
        case {"success": True}:
            return OperatorAccepted(operator_id)
        case OperatorRejected():
            existing = await find(call, account, template)
            if existing is not None and not isinstance(existing, OperatorTemplate):
                return existing
            is_deleted = existing is None or existing.id != operator_id
            return OperatorAccepted(operator_id) if is_deleted else response
        case dict():
            return OperatorUnavailable("the operator does not say that it has deleted the template")
        case _:
            return response


async def find(
    call: CloudHttpClient, account: OperatorAccount, template: Template
) -> OperatorTemplate | Outcome | None:
    """Return the operator's template of this name and language; None if the complete list has none.

    A list that is cut short or cannot be read proves nothing about missing templates: `OperatorUnavailable`.
    """
    draft, owner = template.draft, template.business_account_id
    request = GraphRequest("GET", _templates_path(template), query={"name": str(draft.element_name)}, business=owner)
    async for page in call.list_pages(account, request, "templates"):
        if not isinstance(page, list):
            return OperatorUnavailable(page.text) if isinstance(page, OutcomeUncertain) else page
        for member in page:
            item = parse_template({**object_of(member), "id": parse_name(object_of(member).get("id"))})
            if item is None:
                return OperatorUnavailable("the operator's list has what is no template")
            names = (item.name, item.language.replace("-", "_"))
            if names == (draft.element_name, draft.language_code) and not item.is_being_deleted:
                return item
    return None


def _adopt(template: Template, existing: OperatorTemplate | Outcome) -> Outcome:
    """Return the outcome of a template whose name the operator has: accepted only if it has the same contents."""
    if not isinstance(existing, OperatorTemplate):
        return existing
    if not _is_same(template, existing):
        return OperatorRejected(INVALID_PARAMETER, NAME_TAKEN, existing_id=existing.id)
    return OperatorAccepted(existing.id, status=existing.status, category=existing.category or None)


def _is_same(template: Template, existing: OperatorTemplate) -> bool:
    """True if the operator's template has our contents; one without contents proves nothing: it is taken for ours."""
    return existing.draft is None or have_same_contents(template.draft, existing.draft)


def _templates_path(template: Template) -> str:
    return f"{template.business_account_id}/message_templates"


def _status(response: Any) -> str | None:
    return parse_text(object_of(response).get("status")).upper() or None
