"""Control API calls for actions on phones: send, tap, reply, pay, read, change number, opt out, block, report."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from waypost.base.invalid_values import accepted_by
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlBody, ControlOperations
from waypost.simulator.apis.field_types import USER_ID, BusinessNumber, Digits, Name, Text, WaitMs, accepts
from waypost.simulator.groups.model import SimulatedGroup
from waypost.simulator.handsets import actions as handset_actions
from waypost.simulator.handsets.actions import (
    build_phone_media,
    change_message,
    read_chats,
    report_spam,
    send_message,
    set_marketing_preference,
)
from waypost.simulator.handsets.control import PhoneDetails, phone_details
from waypost.simulator.handsets.inboxes import find_message, has_unread, wait_for_messages
from waypost.simulator.handsets.message_changes import build_edit, build_revoke
from waypost.simulator.handsets.phone_messages import (
    NOT_REQUESTED_BUTTON,
    PHONE_MEDIA_KINDS,
    PHONE_MESSAGE_KINDS,
    InboundOptions,
    PhoneMedia,
    PhoneMessage,
    build_message,
    build_response,
    build_tap,
    check_options,
)
from waypost.simulator.handsets.reachability import block
from waypost.simulator.media import references
from waypost.simulator.messages.marketing import MARKETING_MARK, click_link
from waypost.simulator.messages.orders import REVIEW_AND_PAY
from waypost.simulator.payments import model as payments
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.control_parameters import PathPhone, business_number, check_online, check_reachable
from waypost.simulator.state.phones import find_phone_by_user_id
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.storage.tables.messages import IS_NAMED, MESSAGES, SimulatedMessage

_REPLY_BUTTON_TYPES: Final = ("FLOW", "ADDRESS", "CALL_PERMISSION")

operation = ControlOperations()


class PhoneMessageBody(InboundOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message from a phone; its content is the member named like its type, or `media`."""

    type: Annotated[str, accepts(", ".join((*PHONE_MESSAGE_KINDS, *PHONE_MEDIA_KINDS)))] = "text"
    text: Text | None = None
    media: PhoneMedia | None = None
    location: dict[str, Any] | None = None
    contacts: list[dict[str, Any]] | None = None
    reaction: dict[str, Any] | None = None
    order: dict[str, Any] | None = None
    unsupported: dict[str, Any] | None = None


class WriteBody(PhoneMessageBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message from a phone to a business number; its content is the member named like its type, or `media`."""

    to: BusinessNumber


class MessageBody(ControlBody, frozen=True):
    """An action on a message of a phone: a given one, or the newest that allows the action."""

    message_id: Name | None = None  # its wamid, or the id that its sender gave it: the first word of its callback data
    wait_ms: WaitMs = 0  # real time to wait for that message; without `message_id`, for one whose buttons were not used


class TapBody(MessageBody, frozen=True):
    """A tap on a button, by its index or text; `not_requested` is the one below a one-time code."""

    card: Annotated[int, Meta(ge=0, le=9)] | None = None
    index: Annotated[int, Meta(ge=0, le=99)] | None = None
    text: Name | None = None
    not_requested: bool = False


class ReplyBody(MessageBody, frozen=True):
    """A reply to a flow, an address request or a call permission request: the filled-in values."""

    response: dict[str, Any] = field(default_factory=dict[str, Any])


class PayBody(MessageBody, frozen=True):
    """A payment of an order, successful or not."""

    status: Literal["captured", "failed", "pending"] = "captured"
    code: Name = "BAD_REQUEST_ERROR"
    reason: Name = "payment_failed"


class PressedButton(Struct):
    """A message whose button was pressed or form filled in, and the message that this sent; null: a link sends none."""

    wamid: str | None
    message_id: str
    button: dict[str, Any]
    click_id: str | UnsetType | None = UNSET


@operation("POST", "/control/phones/{phone}/messages", wamid=str)
async def write_message(state: SimulatorState, phone: PathPhone, body: WriteBody) -> dict[str, str]:
    """Send a message from a phone to a business number; opens the window."""
    check_reachable(state, phone, business_number(state, body.to))
    return {"wamid": await send_from_phone(state, phone, body)}


async def send_from_phone(state: SimulatorState, phone: str, body: WriteBody) -> str:
    """Send a message from a phone; return its id.

    Raises:
        ControlApiError: 404 for an unknown number or message, 400 for a missing or invalid member.
    """
    number = business_number(state, body.to)
    quoted = None if body.context_id is None else await find_message(state, phone, body.context_id)
    if body.context_id is not None and (quoted is None or quoted.phone_number_id != number.phone_number_id):
        # a quote must not reveal another chat's message
        rule = "is not on this phone, or with another business"
        raise ControlApiError("context_id", rule, "a wamid of the chat with this one", status=404)
    if body.reaction is not None and body.type == "reaction":
        build_message("reaction", body.reaction)  # its form first
        if await find_message(state, phone, body.reaction["message_id"]) is None:
            raise ControlApiError("reaction.message_id", "is not on this phone", "a wamid of its inbox", status=404)
    return await send_content(state, phone, number, body)


async def send_content(
    state: SimulatorState, phone: str, number: Number, body: PhoneMessageBody, group: SimulatedGroup | None = None
) -> str:
    """Send the content of a message to a business number, or to a group of it; return the message's id.

    Raises:
        ControlApiError: 400 for a missing or invalid member.
    """
    check_options(body)
    if body.type in PHONE_MEDIA_KINDS:
        medium = body.media or PhoneMedia()
        if not medium.media_id and not (medium.content and medium.mime_type):
            prefixes = ", ".join(references.INBOUND_TYPE_PREFIXES[body.type])
            accepted = f"one of them; a {body.type} is {prefixes or 'any'}"
            raise ControlApiError("media", "has neither an id nor a content and its mime_type", accepted)
        message = await build_phone_media(state, number, body.type, medium)
    elif body.type in PHONE_MESSAGE_KINDS:
        content = getattr(body, body.type)
        if content is None:
            raise ControlApiError(body.type, f"is required for the type {body.type}", accepted_by(type(body)))
        message = build_message(body.type, content)
    else:
        raise ControlApiError("type", "is unknown", ", ".join((*PHONE_MESSAGE_KINDS, *PHONE_MEDIA_KINDS)))
    return await state.transact(send_message(state, phone, number, message, body, group=group))


@operation("POST", "/control/phones/{phone}/messages/{wamid}/edit", wamid=str, message_id=str)
async def edit_message(state: SimulatorState, phone: PathPhone, wamid: str, *, text: Text) -> dict[str, str]:
    """Edit the text or caption of a message that the phone has sent in the last 15 minutes."""
    original, number = await _find_sent_message(state, phone, wamid)
    notice = build_edit(original, text, state.clock.now_ms())
    return {"wamid": await state.transact(change_message(state, original, notice, number)), "message_id": wamid}


@operation("POST", "/control/phones/{phone}/messages/{wamid}/revoke", wamid=str, message_id=str)
async def revoke_message(state: SimulatorState, phone: PathPhone, wamid: str) -> dict[str, str]:
    """Delete a message, which the phone has sent in the last 2 days, for everyone."""
    original, number = await _find_sent_message(state, phone, wamid)
    notice = build_revoke(original, state.clock.now_ms())
    return {"wamid": await state.transact(change_message(state, original, notice, number)), "message_id": wamid}


async def _find_sent_message(state: SimulatorState, phone: str, wamid: str) -> tuple[SimulatedMessage, Number]:
    """Return a message that the phone has sent to a business, and the business's number."""
    found = await find_message(state, phone, wamid)
    if found is None or not found.is_inbound:
        raise ControlApiError("wamid", "was not sent from this phone", "a wamid of its own", status=404)
    number = state.accounts.numbers[found.phone_number_id]
    check_reachable(state, phone, number)
    return found, number


@operation("POST", "/control/phones/{phone}/tap")
async def tap_button(state: SimulatorState, phone: PathPhone, body: TapBody) -> PressedButton:
    """Tap a button of a message; with `wait_ms` waits for the message, or for one newer than the last one tapped.

    A tap on a link of a marketing message sends the business a click event; a tap on another link is an error.
    """

    def has_button(item: SimulatedMessage) -> bool:
        return _has_code(item) if body.not_requested else item.has_buttons

    item = await wait_for_message(state, phone, body, has_button)
    button = _select_button(item, body)
    number = state.accounts.numbers[item.phone_number_id]
    check_reachable(state, phone, number)
    if button["type"] == "URL" and item.content.get(MARKETING_MARK):
        click_id = await click_link(state, number, item)
        return PressedButton(None, item.wamid, button, click_id)
    message = build_tap(button)
    if message is None:
        rule = (
            f"button {button['index']} is a {button['type']} button; only a tap on "
            "QUICK_REPLY, REPLY or LIST_ROW sends a message to the business"
        )
        raise ControlApiError("index", rule, "the index or text of a reply button", status=409)
    return await _press_button(state, item, button, message)


@operation("POST", "/control/phones/{phone}/respond")
async def reply_to_message(state: SimulatorState, phone: PathPhone, body: ReplyBody) -> PressedButton:
    """Reply to a flow, address or call permission request: of a message, or of the newest such."""
    item = await wait_for_message(state, phone, body, lambda item: _button_of(item, *_REPLY_BUTTON_TYPES) is not None)
    button = _button_of(item, *_REPLY_BUTTON_TYPES)
    if button is None:
        accepted = f"a message with one of {', '.join(_REPLY_BUTTON_TYPES)}"
        raise ControlApiError("message_id", "the message has nothing to reply to", accepted, status=409)
    check_reachable(state, phone, state.accounts.numbers[item.phone_number_id])
    return await _press_button(state, item, button, build_response(button, body.response))


async def _press_button(
    state: SimulatorState, item: SimulatedMessage, button: dict[str, Any], message: PhoneMessage
) -> PressedButton:
    """Send the message that a button of another message sends."""
    number, options = state.accounts.numbers[item.phone_number_id], InboundOptions(context_id=item.wamid)
    wamid = await state.transact(send_message(state, item.phone, number, message, options))
    return PressedButton(wamid, item.wamid, button)


@operation("POST", "/control/phones/{phone}/pay", message_id=str, payment=dict[str, Any])
async def pay_order(state: SimulatorState, phone: PathPhone, body: PayBody) -> dict[str, Any]:
    """Pay an order, or fail to: that of a message, or the newest unpaid one."""

    def is_payable(item: SimulatedMessage) -> bool:
        payment: dict[str, Any] = item.content.get("payment", {})
        return _button_of(item, REVIEW_AND_PAY) is not None and payment.get("status") != "captured"

    item = await wait_for_message(state, phone, body, is_payable)
    button = _button_of(item, REVIEW_AND_PAY)
    if button is None:
        accepted = "an interactive message of type order_details"
        raise ControlApiError("message_id", "the message is not an order", accepted, status=409)
    number = state.accounts.numbers[item.phone_number_id]
    check_reachable(state, phone, number)
    error = {"code": body.code, "reason": body.reason}
    payment = await state.transact(
        lambda transaction: payments.pay_order(transaction, number, item.wamid, button, body.status, error)
    )
    return {"message_id": item.wamid, "payment": payment}


@operation("POST", "/control/phones/{phone}/read", read=int)
async def read_messages(state: SimulatorState, phone: PathPhone, body: MessageBody) -> dict[str, int]:
    """Mark all messages as read in the chat of one message, or in all chats of a phone."""
    check_online(state, phone)
    numbers = list(state.accounts.numbers.values())
    if body.message_id is not None:
        item = await wait_for_message(state, phone, body, bool)
        numbers = [state.accounts.numbers[item.phone_number_id]]
    elif body.wait_ms:
        await wait_for_messages(state, phone, wait_ms=body.wait_ms, is_complete=partial(has_unread, state))
    return {"read": await state.transact(read_chats(state, phone, numbers))}


@operation("POST", "/control/phones/{phone}/number", wamids=list[str])
async def change_number(state: SimulatorState, phone: PathPhone, *, to: Digits) -> dict[str, list[str]]:
    """Change a phone's number; the businesses with a chat receive a system message."""
    new_digits = to.lstrip("+")
    check_online(state, phone)
    if new_digits == phone or new_digits in state.accounts.numbers_by_digits:
        raise ControlApiError("to", "cannot be moved to", "digits that no business has", status=409)
    return {"wamids": await handset_actions.change_number(state, phone, new_digits)}


@operation("POST", "/control/phones/{phone}/user-id", wamids=list[str])
async def change_user_id(
    state: SimulatorState, phone: PathPhone, *, to: Annotated[str, accepts("as in US.1349", USER_ID)]
) -> dict[str, list[str]]:
    """Change the user id of a phone's owner; the businesses with a chat receive a message and a `user_id_update`."""
    check_online(state, phone)
    holder = find_phone_by_user_id(state, to)
    if holder is not None:
        raise ControlApiError("to", f"belongs to {holder.phone}", "one not in use", status=409)
    return {"wamids": await handset_actions.change_user_id(state, phone, to)}


@operation("POST", "/control/phones/{phone}/marketing", phone=str, phone_number_id=str, wants=bool)
async def change_marketing(
    state: SimulatorState, phone: PathPhone, *, to: BusinessNumber, wants: bool
) -> dict[str, Any]:
    """Opt a phone's owner out of a business's marketing messages, or in again."""
    number = business_number(state, to)
    await state.transact(set_marketing_preference(state, phone, number, wants=wants))
    return {"phone": phone, "phone_number_id": number.phone_number_id, "wants": wants}


@operation("POST", "/control/phones/{phone}/block")
async def block_business(state: SimulatorState, phone: PathPhone, *, to: BusinessNumber, blocks: bool) -> PhoneDetails:
    """Block or unblock a business on a phone, without a webhook."""
    await state.transact(block(state, phone, business_number(state, to), blocks=blocks))
    return await phone_details(state, phone)


@operation("POST", "/control/phones/{phone}/report")
async def report_business(
    state: SimulatorState, phone: PathPhone, *, to: BusinessNumber, message_id: Name | None = None, blocks: bool = False
) -> PhoneDetails:
    """Report a business for spam, and optionally block it, without a webhook."""
    number = business_number(state, to)
    wamid = message_id
    if wamid is not None and await find_message(state, phone, wamid) is None:
        raise ControlApiError("message_id", "is not on this phone", "a wamid of its inbox", status=404)
    await state.transact(report_spam(state, phone, number, wamid or ""))
    if blocks:
        await state.transact(block(state, phone, number, blocks=True))
    return await phone_details(state, phone)


async def wait_for_message(
    state: SimulatorState, phone: str, body: MessageBody, is_newest: Callable[[SimulatedMessage], bool]
) -> SimulatedMessage:
    """Return the message named in the body, or the newest suitable one from a business, once it has arrived.

    Without a name, a message whose buttons were used does not end the wait: the next one is on its way.

    Raises:
        ControlApiError: no such message has arrived in time.
    """
    message_id = body.message_id

    def find_matches(items: list[SimulatedMessage]) -> list[SimulatedMessage]:
        if message_id is not None:
            return [item for item in items if item.is_named(message_id)]
        return [item for item in items if not item.is_inbound and is_newest(item)]

    def is_complete(items: list[SimulatedMessage]) -> bool:
        matches = find_matches(items)
        return bool(matches) and (message_id is not None or not _is_used(matches[-1], items))

    if message_id is not None and not body.wait_ms:
        now_ms = state.clock.now_ms()
        condition = f"phone=:phone AND {IS_NAMED} ORDER BY position"
        items = await MESSAGES.rows(state.store, condition, phone=phone, message_id=message_id)
        matches = [item for item in items if item.is_inbound or (item.delivered_ms or now_ms + 1) <= now_ms]
    else:
        matches = find_matches(await wait_for_messages(state, phone, wait_ms=body.wait_ms, is_complete=is_complete))
    if not matches:
        accepted = "a wamid of its inbox, or the id that the send returned; a longer wait_ms for one that is on its way"
        rule = "no such message has arrived on this phone"
        if message_id is None:
            rule = "no message with what this needs, such as a button, has arrived on this phone"
        raise ControlApiError("message_id", rule, accepted, status=404)
    return matches[-1]


def _is_used(message: SimulatedMessage, items: list[SimulatedMessage]) -> bool:
    """Return whether a button of the message was tapped, or its form filled in."""
    return any(
        item.is_inbound and item.context_id == message.wamid and item.type in ("button", "interactive")
        for item in items
    )


def _has_code(item: SimulatedMessage) -> bool:
    template: dict[str, Any] = item.content.get("template", {})
    return template.get("category") == "AUTHENTICATION"


def _button_of(item: SimulatedMessage, *types: str) -> dict[str, Any] | None:
    return next((button for button in item.buttons if button["type"] in types), None)


def _select_button(item: SimulatedMessage, body: TapBody) -> dict[str, Any]:
    if body.not_requested:
        if _has_code(item):
            return NOT_REQUESTED_BUTTON
        rule = "the message carries no one-time code"
        raise ControlApiError("not_requested", rule, "a message of an AUTHENTICATION template", status=409)
    buttons = item.buttons if body.card is None else _card_buttons(item, body.card)
    if body.index is not None or body.text is not None:
        for button in buttons:
            if body.index in (None, button["index"]) and body.text in (None, button["text"]):
                return button
    labels = ", ".join(f"{button['index']}: {button['text']}" for button in buttons)
    name = "index" if body.text is None else "text"
    accepted = labels or "nothing: the message has no buttons there"
    raise ControlApiError(name, "the message has no such button", accepted, status=404)


def _card_buttons(item: SimulatedMessage, index: int) -> list[dict[str, Any]]:
    for card in item.cards:
        if card["index"] == index:
            buttons: list[dict[str, Any]] = card.get("buttons", [])
            return buttons
    accepted = f"0 to {len(item.cards) - 1}" if item.cards else "none: there are no cards"
    raise ControlApiError("card", "the message has no such card", accepted, status=404)
