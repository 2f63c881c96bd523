"""The statuses of a message: which it will have, when, and the content of each."""

from typing import Any, Final

from waypost.base.clock import DAY_MS
from waypost.simulator.apis.errors import webhook_error
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.outbox import failed_status_phone, phone_status
from waypost.simulator.state.phone import SimulatedPhone
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


def plan_updates(
    state: SimulatorState,
    number: Number,
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
    if not state.accounts.has_receiver(number.waba_id):
        return []

    def status(kind: str, due_ms: int, content: dict[str, Any]) -> Update:
        return Update(number.waba_id, due_ms, kind, number.phone_number_id, message.wamid, content)

    if delivery_plan.failed_ms is not None:
        errors = failure_errors(delivery_plan.failed_code or 0)
        failed = phone_status(settings, failed_status_phone(phone), message.callback_data, errors)
        return [status("failed", delivery_plan.failed_ms, failed)]
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
    priced = phone_status(settings, phone, message.callback_data, pricing)
    updates = [status("sent", message.at_ms, priced)]
    if message.type in SENT_ONLY_TYPES:
        return updates
    is_read = delivery_plan.read_ms is not None and phone.sends_read_receipts
    skips_delivered = is_read and (phone.has_chat_open or settings.skips_delivered)
    if delivery_plan.delivered_ms is not None and not skips_delivered:
        updates.append(status("delivered", delivery_plan.delivered_ms, priced))
    if delivery_plan.read_ms is not None and is_read:
        unpriced = phone_status(settings, phone, message.callback_data, template)
        updates.append(status("read", delivery_plan.read_ms, priced if skips_delivered else unpriced))
    return updates


def pricing_member(category: str, *, is_free: bool) -> dict[str, Any]:
    """Return the `pricing` of a status. Source: facts 7.3."""
    price_type = "free_customer_service" if is_free else "regular"
    return {"pricing": {"billable": not is_free, "pricing_model": "PMP", "type": price_type, "category": category}}


def failure_errors(code: int) -> dict[str, Any]:
    """Return the `errors` of a failed status. Source: facts 7.3."""
    return {"errors": [webhook_error(code, FAILURE_TEXTS.get(code, "The message failed."))]}
