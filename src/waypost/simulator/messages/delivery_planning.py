"""Planning of a message's delivery: its times on the phone, and the actions of the phone's script."""

from dataclasses import dataclass
from typing import Final

from waypost.simulator.accounts.accounts import Accounts, Number
from waypost.simulator.messages.direct_send.requests import DirectSend
from waypost.simulator.phones.conditions import FailureFacts, find_failure_code, lifetime_ms
from waypost.simulator.phones.phone import SimulatedPhone
from waypost.simulator.phones.phones import Phones, is_phone_number
from waypost.simulator.phones.script_steps import RenderedMessage
from waypost.simulator.phones.scripts import ScriptPlan, Scripts
from waypost.simulator.tables.messages import DeliveryPlan
from waypost.simulator.templates.template import SimulatedTemplate

_NO_DELIVERY: Final = DeliveryPlan()


@dataclass(frozen=True)
class DeliveryDecision:
    """The decision about the delivery of one message.

    Args:
        delivery_plan: the planned times; without any time the message stays `sent`.
        waits_until_ms: until when it waits for its phone; None: it does not wait.
        read_after_ms: for a waiting message: delay from delivery to reading.
        script_plan: the plan of the phone's script.
    """

    delivery_plan: DeliveryPlan
    waits_until_ms: int | None
    read_after_ms: int | None
    script_plan: ScriptPlan


class DeliveryPlanner:
    """Decides how messages are delivered."""

    def __init__(self, accounts: Accounts, phones: Phones, scripts: Scripts) -> None:
        self._accounts = accounts
        self._phones = phones
        self._scripts = scripts

    def decide(
        self,
        number: Number,
        phone: SimulatedPhone,
        template: SimulatedTemplate | None,
        rendered: RenderedMessage,
        *,
        wamid: str,
        now_ms: int,
        is_in_window: bool,
        direct: DirectSend = DirectSend(),  # noqa: B008  a frozen value
        fail_code: int | None = None,
    ) -> DeliveryDecision:
        """Decide about the delivery of a message that is being accepted.

        A phone whose owner has blocked the number gets nothing, and the business gets no further status: the
        message stays `sent`. The same applies to a message whose lifetime ends before it arrives.

        Args:
            number: the sender.
            phone: in its current state.
            template: None for a session message.
            rendered: the message as the phone will show it.
            wamid: the message's id.
            now_ms: when it is accepted.
            is_in_window: whether the phone wrote in the last 24 hours.
            direct: the category and lifetime that replace a template's, if any.
            fail_code: the code with which the message fails whatever the phone; None: no such failure.

        Source: facts 5.2, 7.3.
        """
        deliver_after_ms, read_after_ms = self._phones.delivery_delays_ms(phone)
        lives_ms = lifetime_ms(template) if direct.lifetime_ms is None else direct.lifetime_ms
        arrives_ms = now_ms + deliver_after_ms
        situation = FailureFacts(
            condition=phone.condition,
            category=direct.category.upper() if template is None else template.category,
            is_number=is_phone_number(phone.phone),
            is_business=phone.phone in self._accounts.numbers_by_digits,
            is_in_window=is_in_window,
            wants_marketing=number.phone_number_id not in phone.stopped_marketing_of,
        )
        code = fail_code if fail_code is not None else find_failure_code(situation)
        is_dropped = deliver_after_ms > lives_ms or number.phone_number_id in phone.has_blocked
        plan = self._scripts.plan_message(
            phone.phone,
            number.phone_number_id,
            wamid,
            rendered,
            arrives_ms=None if phone.is_offline else arrives_ms,
            is_delivered=code is None and not is_dropped,
        )
        if code is not None:
            failed = DeliveryPlan(failed_ms=arrives_ms, failed_code=code)
            return DeliveryDecision(failed, None, None, plan)
        if is_dropped:
            return DeliveryDecision(_NO_DELIVERY, None, None, plan)
        if phone.has_chat_open:
            read_after_ms = 0
        elif plan.decides_reading:
            read_after_ms = plan.read_after_ms
        if phone.is_offline:
            return DeliveryDecision(_NO_DELIVERY, now_ms + lives_ms, read_after_ms, plan)
        read_ms = None if read_after_ms is None else arrives_ms + read_after_ms
        return DeliveryDecision(DeliveryPlan(delivered_ms=arrives_ms, read_ms=read_ms), None, None, plan)
