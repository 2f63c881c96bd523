"""Statistics of callback receivers: response times and statuses."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Final

# fmt: off
PERCENTILES: Final = (("p50_ms", 0.5), ("p90_ms", 0.9), ("p99_ms", 0.99))
RECEIVER_TARGET_MS: Final = 5_000   # target for a receiver
RECEIVER_DEADLINE_MS: Final = 10_000   # after which a callback counts as not received. Source: facts 4.6
# fmt: on


def build_receiver_report(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Return one entry for each subscription.

    Args:
        rows: of subscription_id, status, duration_ms and tries; within a subscription ordered by duration.
    """
    rows_by_id: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        rows_by_id[row.subscription_id].append(row)
    return [
        _subscription_report(subscription_id, rows_by_id[subscription_id]) for subscription_id in sorted(rows_by_id)
    ]


def _subscription_report(subscription_id: int, rows: Sequence[Any]) -> dict[str, Any]:
    tries = sum(row.tries for row in rows)
    statuses: Counter[str] = Counter()
    for row in rows:
        statuses[_status_class(row.status)] += row.tries
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


def _status_class(status: int | None) -> str:
    return "no response" if status is None else f"{status // 100}xx"
