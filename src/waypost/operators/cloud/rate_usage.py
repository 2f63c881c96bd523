"""Usage of the operator's rate limits per operator account, from response headers; kept in memory.

After a restart the next response reports it again.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum, auto
from functools import lru_cache
from typing import Any, Final

import msgspec

from waypost.base.clock import Clock
from waypost.base.json_values import list_of, object_of
from waypost.domain.app import OperatorAccount
from waypost.domain.outcome import OperatorUnavailable, RetryReason, RetryScope
from waypost.operators.cloud.error_codes import RATE_LIMITED
from waypost.operators.cloud.tolerant_json import parse_number
from waypost.operators.contract import LimitUsage

APP_USAGE_HEADER: Final = "x-app-usage"
BUSINESS_USAGE_HEADER: Final = "x-business-use-case-usage"
NEAR_PERCENT: Final = 95
"""Calls wait from here on: at 100 the operator would reject them, and calls by people as well."""
USAGE_RECHECK_MS: Final = 60_000
"""Near the limit, one call is made after this time, to read the headers of its response."""
MAX_USAGE_WAIT_MS: Final = 3_600_000
"""Maximum wait, whatever the operator requests: limits are counted by the hour."""
MAX_USAGES: Final = 100
"""Maximum number of usages kept per operator account; it has one business account, or a few."""
MESSAGES_USAGE_TYPE: Final = "whatsapp"
"""The type of usage that messages count toward; management calls count toward every other type."""

_AccountKey = tuple[str, str]
_ReportedUsage = tuple[str, str, int, int]
"""A limit usage without its time: business account, type, per cent, minutes until reset."""
_decode_header: Final = msgspec.json.Decoder().decode


class CallCategory(StrEnum):
    """The limits that a call counts toward."""

    MESSAGES = auto()
    MANAGEMENT = auto()


class LimitUsageTracker:
    """The last reported limit usage of each operator account, and the pauses that follow from it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._usages: dict[_AccountKey, dict[tuple[str, str], LimitUsage]] = {}
        # End of the pause that the operator requested; the business account is empty for all of them.
        self._paused_until_ms: dict[tuple[_AccountKey, CallCategory, str], int] = {}

    def account_usages(self, account_id: str) -> Sequence[LimitUsage]:
        """Return the last reported usage of one operator account."""
        return tuple(usage for key, usages in self._usages.items() if key[0] == account_id for usage in usages.values())

    def record_headers(self, account: OperatorAccount, headers: Mapping[str, str]) -> None:
        """Record the usage in a response's headers; one without them costs two lookups.

        Source: operator's facts 1, `x-business-use-case-usage`.
        """
        app, business = headers.get(APP_USAGE_HEADER), headers.get(BUSINESS_USAGE_HEADER)
        if app is None and business is None:
            return
        usages = self._usages.setdefault(_account_key(account), {})
        if len(usages) > MAX_USAGES:
            usages.clear()
        now_ms = self._clock.now_ms()
        for owner, usage_type, percent, minutes in _parse_usages(app, business):
            usages[owner, usage_type] = LimitUsage(owner, usage_type, percent, minutes, now_ms)

    def pause_calls(self, account: OperatorAccount, category: CallCategory, wait_s: float, business: str = "") -> None:
        """Pause calls of this kind, because the operator rejected one with a requested wait.

        Args:
            business: the business account that is meant; empty: all of the operator account.
        """
        wait_ms = min(round(wait_s * 1000), MAX_USAGE_WAIT_MS)
        self._paused_until_ms[_account_key(account), category, business] = self._clock.now_ms() + wait_ms

    def required_wait(
        self, account: OperatorAccount, category: CallCategory, business: str = ""
    ) -> OperatorUnavailable | None:
        """Return the wait, with its reason, before a call of this kind may be made; None: make it now.

        Messages wait only for the usage of messages: templates must not delay them. An exhausted
        business account delays no other: it may be another partner's.

        Args:
            business: the business account whose limits it counts toward; empty: perhaps any.
        """
        if not self._usages and not self._paused_until_ms:
            return None
        account_key, now_ms = _account_key(account), self._clock.now_ms()
        until_ms, scope = now_ms, RetryScope.ACCOUNT
        reason = "the operator requested a wait, so it was not called"
        for owner in dict.fromkeys(("", business)):
            paused_until_ms = self._paused_until_ms.get((account_key, category, owner), 0)
            if paused_until_ms > until_ms:
                until_ms, scope = paused_until_ms, _retry_scope(owner)
            elif 0 < paused_until_ms <= now_ms:
                del self._paused_until_ms[account_key, category, owner]
        for usage in self._usages.get(account_key, {}).values():
            if category is CallCategory.MESSAGES and usage.type != MESSAGES_USAGE_TYPE:
                continue
            if business and usage.business_id not in ("", business):
                continue
            usage_until_ms = 0
            if usage.minutes_until_reset:
                usage_until_ms = usage.seen_ms + min(usage.minutes_until_reset * 60_000, MAX_USAGE_WAIT_MS)
            elif usage.percent >= NEAR_PERCENT:
                usage_until_ms = usage.seen_ms + USAGE_RECHECK_MS
            if usage_until_ms > until_ms:
                until_ms, scope = usage_until_ms, _retry_scope(usage.business_id)
                reason = f"the operator was not called: {usage.percent} % of the calls are used"
        if until_ms <= now_ms:
            return None
        wait_s = (until_ms - now_ms) / 1000
        return OperatorUnavailable(reason, 0, wait_s, RetryReason.CALLS, scope, RATE_LIMITED)


def _retry_scope(owner: str) -> RetryScope:
    return RetryScope.BUSINESS if owner else RetryScope.ACCOUNT


def _account_key(account: OperatorAccount) -> _AccountKey:
    """Return the key of an account; one with a changed base URL has no usage there."""
    return account.id, account.base_url


@lru_cache(maxsize=256)
def _parse_usages(app: str | None, business: str | None) -> Sequence[_ReportedUsage]:
    """Return the usages in the two headers of a response, those of our app first.

    Cached, because usage is in whole per cent: the headers of many responses in succession are the same.
    """
    return [
        _parse_usage(owner, members)
        for owner, values in (("", [_parse_header(app)]), *_parse_header(business).items())
        for value in list_of(values)
        if (members := object_of(value))
    ]


def _parse_usage(owner: str, members: dict[str, Any]) -> _ReportedUsage:
    percents = [
        round(percent)
        for name in ("call_count", "total_cputime", "total_time")
        if isinstance(percent := members.get(name), (int, float))
    ]
    kind = members.get("type")
    minutes = parse_number(members.get("estimated_time_to_regain_access")) or 0
    return owner, kind if isinstance(kind, str) else "", max(percents, default=0), minutes


def _parse_header(text: str | None) -> dict[str, Any]:
    """Return a header's object; empty if it is invalid."""
    try:
        return object_of(_decode_header(text)) if text else {}
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return {}
