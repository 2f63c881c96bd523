"""Usage of the operator's rate limits per operator account, from response headers; kept in memory.

After a restart the next response reports it again.
"""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final

import msgspec

from waypost.base.clock import Clock
from waypost.base.json_values import list_of, object_of
from waypost.domain.app import OperatorAccount
from waypost.domain.outcome import Again, Unavailable, Waits
from waypost.operators.cloud.error_codes import RATE_LIMITED
from waypost.operators.cloud.tolerant_json import as_number
from waypost.operators.contract import Usage

OF_APP: Final = "x-app-usage"
OF_BUSINESS: Final = "x-business-use-case-usage"
NEAR_PERCENT: Final = 95
"""Calls wait from here on: at 100 the operator would reject them, and calls by people as well."""
LOOK_AGAIN_MS: Final = 60_000
"""Near the limit, one call is made after this time, to read the headers of its response."""
LONGEST_MS: Final = 3_600_000
"""Maximum wait, whatever the operator requests: limits are counted by the hour."""
MOST_SEEN: Final = 100
"""Maximum number of usages kept per operator account; it has one business account, or a few."""
LIMITS_MESSAGES: Final = "whatsapp"
"""The type of usage that messages count toward; management calls count toward every other type."""

_Place = tuple[str, str]
_decode: Final = msgspec.json.Decoder().decode


class Kind(Enum):
    """The limits that a call counts toward."""

    MESSAGES = auto()
    MANAGEMENT = auto()


class Usages:
    """The last reported limit usage of each operator account, and the pauses that follow from it.

    Args:
        clock: the clock for pauses.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[_Place, dict[tuple[str, str], Usage]] = {}
        # End of the pause that the operator requested; the business account is empty for all of them.
        self._told: dict[tuple[_Place, Kind, str], int] = {}

    def of(self, account_id: str) -> Sequence[Usage]:
        """Return the last reported usage of one operator account."""
        return tuple(usage for key, usages in self._seen.items() if key[0] == account_id for usage in usages.values())

    def hear(self, account: OperatorAccount, headers: Mapping[str, str]) -> None:
        """Record the usage in a response's headers; one without them costs two lookups.

        Source: operator's facts 1, `x-business-use-case-usage`.
        """
        app, business = headers.get(OF_APP), headers.get(OF_BUSINESS)
        if app is None and business is None:
            return
        usages = self._seen.setdefault(_place_of(account), {})
        if len(usages) > MOST_SEEN:
            usages.clear()
        now_ms = self._clock.now_ms()
        for owner, values in (("", [_read(app)]), *_read(business).items()):
            for value in list_of(values):
                usage = _usage(owner, object_of(value), now_ms)
                if usage is not None:
                    usages[usage.business_id, usage.type] = usage

    def told_to_wait(self, account: OperatorAccount, kind: Kind, wait_s: float, business: str = "") -> None:
        """Pause calls of this kind, because the operator rejected one with a requested wait.

        Args:
            account: the account of the call.
            kind: of the call.
            wait_s: the requested wait.
            business: the business account that is meant; empty: all of the operator account.
        """
        wait_ms = min(round(wait_s * 1000), LONGEST_MS)
        self._told[_place_of(account), kind, business] = self._clock.now_ms() + wait_ms

    def must_wait(self, account: OperatorAccount, kind: Kind, business: str = "") -> Unavailable | None:
        """Return the wait, with its reason, before a call of this kind may be made; None: make it now.

        Messages wait only for the usage of messages: templates must not delay them. An exhausted
        business account delays no other: it may be another partner's.

        Args:
            account: the account of the call.
            kind: of the call.
            business: the business account whose limits it counts toward; empty: perhaps any.
        """
        if not self._seen and not self._told:
            return None
        account_key, now_ms = _place_of(account), self._clock.now_ms()
        until_ms, scope = now_ms, Waits.ACCOUNT
        reason = "the operator requested a wait, so it was not called"
        for owner in dict.fromkeys(("", business)):
            paused_until_ms = self._told.get((account_key, kind, owner), 0)
            if paused_until_ms > until_ms:
                until_ms, scope = paused_until_ms, _waits(owner)
            elif paused_until_ms:
                self._drop_past(account_key, kind, owner, now_ms)
        for usage in self._seen.get(account_key, {}).values():
            if kind is Kind.MESSAGES and usage.type != LIMITS_MESSAGES:
                continue
            if business and usage.business_id not in ("", business):
                continue
            usage_until_ms = _until_ms(usage)
            if usage_until_ms > until_ms:
                until_ms, scope = usage_until_ms, _waits(usage.business_id)
                reason = f"the operator was not called: {usage.percent} % of the calls are used"
        if until_ms <= now_ms:
            return None
        wait_s = (until_ms - now_ms) / 1000
        return Unavailable(reason, 0, wait_s, Again.CALLS, scope, RATE_LIMITED)

    def _drop_past(self, place: _Place, kind: Kind, owner: str, now_ms: int) -> None:
        if self._told[place, kind, owner] <= now_ms:
            del self._told[place, kind, owner]


def _waits(owner: str) -> Waits:
    return Waits.BUSINESS if owner else Waits.ACCOUNT


def _place_of(account: OperatorAccount) -> _Place:
    """Return the key of an account; one with a changed base URL has no usage there."""
    return account.id, account.base_url


def _until_ms(usage: Usage) -> int:
    """Return the end of the wait for a usage; 0 if there is none."""
    if usage.regain_minutes:
        return usage.seen_ms + min(usage.regain_minutes * 60_000, LONGEST_MS)
    return usage.seen_ms + LOOK_AGAIN_MS if usage.percent >= NEAR_PERCENT else 0


def _usage(owner: str, told: dict[str, Any], now_ms: int) -> Usage | None:
    if not told:
        return None
    percents = [told.get(name) for name in ("call_count", "total_cputime", "total_time")]
    kind = told.get("type")
    return Usage(
        business_id=owner,
        type=kind if isinstance(kind, str) else "",
        percent=max((round(percent) for percent in percents if isinstance(percent, int | float)), default=0),
        regain_minutes=as_number(told.get("estimated_time_to_regain_access")) or 0,
        seen_ms=now_ms,
    )


def _read(text: str | None) -> dict[str, Any]:
    """Return a header's object; empty if it is invalid."""
    try:
        return object_of(_decode(text)) if text else {}
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return {}
