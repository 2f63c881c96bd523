"""How near an operator account is to the operator's limits, as its headers tell; kept in memory.

What is lost by a restart is told again by the next answer.
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
"""From here on calls wait: at 100 the operator would refuse them, and those of people as well."""
LOOK_AGAIN_MS: Final = 60_000
"""After this long a call goes through again near the limit, to see what its answer's headers say."""
LONGEST_MS: Final = 3_600_000
"""However long the operator says, after an hour a call goes through again: limits are counted by the hour."""
MOST_SEEN: Final = 100
"""Rows kept of one operator account; it has one business account, or a few."""
LIMITS_MESSAGES: Final = "whatsapp"
"""The type of usage that messages spend; every other one is spent by management calls."""

_Place = tuple[str, str]
_decode: Final = msgspec.json.Decoder().decode


class Kind(Enum):
    """What a call spends."""

    MESSAGES = auto()
    MANAGEMENT = auto()


class Usages:
    """What was last seen of each operator account, and who has to wait for it.

    Args:
        clock: by which an account waits.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[_Place, dict[tuple[str, str], Usage]] = {}
        # By business account too, empty for all: until when the operator told us to wait.
        self._told: dict[tuple[_Place, Kind, str], int] = {}

    def of(self, account_id: str) -> Sequence[Usage]:
        """What was last seen of one operator account."""
        return tuple(usage for place, seen in self._seen.items() if place[0] == account_id for usage in seen.values())

    def hear(self, account: OperatorAccount, headers: Mapping[str, str]) -> None:
        """Keep what an answer's headers say; one without them costs two look-ups.

        Source: operator's facts 1, `x-business-use-case-usage`.
        """
        app, business = headers.get(OF_APP), headers.get(OF_BUSINESS)
        if app is None and business is None:
            return
        seen = self._seen.setdefault(_place_of(account), {})
        if len(seen) > MOST_SEEN:
            seen.clear()
        now_ms = self._clock.now_ms()
        for owner, told in (("", [_read(app)]), *_read(business).items()):
            for one in list_of(told):
                usage = _usage(owner, object_of(one), now_ms)
                if usage is not None:
                    seen[usage.business_id, usage.type] = usage

    def told_to_wait(self, account: OperatorAccount, kind: Kind, wait_s: float, business: str = "") -> None:
        """The operator has refused a call of this kind, with a wish.

        Args:
            account: through which it was made.
            kind: of the call.
            wait_s: the wish.
            business: the business account that is meant; empty: all of the operator account.
        """
        wait_ms = min(round(wait_s * 1000), LONGEST_MS)
        self._told[_place_of(account), kind, business] = self._clock.now_ms() + wait_ms

    def must_wait(self, account: OperatorAccount, kind: Kind, business: str = "") -> Unavailable | None:
        """Why a call of this kind is not made now, with how long it waits; None: it may go.

        Messages wait only for what messages spend: templates must not hold them up. What one business
        account has used up holds up no other: it may be another partner's.

        Args:
            account: through which it would be made.
            kind: of the call.
            business: the business account that it spends of; empty: perhaps any.
        """
        if not self._seen and not self._told:
            return None
        place, now_ms = _place_of(account), self._clock.now_ms()
        until_ms, waits = now_ms, Waits.ACCOUNT
        why = "the operator wishes us to wait, so it was not called"
        for owner in dict.fromkeys(("", business)):
            told_ms = self._told.get((place, kind, owner), 0)
            if told_ms > until_ms:
                until_ms, waits = told_ms, _waits(owner)
            elif told_ms:
                self._drop_past(place, kind, owner, now_ms)
        for usage in self._seen.get(place, {}).values():
            if kind is Kind.MESSAGES and usage.type != LIMITS_MESSAGES:
                continue
            if business and usage.business_id not in ("", business):
                continue
            waits_until_ms = _until_ms(usage)
            if waits_until_ms > until_ms:
                until_ms, waits = waits_until_ms, _waits(usage.business_id)
                why = f"the operator was not called: {usage.percent} % of the calls are used"
        if until_ms <= now_ms:
            return None
        wait_s = (until_ms - now_ms) / 1000
        return Unavailable(why, 0, wait_s, Again.CALLS, waits, RATE_LIMITED)

    def _drop_past(self, place: _Place, kind: Kind, owner: str, now_ms: int) -> None:
        if self._told[place, kind, owner] <= now_ms:
            del self._told[place, kind, owner]


def _waits(owner: str) -> Waits:
    return Waits.BUSINESS if owner else Waits.ACCOUNT


def _place_of(account: OperatorAccount) -> _Place:
    """An account that has been pointed elsewhere has spent nothing there."""
    return account.id, account.base_url


def _until_ms(usage: Usage) -> int:
    """Until when calls wait for it; 0: they do not."""
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
        percent=max((round(one) for one in percents if isinstance(one, int | float)), default=0),
        regain_minutes=as_number(told.get("estimated_time_to_regain_access")) or 0,
        seen_ms=now_ms,
    )


def _read(text: str | None) -> dict[str, Any]:
    """A header's object; what is none says nothing."""
    try:
        return object_of(_decode(text)) if text else {}
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return {}
