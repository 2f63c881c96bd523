"""The statuses of a message: which it will have, when, and the JSON text of each."""

from dataclasses import dataclass
from typing import Any, Final

from waypost.base.clock import DAY_MS
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.errors import webhook_error
from waypost.simulator.messages.conditions import FailureFacts, find_failure_code
from waypost.simulator.messages.direct_send import DirectSend
from waypost.simulator.outbox import failed_status_phone, status_json, status_recipient
from waypost.simulator.phones.phone import SimulatedPhone
from waypost.simulator.phones.phones import is_phone_number
from waypost.simulator.phones.script_steps import RenderedMessage
from waypost.simulator.phones.scripts import ScriptPlan
from waypost.simulator.services import SimulatorServices
from waypost.simulator.tables.messages import DeliveryPlan, SimulatedMessage
from waypost.simulator.tables.updates import Update
from waypost.simulator.templates.template import SimulatedTemplate, lifetime_ms

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


@dataclass(frozen=True)
class StatusContext:
    """A message and the facts that its statuses depend on.

    Args:
        phone: the recipient.
        template_id: of the template generated for a Direct Send message; empty: not such a message.
    """

    message: SimulatedMessage
    waba_id: str
    phone: SimulatedPhone
    category: str
    is_in_window: bool
    template_id: str = ""


def plan_updates(state: SimulatorServices, context: StatusContext, delivery_plan: DeliveryPlan) -> list[Update]:
    """Return every status that the message will have by its delivery plan.

    Source: facts 7.3, 7.5: prices are on `sent` and on the first of `delivered` and `read`; errors are on `failed`,
    the only status without a user id. A reaction has no status after `sent`. A Direct Send message's statuses name its
    template.
    """
    settings, message, phone = state.settings.value, context.message, context.phone

    def status(kind: str, due_ms: int, rest: str) -> Update:
        return Update(context.waba_id, due_ms, kind, message.phone_number_id, message.wamid, rest)

    def status_text(phone: SimulatedPhone, members: dict[str, Any]) -> str:
        contact = phone if settings.statuses_contacts else None
        return status_json(status_recipient(phone), message.callback_data, members, contact=contact)

    if delivery_plan.failed_ms is not None:
        errors = failure_errors(delivery_plan.failed_code or 0)
        return [status("failed", delivery_plan.failed_ms, status_text(failed_status_phone(phone), errors))]
    template = {"template_id": context.template_id} if context.template_id else {}
    is_free = context.category == "service" or (context.category == "utility" and context.is_in_window)
    pricing = template | pricing_member(context.category, is_free=is_free)
    if settings.statuses_version == "v23":
        pricing |= _conversation(context)
    priced = status_text(phone, pricing)
    updates = [status("sent", message.at_ms, priced)]
    if message.type in SENT_ONLY_TYPES:
        return updates
    is_read = delivery_plan.read_ms is not None and phone.sends_read_receipts
    skips_delivered = is_read and (phone.has_chat_open or settings.skips_delivered)
    if delivery_plan.delivered_ms is not None and not skips_delivered:
        updates.append(status("delivered", delivery_plan.delivered_ms, priced))
    if delivery_plan.read_ms is not None and is_read:
        updates.append(
            status("read", delivery_plan.read_ms, priced if skips_delivered else status_text(phone, template))
        )
    return updates


def state_at(message: DeliveryPlan, now_ms: int) -> str:
    """Return the state of a message at a time: `sent`, `delivered`, `read` or `failed`."""
    for name, at_ms in (
        ("failed", message.failed_ms), ("read", message.read_ms), ("delivered", message.delivered_ms),
    ):  # fmt: skip
        if at_ms is not None and at_ms <= now_ms:
            return name
    return "sent"


def pricing_member(category: str, *, is_free: bool) -> dict[str, Any]:
    """Return the `pricing` of a status. Source: facts 7.3."""
    price_type = "free_customer_service" if is_free else "regular"
    return {"pricing": {"billable": not is_free, "pricing_model": "PMP", "type": price_type, "category": category}}


def _conversation(context: StatusContext) -> dict[str, Any]:
    """Return the `conversation` member: one for each pair and day. Source: facts 7.3, v23 and older."""
    day = context.message.at_ms // 1000 // _DAY_S
    conversation = {
        "id": f"{int(context.message.phone_number_id):x}{int(context.phone.phone):x}{day:x}".rjust(32, "0"),
        "expiration_timestamp": str((day + 1) * _DAY_S),
        "origin": {"type": context.category},
    }
    return {"conversation": conversation}


def failure_errors(code: int) -> dict[str, Any]:
    """Return the `errors` of a failed status. Source: facts 7.3."""
    return {"errors": [webhook_error(code, FAILURE_TEXTS.get(code, "The message failed."))]}


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


def decide_delivery(
    state: SimulatorServices,
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

    Args:
        phone: in its current state.
        rendered: the message as the phone will show it.
        is_in_window: whether the phone wrote in the last 24 hours.
        direct: the category and lifetime that replace a template's, if any.
        fail_code: the code with which the message fails whatever the phone; None: no such failure.

    A phone whose owner has blocked the number gets nothing, and the business gets no further status: the message stays
    `sent`. The same applies to a message whose lifetime ends before it arrives. Source: facts 5.2, 7.3.
    """
    deliver_after_ms, read_after_ms = state.phones.delivery_delays_ms(phone)
    lives_ms = lifetime_ms(template) if direct.lifetime_ms is None else direct.lifetime_ms
    arrives_ms = now_ms + deliver_after_ms
    situation = FailureFacts(
        condition=phone.condition,
        category=direct.category.upper() if template is None else template.category,
        is_number=is_phone_number(phone.phone),
        is_business=phone.phone in state.accounts.numbers_by_digits,
        is_in_window=is_in_window,
        wants_marketing=number.phone_number_id not in phone.stopped_marketing_of,
    )
    code = fail_code if fail_code is not None else find_failure_code(situation)
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
        failed = DeliveryPlan(failed_ms=arrives_ms, failed_code=code)
        return DeliveryDecision(failed, None, None, plan)
    if is_dropped:
        return DeliveryDecision(DeliveryPlan(), None, None, plan)
    if phone.has_chat_open:
        read_after_ms = 0
    elif plan.decides_reading:
        read_after_ms = plan.read_after_ms
    if phone.is_offline:
        return DeliveryDecision(DeliveryPlan(), now_ms + lives_ms, read_after_ms, plan)
    read_ms = None if read_after_ms is None else arrives_ms + read_after_ms
    return DeliveryDecision(DeliveryPlan(delivered_ms=arrives_ms, read_ms=read_ms), None, None, plan)
