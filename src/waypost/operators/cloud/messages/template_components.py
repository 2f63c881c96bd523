"""Components of template messages."""

from collections.abc import Mapping, Sequence

from waypost.domain.message import CardSend, TemplateSend
from waypost.domain.postback import payload_of
from waypost.domain.session_messages.content import Body, medium_body, place_body, product_section_body
from waypost.domain.templates.buttons import Button, ButtonKind
from waypost.domain.templates.extras import TEMPLATE_EXTRAS
from waypost.domain.templates.fields import Draft
from waypost.domain.templates.parameters import CardParameters, Parameters, split
from waypost.domain.templates.template import Template
from waypost.domain.templates.variables import variables


def template_object(send: TemplateSend, template: Template | None, message_id: str, copies: Mapping[str, str]) -> Body:
    """Return the member `template`: name, language and components.

    Args:
        send: the template send.
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


def _components(send: TemplateSend, draft: Draft, message_id: str, copies: Mapping[str, str]) -> list[Body]:
    params = split(draft, send.params)
    components: list[Body] = []
    header = _header(send, draft, params, copies)
    if header:
        components.append({"type": "header", "parameters": header})
    if params.body:
        components.append(
            {"type": "body", "parameters": _texts(params.body, draft.content, draft)}
        )  # fmt: skip
    extras = [extra.send_component(send, draft) for extra in TEMPLATE_EXTRAS]
    components += [component for component in extras if component is not None]
    postback_texts = send.postback_texts or {}
    for index, button in enumerate(draft.buttons):
        parameter = _parameter(button, params.buttons.get(index))
        if button.kind in _OF_PRODUCTS:
            parameter = _products(send, button, params.thumbnail)
        elif button.kind is ButtonKind.QUICK_REPLY and index in postback_texts:
            payload = payload_of(message_id, index, postback_texts[index])
            parameter = {"type": "payload", "payload": payload}
        if parameter is not None:
            components.append(_button(button, index, parameter))
    if draft.cards is not None:
        cards = [
            _card(send, draft, card_index, card, _of_card(params, card_index), message_id, copies)
            for card_index, card in enumerate(send.cards)
        ]
        components.append({"type": "carousel", "cards": cards})
    return components


def _header(send: TemplateSend, draft: Draft, params: Parameters, copies: Mapping[str, str]) -> list[Body]:
    """Return a media or location header if the send has one; a media header always needs its parameter."""
    if send.media_kind is not None:
        kind = send.media_kind.value
        name = send.file_name if kind == "document" else ""
        return [{"type": kind, kind: medium_body(send.media, copies, name)}]
    if send.place is not None:
        return [{"type": "location", "location": place_body(send.place)}]
    return _texts(params.header, draft.header, draft)


def _texts(values: Sequence[str], text: str | None, draft: Draft) -> list[Body]:
    """Return parameters by position; for a template with named variables each with its name."""
    parameters: list[Body] = [{"type": "text", "text": value} for value in values]
    if draft.parameter_format == "NAMED":
        for parameter, name in zip(parameters, dict.fromkeys(variables(text)), strict=False):
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
_OF_PRODUCTS = (ButtonKind.MPM, ButtonKind.CATALOG)
# fmt: on


def _button(button: Button, index: int, parameter: Body) -> Body:
    return {"type": "button", "sub_type": _SUB_TYPES[button.kind], "index": str(index), "parameters": [parameter]}


def _parameter(button: Button, value: str | None) -> Body | None:
    if value is None:
        return None
    if button.kind is ButtonKind.COPY_CODE:
        return {"type": "coupon_code", "coupon_code": value}
    return {"type": "text", "text": value}


def _products(send: TemplateSend, button: Button, thumbnail: str | None) -> Body | None:
    action: Body = {}
    if thumbnail:
        action["thumbnail_product_retailer_id"] = thumbnail
    if send.sections and button.kind is ButtonKind.MPM:
        action["sections"] = [product_section_body(section) for section in send.sections]
    return {"type": "action", "action": action} if action else None


def _of_card(params: Parameters, at: int) -> CardParameters:
    return params.cards[at] if at < len(params.cards) else CardParameters()


def _card(
    send: TemplateSend,
    draft: Draft,
    at: int,
    card: CardSend,
    params: CardParameters,
    message_id: str,
    copies: Mapping[str, str],
) -> Body:
    """Return one card; all cards that were sent are passed on, because the operator checks their number."""
    template_card = draft.cards[at] if draft.cards and at < len(draft.cards) else None
    kind = _card_media_kind(send, template_card.header_type if template_card else "")
    components: list[Body] = [{"type": "header", "parameters": [{"type": kind, kind: medium_body(card.media, copies)}]}]
    if params.body:
        text = template_card.body if template_card else None
        components.append({"type": "body", "parameters": _texts(params.body, text, draft)})
    for index, button in enumerate(template_card.buttons if template_card else ()):
        parameter = _parameter(button, params.buttons.get(index))
        if button.kind is ButtonKind.QUICK_REPLY and index in card.postback_texts:
            text = card.postback_texts[index]
            payload = payload_of(message_id, index, text, card=at)
            parameter = {"type": "payload", "payload": payload}
        if parameter is not None:
            components.append(_button(button, index, parameter))
    return {"card_index": at, "components": components}


def _card_media_kind(send: TemplateSend, of_template: str) -> str:
    if send.card_media_kind is not None:
        return send.card_media_kind.value
    return of_template.lower() or "image"
