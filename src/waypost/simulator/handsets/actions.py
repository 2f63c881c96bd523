"""Actions of a person on a phone: read, write, send, tap, respond, report, change number, user id or preference.

An action decides at once, and returns the function that writes it in a transaction.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from waypost.base.json_values import object_of
from waypost.simulator.apis.errors import GraphApiError
from waypost.simulator.groups.model import SimulatedGroup
from waypost.simulator.handsets.message_changes import record_change
from waypost.simulator.handsets.phone_messages import (
    InboundOptions,
    InvalidPhoneMessage,
    PhoneMedia,
    PhoneMessage,
    build_media_message,
    build_message,
    build_number_change,
    build_user_id_change,
    user_id_change_text,
)
from waypost.simulator.media.model import SimulatedMedia, add_inbound_media, find_media
from waypost.simulator.media.references import INBOUND_TYPE_PREFIXES
from waypost.simulator.messages.message_checks import GROUP_PREFIX
from waypost.simulator.messages.sending import received_wamid
from waypost.simulator.messages.statuses import CHAT_MEMORY_MS, SENT_ONLY_TYPES
from waypost.simulator.numbers.model import is_blocked
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.business_apps import find_business_app, is_disconnected
from waypost.simulator.state.outbox import phone_status
from waypost.simulator.state.phone import SimulatedPhone
from waypost.simulator.state.phones import (
    WINDOWS,
    change_phone_list,
    find_or_create_phone,
    find_phone,
    set_phone_members,
    show_to_business,
)
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind
from waypost.simulator.storage.tables.messages import IS_FROM_APP, MESSAGES, SimulatedMessage
from waypost.simulator.storage.tables.updates import MESSAGE_UPDATE, OUTBOX, Update

_UNREAD: Final = (
    "phone=:phone AND phone_number_id=:phone_number_id AND is_inbound=0 AND delivered_ms<=:now_ms "
    "AND (read_ms IS NULL OR read_ms>:now_ms) ORDER BY position"
)
_NO_OPTIONS: Final = InboundOptions()
_PREFERENCE_DETAILS: Final = {
    True: "User requested to resume marketing messages",
    False: "User requested to stop marketing messages",
}


class SpamReport(msgspec.Struct, frozen=True):
    """A report for spam; without a message it is about the whole chat."""

    phone_number_id: str
    message_id: str
    at_ms: int


_SPAM_REPORTS: Final = StoredKind("spam_report", SpamReport, in_memory=False)  # of a phone


def read_chats(state: SimulatorState, phone: str, numbers: Sequence[Number]) -> Callable[[Transaction], int]:
    """Read everything that has arrived from these numbers; the result is how many messages that was."""
    handset = find_or_create_phone(state, phone)
    at_ms = state.clock.now_ms()

    def write(transaction: Transaction) -> int:
        transaction.wake_phone(phone)
        return sum(_read_chat(state, transaction, handset, number, at_ms) for number in numbers)

    return write


def _read_chat(
    state: SimulatorState,
    transaction: Transaction,
    phone: SimulatedPhone,
    number: Number,
    at_ms: int,
    *,
    sends_webhook: bool = True,
) -> int:
    """Read everything that has arrived from a number, and return how many messages that was."""
    values: dict[str, Any] = {"phone": phone.phone, "phone_number_id": number.phone_number_id, "now_ms": at_ms}
    unread = MESSAGES.select(transaction.connection, _UNREAD, excluded_columns=("content",), **values)
    own: set[str] = set()
    if find_business_app(transaction, number) is not None:  # of the app's own messages the API learns no status
        own = {item.wamid for item in MESSAGES.select(transaction.connection, f"{IS_FROM_APP} AND {_UNREAD}", **values)}
        sends_webhook = sends_webhook and not is_disconnected(transaction, number)
    for item in unread:
        transaction.run(MESSAGES.update({"read_ms": at_ms}, position=item.position))
        if item.read_ms is not None:
            due = {"waba_id": number.waba_id, "due_ms": item.read_ms, "subject": item.wamid, "kind": "read"}
            transaction.run(OUTBOX.update({"due_ms": at_ms}, **due))
        elif sends_webhook and phone.sends_read_receipts and item.type not in SENT_ONLY_TYPES and item.wamid not in own:
            content = phone_status(state.settings.value, phone, item.callback_data)
            transaction.send(Update(number.waba_id, at_ms, "read", number.phone_number_id, item.wamid, content))
    transaction.follow(state.outbox.wake_events[number.waba_id].set)
    return len(unread)


async def build_phone_media(state: SimulatorState, number: Number, kind: str, media: PhoneMedia) -> PhoneMessage:
    """Return the message with an image, a video, an audio file, a document or a sticker, which is stored if it is new.

    Raises:
        InvalidPhoneMessage: the media does not exist, or does not fit the kind.

    Source: facts 7.4.
    """
    stored = await _store_media(state, number, kind, media)
    content: dict[str, Any] = {"id": stored.media_id, "mime_type": stored.mime_type, "sha256": stored.sha256_base64}
    match kind:
        case "document" if media.file_name or stored.file_name:
            content["filename"] = media.file_name or stored.file_name
        case "audio":
            content["voice"] = media.voice
        case "sticker":
            content["animated"] = media.animated
        case _:
            pass
    return build_media_message(kind, content, media.caption)


async def _store_media(state: SimulatorState, number: Number, kind: str, media: PhoneMedia) -> SimulatedMedia:
    if media.media_id:
        stored = find_media(state, media.media_id, number.phone_number_id)
        if stored is None:
            raise InvalidPhoneMessage("media.id", "is not a media id of that number", "an existing media id")
        _check_type(kind, stored.mime_type)
        return stored
    _check_type(kind, media.mime_type)
    try:
        return await add_inbound_media(state, number.phone_number_id, media.mime_type, media.file_name, media.content)
    except GraphApiError as error:
        rule = str(error.error.get("message", error))
        raise InvalidPhoneMessage("media", rule, "a content and mime_type that the operator accepts") from None


def _check_type(kind: str, mime_type: str) -> None:
    if not mime_type.lower().startswith(INBOUND_TYPE_PREFIXES[kind]):
        accepted = " or ".join(f"{prefix}…" for prefix in INBOUND_TYPE_PREFIXES[kind])
        raise InvalidPhoneMessage("media.mime_type", f"{mime_type} is not a type of {kind}", accepted)


async def change_number(state: SimulatorState, phone: str, new_number: str) -> list[str]:
    """Move the phone's owner to another number; return the ids of the messages to the businesses with a chat.

    Source: facts 7.4, `system`.
    """
    handset = find_phone(state, phone)  # a user id derived from the number stays with the number
    notice = build_number_change(handset.name, phone, new_number)
    sends = [send_message(state, phone, number, notice) for number in await _chat_numbers(state, phone)]
    moved = {name: getattr(handset, name) for name in ("name", "user_id", "username", "shows_number")}
    saves = (
        set_phone_members(state, phone, {"user_id": "", "username": "", "shows_number": True}),
        set_phone_members(state, new_number, moved),
    )

    def write(transaction: Transaction) -> list[str]:
        wamids = [send(transaction) for send in sends]
        transaction.run(*saves)
        return wamids

    return await state.transact(write)


async def change_user_id(state: SimulatorState, phone: str, user_id: str) -> list[str]:
    """Give the phone's owner another user id; return the ids of the messages to the businesses with a chat.

    Each gets a change of the field `user_id_update`, too.

    Source: the operator's page "Business-scoped user IDs".
    """
    handset = find_or_create_phone(state, phone)
    numbers, at_ms = await _chat_numbers(state, phone), state.clock.now_ms()
    seen = [show_to_business(state, handset, number.phone_number_id, at_ms) for number in numbers]
    sends = [
        send_message(state, phone, number, build_user_id_change(owner, user_id))
        for number, owner in zip(numbers, seen, strict=True)
    ]
    saved = set_phone_members(state, phone, {"user_id": user_id})

    def write(transaction: Transaction) -> list[str]:
        wamids = [send(transaction) for send in sends]
        for number, owner in zip(numbers, seen, strict=True):
            change = {
                **({"wa_id": owner.whatsapp_id} if owner.shows_number else {}),
                "detail": user_id_change_text(owner, user_id),
                "user_id": {"previous": owner.user_id, "current": user_id},
                "timestamp": str(at_ms // 1000),
            }
            contact = msgspec.structs.replace(owner, user_id=user_id).contact()
            value = number.webhook_value(contacts=[contact], user_id_update=[change])
            transaction.notify(number.waba_id, "user_id_update", value, at_ms=at_ms)
        transaction.run(saved)
        return wamids

    return await state.transact(write)


async def _chat_numbers(state: SimulatorState, phone: str) -> list[Number]:
    """Return the business numbers that the phone has a chat with."""
    statement = "SELECT DISTINCT phone_number_id FROM messages WHERE phone=:phone"
    chats = set(await state.store.column(statement, phone=phone))
    return [number for number in state.accounts.numbers.values() if number.phone_number_id in chats]


def send_message(
    state: SimulatorState,
    phone: str,
    number: Number,
    message: PhoneMessage,
    options: InboundOptions = _NO_OPTIONS,
    *,
    group: SimulatedGroup | None = None,
    change: Callable[[Transaction], None] | None = None,
) -> Callable[[Transaction], str]:
    """Send a message from a phone, to a business or to a group; the result is the message's id.

    First everything that has arrived from the number is read. A number that has blocked the phone gets no webhook,
    and its window stays unchanged.

    Args:
        options: its context and other options.
        group: of the number: such a message opens no window, and no block keeps it from the business.
        change: what the phone shows afterwards, in place of a new message.

    Source: facts 7.4, 7.5.
    """
    handset = find_or_create_phone(state, phone)
    at_ms = state.clock.now_ms()
    seen = show_to_business(state, handset, number.phone_number_id, at_ms)
    wamid = received_wamid(state.ids, phone)
    members = options.webhook_members(number)
    sent: dict[str, Any] = {
        **({"context": members.pop("context")} if "context" in members else {}),
        **seen.identity_members("from", "from_user_id"),
        **({"group_id": group.group_id} if group is not None else {}),
        "id": wamid,
        "timestamp": str(at_ms // 1000),
        **members,
        **message.content,
        "type": message.type,
    }
    contacts = {"contacts": [seen.contact()]} if message.has_contact else {}
    content = {**contacts, "messages": [sent]}
    is_ignored = is_disconnected(state, number) or (group is None and is_blocked(state, number.phone_number_id, phone))
    sender = {"from": phone, "from_name": handset.name} if group is not None else {}
    shown = {**message.rendered, **options.rendered_marks(), **members, **sender}

    def write(transaction: Transaction) -> str:
        if message.opens_window and group is None:
            _read_chat(state, transaction, handset, number, at_ms, sends_webhook=not is_ignored)
            if not is_ignored:
                transaction.save(WINDOWS, at_ms, phone, number.phone_number_id)
        stored = SimulatedMessage(
            position=state.delivery_signals.next_position(),
            wamid=wamid,
            phone=phone if group is None else GROUP_PREFIX + group.group_id,
            phone_number_id=number.phone_number_id,
            is_inbound=1,
            type=message.type,
            at_ms=at_ms,
            content=shown,
            context_id=options.context_id,
        )
        if change is None:
            transaction.run(MESSAGES.insert(stored))
        else:
            change(transaction)
        if not is_ignored and not (message.type == "reaction" and _reacts_to_old(transaction, message, at_ms)):
            transaction.send(Update(number.waba_id, at_ms, MESSAGE_UPDATE, number.phone_number_id, wamid, content))
        transaction.wake_phone(phone)
        return wamid

    return write


def change_message(
    state: SimulatorState, original: SimulatedMessage, notice: PhoneMessage, number: Number
) -> Callable[[Transaction], str]:
    """Edit or revoke a message on the phone that has sent it; the result is the id of the notice.

    A business whose number is not on the app gets the notice as a message that the operator does not pass on. A change
    opens no window: it is no message of its own.

    Args:
        notice: of `message_changes`.
    """
    at_ms = state.clock.now_ms()
    is_shared = find_business_app(state, number) is not None
    sent = notice if is_shared else build_message("unsupported", {"type": notice.type})
    return send_message(
        state,
        original.phone,
        number,
        dataclasses.replace(sent, opens_window=False),
        change=lambda transaction: record_change(transaction, original, notice, at_ms),
    )


def _reacts_to_old(transaction: Transaction, message: PhoneMessage, at_ms: int) -> bool:
    """True for a reaction to a message of more than 30 days ago: businesses do not learn of it.

    Source: the operator's page "Reaction messages".
    """
    message_id = object_of(message.rendered.get("reaction")).get("message_id")
    targets = MESSAGES.find_on(transaction.connection, wamid=message_id)
    return any(target.at_ms < at_ms - CHAT_MEMORY_MS for target in targets)


def set_marketing_preference(
    state: SimulatorState, phone: str, number: Number, *, wants: bool
) -> Callable[[Transaction], None]:
    """Stop or resume a business's marketing, and send the business a webhook.

    Source: facts 7.2 (`user_preferences`), 5.2 (131050).
    """
    saved = change_phone_list(state, phone, "stopped_marketing_of", number.phone_number_id, is_listed=not wants)
    at_ms = state.clock.now_ms()
    owner = show_to_business(state, find_or_create_phone(state, phone), number.phone_number_id, at_ms)
    preference = {
        **owner.identity_members("wa_id", "user_id"),
        "detail": _PREFERENCE_DETAILS[wants],
        "category": "marketing_messages",
        "value": "resume" if wants else "stop",
        "timestamp": at_ms // 1000,
    }
    value = number.webhook_value(contacts=[owner.contact()], user_preferences=[preference])

    def write(transaction: Transaction) -> None:
        transaction.run(saved)
        transaction.notify(number.waba_id, "user_preferences", value, at_ms=at_ms)

    return write


def report_spam(state: SimulatorState, phone: str, number: Number, wamid: str = "") -> Callable[[Transaction], None]:
    """Report a message of a business, or the whole chat, for spam. The business is not notified."""
    report = SpamReport(number.phone_number_id, wamid, state.clock.now_ms())
    return lambda transaction: transaction.run(_SPAM_REPORTS.append_statement(report, phone))


async def list_spam_reports(state: SimulatorState, phone: str) -> list[SpamReport]:
    """Return the reports of the phone's owner, oldest first."""
    reports = await state.store.read(lambda connection: _SPAM_REPORTS.values_on(connection, phone))
    return list(reports.values())
