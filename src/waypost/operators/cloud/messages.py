"""Messages to request bodies."""

from collections.abc import Sequence
from typing import Any

from waypost.domain.buttons import ButtonKind
from waypost.domain.message import Message, SessionText, TemplateSend
from waypost.domain.postback import payload_of
from waypost.domain.template import Template
from waypost.domain.variables import variable_count


def message_body(
    message: Message, template: Template | None, reply_to: str | None
) -> dict[str, Any]:
    """The body of `POST /{phone_number_id}/messages`.

    Our id travels as the operator's opaque callback data, so that every status carries it.

    Source: operator's facts 4.1, 4.2; a number without `+` may get a country code put before it.
    """
    body: dict[str, Any] = {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": f"+{message.destination}",
        "biz_opaque_callback_data": message.id,
    }
    match message.content:
        case SessionText() as text:
            body["type"] = "text"
            body["text"] = {"body": text.text, "preview_url": text.preview_url}
        case TemplateSend() as send:
            body["type"] = "template"
            body["template"] = _template(message, send, template)
    if reply_to is not None:
        body["context"] = {"message_id": reply_to}
    return body


def _template(message: Message, send: TemplateSend, template: Template | None) -> dict[str, Any]:
    if template is None:  # it was deleted meanwhile; the operator says so in its own words
        return {"name": send.template_id, "language": {"code": "en_US"}}
    return {
        "name": template.draft.element_name,
        "language": {"code": template.draft.language_code, "policy": "deterministic"},
        "components": _components(message, send, template),
    }


def _components(message: Message, send: TemplateSend, template: Template) -> list[dict[str, Any]]:
    """Parameters in order: header, body, buttons. Too many go to the body, whose count the operator checks."""
    draft = template.draft
    params = list(send.params)
    in_header = variable_count(draft.header)
    in_buttons = sum(button.has_variable for button in draft.buttons)
    in_body = variable_count(draft.content) + max(
        0, len(params) - in_header - variable_count(draft.content) - in_buttons
    )
    header, body = params[:in_header], params[in_header : in_header + in_body]
    rest = iter(params[in_header + in_body :])
    components: list[dict[str, Any]] = []
    if header:
        components.append({"type": "header", "parameters": _texts(header)})
    if body:
        components.append({"type": "body", "parameters": _texts(body)})
    postback_texts = send.postback_texts or {}
    for index, button in enumerate(draft.buttons):
        if button.has_variable:
            value = next(rest, None)
            if value is not None:
                components.append(_button("url", index, {"type": "text", "text": value}))
        elif button.kind is ButtonKind.QUICK_REPLY and index in postback_texts:
            payload = payload_of(message.id, index, postback_texts[index])
            components.append(
                _button("quick_reply", index, {"type": "payload", "payload": payload})
            )
    return components


def _texts(values: Sequence[str]) -> list[dict[str, str]]:
    return [{"type": "text", "text": value} for value in values]


def _button(sub_type: str, index: int, parameter: dict[str, str]) -> dict[str, Any]:
    return {"type": "button", "sub_type": sub_type, "index": str(index), "parameters": [parameter]}
