"""Accepting messages from a business: check, store with the planned statuses, respond."""

import base64
from typing import Any, Final

import msgspec

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.json_values import object_of, text_or_none
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.delivery_signals import DeliverySignals
from waypost.simulator.messages.direct_send import GeneratedTemplates, TemplateAttribution
from waypost.simulator.messages.groups import GroupMessages, group_contact
from waypost.simulator.messages.limits import SendingLimits
from waypost.simulator.messages.message_checks import CheckedMessage, MessageChecker
from waypost.simulator.messages.message_writer import MessageWriter
from waypost.simulator.messages.statuses import CHAT_MEMORY_MS
from waypost.simulator.phones.phones import Phones
from waypost.simulator.store import Store
from waypost.simulator.tables.messages import MESSAGES, SimulatedMessage
from waypost.simulator.templates.usage import TemplateUsage

_REACTION_FAIL_CODE: Final = 131009


class Messages:
    """Accepts messages from businesses."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        phones: Phones,
        sending_limits: SendingLimits,
        checker: MessageChecker,
        writer: MessageWriter,
        group_messages: GroupMessages,
        signals: DeliverySignals,
        usage: TemplateUsage,
        generated: GeneratedTemplates,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._phones = phones
        self._sending_limits = sending_limits
        self._checker = checker
        self._writer = writer
        self._group_messages = group_messages
        self._signals = signals
        self._usage = usage
        self._generated = generated

    async def accept(
        self,
        number: Number,
        request: dict[str, Any],
        raw: bytes,
        *,
        fail_code: int | None = None,
        to_marketing: bool = False,
    ) -> dict[str, Any]:
        """Check a message, store it with its planned statuses, and return the response.

        Checks in this order: the envelope, the number's restrictions, the content, the sender as recipient,
        blocks, a closed window if the settings report that at once, the limits.

        Args:
            number: the sender.
            request: the decoded body.
            raw: the body as received.
            fail_code: the code with which a fault makes it fail; None: no such fault.
            to_marketing: whether it came to the API for marketing messages.

        Raises:
            GraphApiError: for the first violation; by default a closed window is only reported in a status.

        Source: facts 4, 5.2; the operator's pages "Reaction messages" and "Contextual replies".
        """
        checked = self._checker.check_content(number, request, to_marketing=to_marketing)
        quoted_id = text_or_none(object_of(request.get("context")).get("message_id"))
        if quoted_id and (checked.template or await self._find_in_chat(number, checked, quoted_id) is None):
            quoted_id = None  # such a message is shown without the bubble
        if checked.type == "reaction" and fail_code is None and self._checker.checks_references:
            target = await self._find_in_chat(number, checked, checked.rendered["reaction"]["message_id"])
            fail_code = _REACTION_FAIL_CODE if target is None or target.type == "reaction" else None
        message = SimulatedMessage(
            position=self._signals.next_position(),
            wamid=sent_wamid(self._ids, number.phone_number if checked.group else checked.phone),
            phone=checked.phone,
            phone_number_id=number.phone_number_id,
            is_inbound=0,
            type=checked.type,
            at_ms=self._clock.now_ms(),
            shown=msgspec.json.encode(checked.rendered).decode(),
            body=raw.decode(errors="replace"),
            callback_data=checked.callback_data,
            context_id=quoted_id,
        )
        response_message = {"id": message.wamid}
        if checked.group is not None:
            group = self._group_messages.find_group(number, checked.group)
            category = "service" if checked.template is None else checked.template.category.lower()
            code = self._fail_code(number, fail_code)
            await self._group_messages.write(number, message, group, category, code)
            return _build_response(group_contact(checked.group), response_message)
        is_in_window = self._checker.check_recipient(number, checked)
        self._signals.end_typing(number, checked.phone)
        notes = self._sending_limits.count_message(
            number, checked.phone, checked.rendered, message.wamid, is_free=is_in_window
        )
        if request.get("to"):
            notes += self._phones.note_contact_statements(checked.phone, number.phone_number_id, message.at_ms)
        if checked.template is not None:
            notes += self._usage.record_use(checked.template)
            response_message["message_status"] = (
                "held_for_quality_assessment" if checked.template.is_paced else "accepted"
            )
        attribution = TemplateAttribution()
        if checked.direct.category:
            attribution = await self._generated.attribute(number.waba_id, checked.direct, checked.rendered)
            if attribution.template is not None:
                notes += self._usage.record_use(attribution.template)
        await self._writer.write(
            number, message, checked,
            is_in_window=is_in_window,
            fail_code=self._fail_code(number, attribution.fail_code if fail_code is None else fail_code),
            extra_statements=notes,
            template_id=attribution.template_id,
        )  # fmt: skip
        return _build_response(self._contact(number, request, checked.phone), response_message)

    async def _find_in_chat(self, number: Number, checked: CheckedMessage, wamid: str) -> SimulatedMessage | None:
        """Return a message of the recipient's chat with this number; None if there is none, or it is too old."""
        since_ms = self._clock.now_ms() - CHAT_MEMORY_MS
        found = await MESSAGES.find(
            self._store, wamid=wamid, phone=checked.phone, phone_number_id=number.phone_number_id
        )
        return next((message for message in found if message.at_ms >= since_ms), None)

    def _fail_code(self, number: Number, fault_code: int | None) -> int | None:
        return self._sending_limits.find_fail_code(number) if fault_code is None else fault_code

    def _contact(self, number: Number, request: dict[str, Any], phone: str) -> dict[str, Any]:
        """Return the recipient as a contact for the response. Source: facts 4.3, 7.5."""
        handset, _ = self._phones.find_or_create(phone)
        if request.get("to"):
            user = {"user_id": handset.user_id} if handset.user_id else {}
            return {"input": request["to"], "wa_id": handset.whatsapp_id, **user}
        seen = self._phones.seen_by(handset, number.phone_number_id, self._clock.now_ms())
        return {"input": request["recipient"], **seen.identity_members("wa_id", "user_id")}


def _build_response(contact: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    return {"messaging_product": "whatsapp", "contacts": [contact], "messages": [message]}


_HEAD = b"\x1c\x18"
_MIDDLE = b"\x15\x02\x00"


def sent_wamid(ids: Ids, phone: str) -> str:
    """Return a new id for a message from a business to a phone.

    Args:
        ids: source of randomness.
        phone: the phone's digits; they are part of the id.

    Source: facts 1, "Message id", decoded samples.
    """
    return _wamid(phone, b"\x11\x18\x12", _hex(ids)[-18:])


def received_wamid(ids: Ids, phone: str) -> str:
    """Return a new id for a message from a phone to a business. Source: facts 1, "Message id"."""
    return _wamid(phone, b"\x12\x18\x14", _hex(ids)[-20:])


def _hex(ids: Ids) -> str:
    return ids.new().replace("-", "").upper()


def _wamid(phone: str, kind: bytes, chance: str) -> str:
    digits = phone.encode()
    raw = b"".join((_HEAD, bytes([len(digits)]), digits, _MIDDLE, kind, chance.encode(), b"\0"))
    return "wamid." + base64.b64encode(raw).decode()
