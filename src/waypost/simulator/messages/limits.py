"""Limits of a business number: restrictions, messaging limit and send rates."""

from typing import Final

from waypost.base.clock import DAY_MS, HOUR_MS
from waypost.base.json_values import list_or_none
from waypost.simulator.apis.errors import message_error
from waypost.simulator.flows.model import BLOCKED, FLOWS, THROTTLED, Flow
from waypost.simulator.flows.version_life import find_expired_version
from waypost.simulator.numbers.model import find_restriction
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.records import ALLOWED, IDENTITY, NUMBER_STATUS
from waypost.simulator.state.script_steps import RenderedMessage
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.state.usage_counts import FLOW_SENDS, REACHED, note_usage, recent_usage
from waypost.simulator.storage.store import Statement
from waypost.simulator.templates.template import SimulatedTemplate

_MAX_FLOW_SENDS_PER_HOUR: Final = 10  # Source: facts 8, "Flow in throttled state"


# Source: facts 8, "Messaging limit": unique users outside the window in 24 hours
TIERS: Final = {"TIER_250": 250, "TIER_2K": 2_000, "TIER_10K": 10_000, "TIER_100K": 100_000}


def check_sender(state: SimulatorState, number: Number, phone: str, identity: object) -> None:
    """Check the number's restrictions, its allowed recipients, and the recipient's identity.

    Raises:
        GraphApiError: a row of `SENDING_RESTRICTIONS` that is reported at once; 131030; 137000.

    Source: facts 5.2.
    """
    restriction = find_restriction(state, number.phone_number_id)
    if restriction is not None and not (restriction.fails_later or restriction.only_marketing):
        raise message_error(restriction.code, restriction.details)
    allowed_phones = list_or_none(state.record(number.phone_number_id, ALLOWED).get("phones"))
    if allowed_phones is not None and phone not in allowed_phones:
        raise message_error(131030, "Recipient phone number not in allowed list")
    known_identity = state.record(phone, IDENTITY).get("hash")
    if identity is not None and known_identity is not None and identity != known_identity:
        raise message_error(137000, "The recipient's identity has changed")


def check_limits(
    state: SimulatorState,
    number: Number,
    phone: str,
    template: SimulatedTemplate | None,
    rendered: RenderedMessage,
    *,
    is_free: bool,
) -> None:
    """Check the restriction to marketing, the message's flow, and the messaging limit.

    Raises:
        GraphApiError: 131063; 132068 for a blocked flow; 131009 for one of an expired version; 132069 for a throttled flow's eleventh message in an hour; the
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
    if flow is not None and (expired := find_expired_version(state, _find_asset(flow))) is not None:
        raise message_error(131009, f"the flow {flow.flow_id} has Flow JSON {expired}, which has expired")
    if flow is not None and flow.status == THROTTLED:
        sent = recent_usage(state, FLOW_SENDS, flow.flow_id, within_ms=HOUR_MS)
        if len(sent) >= _MAX_FLOW_SENDS_PER_HOUR:
            text = f"the flow {flow.flow_id} is throttled: {_MAX_FLOW_SENDS_PER_HOUR} messages an hour"
            raise message_error(132069, text)
    tier = _find_tier(state, number)
    if tier is None or is_free:
        return
    reached = recent_usage(state, REACHED, number.waba_id, within_ms=DAY_MS)
    if phone in reached or len(reached) < tier:
        return
    raise message_error(
        state.settings.value.messaging_limit_code,
        f"The messaging limit of {tier} users in 24 hours outside their window is reached.",
    )


_PAIR_INTERVAL_MS: Final = 6_000  # Source: facts 8, "Pair rate"
_PAIR_BURST: Final = 45  # Source: facts 8, "Pair rate"
_MAX_PAIRS: Final = 200_000


def check_send_rates(state: SimulatorState, number: Number, phone: str) -> None:
    """Count one message toward the rates of the number and of the pair of number and phone; rejected ones do not count.

    A burst to one phone borrows from the future: every message moves the time until which the pair has used its
    rate by six seconds, and that time may be ahead of now by one burst at most.

    Raises:
        GraphApiError: 130429 for the number, 131056 for the pair.

    Source: facts 8.
    """
    now_ms = state.clock.now_ms()
    sent, pairs = state.sends[number.phone_number_id], state.pairs_used_until_ms
    while sent and sent[0] <= now_ms - 1000:
        sent.popleft()
    if len(sent) >= number.max_per_second:
        raise message_error(130429, "Message failed to send because there were too many messages sent in a second.")
    pair = (number.phone_number_id, phone)
    used_until_ms = max(pairs.get(pair, 0), now_ms)
    ahead_ms = (_PAIR_BURST - 1) * _PAIR_INTERVAL_MS
    if used_until_ms - now_ms > ahead_ms:
        raise message_error(
            131056,
            "Message failed to send because there were too many messages sent from this phone "
            "number to the same phone number in a short period of time.",
            retry_after_s=-((now_ms + ahead_ms - used_until_ms) // 1000),
        )
    sent.append(now_ms)
    pairs[pair] = used_until_ms + _PAIR_INTERVAL_MS
    if len(pairs) > _MAX_PAIRS:
        for past in [known for known, until_ms in pairs.items() if until_ms <= now_ms]:
            del pairs[past]


def count_message(
    state: SimulatorState, number: Number, phone: str, rendered: RenderedMessage, wamid: str, *, is_free: bool
) -> list[Statement]:
    """Count a message that is being accepted; return the statements for its transaction."""
    statements: list[Statement] = []
    if not is_free and _find_tier(state, number) is not None:
        statements.append(note_usage(state, REACHED, number.waba_id, phone))
    flow = _find_flow(state, rendered)
    if flow is not None and flow.status == THROTTLED:
        statements.append(note_usage(state, FLOW_SENDS, flow.flow_id, wamid))
    return statements


def find_fail_code(state: SimulatorState, number: Number) -> int | None:
    """Return the code with which the number's messages fail after they were accepted; None if they do not."""
    restriction = find_restriction(state, number.phone_number_id)
    return restriction.code if restriction is not None and restriction.fails_later else None


def _find_tier(state: SimulatorState, number: Number) -> int | None:
    if not state.settings.value.limits:
        return None
    record = state.record(number.phone_number_id, NUMBER_STATUS)
    return TIERS.get(str(record.get("messaging_limit")))


def _find_asset(flow: Flow) -> str:
    """Return the text that a message opens: what was published last, or of a flow that never was the draft."""
    return flow.published[-1].asset if flow.published else flow.asset


def _find_flow(state: SimulatorState, rendered: RenderedMessage) -> Flow | None:
    """Return the flow that a message's button opens; None if there is none."""
    for button in rendered.get("buttons", ()):
        if button.get("flow_id"):
            return state.values(FLOWS).get(str(button["flow_id"]))
    return None
