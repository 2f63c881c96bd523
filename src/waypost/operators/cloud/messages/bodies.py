"""Request bodies of messages."""

from collections.abc import Mapping
from typing import Any, Final, cast

from waypost.domain.message import MEDIA_MEMBERS, PARTNER_DATA_MEMBERS, Message, Passthrough, TemplateSend
from waypost.domain.session_messages.content import SendContext
from waypost.domain.templates.template import Template
from waypost.operators.cloud.messages.template_components import template_object

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
        message: the message to send.
        template: of a template message.
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
