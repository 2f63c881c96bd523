"""Limits of a business number: restrictions, messaging limit and send rates."""

from typing import Final, NamedTuple

from waypost.base.clock import DAY_MS, HOUR_MS
from waypost.base.json_values import integer_or_none, list_or_none, text_or_none
from waypost.simulator.apis.errors import message_error
from waypost.simulator.flows.model import BLOCKED, FLOWS, THROTTLED, Flow
from waypost.simulator.messages.template_sends import RenderedMessage
from waypost.simulator.services import SimulatorServices
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.records import ALLOWED, IDENTITY, NUMBER_STATUS, SENDING_RESTRICTION
from waypost.simulator.state.usage_counts import FLOW_SENDS, REACHED
from waypost.simulator.storage.store import Statement
from waypost.simulator.templates.template import SimulatedTemplate

_MAX_FLOW_SENDS_PER_HOUR: Final = 10  # Source: facts 8, "Flow in throttled state"
MAX_ALLOWED_PHONES: Final = 5  # Source: facts 8, "Test numbers"


class SendingRestriction(NamedTuple):
    """One row: a restriction that stops a number from sending."""

    code: int  # the error code of its messages
    status: str  # of the number's node
    details: str  # the operator's text
    fails_later: bool = False  # a status reports the error, after the message was accepted
    only_marketing: bool = False  # it stops only marketing templates


SENDING_RESTRICTIONS: Final = {  # Source: facts 5.2, modes S and A; the names are ours
    "UNREGISTERED": SendingRestriction(
        133010, "DISCONNECTED", "The phone number is not registered on the WhatsApp Business Platform."
    ),
    "DELETED": SendingRestriction(33, "DELETED", "The business phone number has been deleted."),
    "LOCKED": SendingRestriction(
        131031, "BANNED", "The WhatsApp Business account has been restricted or disabled for violating a policy."
    ),
    "POLICY_BLOCKED": SendingRestriction(
        368, "RESTRICTED", "The WhatsApp Business account has been temporarily blocked for violating a policy."
    ),
    "ACCESS_DENIED": SendingRestriction(131005, "CONNECTED", "The permission was not granted or has been removed."),
    "MAINTENANCE": SendingRestriction(
        131057, "CONNECTED", "The account is in maintenance mode, perhaps because its throughput is being upgraded."
    ),
    "UNAVAILABLE": SendingRestriction(131016, "CONNECTED", "A service is temporarily unavailable."),
    "BAD_CERTIFICATE": SendingRestriction(
        131045, "DISCONNECTED", "The message failed because of a phone number registration error."
    ),
    "MARKETING_DISABLED": SendingRestriction(
        131063, "CONNECTED", "Marketing templates are disabled on Cloud API.", only_marketing=True
    ),
    "UNPAID": SendingRestriction(
        131042, "CONNECTED", "There was an error related to the payment method.", fails_later=True
    ),
    "NAME_NOT_APPROVED": SendingRestriction(
        131037, "CONNECTED", "The 555 number needs an approved display name before it can send.", fails_later=True
    ),
    "COUNTRY_RESTRICTED": SendingRestriction(
        130497, "CONNECTED", "The business may not message users in this country.", fails_later=True
    ),
    "SPAM_LIMITED": SendingRestriction(
        131048,
        "FLAGGED",
        "There are restrictions on how many messages can be sent from this number, because earlier ones were blocked "
        "or reported.",
        fails_later=True,
    ),
}

# Source: facts 8, "Messaging limit": unique users outside the window in 24 hours
TIERS: Final = {"TIER_250": 250, "TIER_2K": 2_000, "TIER_10K": 10_000, "TIER_100K": 100_000}


def find_restriction(state: SimulatorServices, phone_number_id: str) -> SendingRestriction | None:
    """Return the restriction that stops the number now; None if there is none."""
    return SENDING_RESTRICTIONS.get(find_restriction_name(state, phone_number_id) or "")


def find_restriction_name(state: SimulatorServices, phone_number_id: str) -> str | None:
    """Return the name of the restriction that stops the number now; None if there is none."""
    record = state.records.get(phone_number_id, SENDING_RESTRICTION)
    if not record:
        return None
    until_ms = integer_or_none(record.get("until_ms"))
    if until_ms is not None and until_ms <= state.clock.now_ms():
        return None
    return text_or_none(record.get("name"))


def check_sender(state: SimulatorServices, number: Number, phone: str, identity: object) -> None:
    """Check the number's restrictions, its allowed recipients, and the recipient's identity.

    Raises:
        GraphApiError: a row of `SENDING_RESTRICTIONS` that is reported at once; 131030; 137000.

    Source: facts 5.2.
    """
    restriction = find_restriction(state, number.phone_number_id)
    if restriction is not None and not (restriction.fails_later or restriction.only_marketing):
        raise message_error(restriction.code, restriction.details)
    allowed_phones = list_or_none(state.records.get(number.phone_number_id, ALLOWED).get("phones"))
    if allowed_phones is not None and phone not in allowed_phones:
        raise message_error(131030, "Recipient phone number not in allowed list")
    known_identity = state.records.get(phone, IDENTITY).get("hash")
    if identity is not None and known_identity is not None and identity != known_identity:
        raise message_error(137000, "The recipient's identity has changed")


def check_limits(
    state: SimulatorServices,
    number: Number,
    phone: str,
    template: SimulatedTemplate | None,
    rendered: RenderedMessage,
    *,
    is_free: bool,
) -> None:
    """Check the restriction to marketing, the message's flow, and the messaging limit.

    Raises:
        GraphApiError: 131063; 132068 for a blocked flow; 132069 for a throttled flow's eleventh message in an hour; the
            code of the settings beyond the messaging limit.

    Source: facts 5.2, 8.
    """
    restriction = find_restriction(state, number.phone_number_id)
    is_marketing = template is not None and template.category == "MARKETING"
    if is_marketing and restriction is not None and restriction.only_marketing:
        raise message_error(restriction.code, restriction.details)
    flow = _find_flow(state, rendered)
    if flow is not None and flow.status == BLOCKED:
        raise message_error(132068, f"the flow {flow.flow_id} is blocked")
    if flow is not None and flow.status == THROTTLED:
        sent = state.usage_counts.count(FLOW_SENDS, flow.flow_id, within_ms=HOUR_MS)
        if sent >= _MAX_FLOW_SENDS_PER_HOUR:
            text = f"the flow {flow.flow_id} is throttled: {_MAX_FLOW_SENDS_PER_HOUR} messages an hour"
            raise message_error(132069, text)
    tier, counts = _find_tier(state, number), state.usage_counts
    if (
        tier is None
        or is_free
        or counts.has(REACHED, number.waba_id, phone, within_ms=DAY_MS)
        or counts.count(REACHED, number.waba_id, within_ms=DAY_MS) < tier
    ):
        return
    raise message_error(
        state.settings.value.messaging_limit_code,
        f"The messaging limit of {tier} users in 24 hours outside their window is reached.",
    )


def count_message(
    state: SimulatorServices, number: Number, phone: str, rendered: RenderedMessage, wamid: str, *, is_free: bool
) -> list[Statement]:
    """Count a message that is being accepted; return the statements for its transaction."""
    statements: list[Statement] = []
    if not is_free and _find_tier(state, number) is not None:
        statements.append(state.usage_counts.record(REACHED, number.waba_id, phone))
    flow = _find_flow(state, rendered)
    if flow is not None and flow.status == THROTTLED:
        statements.append(state.usage_counts.record(FLOW_SENDS, flow.flow_id, wamid))
    return statements


def find_fail_code(state: SimulatorServices, number: Number) -> int | None:
    """Return the code with which the number's messages fail after they were accepted; None if they do not."""
    restriction = find_restriction(state, number.phone_number_id)
    return restriction.code if restriction is not None and restriction.fails_later else None


def _find_tier(state: SimulatorServices, number: Number) -> int | None:
    if not state.settings.value.limits:
        return None
    record = state.records.get(number.phone_number_id, NUMBER_STATUS)
    return TIERS.get(str(record.get("messaging_limit")))


def _find_flow(state: SimulatorServices, rendered: RenderedMessage) -> Flow | None:
    """Return the flow that a message's button opens; None if there is none."""
    for button in rendered.get("buttons", ()):
        if button.get("flow_id"):
            return state.values(FLOWS).get(str(button["flow_id"]))
    return None
