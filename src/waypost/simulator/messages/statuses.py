"""The statuses of a message: which it will have, when, and the content of each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from waypost.base.clock import DAY_MS
from waypost.simulator.apis.errors import webhook_error
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.outbox import failed_status_phone, status_content, status_recipient
from waypost.simulator.state.phones.phone import SimulatedPhone
from waypost.simulator.state.phones.phones import is_phone_number
from waypost.simulator.state.phones.script_steps import RenderedMessage
from waypost.simulator.state.phones.scripts import ScriptPlan
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.storage.tables.messages import DeliveryPlan, SimulatedMessage
from waypost.simulator.storage.tables.updates import Update

SENT_ONLY_TYPES: Final = frozenset({"reaction"})
"""Types of message of which businesses learn neither delivery nor reading.

Source: the operator's page "Reaction messages".
"""
CHAT_MEMORY_MS: Final = 30 * DAY_MS  # Source: the operator's pages "Reaction messages", "Contextual replies"
_DAY_S: Final = 24 * 3600

# fmt: off
FAILURE_TEXTS: Final = {  # Source: facts 5.2, the codes that come later in a status
    130472: "Failed to send message because this user's phone number is part of an experiment.",
    131009: "Parameter value is not valid: the message reacted to is not in this chat, is a reaction itself, or is "
            "older than 30 days.",
    131026: "Message Undeliverable.",
    131047: "Message failed to send because more than 24 hours have passed since the customer last "
            "replied to this number.",
    131049: "In order to maintain a healthy ecosystem engagement, the message failed to be delivered.",
    131050: "Recipient has chosen to stop receiving marketing messages on WhatsApp from your business.",
    131053: "Media upload error.",
    130497: "The business account is restricted from messaging users in this country.",
    131037: "The number needs an approved display name before it can send messages.",
    131042: "The message failed to send because there were errors related to the payment method.",
    131048: "The message failed to send because there are restrictions on how many messages can be "
            "sent from this phone number.",
    132015: "Template is paused due to low quality so it cannot be sent in a template message.",
    132021: "A template with the same name already exists. Choose a different template name",
}
# fmt: on


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


def plan_updates(
    state: SimulatorState,
    waba_id: str,
    message: SimulatedMessage,
    phone: SimulatedPhone,
    category: str,
    delivery_plan: DeliveryPlan,
    *,
    is_in_window: bool,
    template_id: str = "",
) -> list[Update]:
    """Return every status that a message to a phone will have by its delivery plan; none if no app is subscribed.

    Args:
        category: of its price.
        template_id: of the template generated for a Direct Send message, whose statuses name it.

    Source: facts 7.3, 7.5: prices are on `sent` and on the first of `delivered` and `read`; errors are on `failed`,
    the only status without a user id. A reaction has no status after `sent`.
    """
    settings = state.settings.value
    if not state.outbox.has_subscribers(waba_id):
        return []

    def status(kind: str, due_ms: int, content: dict[str, Any]) -> Update:
        return Update(waba_id, due_ms, kind, message.phone_number_id, message.wamid, content)

    def content(phone: SimulatedPhone, members: dict[str, Any]) -> dict[str, Any]:
        contact = phone if settings.statuses_contacts else None
        return status_content(status_recipient(phone), message.callback_data, members, contact=contact)

    if delivery_plan.failed_ms is not None:
        errors = failure_errors(delivery_plan.failed_code or 0)
        return [status("failed", delivery_plan.failed_ms, content(failed_status_phone(phone), errors))]
    template = {"template_id": template_id} if template_id else {}
    pricing = template | pricing_member(
        category, is_free=category == "service" or (category == "utility" and is_in_window)
    )
    if settings.statuses_version == "v23":  # Source: facts 7.3, v23 and older: a conversation for each pair and day
        day = message.at_ms // 1000 // _DAY_S
        pricing["conversation"] = {
            "id": f"{int(message.phone_number_id):x}{int(phone.phone):x}{day:x}".rjust(32, "0"),
            "expiration_timestamp": str((day + 1) * _DAY_S),
            "origin": {"type": category},
        }
    priced = content(phone, pricing)
    updates = [status("sent", message.at_ms, priced)]
    if message.type in SENT_ONLY_TYPES:
        return updates
    is_read = delivery_plan.read_ms is not None and phone.sends_read_receipts
    skips_delivered = is_read and (phone.has_chat_open or settings.skips_delivered)
    if delivery_plan.delivered_ms is not None and not skips_delivered:
        updates.append(status("delivered", delivery_plan.delivered_ms, priced))
    if delivery_plan.read_ms is not None and is_read:
        unpriced = priced if skips_delivered else content(phone, template)
        updates.append(status("read", delivery_plan.read_ms, unpriced))
    return updates


def pricing_member(category: str, *, is_free: bool) -> dict[str, Any]:
    """Return the `pricing` of a status. Source: facts 7.3."""
    price_type = "free_customer_service" if is_free else "regular"
    return {"pricing": {"billable": not is_free, "pricing_model": "PMP", "type": price_type, "category": category}}


def failure_errors(code: int) -> dict[str, Any]:
    """Return the `errors` of a failed status. Source: facts 7.3."""
    return {"errors": [webhook_error(code, FAILURE_TEXTS.get(code, "The message failed."))]}


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
    rendered: RenderedMessage,
    *,
    category: str,
    lives_ms: int,
    wamid: str,
    now_ms: int,
    is_in_window: bool,
    fail_code: int | None,
) -> DeliveryDecision:
    """Decide about the delivery of a message that is being accepted.

    A phone whose owner has blocked the number gets nothing, and the business gets no further status: the
    message stays `sent`. The same applies to a message whose lifetime ends before it arrives.

    Args:
        phone: in its current state.
        rendered: the message as the phone will show it.
        category: of its template, in capitals; empty for a session message.
        lives_ms: how long it may wait for its phone.
        fail_code: the code with which the message fails whatever the phone; None: no such failure.

    Source: facts 5.2, 7.3.
    """
    deliver_after_ms, read_after_ms = state.phones.delivery_delays_ms(phone)
    arrives_ms, code = now_ms + deliver_after_ms, fail_code
    if code is None:
        facts = FailureFacts(
            category=category,
            is_reachable=is_phone_number(phone.phone) and phone.phone not in state.accounts.numbers_by_digits,
            is_in_window=is_in_window,
            wants_marketing=number.phone_number_id not in phone.stopped_marketing_of,
        )
        rules = (code for condition, code, fails in _FAILURES if condition in ("", phone.condition) and fails(facts))
        code = next(rules, None)
    is_dropped = deliver_after_ms > lives_ms or number.phone_number_id in phone.has_blocked
    plan = state.scripts.plan_message(
        phone.phone,
        number.phone_number_id,
        wamid,
        rendered,
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
        return DeliveryDecision(DeliveryPlan(), plan, now_ms + lives_ms, read_after_ms)
    read_ms = None if read_after_ms is None else arrives_ms + read_after_ms
    return DeliveryDecision(DeliveryPlan(delivered_ms=arrives_ms, read_ms=read_ms), plan)
