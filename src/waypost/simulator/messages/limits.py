"""Limits of a business number: restrictions, messaging limit and send rates."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from waypost.base.clock import DAY_MS, HOUR_MS, Clock
from waypost.base.json_values import integer_or_none, list_or_none, text_or_none
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.accounts.records import ALLOWED, IDENTITY, NUMBER_STATUS, SENDING_RESTRICTION, Records
from waypost.simulator.accounts.usage_counts import FLOW_SENDS, REACHED, UsageCounts
from waypost.simulator.errors import message_error
from waypost.simulator.flows.model import BLOCKED, THROTTLED, Flow
from waypost.simulator.messages.template_sends import RenderedMessage
from waypost.simulator.settings import SimulatorSettingsStore
from waypost.simulator.store import Statement
from waypost.simulator.templates.template import SimulatedTemplate

_PAIR_INTERVAL_MS: Final = 6_000  # Source: facts 8, "Pair rate"
_PAIR_BURST: Final = 45  # Source: facts 8, "Pair rate"
_MAX_PAIRS: Final = 200_000


class ThroughputLimits:
    """Counts sent messages; rejected messages do not count."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sent: dict[str, deque[int]] = {}
        self._used_until_ms: dict[tuple[str, str], int] = {}

    def consume(self, phone_number_id: str, phone: str, throughput: int) -> None:
        """Count one message, or raise the error of an exceeded limit.

        A burst to one phone borrows from the future: every message moves the time until which the
        pair has used its rate by six seconds, and that time may be ahead of now by one burst at most.

        Args:
            phone_number_id: the sender.
            phone: the recipient.
            throughput: messages per second that the number may send.

        Raises:
            GraphApiError: 130429 for the number, 131056 for the pair.

        Source: facts 8.
        """
        now_ms = self._clock.now_ms()
        sent = self._sent.setdefault(phone_number_id, deque())
        while sent and sent[0] <= now_ms - 1000:
            sent.popleft()
        if len(sent) >= throughput:
            raise message_error(130429, "Message failed to send because there were too many messages sent in a second.")
        pair = (phone_number_id, phone)
        used_until_ms = max(self._used_until_ms.get(pair, 0), now_ms)
        ahead_ms = (_PAIR_BURST - 1) * _PAIR_INTERVAL_MS
        if used_until_ms - now_ms > ahead_ms:
            raise message_error(
                131056,
                "Message failed to send because there were too many messages sent from this phone "
                "number to the same phone number in a short period of time.",
                retry_after_s=-((now_ms + ahead_ms - used_until_ms) // 1000),
            )
        sent.append(now_ms)
        self._used_until_ms[pair] = used_until_ms + _PAIR_INTERVAL_MS
        if len(self._used_until_ms) > _MAX_PAIRS:
            self._prune_pairs(now_ms)

    def clear(self) -> None:
        """Delete all counts."""
        self._sent.clear()
        self._used_until_ms.clear()

    def _prune_pairs(self, now_ms: int) -> None:
        self._used_until_ms = {
            pair: used_until_ms for pair, used_until_ms in self._used_until_ms.items() if used_until_ms > now_ms
        }


_MAX_FLOW_SENDS_PER_HOUR: Final = 10  # Source: facts 8, "Flow in throttled state"
MAX_ALLOWED_PHONES: Final = 5  # Source: facts 8, "Test numbers"


@dataclass(frozen=True)
class SendingRestriction:
    """One row: a restriction that stops a number from sending.

    Args:
        code: the error code of its messages.
        fails_later: whether a status reports the error, after the message was accepted.
        status: the status of the number's node.
        details: the operator's text.
        only_marketing: whether it stops only marketing templates.
    """

    code: int
    fails_later: bool
    status: str
    details: str
    only_marketing: bool = False


SENDING_RESTRICTIONS: Final = {  # Source: facts 5.2, modes S and A; the names are ours
    # code, later, status, details
    "UNREGISTERED": SendingRestriction(
        133010,
        fails_later=False,
        status="DISCONNECTED",
        details="The phone number is not registered on the WhatsApp Business Platform.",
    ),
    "DELETED": SendingRestriction(33, False, "DELETED", "The business phone number has been deleted."),
    "LOCKED": SendingRestriction(
        131031,
        fails_later=False,
        status="BANNED",
        details="The WhatsApp Business account has been restricted or disabled for violating a policy.",
    ),
    "POLICY_BLOCKED": SendingRestriction(
        368,
        fails_later=False,
        status="RESTRICTED",
        details="The WhatsApp Business account has been temporarily blocked for violating a policy.",
    ),
    "ACCESS_DENIED": SendingRestriction(
        131005, fails_later=False, status="CONNECTED", details="The permission was not granted or has been removed."
    ),
    "MAINTENANCE": SendingRestriction(
        131057,
        fails_later=False,
        status="CONNECTED",
        details="The account is in maintenance mode, perhaps because its throughput is being upgraded.",
    ),
    "UNAVAILABLE": SendingRestriction(131016, False, "CONNECTED", "A service is temporarily unavailable."),
    "BAD_CERTIFICATE": SendingRestriction(
        131045,
        fails_later=False,
        status="DISCONNECTED",
        details="The message failed because of a phone number registration error.",
    ),
    "MARKETING_DISABLED": SendingRestriction(
        131063,
        fails_later=False,
        status="CONNECTED",
        details="Marketing templates are disabled on Cloud API.",
        only_marketing=True,
    ),
    "UNPAID": SendingRestriction(131042, True, "CONNECTED", "There was an error related to the payment method."),
    "NAME_NOT_APPROVED": SendingRestriction(
        131037,
        fails_later=True,
        status="CONNECTED",
        details="The 555 number needs an approved display name before it can send.",
    ),
    "COUNTRY_RESTRICTED": SendingRestriction(
        130497, fails_later=True, status="CONNECTED", details="The business may not message users in this country."
    ),
    "SPAM_LIMITED": SendingRestriction(
        131048,
        fails_later=True,
        status="FLAGGED",
        details=(
            "There are restrictions on how many messages can be sent from this number, because earlier ones were "
            "blocked or reported."
        ),
    ),
}

TIERS: Final = {  # Source: facts 8, "Messaging limit": unique users outside the window in 24 hours
    "TIER_250": 250,
    "TIER_2K": 2_000,
    "TIER_10K": 10_000,
    "TIER_100K": 100_000,
}


class SendingLimits:
    """Checks whether a number may send, by its records and the clock."""

    def __init__(
        self,
        records: Records,
        usage_counts: UsageCounts,
        flows: Mapping[str, Flow],
        clock: Clock,
        settings: SimulatorSettingsStore,
    ) -> None:
        self._records = records
        self._usage_counts = usage_counts
        self._flows = flows
        self._clock = clock
        self._settings = settings

    def find_restriction(self, phone_number_id: str) -> SendingRestriction | None:
        """Return the restriction that stops the number now; None if there is none."""
        return SENDING_RESTRICTIONS.get(self.find_restriction_name(phone_number_id) or "")

    def find_restriction_name(self, phone_number_id: str) -> str | None:
        """Return the name of the restriction that stops the number now; None if there is none."""
        record = self._records.get(phone_number_id, SENDING_RESTRICTION)
        if not record:
            return None
        until_ms = integer_or_none(record.get("until_ms"))
        if until_ms is not None and until_ms <= self._clock.now_ms():
            return None
        return text_or_none(record.get("name"))

    def check_sender(self, number: Number, phone: str, identity: object) -> None:
        """Check the number's restrictions, its allowed recipients, and the recipient's identity.

        Args:
            number: the sender.
            phone: the recipient.
            identity: the request's `recipient_identity_key_hash`, if any.

        Raises:
            GraphApiError: a row of `SENDING_RESTRICTIONS` that is reported at once; 131030; 137000.

        Source: facts 5.2.
        """
        restriction = self.find_restriction(number.phone_number_id)
        if restriction is not None and not (restriction.fails_later or restriction.only_marketing):
            raise message_error(restriction.code, restriction.details)
        allowed_phones = list_or_none(self._records.get(number.phone_number_id, ALLOWED).get("phones"))
        if allowed_phones is not None and phone not in allowed_phones:
            raise message_error(131030, "Recipient phone number not in allowed list")
        known_identity = self._records.get(phone, IDENTITY).get("hash")
        if identity is not None and known_identity is not None and identity != known_identity:
            raise message_error(137000, "The recipient's identity has changed")

    def check_content(
        self,
        number: Number,
        phone: str,
        template: SimulatedTemplate | None,
        rendered: RenderedMessage,
        *,
        is_free: bool,
    ) -> None:
        """Check the restriction to marketing, the message's flow, and the messaging limit.

        Args:
            number: the sender.
            phone: the recipient.
            template: the message's template; None: a free-form message.
            rendered: the message as the phone would show it.
            is_free: whether the recipient's window is open, so that the messaging limit does not apply.

        Raises:
            GraphApiError: 131063; 132068 for a blocked flow; 132069 for a throttled flow's eleventh
                message in an hour; the code of the settings beyond the messaging limit.

        Source: facts 5.2, 8.
        """
        restriction = self.find_restriction(number.phone_number_id)
        is_marketing = template is not None and template.category == "MARKETING"
        if is_marketing and restriction is not None and restriction.only_marketing:
            raise message_error(restriction.code, restriction.details)
        self._check_flow(_find_flow_id(rendered))
        tier = self._tier(number)
        waba_id = number.waba_id
        if (
            tier is None
            or is_free
            or self._usage_counts.has(REACHED, waba_id, phone, within_ms=DAY_MS)
            or self._usage_counts.count(REACHED, waba_id, within_ms=DAY_MS) < tier
        ):
            return
        raise message_error(
            self._settings.value.messaging_limit_code,
            f"The messaging limit of {tier} users in 24 hours outside their window is reached.",
        )

    def count_message(
        self, number: Number, phone: str, rendered: RenderedMessage, wamid: str, *, is_free: bool
    ) -> list[Statement]:
        """Count a message that is being accepted; return the statements for its transaction."""
        statements: list[Statement] = []
        if not is_free and self._tier(number) is not None:
            statements.append(self._usage_counts.record(REACHED, number.waba_id, phone))
        flow_id = _find_flow_id(rendered)
        flow = self._flows.get(flow_id) if flow_id else None
        if flow is not None and flow.status == THROTTLED:
            statements.append(self._usage_counts.record(FLOW_SENDS, flow.flow_id, wamid))
        return statements

    def find_fail_code(self, number: Number) -> int | None:
        """Return the code with which the number's messages fail after they were accepted; None if they do not."""
        restriction = self.find_restriction(number.phone_number_id)
        return restriction.code if restriction is not None and restriction.fails_later else None

    def _check_flow(self, flow_id: str) -> None:
        flow = self._flows.get(flow_id) if flow_id else None
        if flow is None:
            return
        if flow.status == BLOCKED:
            raise message_error(132068, f"the flow {flow_id} is blocked")
        sent = self._usage_counts.count(FLOW_SENDS, flow_id, within_ms=HOUR_MS)
        if flow.status == THROTTLED and sent >= _MAX_FLOW_SENDS_PER_HOUR:
            raise message_error(132069, f"the flow {flow_id} is throttled: {_MAX_FLOW_SENDS_PER_HOUR} messages an hour")

    def _tier(self, number: Number) -> int | None:
        if not self._settings.value.limits:
            return None
        record = self._records.get(number.phone_number_id, NUMBER_STATUS)
        return TIERS.get(str(record.get("messaging_limit")))


def _find_flow_id(rendered: RenderedMessage) -> str:
    """Return the id of the flow that a message's button opens; empty if there is none."""
    for button in rendered.get("buttons", ()):
        if button.get("flow_id"):
            return str(button["flow_id"])
    return ""
