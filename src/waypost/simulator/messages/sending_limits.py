"""Restrictions and limits of the operator on a business number, and the messages that they stop."""

from dataclasses import dataclass
from typing import Final

from waypost.base.clock import DAY_MS, HOUR_MS, Clock
from waypost.base.json_values import integer_or_none, list_or_none, text_or_none
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.accounts.flow import BLOCKED, THROTTLED
from waypost.simulator.accounts.flows import Flows
from waypost.simulator.accounts.records import ALLOWED, HINDRANCE, IDENTITY, STANDING, Records
from waypost.simulator.accounts.usage_counts import FLOW_SENDS, REACHED, Ledger
from waypost.simulator.errors import message_refused
from waypost.simulator.messages.template_sends.sends import Shown
from waypost.simulator.settings import LiveSettings
from waypost.simulator.store import Statement
from waypost.simulator.templates.template import Template

_FLOW_SENDS_AT_MOST: Final = 10  # Source: facts 8, "Flow in throttled state"
ALLOWED_AT_MOST: Final = 5  # Source: facts 8, "Test numbers"


@dataclass(frozen=True)
class Hindrance:
    """One row: a restriction that stops a number from sending.

    Args:
        code: the error code of its messages.
        is_later: whether a status reports the error, after the message was accepted.
        status: the status of the number's node.
        details: the operator's text.
        only_marketing: whether it stops only marketing templates.
    """

    code: int
    is_later: bool
    status: str
    details: str
    only_marketing: bool = False


# fmt: off
HINDRANCES: Final = {  # Source: facts 5.2, modes S and A; the names are ours
    #                               code    later  status          details
    "UNREGISTERED":       Hindrance(133010, False, "DISCONNECTED", "The phone number is not registered on the WhatsApp Business Platform."),
    "DELETED":            Hindrance(33,     False, "DELETED",      "The business phone number has been deleted."),
    "LOCKED":             Hindrance(131031, False, "BANNED",       "The WhatsApp Business account has been restricted or disabled for violating a policy."),
    "POLICY_BLOCKED":     Hindrance(368,    False, "RESTRICTED",   "The WhatsApp Business account has been temporarily blocked for violating a policy."),
    "ACCESS_DENIED":      Hindrance(131005, False, "CONNECTED",    "The permission was not granted or has been removed."),
    "MAINTENANCE":        Hindrance(131057, False, "CONNECTED",    "The account is in maintenance mode, perhaps because its throughput is being upgraded."),
    "UNAVAILABLE":        Hindrance(131016, False, "CONNECTED",    "A service is temporarily unavailable."),
    "BAD_CERTIFICATE":    Hindrance(131045, False, "DISCONNECTED", "The message failed because of a phone number registration error."),
    "MARKETING_DISABLED": Hindrance(131063, False, "CONNECTED",    "Marketing templates are disabled on Cloud API.", only_marketing=True),
    "UNPAID":             Hindrance(131042, True,  "CONNECTED",    "There was an error related to the payment method."),
    "NAME_NOT_APPROVED":  Hindrance(131037, True,  "CONNECTED",    "The 555 number needs an approved display name before it can send."),
    "COUNTRY_RESTRICTED": Hindrance(130497, True,  "CONNECTED",    "The business may not message users in this country."),
    "SPAM_LIMITED":       Hindrance(131048, True,  "FLAGGED",      "There are restrictions on how many messages can be sent from this number, because earlier ones were blocked or reported."),
}

TIERS: Final = {  # Source: facts 8, "Messaging limit": unique users outside the window in 24 hours
    "TIER_250":  250,
    "TIER_2K":   2_000,
    "TIER_10K":  10_000,
    "TIER_100K": 100_000,
}
# fmt: on


class Standings:
    """Checks whether a number may send, by its records and the clock."""

    def __init__(self, records: Records, ledger: Ledger, flows: Flows, clock: Clock, settings: LiveSettings) -> None:
        self._records = records
        self._ledger = ledger
        self._flows = flows
        self._clock = clock
        self._settings = settings

    def hindrance_of(self, phone_number_id: str) -> Hindrance | None:
        """Return the restriction that stops the number now; None if there is none."""
        return HINDRANCES.get(self.name_of(phone_number_id) or "")

    def name_of(self, phone_number_id: str) -> str | None:
        """Return the name of the restriction that stops the number now; None if there is none."""
        record = self._records.of(phone_number_id, HINDRANCE)
        if not record:
            return None
        until_ms = integer_or_none(record.get("until_ms"))
        if until_ms is not None and until_ms <= self._clock.now_ms():
            return None
        return text_or_none(record.get("name"))

    def check(self, number: Number, phone: str, identity: object) -> None:
        """Check the number's restrictions, its allowed recipients, and the recipient's identity.

        Args:
            number: the sender.
            phone: the recipient.
            identity: the request's `recipient_identity_key_hash`, if any.

        Raises:
            GraphApiError: a row of `SENDING_RESTRICTIONS` that is reported at once; 131030; 137000.

        Source: facts 5.2.
        """
        restriction = self.hindrance_of(number.phone_number_id)
        if restriction is not None and not (restriction.is_later or restriction.only_marketing):
            raise message_refused(restriction.code, restriction.details)
        allowed_phones = list_or_none(self._records.of(number.phone_number_id, ALLOWED).get("phones"))
        if allowed_phones is not None and phone not in allowed_phones:
            raise message_refused(131030, "Recipient phone number not in allowed list")
        known_identity = self._records.of(phone, IDENTITY).get("hash")
        if identity is not None and known_identity is not None and identity != known_identity:
            raise message_refused(137000, "The recipient's identity has changed")

    def check_content(
        self, number: Number, phone: str, template: Template | None, shown: Shown, *, is_free: bool
    ) -> None:
        """Check the restriction to marketing, the message's flow, and the messaging limit.

        Args:
            number: the sender.
            phone: the recipient.
            template: the message's template; None: a free-form message.
            shown: the message as the phone would show it.
            is_free: whether the recipient's window is open, so that the messaging limit does not apply.

        Raises:
            GraphApiError: 131063; 132068 for a blocked flow; 132069 for a throttled flow's eleventh
                message in an hour; the code of the settings beyond the messaging limit.

        Source: facts 5.2, 8.
        """
        restriction = self.hindrance_of(number.phone_number_id)
        is_marketing = template is not None and template.category == "MARKETING"
        if is_marketing and restriction is not None and restriction.only_marketing:
            raise message_refused(restriction.code, restriction.details)
        self._check_flow(_flow_of(shown))
        tier = self._tier(number)
        waba_id = number.waba_id
        if (
            tier is None
            or is_free
            or self._ledger.has(REACHED, waba_id, phone, within_ms=DAY_MS)
            or self._ledger.count(REACHED, waba_id, within_ms=DAY_MS) < tier
        ):
            return
        raise message_refused(
            self._settings.value.messaging_limit_code,
            f"The messaging limit of {tier} users in 24 hours outside their window is reached.",
        )

    def notes(self, number: Number, phone: str, shown: Shown, wamid: str, *, is_free: bool) -> list[Statement]:
        """Count a message that is being accepted; return the statements for its transaction."""
        statements: list[Statement] = []
        if not is_free and self._tier(number) is not None:
            statements.append(self._ledger.note(REACHED, number.waba_id, phone))
        flow_id = _flow_of(shown)
        flow = self._flows.by_id.get(flow_id) if flow_id else None
        if flow is not None and flow.status == THROTTLED:
            statements.append(self._ledger.note(FLOW_SENDS, flow.flow_id, wamid))
        return statements

    def failure_of(self, number: Number) -> int | None:
        """Return the code with which the number's messages fail after they were accepted; None if they do not."""
        restriction = self.hindrance_of(number.phone_number_id)
        return restriction.code if restriction is not None and restriction.is_later else None

    def _check_flow(self, flow_id: str) -> None:
        flow = self._flows.by_id.get(flow_id) if flow_id else None
        if flow is None:
            return
        if flow.status == BLOCKED:
            raise message_refused(132068, f"the flow {flow_id} is blocked")
        sent = self._ledger.count(FLOW_SENDS, flow_id, within_ms=HOUR_MS)
        if flow.status == THROTTLED and sent >= _FLOW_SENDS_AT_MOST:
            raise message_refused(132069, f"the flow {flow_id} is throttled: {_FLOW_SENDS_AT_MOST} messages an hour")

    def _tier(self, number: Number) -> int | None:
        if not self._settings.value.limits:
            return None
        record = self._records.of(number.phone_number_id, STANDING)
        return TIERS.get(str(record.get("messaging_limit")))


def _flow_of(shown: Shown) -> str:
    """Return the id of the flow that a message's button opens; empty if there is none."""
    for button in shown.get("buttons", ()):
        if button.get("flow_id"):
            return str(button["flow_id"])
    return ""
