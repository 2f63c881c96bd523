"""The delivery of a message to a phone: whether it fails, when it arrives and is read, and what the phone does then."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from waypost.simulator.messages.message_checks import CheckedMessage
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.phone import SimulatedPhone
from waypost.simulator.state.phones import delivery_delays_ms, is_phone_number
from waypost.simulator.state.scripts import ScriptPlan, plan_script_actions
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.storage.tables.messages import DeliveryPlan, SimulatedMessage


class FailureFacts(NamedTuple):
    """The facts that decide whether a message fails on its phone."""

    category: str  # of the template, in capitals; empty for a session message
    is_reachable: bool  # a number that a country may have, and no business
    is_in_window: bool  # it wrote in the last 24 hours
    wants_marketing: bool  # its owner accepts the business's marketing


# fmt: off
_FAILURES: Final[tuple[tuple[str, int, Callable[[FailureFacts], bool]], ...]] = (
    # Source: facts 5.2, the codes of mode A. The first row that applies decides; one without condition always does.
    # condition            code    which messages
    ("",                   131026, lambda facts: not facts.is_reachable),
    ("not_on_whatsapp",    131026, lambda _: True),
    ("old_client",         131026, lambda _: True),
    ("terms_not_accepted", 131026, lambda _: True),
    ("",                   131047, lambda facts: not facts.category and not facts.is_in_window),
    ("",                   131050, lambda facts: facts.category == "MARKETING" and not facts.wants_marketing),
    ("in_experiment",      130472, lambda facts: facts.category == "MARKETING" and not facts.is_in_window),
    ("marketing_limit",    131049, lambda facts: facts.category == "MARKETING"),
)
# fmt: on
PHONE_CONDITIONS: Final = tuple(condition for condition, _, _ in _FAILURES if condition)
"""Every condition that a phone may have."""


@dataclass(frozen=True)
class DeliveryDecision:
    """The decision about the delivery of one message."""

    delivery_plan: DeliveryPlan  # the planned times; without any time the message stays `sent`
    script_plan: ScriptPlan
    waits_until_ms: int | None = None  # None: it does not wait for its phone
    read_after_ms: int | None = None  # for a waiting message: delay from delivery to reading


def decide_delivery(
    state: SimulatorState,
    number: Number,
    phone: SimulatedPhone,
    message: SimulatedMessage,
    checked: CheckedMessage,
    *,
    is_in_window: bool,
    fail_code: int | None,
) -> DeliveryDecision:
    """Decide about the delivery of a message that is being accepted.

    A phone whose owner has blocked the number gets nothing, and the business gets no further status: the
    message stays `sent`. The same applies to a message whose lifetime ends before it arrives.

    Args:
        phone: in its current state.
        fail_code: the code with which the message fails whatever the phone; None: no such failure.

    Source: facts 5.2, 7.3.
    """
    deliver_after_ms, read_after_ms = delivery_delays_ms(state, phone)
    arrives_ms, code = message.at_ms + deliver_after_ms, fail_code
    if code is None:
        facts = FailureFacts(
            category=checked.category,
            is_reachable=is_phone_number(phone.phone) and phone.phone not in state.accounts.numbers_by_digits,
            is_in_window=is_in_window,
            wants_marketing=number.phone_number_id not in phone.stopped_marketing_of,
        )
        rules = (code for condition, code, fails in _FAILURES if condition in ("", phone.condition) and fails(facts))
        code = next(rules, None)
    is_dropped = deliver_after_ms > checked.lifetime_ms or number.phone_number_id in phone.has_blocked
    plan = plan_script_actions(
        state,
        phone.phone,
        number.phone_number_id,
        message.wamid,
        checked.rendered,
        arrives_ms=None if phone.is_offline else arrives_ms,
        is_delivered=code is None and not is_dropped,
    )
    if code is not None:
        return DeliveryDecision(DeliveryPlan(failed_ms=arrives_ms, failed_code=code), plan)
    if is_dropped:
        return DeliveryDecision(DeliveryPlan(), plan)
    if phone.has_chat_open:
        read_after_ms = 0
    elif plan.decides_reading:
        read_after_ms = plan.read_after_ms
    if phone.is_offline:
        return DeliveryDecision(DeliveryPlan(), plan, message.at_ms + checked.lifetime_ms, read_after_ms)
    read_ms = None if read_after_ms is None else arrives_ms + read_after_ms
    return DeliveryDecision(DeliveryPlan(delivered_ms=arrives_ms, read_ms=read_ms), plan)
