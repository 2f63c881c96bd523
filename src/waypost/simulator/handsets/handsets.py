"""Actions of a person on a phone: read, write, send, tap, respond, change the number."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.errors import GraphRefused
from waypost.simulator.handsets.inbound_kinds import (
    NotSaid,
    Said,
    answered,
    medium_said,
    number_changed,
    tapped,
    text_said,
)
from waypost.simulator.handsets.inbound_options import Manner, Medium
from waypost.simulator.handsets.phone_actions import Act, PhoneActs
from waypost.simulator.media.media import Media, MediaShelf
from waypost.simulator.media.references import MEDIA_KINDS
from waypost.simulator.messages.message_ids import received_wamid
from waypost.simulator.phones.blocks import Blocks
from waypost.simulator.phones.phones import Phones
from waypost.simulator.settings import LiveSettings
from waypost.simulator.store import Statement
from waypost.simulator.tables.messages import Message
from waypost.simulator.violation import BrokenRule
from waypost.simulator.webhooks.outbox import Outbox, ascii_json

_PLAIN: Final = Manner()


class Handsets:
    """The phones' side of the simulator: every action of their owners that sends a message or reads one."""

    def __init__(
        self,
        clock: Clock,
        ids: Ids,
        settings: LiveSettings,
        phones: Phones,
        outbox: Outbox,
        media: MediaShelf,
        blocks: Blocks,
        acts: PhoneActs,
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._phones = phones
        self._outbox = outbox
        self._media = media
        self._blocks = blocks
        self._acts = acts

    async def read(self, phone: str, numbers: Sequence[Number]) -> int:
        """Read everything that has arrived from these numbers, and return how many messages that was."""
        handset, is_new = self._phones.meet(phone)
        at_ms = self._clock.now_ms()
        acts = [Act(handset, is_new, number, at_ms, self._outbox.listens(number.waba_id)) for number in numbers]
        counts: list[int] = await asyncio.gather(*map(self._acts.carry_out, acts))
        return sum(counts)

    async def write(self, phone: str, number: Number, text: str, *, context_id: str | None = None) -> str:
        """Send a text, optionally in reply to a message; return the new message's id.

        Source: facts 7.4, `text`.
        """
        return await self.say(phone, number, text_said(text), Manner(context_id=context_id))

    async def tap(self, phone: str, number: Number, item: Message, button: dict[str, Any]) -> str:
        """Tap a button of a message; return the id of the message that this sends.

        Raises:
            ControlApiError: a tap on such a button sends no message to the business.

        Source: facts 7.4, `button` and `interactive`.
        """
        reply = tapped(button)
        if reply is None:
            rule = (
                f"button {button['index']} is a {button['type']} button; only a tap on "
                "QUICK_REPLY, REPLY or LIST_ROW sends a message to the business"
            )
            raise BrokenRule("index", rule, "the index or text of a reply button", status=409)
        return await self.say(phone, number, reply, Manner(context_id=item.wamid))

    async def answer(
        self, phone: str, number: Number, item: Message, button: dict[str, Any], response: dict[str, Any]
    ) -> str:
        """Send back a form, an address or a choice; return the id of the message that this sends.

        Raises:
            ControlApiError: the button opens no form or choice.

        Source: facts 7.4, `nfm_reply` and `call_permission_reply`.
        """
        reply = answered(button, response)
        if reply is None:
            rule = f"button {button['index']} is a {button['type']} button"
            raise BrokenRule("message_id", rule, "a message with FLOW, ADDRESS or CALL_PERMISSION", status=409)
        return await self.say(phone, number, reply, Manner(context_id=item.wamid))

    async def send_medium(self, phone: str, number: Number, kind: str, medium: Medium, manner: Manner = _PLAIN) -> str:
        """Send an image, a video, an audio file, a document or a sticker; return the message's id.

        Raises:
            InvalidPhoneMessage: the media does not exist, or does not fit the kind.

        Source: facts 7.4.
        """
        stored = await self._kept(number, kind, medium)
        content: dict[str, Any] = {"id": stored.media_id, "mime_type": stored.mime_type, "sha256": stored.sha256_base64}
        match kind:
            case "document" if medium.file_name or stored.file_name:
                content["filename"] = medium.file_name or stored.file_name
            case "audio":
                content["voice"] = medium.voice
            case "sticker":
                content["animated"] = medium.animated
            case _:
                pass
        return await self.say(phone, number, medium_said(kind, content, medium.caption), manner)

    async def change_number(self, phone: str, after: str, numbers: Sequence[Number]) -> list[str]:
        """Move the phone's owner to another number, and notify every business that has a chat with the phone.

        Args:
            phone: the current digits.
            after: the new digits.
            numbers: every business number.

        Returns:
            The ids of the messages that notify them.

        Source: facts 7.4, `system`.
        """
        handset = self._phones.known(phone)  # a user id derived from the number stays with the number
        identity = {"name": handset.name, "user_id": handset.user_id, "username": handset.username}
        chats = await self._acts.numbers_of(phone)
        notice = number_changed(handset.name, phone, after)
        wamids = [await self.say(phone, number, notice) for number in numbers if number.phone_number_id in chats]
        await self._phones.change(phone, {"user_id": "", "username": "", "shows_number": True})
        await self._phones.change(after, {**identity, "shows_number": handset.shows_number})
        return wamids

    async def say(
        self, phone: str, number: Number, said: Said, manner: Manner = _PLAIN, *, also: Sequence[Statement] = ()
    ) -> str:
        """Send a message from a phone; return the message's id.

        A number that has blocked the phone gets no webhook, and its window stays unchanged.

        Args:
            phone: its digits.
            number: the business number.
            said: the message.
            manner: its context and other options.
            also: written in the same transaction.

        Source: facts 7.4, 7.5.
        """
        handset, is_new = self._phones.meet(phone)
        at_ms = self._clock.now_ms()
        wamid = received_wamid(self._ids, phone)
        members = manner.members(number)
        webhook_message: dict[str, Any] = {
            **({"context": members.pop("context")} if "context" in members else {}),
            **handset.named("from", "from_user_id"),
            "id": wamid,
            "timestamp": str(at_ms // 1000),
            **members,
            **said.content,
            "type": said.type,
        }
        value: dict[str, Any] = {"messages": [webhook_message]}
        if said.has_contact:
            value = {"contacts": [handset.contact()], **value}
        is_blocked = self._blocks.is_blocked(number.phone_number_id, phone)
        opens_window = said.opens_window and not is_blocked
        await self._acts.carry_out(
            Act(
                handset,
                is_new,
                number,
                at_ms,
                is_heard=self._outbox.listens(number.waba_id) and not is_blocked,
                wamid=wamid,
                type=said.type,
                shown=msgspec.json.encode({**said.shown, **manner.shown(), **members}).decode(),
                update=ascii_json(value)[1:-1],
                context_id=manner.context_id,
                reads=said.opens_window,
                opens_window=opens_window,
                has_contacts=self._settings.value.statuses_contacts,
                also=also,
            )
        )
        if opens_window:
            self._phones.wrote(number.phone_number_id, phone, at_ms)
        return wamid

    async def _kept(self, number: Number, kind: str, medium: Medium) -> Media:
        if medium.media_id:
            stored = self._media.find(medium.media_id, number.phone_number_id)
            if stored is None:
                raise NotSaid("media.id", "is not a media id of that number", "an existing media id")
        else:
            try:
                stored = await self._media.keep_inbound(
                    number.phone_number_id, medium.mime_type.lower(), medium.file_name, medium.content
                )
            except GraphRefused as error:
                rule = str(error.error.get("message", error))
                raise NotSaid("media", rule, "a content and mime_type that the operator accepts") from None
        if not stored.mime_type.startswith(MEDIA_KINDS[kind]):
            raise NotSaid(
                "media.mime_type",
                f"{stored.mime_type} is not a type of {kind}",
                " or ".join(f"{prefix}…" for prefix in MEDIA_KINDS[kind]),
            )
        return stored
