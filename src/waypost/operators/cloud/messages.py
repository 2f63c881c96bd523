"""Request bodies of messages."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from waypost.domain.message import MEDIA_MEMBERS, PARTNER_DATA_MEMBERS, Message, Passthrough, TemplateSend
from waypost.domain.postback import button_payload
from waypost.domain.session_messages.content import Body, SendContext, location_body, medium_body, product_section_body
from waypost.domain.templates.buttons import ButtonKind, TemplateButton
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.offers import offer_parameters
from waypost.domain.templates.rendering import CardParameters, TemplateParameters, split_parameters
from waypost.domain.templates.template import Template
from waypost.domain.templates.variables import variable_names


def template_object(send: TemplateSend, template: Template | None, message_id: str, copies: Mapping[str, str]) -> Body:
    """Return the member `template`: name, language and components.

    Args:
        template: None if it was deleted meanwhile; the operator then returns its own error.
        message_id: ours; postback texts that are not sent refer to it.
        copies: the operator's media ids by ours.

    Source: operator's facts 4.2.
    """
    if template is None:
        return {"name": send.template_id, "language": {"code": "en_US"}}
    return {
        "name": template.draft.element_name,
        "language": {"code": template.draft.language_code, "policy": "deterministic"},
        "components": _components(send, template.draft, message_id, copies),
    }


def _components(send: TemplateSend, draft: TemplateDraft, message_id: str, copies: Mapping[str, str]) -> list[Body]:
    params = split_parameters(draft, send.params)
    components: list[Body] = []
    header = _header(send, draft, params, copies)
    if header:
        components.append({"type": "header", "parameters": header})
    if params.body:
        components.append({"type": "body", "parameters": _text_parameters(params.body, draft.content, draft)})
    offer = offer_parameters(send, draft)
    if offer is not None:
        components.append(offer)
    postback_texts = send.postback_texts or {}
    for index, button in enumerate(draft.buttons):
        parameter = _parameter(button, params.buttons.get(index))
        if button.kind in (ButtonKind.MPM, ButtonKind.CATALOG):
            parameter = _product_action(send, button, params.thumbnail)
        elif button.kind is ButtonKind.QUICK_REPLY and index in postback_texts:
            payload = button_payload(message_id, index, postback_texts[index])
            parameter = {"type": "payload", "payload": payload}
        if parameter is not None:
            components.append(_button(button, index, parameter))
    if draft.cards is not None:
        cards = [_card(send, draft, index, params, message_id, copies) for index in range(len(send.cards))]
        components.append({"type": "carousel", "cards": cards})
    return components


def _header(
    send: TemplateSend, draft: TemplateDraft, params: TemplateParameters, copies: Mapping[str, str]
) -> list[Body]:
    """Return a media or location header if the send has one; a media header always needs its parameter."""
    if send.media_kind is not None:
        kind = send.media_kind.value
        name = send.file_name if kind == "document" else ""
        return [{"type": kind, kind: medium_body(send.media, copies, name)}]
    if send.place is not None:
        return [{"type": "location", "location": location_body(send.place)}]
    return _text_parameters(params.header, draft.header, draft)


def _text_parameters(values: Sequence[str], text: str | None, draft: TemplateDraft) -> list[Body]:
    """Return parameters by position; for a template with named variables each with its name."""
    parameters: list[Body] = [{"type": "text", "text": value} for value in values]
    if draft.parameter_format == "NAMED":
        for parameter, name in zip(parameters, dict.fromkeys(variable_names(text)), strict=False):
            parameter["parameter_name"] = name.strip()
    return parameters


# fmt: off
_SUB_TYPES = {  # Source: operator's facts 4.2; the operator treats a one-time code's button as a URL
    ButtonKind.QUICK_REPLY: "quick_reply",
    ButtonKind.URL:         "url",
    ButtonKind.OTP:         "url",
    ButtonKind.COPY_CODE:   "copy_code",
    ButtonKind.MPM:         "mpm",
    ButtonKind.CATALOG:     "catalog",
}
# fmt: on


def _button(button: TemplateButton, index: int, parameter: Body) -> Body:
    return {"type": "button", "sub_type": _SUB_TYPES[button.kind], "index": str(index), "parameters": [parameter]}


def _parameter(button: TemplateButton, value: str | None) -> Body | None:
    if value is None:
        return None
    if button.kind is ButtonKind.COPY_CODE:
        return {"type": "coupon_code", "coupon_code": value}
    return {"type": "text", "text": value}


def _product_action(send: TemplateSend, button: TemplateButton, thumbnail: str | None) -> Body | None:
    action: Body = {}
    if thumbnail:
        action["thumbnail_product_retailer_id"] = thumbnail
    if send.sections and button.kind is ButtonKind.MPM:
        action["sections"] = [product_section_body(section) for section in send.sections]
    return {"type": "action", "action": action} if action else None


def _card(
    send: TemplateSend,
    draft: TemplateDraft,
    card_index: int,
    all_params: TemplateParameters,
    message_id: str,
    copies: Mapping[str, str],
) -> Body:
    """Return one card; all cards that were sent are passed on, because the operator checks their number."""
    card = send.cards[card_index]
    params = all_params.cards[card_index] if card_index < len(all_params.cards) else CardParameters()
    template_card = draft.cards[card_index] if draft.cards and card_index < len(draft.cards) else None
    kind = template_card.header_type.lower() if template_card else ""
    kind = kind or "image" if send.card_media_kind is None else send.card_media_kind.value
    components: list[Body] = [{"type": "header", "parameters": [{"type": kind, kind: medium_body(card.media, copies)}]}]
    if params.body:
        text = template_card.body if template_card else None
        components.append({"type": "body", "parameters": _text_parameters(params.body, text, draft)})
    for index, button in enumerate(template_card.buttons if template_card else ()):
        parameter = _parameter(button, params.buttons.get(index))
        if button.kind is ButtonKind.QUICK_REPLY and index in card.postback_texts:
            text = card.postback_texts[index]
            payload = button_payload(message_id, index, text, card=card_index)
            parameter = {"type": "payload", "payload": payload}
        if parameter is not None:
            components.append(_button(button, index, parameter))
    return {"card_index": card_index, "components": components}


CALLBACK_DATA: Final = "biz_opaque_callback_data"
"""The member that every status repeats. Source: operator's facts 4.1."""


def parse_message_id(data: object) -> str:
    """Return our id of a status's message, from the callback data; it precedes the sender's own data."""
    return data.partition(" ")[0] if isinstance(data, str) else ""


def message_body(
    message: Message, template: Template | None, reply_to: str | None, copies: Mapping[str, str]
) -> dict[str, Any]:
    """Return the body of `POST /{phone_number_id}/messages`.

    Our id is sent as the operator's opaque callback data, so that every status has it.

    Args:
        reply_to: the operator's id of the message that it replies or reacts to.
        copies: the operator's media ids by ours.

    Source: operator's facts 4.1, 4.2; without `+` the operator may prepend a country code to a number.
        A destination of letters is a business-scoped user id, which belongs in `recipient`.
    """
    match message.content:
        case Passthrough(members=dict()) as passthrough:
            return _passthrough_body(passthrough, message.id, reply_to, copies)
        case _:
            pass
    body: dict[str, Any] = {"messaging_product": "whatsapp", "recipient_type": "individual"}
    if message.destination[:1].isdecimal():
        body["to"] = f"+{message.destination}"
    else:
        body["recipient"] = message.destination
    body[CALLBACK_DATA] = message.id
    match message.content:
        case TemplateSend() as template_send:
            body["type"] = "template"
            body["template"] = template_object(template_send, template, message.id, copies)
        case Passthrough(type="reaction", body={"message_id": str()} as reaction):
            body["type"] = "reaction"
            body["reaction"] = {**cast("dict[str, Any]", reaction), "message_id": reply_to}
            return body
        case Passthrough(type=message_type, body=members):
            body["type"] = message_type
            body |= cast("dict[str, Any]", _replace_media_ids({message_type: members}, copies))
        case content:
            message_type, members = content.operator_body(SendContext(message.id, reply_to, copies))
            body |= {"type": message_type, message_type: members}
            if message_type == "reaction":
                return body
    if reply_to is not None:
        body["context"] = {"message_id": reply_to}
    return body


def _passthrough_body(
    passthrough: Passthrough, message_id: str, reply_to: str | None, copies: Mapping[str, str]
) -> dict[str, Any]:
    """Return the body that the partner sent, with the operator's media and message ids in place of ours.

    `messaging_product` and `recipient_type` are added if missing, and our id as callback data before
    the partner's own. Source: decision 0061.
    """
    members = passthrough.members or {}
    body: dict[str, Any] = {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        **members,
        "type": passthrough.type,
        **cast("dict[str, Any]", _replace_media_ids({passthrough.type: passthrough.body}, copies)),
    }
    partner_data = members.get(CALLBACK_DATA)
    body[CALLBACK_DATA] = f"{message_id} {partner_data}" if partner_data else message_id
    match passthrough:
        case Passthrough(type="reaction", body={"message_id": str()}):
            body["reaction"] = {**body["reaction"], "message_id": reply_to}
        case Passthrough(reply_to=str(partner_reply_to)) if partner_reply_to != reply_to:
            body["context"] = {**members["context"], "message_id": reply_to}
        case _:
            pass
    return body


def _replace_media_ids(value: object, copies: Mapping[str, str]) -> object:
    """Return the value with the operator's media ids in place of ours."""
    match value:
        case dict():
            replaced: dict[str, object] = {}
            for name, member in cast("dict[str, object]", value).items():
                match member:
                    case {"id": str() | int() as media_id} if name in MEDIA_MEMBERS:
                        medium = cast("dict[str, object]", member)
                        replaced[name] = {**medium, "id": copies.get(str(media_id), media_id)}
                    case _ if name in PARTNER_DATA_MEMBERS:
                        replaced[name] = member
                    case _:
                        replaced[name] = _replace_media_ids(member, copies)
            return replaced
        case list():
            return [_replace_media_ids(item, copies) for item in cast("list[object]", value)]
        case _:
            return value
