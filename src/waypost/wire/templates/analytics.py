"""Queries of template analytics and their responses. Source: facts 3.6."""

import datetime
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from waypost.domain.coercion import read_flag
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.wire.requests import QueryReader, read_query_number

DAY_S: Final = 24 * 60 * 60
DEFAULT_DAYS: Final = 30
_EPOCH: Final = datetime.date(1970, 1, 1)
MAX_ANALYTICS_DAYS: Final = 90
MAX_POINTS: Final = 30
METRICS: Final = ("SENT", "DELIVERED", "READ", "CLICKED", "COST")
_DEFAULT_METRICS: Final = ("SENT", "DELIVERED", "READ", "CLICKED")
CONVERSION_METRICS: Final = (
    "APP_ACTIVATIONS",
    *(
        f"{place}_{event}"
        for event in ("ADD_TO_CART", "CHECKOUTS_INITIATED", "PURCHASES", "PURCHASES_CONVERSION_VALUE")
        for place in ("APP", "WEBSITE")
    ),
)
"""Actions in the partner's app or website, which the operator reports to advertisers only. Source: ledger 1.5."""
MM_LITE: Final = "MARKETING_MESSAGES_LITE_API"
PRODUCT_TYPES: Final = ("CLOUD_API", MM_LITE)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
GRANULARITIES: Final = ("AGGREGATED", "DAILY")
WINDOWS_D: Final = (7, 30, 60, 90)
MIN_SENDS: Final = 1_000


@dataclass(frozen=True, slots=True)
class AnalyticsQuery:
    """A query of template analytics."""

    start_s: int  # seconds since the epoch, as `end_s`, which is the last second included
    end_s: int
    daily: bool
    metrics: frozenset[str]
    template_id: str | None  # None: all templates
    limit: int  # maximum number of points
    product_type: str = ""  # of the messages; empty: all


@dataclass(slots=True)
class AnalyticsPoint:
    """The statistics of a template's messages in a time range; `clicked` by button text."""

    template_id: str
    start_s: int
    end_s: int
    sent: int = 0
    delivered: int = 0
    read: int = 0
    clicked: Counter[str] = field(default_factory=Counter[str])


def read_analytics_query(query: QueryReader, now_s: int) -> AnalyticsQuery:
    """Read the query.

    Raises:
        ApiError: the start is more than 90 days ago, or a value cannot be read.
    """
    end_s = _time(query, "end", later_s=DAY_S - 1)
    end_s = now_s if end_s is None else end_s
    start_s = _time(query, "start")
    start_s = end_s - DEFAULT_DAYS * DAY_S if start_s is None else start_s
    _check_time_zone(query)
    if start_s < now_s - MAX_ANALYTICS_DAYS * DAY_S:
        raise ApiError(ErrorCode.ANALYTICS_TOO_OLD)
    if end_s <= start_s or end_s > now_s + DAY_S:
        raise invalid_field("end", "after start and not in the future: seconds since 1970")
    granularity = (query("granularity") or "AGGREGATED").strip().upper()
    if granularity not in GRANULARITIES:
        raise invalid_field("granularity", f"one of {', '.join(GRANULARITIES)}")
    ids = _split_list(query("template_ids"))
    if len(ids) > 1:
        raise ApiError(ErrorCode.FIELD_BROKEN, "template_ids must hold one id.")
    metrics = frozenset(name.upper() for name in _split_list(query("metric_types"))) or set(_DEFAULT_METRICS)
    if metrics - {*METRICS, *CONVERSION_METRICS}:
        raise invalid_field("metric_types", f"some of {', '.join((*METRICS, *CONVERSION_METRICS))}")
    product_type = (query("product_type") or "").strip().upper()
    if product_type and product_type not in PRODUCT_TYPES:
        raise invalid_field("product_type", f"one of {', '.join(PRODUCT_TYPES)}")
    limit = read_query_number(query, "limit", minimum=1, maximum=MAX_POINTS)
    return AnalyticsQuery(
        start_s=start_s,
        end_s=end_s,
        daily=granularity == "DAILY",
        metrics=frozenset(metrics),
        template_id=ids[0] if ids else None,
        limit=MAX_POINTS if limit is None else limit,
        product_type=product_type,
    )


def _check_time_zone(query: QueryReader) -> None:
    """Check that days of the account's time zone are requested by dates. Ours is UTC."""
    text = query("use_waba_timezone")
    given = [name for name in ("start", "end") if _DATE.fullmatch((query(name) or "").strip())]
    if text and read_flag(text, "use_waba_timezone") and len(given) < 2:
        raise invalid_field("start and end", "dates as YYYY-MM-DD with use_waba_timezone")


def _time(query: QueryReader, name: str, *, later_s: int = 0) -> int | None:
    """Return a time in seconds since the epoch; a date is its first second, or the one so much later."""
    text = (query(name) or "").strip()
    if _DATE.fullmatch(text):
        try:
            day = datetime.date.fromisoformat(text)
        except ValueError as error:
            raise invalid_field(name, "a date as YYYY-MM-DD, or seconds since 1970") from error
        return (day - _EPOCH).days * DAY_S + later_s
    return read_query_number(query, name, maximum=2**40)


def read_comparison(query: QueryReader, now_s: int) -> AnalyticsQuery:
    """Read the query of a comparison: the other template, and a window of 7, 30, 60 or 90 days.

    The window is `start` and `end`; our own parameter `days` sets the start relative to the end.

    Raises:
        ApiError: the other template is missing, or the window is another.

    Source: public page "Compare templates"; facts 3.6.
    """
    days = read_query_number(query, "days", maximum=MAX_ANALYTICS_DAYS)
    days = WINDOWS_D[0] if days is None else days
    if days not in WINDOWS_D:
        raise invalid_field("days", "one of 7, 30, 60, 90")
    end_s = read_query_number(query, "end", maximum=2**40)
    end_s = now_s if end_s is None else end_s
    start_s = read_query_number(query, "start", maximum=2**40)
    start_s = end_s - days * DAY_S if start_s is None else start_s
    if end_s - start_s not in (days * DAY_S for days in WINDOWS_D):
        raise ApiError(
            ErrorCode.COMPARISON_ENDS_FIRST if start_s >= end_s else ErrorCode.COMPARISON_WINDOW,
            "start and end must be seconds since 1970, start before end, and 7, 30, 60 or 90 days apart.",
        )
    ids = _split_list(query("templateList")) or _split_list(query("template_ids"))
    if not ids:
        raise ApiError(
            ErrorCode.COMPARISON_LIST_MISSING, "templateList must be the id of the template to compare with."
        )
    if len(ids) > 1:
        raise ApiError(
            ErrorCode.FIELD_BROKEN,
            "templateList must hold one id: two templates are compared, and the path names the other.",
        )
    return AnalyticsQuery(start_s, end_s, False, frozenset({"SENT"}), ids[0], MAX_POINTS)


def comparison_metrics(points: Sequence[AnalyticsPoint]) -> list[dict[str, Any]]:
    """Return the metrics of a comparison. Blocks are not reported to us, so their metrics are empty.

    Source: public page "Compare templates".
    """
    sends = [{"key": point.template_id, "value": point.sent} for point in points]
    return [
        {"metric": "BLOCK_RATE", "type": "RELATIVE", "order_by_relative_metric": []},
        {"metric": "MESSAGE_SENDS", "type": "NUMBER_VALUES", "number_values": sends},
        {"metric": "TOP_BLOCK_REASON", "type": "STRING_VALUES", "string_values": []},
    ]


def point_object(point: AnalyticsPoint, metrics: frozenset[str]) -> dict[str, Any]:
    """Return a point of the response. Taps on quick replies are counted; opened URLs are not visible to us.

    Nobody is charged, so the cost is 0. Conversions are not reported to us, so their members are missing.
    """
    counts: Mapping[str, Any] = {
        "SENT": point.sent,
        "DELIVERED": point.delivered,
        "READ": point.read,
        "CLICKED": [
            {"type": "quick_reply_button", "button_content": text, "count": count}
            for text, count in sorted(point.clicked.items())
        ],
        "COST": [{"type": "amount_spent", "value": 0}],
    }
    return {
        "template_id": point.template_id,
        "start": point.start_s,
        "end": point.end_s,
        **{metric.lower(): counts[metric] for metric in METRICS if metric in metrics},
    }


def _split_list(text: str | None) -> list[str]:
    items = (item.strip().strip("\"'") for item in (text or "").strip().strip("[]").split(","))
    return [item for item in items if item]
