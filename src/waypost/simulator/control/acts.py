"""The control door's calls for what people do with phones: send, tap, answer, move, stop marketing."""

from typing import Any, Final

from starlette.requests import Request

from waypost.simulator.accounts.accounts import Number
from waypost.simulator.control.guard import ControlRefused
from waypost.simulator.control.phones import arrived, check_online, digits_of, whole_view
from waypost.simulator.control.shapes import (
    AnswerShape,
    BlockShape,
    MarketingShape,
    MediumShape,
    NumberChangeShape,
    PayShape,
    ReportShape,
    TapShape,
    WriteShape,
    read_shape,
)
from waypost.simulator.handsets.inbound_kinds import KINDS, NOT_REQUESTED, NotSaid, NotThere, said
from waypost.simulator.handsets.manners import Manner, Medium
from waypost.simulator.media.references import MEDIA_KINDS
from waypost.simulator.messages.order_messages import REVIEW_AND_PAY
from waypost.simulator.parts import Parts
from waypost.simulator.tables.messages import Message

_SENT: Final = ("image", "video", "audio", "document", "sticker")
_ANSWERED: Final = ("FLOW", "ADDRESS", "CALL_PERMISSION")


async def write_message(parts: Parts, request: Request) -> dict[str, Any]:
    """A phone sends a message to a business number; opens the window."""
    phone = digits_of(request)
    wish = read_shape(WriteShape, await request.body())
    _check_reach(parts, phone, number_of(parts, wish.to))
    return {"wamid": await speak(parts, phone, wish)}


async def speak(parts: Parts, phone: str, wish: WriteShape) -> str:
    """Let a phone send what is wished; gives the message's id.

    Raises:
        ControlRefused: 404 for a number or a message that is not there, 400 for what is missing
            or wrong.
    """
    number = number_of(parts, wish.to)
    if wish.context_id is not None and not await _has_in_chat(parts, phone, number, wish.context_id):
        raise ControlRefused(
            404,
            field="context_id",
            rule="is not on this phone, or with another business",
            accepted="a wamid of the chat with this one",
        )
    manner = Manner(wish.context_id, wish.forwarded, wish.frequently_forwarded, wish.referred_product, wish.referral)
    if wish.reaction is not None and wish.type == "reaction":
        await _check_reaction(parts, phone, wish.reaction)
    try:
        if wish.type in _SENT:
            medium = _medium(wish)
            return await parts.handsets.send_medium(phone, number, wish.type, medium, manner)
        if wish.type not in KINDS:
            accepted = ", ".join((*KINDS, *_SENT))
            raise ControlRefused(400, field="type", rule="is unknown", accepted=accepted)
        content = getattr(wish, wish.type)
        if content is None:
            raise ControlRefused(
                400, field="body", rule=f"Object missing required field `{wish.type}`", accepted=wish.accepted
            )
        return await parts.handsets.say(phone, number, said(wish.type, content), manner)
    except NotSaid as wrong:
        raise ControlRefused(400, field=wrong.field, rule=wrong.rule, accepted=wrong.accepted) from wrong


async def _has_in_chat(parts: Parts, phone: str, number: Number, wamid: str) -> bool:
    """Whether a message is in the chat with a business: in another one it would be quoted to a stranger."""
    item = await parts.inboxes.item(phone, wamid)
    return item is not None and item.phone_number_id == number.phone_number_id


async def _check_reaction(parts: Parts, phone: str, reaction: dict[str, Any]) -> None:
    """What one reacts to must be on the phone; without an emoji the reaction is taken away."""
    message_id = reaction.get("message_id")
    if isinstance(message_id, str) and await parts.inboxes.item(phone, message_id) is None:
        raise ControlRefused(
            404, field="reaction.message_id", rule="is not on this phone", accepted="a wamid of its inbox"
        )


def _medium(wish: WriteShape) -> Medium:
    shape = wish.media or MediumShape()
    if not shape.id and not (shape.content and shape.mime_type):
        raise ControlRefused(
            400,
            field="media",
            rule="has neither an id nor a content and its mime_type",
            accepted=f"one of them; a {wish.type} is {', '.join(MEDIA_KINDS[wish.type]) or 'any'}",
        )
    return Medium(
        media_id=shape.id or "",
        content=shape.content,
        mime_type=shape.mime_type,
        file_name=shape.file_name,
        caption=shape.caption,
        voice=shape.voice,
        animated=shape.animated,
    )


async def tap_button(parts: Parts, request: Request) -> dict[str, Any]:
    """A phone taps a button; with `wait_ms` the message may still be on its way."""
    phone = digits_of(request)
    wish = read_shape(TapShape, await request.body())

    def is_meant(item: Message) -> bool:
        if wish.message_id is not None:
            return item.wamid == wish.message_id
        if item.is_inbound:
            return False
        return _has_code(item) if wish.not_requested else item.has_buttons

    item = await arrived(parts, phone, is_meant, wish.message_id, wish.wait_ms)
    button = _button(item, wish)
    number = parts.accounts.numbers[item.phone_number_id]
    _check_reach(parts, phone, number)
    try:
        wamid = await parts.handsets.tap(phone, number, item, button)
    except NotThere as wrong:
        raise ControlRefused(
            409, field="index", rule=str(wrong), accepted="the index or text of a reply button"
        ) from wrong
    return {"wamid": wamid, "message_id": item.wamid, "button": button}


async def answer_message(parts: Parts, request: Request) -> dict[str, Any]:
    """A phone sends a flow, an address or a choice back: of a message, or of the newest such."""
    phone = digits_of(request)
    wish = read_shape(AnswerShape, await request.body())

    def is_meant(item: Message) -> bool:
        if wish.message_id is not None:
            return item.wamid == wish.message_id
        return not item.is_inbound and _answerable(item) is not None

    item = await arrived(parts, phone, is_meant, wish.message_id, wish.wait_ms)
    button = _answerable(item)
    if button is None:
        raise ControlRefused(
            409,
            field="message_id",
            rule="the message has nothing to answer",
            accepted=f"a message with one of {', '.join(_ANSWERED)}",
        )
    number = parts.accounts.numbers[item.phone_number_id]
    _check_reach(parts, phone, number)
    wamid = await parts.handsets.answer(phone, number, item, button, wish.response)
    return {"wamid": wamid, "message_id": item.wamid, "button": button}


async def pay_order(parts: Parts, request: Request) -> dict[str, Any]:
    """A phone pays an order, or fails to: that of a message, or the newest that is not paid."""
    phone = digits_of(request)
    wish = read_shape(PayShape, await request.body())

    def is_meant(item: Message) -> bool:
        if wish.message_id is not None:
            return item.wamid == wish.message_id
        payment: dict[str, Any] = item.content.get("payment", {})
        return not item.is_inbound and _payable(item) is not None and payment.get("status") != "captured"

    item = await arrived(parts, phone, is_meant, wish.message_id, wish.wait_ms)
    button = _payable(item)
    if button is None:
        raise ControlRefused(
            409,
            field="message_id",
            rule="the message is no order",
            accepted="an interactive message of type order_details",
        )
    number = parts.accounts.numbers[item.phone_number_id]
    _check_reach(parts, phone, number)
    error = {"code": wish.code, "reason": wish.reason}
    try:
        payment = await parts.payments.pay(phone, number, item.wamid, button, wish.status, error)
    except NotThere as wrong:
        raise ControlRefused(409, field="message_id", rule=str(wrong), accepted="an order that is not paid") from wrong
    return {"message_id": item.wamid, "payment": payment}


async def change_number(parts: Parts, request: Request) -> dict[str, Any]:
    """A phone's owner moves to another number; the businesses he has a chat with are told."""
    phone = digits_of(request)
    after = read_shape(NumberChangeShape, await request.body()).to.lstrip("+")
    check_online(parts, phone)
    if after == phone or after in parts.accounts.numbers_by_digits:
        raise ControlRefused(409, field="to", rule="cannot be moved to", accepted="digits that no business has")
    numbers = list(parts.accounts.numbers.values())
    return {"wamids": await parts.handsets.change_number(phone, after, numbers)}


async def change_marketing(parts: Parts, request: Request) -> dict[str, Any]:
    """A phone's owner stops a business's marketing, or takes it again."""
    phone = digits_of(request)
    wish = read_shape(MarketingShape, await request.body())
    number = number_of(parts, wish.to)
    await parts.feedback.want_marketing(phone, number, wants=wish.wants)
    return {"phone": phone, "phone_number_id": number.phone_number_id, "wants": wish.wants}


async def block_business(parts: Parts, request: Request) -> dict[str, Any]:
    """A phone's owner blocks a business, or takes that back; the business is not told."""
    phone = digits_of(request)
    wish = read_shape(BlockShape, await request.body())
    number = number_of(parts, wish.to)
    await parts.absences.block(phone, number, blocks=wish.blocks)
    return await whole_view(parts, parts.phones.known(phone))


async def report_business(parts: Parts, request: Request) -> dict[str, Any]:
    """A phone's owner reports a business for spam, and perhaps blocks it; the business is not told."""
    phone = digits_of(request)
    wish = read_shape(ReportShape, await request.body())
    number = number_of(parts, wish.to)
    wamid = wish.message_id
    if wamid is not None and await parts.inboxes.item(phone, wamid) is None:
        raise ControlRefused(404, field="message_id", rule="is not on this phone", accepted="a wamid of its inbox")
    await parts.feedback.report(phone, number, wamid or "")
    if wish.blocks:
        await parts.absences.block(phone, number, blocks=True)
    return await whole_view(parts, parts.phones.known(phone))


def _check_reach(parts: Parts, phone: str, number: Number) -> None:
    """Refuse what reaches no business: from a phone that is offline, or has blocked it."""
    check_online(parts, phone)
    if number.phone_number_id in parts.phones.known(phone).has_blocked:
        raise ControlRefused(
            409,
            field="to",
            rule="has been blocked by the phone's owner",
            accepted=f"POST /control/phones/{phone}/block with blocks: false first",
        )


def number_of(parts: Parts, digits: str) -> Number:
    """The business number of some digits.

    Raises:
        ControlRefused: there is none.
    """
    number = parts.accounts.numbers_by_digits.get(digits.lstrip("+"))
    if number is None:
        known = ", ".join(parts.accounts.numbers_by_digits) or "none yet"
        raise ControlRefused(404, field="to", rule="is no business number", accepted=known)
    return number


def _has_code(item: Message) -> bool:
    template: dict[str, Any] = item.content.get("template", {})
    return template.get("category") == "AUTHENTICATION"


def _payable(item: Message) -> dict[str, Any] | None:
    return next((button for button in item.buttons if button["type"] == REVIEW_AND_PAY), None)


def _answerable(item: Message) -> dict[str, Any] | None:
    return next((button for button in item.buttons if button["type"] in _ANSWERED), None)


def _button(item: Message, wish: TapShape) -> dict[str, Any]:
    if wish.not_requested:
        if _has_code(item):
            return NOT_REQUESTED
        raise ControlRefused(
            409,
            field="not_requested",
            rule="the message carries no one-time code",
            accepted="a message of an AUTHENTICATION template",
        )
    buttons = item.buttons if wish.card is None else _card_buttons(item, wish.card)
    for button in buttons:
        if wish.index is not None and button["index"] != wish.index:
            continue
        if wish.text is not None and button["text"] != wish.text:
            continue
        if wish.index is not None or wish.text is not None:
            return button
    labels = ", ".join(f"{button['index']}: {button['text']}" for button in buttons)
    raise ControlRefused(
        404,
        field="index" if wish.text is None else "text",
        rule="the message has no such button",
        accepted=labels or "nothing: the message has no buttons there",
    )


def _card_buttons(item: Message, index: int) -> list[dict[str, Any]]:
    for card in item.cards:
        if card["index"] == index:
            buttons: list[dict[str, Any]] = card.get("buttons", [])
            return buttons
    raise ControlRefused(
        404,
        field="card",
        rule="the message has no such card",
        accepted=f"0 to {len(item.cards) - 1}" if item.cards else "none: there are no cards",
    )
