"""Actions of a person on a phone: read, write, send, tap, respond, change the number; each written in one transaction."""

import asyncio
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.json_values import object_of
from waypost.base.written_numbers import ascii_json, encode_json
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.delivery_signals import DeliverySignals
from waypost.simulator.errors import GraphApiError
from waypost.simulator.groups.model import SimulatedGroup
from waypost.simulator.handsets.phone_messages import (
    InboundOptions,
    InvalidPhoneMessage,
    PhoneMedia,
    PhoneMessage,
    build_media_message,
    build_number_change,
    build_response,
    build_tap,
    build_text_message,
    build_user_id_change,
    user_id_change_text,
)
from waypost.simulator.media.media import MediaStorage, SimulatedMedia
from waypost.simulator.media.references import INBOUND_TYPE_PREFIXES
from waypost.simulator.messages.message_checks import GROUP_PREFIX
from waypost.simulator.messages.messages import received_wamid
from waypost.simulator.messages.statuses import CHAT_MEMORY_MS, SENT_ONLY_TYPES, read_status_json
from waypost.simulator.outbox import Outbox
from waypost.simulator.phones.phone import SimulatedPhone
from waypost.simulator.phones.phones import BlockLists, Phones
from waypost.simulator.settings import SimulatorSettingsStore
from waypost.simulator.store import Statement, Store, run_statements
from waypost.simulator.tables.messages import MESSAGES, SimulatedMessage, find_chat_number_ids, find_unread
from waypost.simulator.tables.updates import MESSAGE_UPDATE, OUTBOX, Update, add_update


@dataclass(frozen=True)
class SimulatedPhoneAction:
    """One action on a phone, written in one transaction.

    First everything that has arrived from the number is read, then the phone sends its message.

    Args:
        sends_webhook: whether the business gets webhooks about it.
        wamid: the id of the message that the phone sends; empty: it sends none.
        reads: whether the messages that have arrived are read.
        opens_window: whether it opens the 24-hour window.
        has_contacts: whether the webhook of a status also names the recipient in `contacts`.
        chat: the group that the message is for; empty: the chat with the business.
        extra_statements: written in the same transaction.
    """

    phone: SimulatedPhone
    is_new: bool
    number: Number
    at_ms: int
    sends_webhook: bool
    wamid: str = ""
    type: str = ""
    rendered: str = ""
    update: str = ""
    context_id: str | None = None
    reads: bool = True
    opens_window: bool = True
    has_contacts: bool = True
    chat: str = ""
    extra_statements: Sequence[Statement] = ()


class PhoneActionWriter:
    """Writes actions on phones."""

    def __init__(self, store: Store, phones: Phones, signals: DeliverySignals, outbox: Outbox) -> None:
        self._store = store
        self._phones = phones
        self._signals = signals
        self._outbox = outbox

    async def carry_out(self, action: SimulatedPhoneAction) -> int:
        """Write an action, wake its waiters, and return how many messages were read."""
        count: int = await self._store.write(self._write_actions, action)
        self._outbox.wake_events(action.number.waba_id).set()
        self._signals.wake(action.phone.phone)
        return count

    async def chat_number_ids(self, phone: str) -> set[str]:
        """Return the ids of the business numbers that the phone has a chat with."""
        return await find_chat_number_ids(self._store, phone)

    def _write_actions(self, connection: sqlite3.Connection, actions: Sequence[SimulatedPhoneAction]) -> Sequence[int]:
        return [self._write_action(connection, act) for act in actions]

    def _write_action(self, connection: sqlite3.Connection, action: SimulatedPhoneAction) -> int:
        number, phone = action.number, action.phone.phone
        number_id = number.phone_number_id
        unread = find_unread(connection, phone, number_id, action.at_ms) if action.reads else []
        statements: list[Statement] = [self._phones.add_statement(phone)] if action.is_new else []
        for item in unread:
            statements.append(MESSAGES.update({"read_ms": action.at_ms}, position=item.position))
            if item.read_ms is not None:
                due = {"waba_id": number.waba_id, "due_ms": item.read_ms, "subject": item.wamid, "kind": "read"}
                statements.append(OUTBOX.update({"due_ms": action.at_ms}, **due))
            elif action.sends_webhook and action.phone.sends_read_receipts and item.type not in SENT_ONLY_TYPES:
                rest = read_status_json(action.phone, item.callback_data, has_contacts=action.has_contacts)
                statements.append(add_update(self._build_update(action, "read", item.wamid, rest)))
        if action.wamid:
            message = SimulatedMessage(
                position=self._signals.next_position(),
                wamid=action.wamid,
                phone=action.chat or phone,
                phone_number_id=number_id,
                is_inbound=1,
                type=action.type,
                at_ms=action.at_ms,
                shown=action.rendered,
                body=action.update,
                context_id=action.context_id,
            )
            MESSAGES.insert_all(connection, [message])
            if action.opens_window:
                statements.append(self._phones.window_statement(number_id, phone, action.at_ms))
            if action.sends_webhook and not _reacts_to_old(connection, action):
                statements.append(add_update(self._build_update(action, MESSAGE_UPDATE, action.wamid, action.update)))
        run_statements(connection, [*statements, *action.extra_statements])
        return len(unread)

    def _build_update(self, action: SimulatedPhoneAction, kind: str, subject: str, rest: str) -> Update:
        number = action.number
        return Update(
            number.waba_id, action.at_ms, self._outbox.next_id(), kind, number.phone_number_id, subject, rest
        )  # fmt: skip


def _reacts_to_old(connection: sqlite3.Connection, action: SimulatedPhoneAction) -> bool:
    """True for a reaction to a message of more than 30 days ago: businesses do not learn of it.

    Source: the operator's page "Reaction messages".
    """
    if action.type != "reaction":
        return False
    reaction = object_of(object_of(msgspec.json.decode(action.rendered)).get("reaction"))
    targets = MESSAGES.find_on(connection, wamid=reaction.get("message_id"))
    return any(target.at_ms < action.at_ms - CHAT_MEMORY_MS for target in targets)


_NO_OPTIONS: Final = InboundOptions()


class Handsets:
    """The phones' side of the simulator: every action of their owners that sends a message or reads one."""

    def __init__(
        self,
        clock: Clock,
        ids: Ids,
        settings: SimulatorSettingsStore,
        phones: Phones,
        outbox: Outbox,
        media: MediaStorage,
        blocks: BlockLists,
        actions: PhoneActionWriter,
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._phones = phones
        self._outbox = outbox
        self._media = media
        self._blocks = blocks
        self._actions = actions

    async def read(self, phone: str, numbers: Sequence[Number]) -> int:
        """Read everything that has arrived from these numbers, and return how many messages that was."""
        handset, is_new = self._phones.find_or_create(phone)
        at_ms = self._clock.now_ms()
        acts = [
            SimulatedPhoneAction(handset, is_new, number, at_ms, self._outbox.has_subscribers(number.waba_id))
            for number in numbers
        ]
        counts: list[int] = await asyncio.gather(*map(self._actions.carry_out, acts))
        return sum(counts)

    async def send_text(self, phone: str, number: Number, text: str, *, context_id: str | None = None) -> str:
        """Send a text, optionally in reply to a message; return the new message's id.

        Source: facts 7.4, `text`.
        """
        return await self.send_message(phone, number, build_text_message(text), InboundOptions(context_id=context_id))

    async def tap(self, phone: str, number: Number, message: SimulatedMessage, button: dict[str, Any]) -> str:
        """Tap a button of a message; return the id of the message that this sends.

        Raises:
            ControlApiError: a tap on such a button sends no message to the business.

        Source: facts 7.4, `button` and `interactive`.
        """
        reply = build_tap(button)
        if reply is None:
            rule = (
                f"button {button['index']} is a {button['type']} button; only a tap on "
                "QUICK_REPLY, REPLY or LIST_ROW sends a message to the business"
            )
            raise ControlApiError("index", rule, "the index or text of a reply button", status=409)
        return await self.send_message(phone, number, reply, InboundOptions(context_id=message.wamid))

    async def submit_response(
        self, phone: str, number: Number, message: SimulatedMessage, button: dict[str, Any], response: dict[str, Any]
    ) -> str:
        """Send back a form, an address or a choice; return the id of the message that this sends.

        Raises:
            ControlApiError: the button opens no form or choice.

        Source: facts 7.4, `nfm_reply` and `call_permission_reply`.
        """
        reply = build_response(button, response)
        if reply is None:
            rule = f"button {button['index']} is a {button['type']} button"
            raise ControlApiError("message_id", rule, "a message with FLOW, ADDRESS or CALL_PERMISSION", status=409)
        return await self.send_message(phone, number, reply, InboundOptions(context_id=message.wamid))

    async def send_media(
        self,
        phone: str,
        number: Number,
        kind: str,
        media: PhoneMedia,
        options: InboundOptions = _NO_OPTIONS,
        *,
        group: SimulatedGroup | None = None,
    ) -> str:
        """Send an image, a video, an audio file, a document or a sticker; return the message's id.

        Raises:
            InvalidPhoneMessage: the media does not exist, or does not fit the kind.

        Source: facts 7.4.
        """
        stored = await self._resolve_media(number, kind, media)
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
        return await self.send_message(
            phone, number, build_media_message(kind, content, media.caption), options, group=group
        )

    async def change_number(self, phone: str, new_number: str, numbers: Sequence[Number]) -> list[str]:
        """Move the phone's owner to another number, and notify every business that has a chat with the phone.

        Args:
            phone: the current digits.
            new_number: the new digits.
            numbers: every business number.

        Returns:
            The ids of the messages that notify them.

        Source: facts 7.4, `system`.
        """
        handset = self._phones.find_or_default(phone)  # a user id derived from the number stays with the number
        identity = {"name": handset.name, "user_id": handset.user_id, "username": handset.username}
        chats = await self._actions.chat_number_ids(phone)
        notice = build_number_change(handset.name, phone, new_number)
        wamids = [
            await self.send_message(phone, number, notice) for number in numbers if number.phone_number_id in chats
        ]
        await self._phones.change(phone, {"user_id": "", "username": "", "shows_number": True})
        await self._phones.change(new_number, {**identity, "shows_number": handset.shows_number})
        return wamids

    async def change_user_id(self, phone: str, user_id: str, numbers: Sequence[Number]) -> list[str]:
        """Give the phone's owner another user id, and notify every business that has a chat with the phone.

        Each gets a message and a change of the field `user_id_update`.

        Args:
            phone: its digits.
            user_id: the new id, which no phone has.
            numbers: every business number.

        Returns:
            The ids of the messages that notify them.

        Source: the operator's page "Business-scoped user IDs".
        """
        handset, _ = self._phones.find_or_create(phone)
        chats = await self._actions.chat_number_ids(phone)
        at_ms = self._clock.now_ms()
        wamids: list[str] = []
        for number in numbers:
            if number.phone_number_id not in chats:
                continue
            seen = self._phones.seen_by(handset, number.phone_number_id, at_ms)
            change = build_user_id_change(seen, user_id)
            updates = [add_update(self._user_id_update(seen, number, user_id, at_ms))]
            subscribed = self._outbox.has_subscribers(number.waba_id)
            wamids.append(
                await self.send_message(phone, number, change, extra_statements=updates if subscribed else [])
            )
            self._outbox.wake_events(number.waba_id).set()
        await self._phones.change(phone, {"user_id": user_id})
        return wamids

    def _user_id_update(self, seen: SimulatedPhone, number: Number, user_id: str, at_ms: int) -> Update:
        current = msgspec.structs.replace(seen, user_id=user_id)
        change = {
            **({"wa_id": seen.whatsapp_id} if seen.shows_number else {}),
            "detail": user_id_change_text(seen, user_id),
            "user_id": {"previous": seen.user_id, "current": user_id},
            "timestamp": str(at_ms // 1000),
        }
        value = {
            "messaging_product": "whatsapp",
            "metadata": {"display_phone_number": number.phone_number, "phone_number_id": number.phone_number_id},
            "contacts": [current.contact()],
            "user_id_update": [change],
        }
        return self._outbox.account_update(number.waba_id, at_ms, "user_id_update", value)

    async def send_message(
        self,
        phone: str,
        number: Number,
        message: PhoneMessage,
        options: InboundOptions = _NO_OPTIONS,
        *,
        group: SimulatedGroup | None = None,
        extra_statements: Sequence[Statement] = (),
    ) -> str:
        """Send a message from a phone, to a business or to a group; return the message's id.

        A number that has blocked the phone gets no webhook, and its window stays unchanged.

        Args:
            phone: its digits.
            number: the business number.
            message: the message.
            options: its context and other options.
            group: of the number: such a message opens no window, and no block keeps it from the business.
            extra_statements: written in the same transaction.

        Source: facts 7.4, 7.5.
        """
        handset, is_new = self._phones.find_or_create(phone)
        at_ms = self._clock.now_ms()
        seen = self._phones.seen_by(handset, number.phone_number_id, at_ms)
        wamid = received_wamid(self._ids, phone)
        members = options.webhook_members(number)
        webhook_message: dict[str, Any] = {
            **({"context": members.pop("context")} if "context" in members else {}),
            **seen.identity_members("from", "from_user_id"),
            **({"group_id": group.group_id} if group is not None else {}),
            "id": wamid,
            "timestamp": str(at_ms // 1000),
            **members,
            **message.content,
            "type": message.type,
        }
        value: dict[str, Any] = {"messages": [webhook_message]}
        if message.has_contact:
            value = {"contacts": [seen.contact()], **value}
        is_blocked = group is None and self._blocks.is_blocked(number.phone_number_id, phone)
        opens_window = message.opens_window and not is_blocked and group is None
        sender = {"from": phone, "from_name": handset.name} if group is not None else {}
        await self._actions.carry_out(
            SimulatedPhoneAction(
                handset,
                is_new,
                number,
                at_ms,
                sends_webhook=self._outbox.has_subscribers(number.waba_id) and not is_blocked,
                wamid=wamid,
                type=message.type,
                rendered=encode_json({**message.rendered, **options.rendered_marks(), **members, **sender}).decode(),
                update=ascii_json(value)[1:-1],
                context_id=options.context_id,
                reads=message.opens_window and group is None,
                chat=GROUP_PREFIX + group.group_id if group is not None else "",
                opens_window=opens_window,
                has_contacts=self._settings.value.statuses_contacts,
                extra_statements=extra_statements,
            )
        )
        if opens_window:
            self._phones.open_window(number.phone_number_id, phone, at_ms)
        return wamid

    async def _resolve_media(self, number: Number, kind: str, media: PhoneMedia) -> SimulatedMedia:
        if media.media_id:
            stored = self._media.find(media.media_id, number.phone_number_id)
            if stored is None:
                raise InvalidPhoneMessage("media.id", "is not a media id of that number", "an existing media id")
            _check_type(kind, stored.mime_type)
        else:
            _check_type(kind, media.mime_type)
            try:
                stored = await self._media.add_inbound(
                    number.phone_number_id, media.mime_type, media.file_name, media.content
                )
            except GraphApiError as error:
                rule = str(error.error.get("message", error))
                raise InvalidPhoneMessage("media", rule, "a content and mime_type that the operator accepts") from None
        return stored


def _check_type(kind: str, mime_type: str) -> None:
    if not mime_type.lower().startswith(INBOUND_TYPE_PREFIXES[kind]):
        raise InvalidPhoneMessage(
            "media.mime_type",
            f"{mime_type} is not a type of {kind}",
            " or ".join(f"{prefix}…" for prefix in INBOUND_TYPE_PREFIXES[kind]),
        )
