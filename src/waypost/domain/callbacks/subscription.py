"""Subscriptions: a partner's endpoint URLs and the callbacks each one gets."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from waypost.domain.errors import ApiError, ErrorCode, invalid_field

MAX_SUBSCRIPTIONS_PER_APP: Final = 5  # Source: facts 4.4

MODE_ALL: Final = "ALL"
"""All other modes in version 3; without effect in version 2. Source: facts 4.4; decision 0064."""

# fmt: off
CALLBACK_VERSIONS: Final = {  # versions of callback bodies. Source: facts 4.2, 6, 7
    2: "bodies of this service's own",
    3: "the operator's own bodies, with our ids in addition to its",
}
MODE_BITS: Final = {  # Source: facts 4.3: bits 0 to 13 in this order
    "SENT":          1 << 0,
    "DELIVERED":     1 << 1,
    "READ":          1 << 2,
    "DELETED":       1 << 3,
    "OTHERS":        1 << 4,
    "FAILED":        1 << 5,
    "MESSAGE":       1 << 6,
    "TEMPLATE":      1 << 7,
    "ACCOUNT":       1 << 8,
    "BILLING":       1 << 9,
    "ENQUEUED":      1 << 10,
    "FLOWS_MESSAGE": 1 << 11,
    "PAYMENTS":      1 << 12,
    "ALL":           1 << 13,
}
UNNUMBERED_MODES: Final = (  # newer modes, whose bits are not known. Source: facts 4.4; ledger 1.4
    "COEXISTENCE", "COPY", "NONE", "VOICE", "GROUP_ACCOUNT_EVENTS", "GROUP_MESSAGING_EVENTS",
)
MODE_VOICE: Final = "VOICE"  # at most one subscription of an app. Source: ledger 1.4
MODES: Final = (*MODE_BITS, *UNNUMBERED_MODES)
MODE_ALIASES: Final = {  # Source: facts 4.4: the spelling of one large client
    "DELETE":       "DELETED",
    "FLOW_MESSAGE": "FLOWS_MESSAGE",
}
# fmt: on


@dataclass(frozen=True, slots=True)
class Subscription:
    """An endpoint URL and the callbacks that it gets.

    Attributes:
        modes: from the tables above, in their order.
        active: false while the partner has paused it.
        headers: added to each callback request; from `meta`.
        meta: the JSON text as sent; may contain secrets.
        key_serial: of the current signing key.
        old_key_until_ms: until then the previous key signs too.
        failing_since_ms: no callback has been delivered since then; None: not failing.
        retry_after_until_ms: end of the delay that its receiver requested (Retry-After).
        paused_on_ms: when the service paused it; None: not paused.
        pause_reason: of the service; None: not paused.
        retry_requests: how often someone has requested that its receiver is called at once.
    """

    id: str
    partner_id: int
    app_id: str
    tag: str
    url: str
    version: int
    modes: tuple[str, ...]
    created_on_ms: int
    modified_on_ms: int
    active: bool = True
    show_on_ui: bool = False
    meta: str | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    key_serial: int = 1
    old_key_until_ms: int | None = None
    failing_since_ms: int | None = None
    retry_after_until_ms: int | None = None
    paused_on_ms: int | None = None
    pause_reason: str | None = None
    retry_requests: int = 0

    @property
    def receives_callbacks(self) -> bool:
        """True if callbacks are sent to it: neither the partner nor the service has paused it."""
        return self.active and self.paused_on_ms is None

    def serials(self, now_ms: int) -> tuple[int, ...]:
        """Return the serials of the keys that sign now, newest first."""
        if self.key_serial > 1 and (self.old_key_until_ms or 0) > now_ms:
            return (self.key_serial, self.key_serial - 1)
        return (self.key_serial,)

    @property
    def mode(self) -> int:
        """The modes as a bit mask, without those whose bits are not known."""
        return sum(MODE_BITS.get(mode, 0) for mode in self.modes)


def read_modes(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the modes that texts name, in the order of the table.

    Args:
        texts: each holds names and masks with commas between them; a mask is the sum of the bits of its modes, as
            responses show it in `mode`.

    Raises:
        ApiError: a name is not in the table, or a mask has a bit that is no mode's.
    """
    named: set[str] = set()
    for part in (part.strip().upper() for text in texts for part in text.split(",")):
        if part.isascii() and part.isdigit() and 0 < int(part[:9]) < 2 * max(MODE_BITS.values()) and len(part) < 9:
            named.update(mode for mode, bit in MODE_BITS.items() if int(part) & bit)
        elif part:
            named.add(MODE_ALIASES.get(part, part))
    if not named <= set(MODES):
        raise invalid_field("modes", f"some of {','.join(MODES)}, with commas")
    return tuple(mode for mode in MODES if mode in named)


def check_single_voice(modes: Collection[str], others: Iterable[Collection[str]]) -> None:
    """Check that at most one subscription of an app gets calls (mode VOICE).

    Args:
        modes: of the subscription.
        others: the modes of the app's other ones.

    Raises:
        ApiError: another one has the mode too.

    Source: ledger 1.4.
    """
    if MODE_VOICE in modes and any(MODE_VOICE in other for other in others):
        raise ApiError(
            ErrorCode.VOICE_SUBSCRIPTION_EXISTS,
            "One subscription of an app at most has the mode VOICE; change that one instead.",
        )


def resume_subscription(subscription: Subscription) -> Subscription:
    """Return the subscription as resumed: not paused by the service, and without recorded failures."""
    return replace(subscription, failing_since_ms=None, retry_after_until_ms=None, paused_on_ms=None, pause_reason=None)
