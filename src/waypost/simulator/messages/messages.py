"""Accepting messages from a business: check, store with the planned statuses, respond."""

from typing import Any

import msgspec

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.json_values import object_of, text_or_none
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.messages.delivery_signals import Arrivals
from waypost.simulator.messages.groups import group_contact
from waypost.simulator.messages.message_checks import MessageChecks
from waypost.simulator.messages.message_ids import sent_wamid
from waypost.simulator.messages.message_plans import MessagePlans
from waypost.simulator.messages.sending_limits import Standings
from waypost.simulator.phones.phones import Phones
from waypost.simulator.tables.messages import Message
from waypost.simulator.templates.uses import TemplateUses


class Messages:
    """Accepts messages from businesses."""

    def __init__(
        self,
        clock: Clock,
        ids: Ids,
        phones: Phones,
        standings: Standings,
        checks: MessageChecks,
        plans: MessagePlans,
        arrivals: Arrivals,
        uses: TemplateUses,
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._phones = phones
        self._standings = standings
        self._checks = checks
        self._plans = plans
        self._arrivals = arrivals
        self._uses = uses

    async def take(
        self, number: Number, request: dict[str, Any], raw: bytes, *, fail_code: int | None = None
    ) -> dict[str, Any]:
        """Check a message, store it with its planned statuses, and return the response.

        Checks in this order: the envelope, the number's restrictions, the content, the sender as recipient,
        blocks, a closed window if the settings report that at once, the limits.

        Args:
            number: the sender.
            request: the decoded body.
            raw: the body as received.
            fail_code: the code with which a fault makes it fail; None: no such fault.

        Raises:
            GraphApiError: for the first violation; by default a closed window is only reported in a status.

        Source: facts 4, 5.2.
        """
        checked = self._checks.check_content(number, request)
        message = Message(
            position=self._arrivals.next_position(),
            wamid=sent_wamid(self._ids, number.phone_number if checked.group else checked.phone),
            phone=checked.phone,
            phone_number_id=number.phone_number_id,
            is_inbound=0,
            type=checked.type,
            at_ms=self._clock.now_ms(),
            shown=msgspec.json.encode(checked.shown).decode(),
            body=raw.decode(errors="replace"),
            callback_data=checked.callback_data,
            context_id=text_or_none(object_of(request.get("context")).get("message_id")),
        )
        response_message = {"id": message.wamid}
        if checked.group is not None:
            await self._plans.keep_of_group(number, message, self._fail_code(number, fail_code))
            return _answer(group_contact(checked.group), response_message)
        is_in_window = self._checks.check_recipient(number, checked)
        self._arrivals.has_sent(number, checked.phone)
        notes = self._standings.notes(number, checked.phone, checked.shown, message.wamid, is_free=is_in_window)
        if checked.template is not None:
            notes += self._uses.note(checked.template)
            response_message["message_status"] = (
                "held_for_quality_assessment" if checked.template.is_paced else "accepted"
            )
        await self._plans.keep(
            number, message, checked,
            is_in_window=is_in_window, fail_code=self._fail_code(number, fail_code), notes=notes,
        )  # fmt: skip
        return _answer(self._contact(request, checked.phone), response_message)

    def _fail_code(self, number: Number, of_fault: int | None) -> int | None:
        return self._standings.failure_of(number) if of_fault is None else of_fault

    def _contact(self, request: dict[str, Any], phone: str) -> dict[str, Any]:
        """Return the recipient as a contact for the response. Source: facts 4.3, 7.5."""
        handset, _ = self._phones.meet(phone)
        if request.get("to"):
            user = {"user_id": handset.user_id} if handset.user_id else {}
            return {"input": request["to"], "wa_id": phone, **user}
        return {"input": request["recipient"], **handset.named("wa_id", "user_id")}


def _answer(contact: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    return {"messaging_product": "whatsapp", "contacts": [contact], "messages": [message]}
