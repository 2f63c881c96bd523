"""Messages to request bodies."""

from collections.abc import Mapping
from typing import Any, Final, cast

from waypost.domain.message import MEDIA_MEMBERS, PARTNERS_DATA, Message, Passthrough, TemplateSend
from waypost.domain.session_messages.content import SendContext
from waypost.domain.templates.template import Template
from waypost.operators.cloud.messages.template_components import template_object

CALLBACK_DATA: Final = "biz_opaque_callback_data"
"""The member that comes back with every status. Source: operator's facts 4.1."""


def our_id_in(data: object) -> str:
    """Our id of the message that a status is about, from the callback data; it stands before the sender's own."""
    return data.partition(" ")[0] if isinstance(data, str) else ""


def message_body(
    message: Message, template: Template | None, reply_to: str | None, copies: Mapping[str, str]
) -> dict[str, Any]:
    """The body of `POST /{phone_number_id}/messages`.

    Our id travels as the operator's opaque callback data, so that every status carries it.

    Args:
        message: what to send.
        template: of a template message.
        reply_to: the operator's id of the message it answers or reacts to.
        copies: the operator's media ids by ours.

    Source: operator's facts 4.1, 4.2; a number without `+` may get a country code put before it. A
        destination of letters is a business-scoped user id, which goes under `recipient`.
    """
    match message.content:
        case Passthrough(members=dict()) as sent:
            return _passed_through(sent, message.id, reply_to, copies)
        case _:
            pass
    body: dict[str, Any] = {"messaging_product": "whatsapp", "recipient_type": "individual"}
    if message.destination[:1].isdecimal():
        body["to"] = f"+{message.destination}"
    else:
        body["recipient"] = message.destination
    body[CALLBACK_DATA] = message.id
    match message.content:
        case TemplateSend() as send:
            body["type"] = "template"
            body["template"] = template_object(send, template, message.id, copies)
        case Passthrough(type="reaction", body={"message_id": str()} as reaction):
            body["type"] = "reaction"
            body["reaction"] = {**cast("dict[str, Any]", reaction), "message_id": reply_to}
            return body
        case Passthrough(type=kind, body=given):
            body["type"] = kind
            body |= cast("dict[str, Any]", _with_copies({kind: given}, copies))
        case content:
            kind, given = content.operator_body(SendContext(message.id, reply_to, copies))
            body |= {"type": kind, kind: given}
            if kind == "reaction":
                return body
    if reply_to is not None:
        body["context"] = {"message_id": reply_to}
    return body


def _passed_through(
    sent: Passthrough, message_id: str, reply_to: str | None, copies: Mapping[str, str]
) -> dict[str, Any]:
    """What the partner sent, member by member, with the operator's ids in the place of ours.

    Added are `messaging_product` and `recipient_type` where they are missing, and our id as callback
    data, before the partner's own. Source: decision 0061.
    """
    members = sent.members or {}
    body: dict[str, Any] = {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        **members,
        "type": sent.type,
        **cast("dict[str, Any]", _with_copies({sent.type: sent.body}, copies)),
    }
    theirs = members.get(CALLBACK_DATA)
    body[CALLBACK_DATA] = f"{message_id} {theirs}" if theirs else message_id
    match sent:
        case Passthrough(type="reaction", body={"message_id": str()}):
            body["reaction"] = {**body["reaction"], "message_id": reply_to}
        case Passthrough(reply_to=str(given)) if given != reply_to:
            body["context"] = {**members["context"], "message_id": reply_to}
        case _:
            pass
    return body


def _with_copies(value: object, copies: Mapping[str, str]) -> object:
    """The same, with the operator's ids where media are named by ours."""
    match value:
        case dict():
            made: dict[str, object] = {}
            for name, member in cast("dict[str, object]", value).items():
                match member:
                    case {"id": str() | int() as id} if name in MEDIA_MEMBERS:
                        medium = cast("dict[str, object]", member)
                        made[name] = {**medium, "id": copies.get(str(id), id)}
                    case _ if name in PARTNERS_DATA:
                        made[name] = member
                    case _:
                        made[name] = _with_copies(member, copies)
            return made
        case list():
            return [_with_copies(item, copies) for item in cast("list[object]", value)]
        case _:
            return value
