"""Taking messages from a business: checked, kept with their planned statuses, then answered."""

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
    """Takes messages."""

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
        """Check a message, keep it on disk together with its planned statuses, and answer.

        Refuses in this order: the envelope, the number's standing, the content, the sender himself,
        who is blocked, a closed window if the settings want that at once, the limits.

        Args:
            number: who sends.
            request: the decoded body.
            raw: the body as it came.
            fail_code: the code of a failure that a fault wants it to come to; None: none does.

        Raises:
            GraphRefused: for what is wrong at once; a closed window only shows in a status.

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
        taken = {"id": message.wamid}
        if checked.group is not None:
            await self._plans.keep_of_group(number, message, self._fail_code(number, fail_code))
            return _answer(group_contact(checked.group), taken)
        is_in_window = self._checks.check_recipient(number, checked)
        self._arrivals.has_sent(number, checked.phone)
        notes = self._standings.notes(number, checked.phone, checked.shown, message.wamid, is_free=is_in_window)
        if checked.template is not None:
            notes += self._uses.note(checked.template)
            taken["message_status"] = "held_for_quality_assessment" if checked.template.is_paced else "accepted"
        await self._plans.keep(
            number, message, checked,
            is_in_window=is_in_window, fail_code=self._fail_code(number, fail_code), notes=notes,
        )  # fmt: skip
        return _answer(self._contact(request, checked.phone), taken)

    def _fail_code(self, number: Number, of_fault: int | None) -> int | None:
        return self._standings.failure_of(number) if of_fault is None else of_fault

    def _contact(self, request: dict[str, Any], phone: str) -> dict[str, Any]:
        """Who the answer says it went to. Source: facts 4.3, 7.5."""
        handset, _ = self._phones.meet(phone)
        if request.get("to"):
            user = {"user_id": handset.user_id} if handset.user_id else {}
            return {"input": request["to"], "wa_id": phone, **user}
        return {"input": request["recipient"], **handset.named("wa_id", "user_id")}


def _answer(contact: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    return {"messaging_product": "whatsapp", "contacts": [contact], "messages": [message]}
