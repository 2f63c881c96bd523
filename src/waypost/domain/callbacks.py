"""Callbacks to partners and their attempts, the subscriptions that request them, and statistics of receivers."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from waypost.domain.errors import ApiError, ErrorCode, invalid_field

CALLBACK_CONTENT_TYPE: Final = "application/json; charset=utf-8"  # Source: facts 4.6


class AttemptKind(StrEnum):
    """The reason of an attempt."""

    INITIAL = "initial"  # the first attempt
    RETRY = "retry"  # an earlier attempt was not delivered
    REPLAY = "replay"  # requested by a person or a program


_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class CallbackAttempt(NamedTuple):
    """One attempt and its result."""

    at_ms: int
    duration_ms: int
    status: int | None  # HTTP status of the response; None when there was none
    response: bytes = b""  # the first 4 KiB of the response body
    error: str | None = None  # why there was no response
    request_headers: Mapping[str, str] = _NO_HEADERS  # as sent; of the partner's own headers the names only
    response_headers: Mapping[str, str] = _NO_HEADERS  # as received, with lower-case names

    @property
    def delivered(self) -> bool:
        """True if the receiver responded with 2xx. Source: facts 4.6."""
        return self.status is not None and 200 <= self.status < 300


MAX_SUBSCRIPTIONS_PER_APP: Final = 5  # Source: facts 4.4

MODE_ALL: Final = "ALL"
"""All other modes in version 3; without effect in version 2. Source: facts 4.4; decision 0064."""

CALLBACK_VERSIONS: Final = {  # versions of callback bodies. Source: facts 4.2, 6, 7
    2: "bodies of this service's own",
    3: "the operator's own bodies, with our ids in addition to its",
}
_NUMBERED_MODES: Final = (
    "SENT DELIVERED READ DELETED OTHERS FAILED MESSAGE TEMPLATE ACCOUNT BILLING ENQUEUED FLOWS_MESSAGE PAYMENTS ALL"
)
MODE_BITS: Final = {
    mode: 1 << bit for bit, mode in enumerate(_NUMBERED_MODES.split())
}  # Source: facts 4.3: in this order
UNNUMBERED_MODES: Final = (  # newer modes, whose bits are not known. Source: facts 4.4; ledger 1.4
    "COEXISTENCE",
    "COPY",
    "NONE",
    "VOICE",
    "GROUP_ACCOUNT_EVENTS",
    "GROUP_MESSAGING_EVENTS",
)
MODE_VOICE: Final = "VOICE"  # at most one subscription of an app. Source: ledger 1.4
MODES: Final = (*MODE_BITS, *UNNUMBERED_MODES)
MODE_ALIASES: Final = {  # Source: facts 4.4: the spelling of one large client
    "DELETE": "DELETED",
    "FLOW_MESSAGE": "FLOWS_MESSAGE",
}


@dataclass(frozen=True, slots=True)
class Subscription:
    """An endpoint URL and the callbacks that it gets."""

    id: str
    partner_id: int
    app_id: str
    tag: str
    url: str
    version: int
    modes: tuple[str, ...]  # from the tables above, in their order
    created_on_ms: int
    modified_on_ms: int
    active: bool = True  # false while the partner has paused it
    show_on_ui: bool = False
    meta: str | None = None  # the JSON text as sent; may contain secrets
    headers: dict[str, str] = field(default_factory=dict[str, str])  # added to each callback request; from `meta`
    key_serial: int = 1  # of the current signing key
    old_key_until_ms: int | None = None  # until then the previous key signs too
    failing_since_ms: int | None = None  # no callback has been delivered since then; None: not failing
    retry_after_until_ms: int | None = None  # end of the delay that its receiver requested (Retry-After)
    paused_on_ms: int | None = None  # when the service paused it; None: not paused
    pause_reason: str | None = None  # of the service; None: not paused
    retry_requests: int = 0  # how often someone has requested that its receiver is called at once

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


PERCENTILES: Final = (("p50_ms", 0.5), ("p90_ms", 0.9), ("p99_ms", 0.99))
RECEIVER_TARGET_MS: Final = 5_000  # target for a receiver
RECEIVER_DEADLINE_MS: Final = 10_000  # after which a callback counts as not received. Source: facts 4.6


def build_receiver_report(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Return one entry for each subscription.

    Args:
        rows: of subscription_id, status, duration_ms and tries; within a subscription ordered by duration.
    """
    rows_by_id: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        rows_by_id[row.subscription_id].append(row)
    return [_subscription_report(one, rows_by_id[one]) for one in sorted(rows_by_id)]


def _subscription_report(subscription_id: int, rows: Sequence[Any]) -> dict[str, Any]:
    tries = sum(row.tries for row in rows)
    statuses: Counter[str] = Counter()
    for row in rows:
        statuses[("no response" if row.status is None else f"{row.status // 100}xx")] += row.tries
    quick = sum(row.tries for row in rows if row.duration_ms < RECEIVER_TARGET_MS)
    late = sum(row.tries for row in rows if row.duration_ms >= RECEIVER_DEADLINE_MS)
    return {
        "subscription_id": subscription_id,
        "attempts": tries,
        **{name: _percentile(rows, tries, share) for name, share in PERCENTILES},
        "max_ms": rows[-1].duration_ms,
        "under_5_s": round(quick / tries, 4),
        "over_10_s": round(late / tries, 4),
        "by_status": dict(sorted(statuses.items())),
    }


def _percentile(rows: Sequence[Any], tries: int, share: float) -> int:
    """Return the shortest duration within which this share of the attempts completed."""
    target, seen = share * tries, 0
    for row in rows:
        seen += row.tries
        if seen >= target:
            return row.duration_ms
    return rows[-1].duration_ms
