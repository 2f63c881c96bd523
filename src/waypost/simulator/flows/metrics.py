"""Metrics of a published Flow's endpoint: counted by hour and day, and as a whole; shown as the Metrics API does.

Source: the operator's page "Metrics API".
"""

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from waypost.base.clock import DAY_MS, HOUR_MS
from waypost.simulator.apis.errors import bad_parameter
from waypost.simulator.flows.exchanges import EndpointExchange
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind

MIN_METRIC_REQUESTS: Final = 250
ENDPOINT_ERRORS: Final = (
    "timeout_error", "unexpected_http_status_code", "cannot_be_served", "no_http_response_error", "missing_capability",
)  # fmt: skip
"""Errors of requests to the endpoint; the others are of what the handset could not do with a response."""
_LAST_LATENCY_S: Final = 10
_TOKEN_INVALID: Final = 427


class MetricPeriod(NamedTuple):
    """The length of a count, and how many are kept."""

    length_ms: int  # 0: everything
    kept: int  # number of such counts that are kept


PERIODS: Final = {"HOUR": MetricPeriod(HOUR_MS, 72), "DAY": MetricPeriod(DAY_MS, 90), "LIFETIME": MetricPeriod(0, 1)}
"""The periods by their `granularity`."""


class EndpointCount(Struct, frozen=True):
    """The requests of one period: their number, errors by type, latencies by seconds; and the health checks."""

    start_ms: int
    requests: int = 0
    errors: dict[str, int] = {}
    latencies: dict[str, int] = {}
    succeeded: int = 0
    failed: int = 0


_COUNTS: Final = StoredKind("flow_endpoint_count", EndpointCount)
"""Of a Flow, by granularity and start."""


def is_request_error(exchange: EndpointExchange) -> bool:
    """True if the endpoint did not serve a request; a 427 is a response as documented."""
    return exchange.error_type in ENDPOINT_ERRORS and exchange.status != _TOKEN_INVALID


def count_exchange(transaction: Transaction, flow_id: str, exchange: EndpointExchange, *, is_ping: bool) -> None:
    """Count an exchange in each period; counts that are too old are deleted."""
    for granularity, period in PERIODS.items():
        start_ms = exchange.at_ms - exchange.at_ms % period.length_ms if period.length_ms else 0
        key = _key(granularity, start_ms)
        known = transaction.find(_COUNTS, key, flow_id)
        if known is None:
            _delete_old(transaction, flow_id, granularity, start_ms)
        count = known or EndpointCount(start_ms)
        transaction.save(_COUNTS, _add(count, exchange, is_ping=is_ping), key, flow_id)


def delete_counts(transaction: Transaction, flow_id: str) -> None:
    """Delete the counts of a Flow."""
    transaction.delete_owner(_COUNTS, flow_id)


def _key(granularity: str, start_ms: int) -> str:
    return f"{granularity} {start_ms:015d}"


def _delete_old(transaction: Transaction, flow_id: str, granularity: str, start_ms: int) -> None:
    period = PERIODS[granularity]
    oldest = _key(granularity, max(0, start_ms - (period.kept - 1) * period.length_ms))
    for key in transaction.values(_COUNTS, flow_id):
        if key.startswith(f"{granularity} ") and key < oldest:
            transaction.delete(_COUNTS, key, flow_id)


def _add(count: EndpointCount, exchange: EndpointExchange, *, is_ping: bool) -> EndpointCount:
    if is_ping:
        failed = bool(exchange.error_type)
        return replace(count, succeeded=count.succeeded + (not failed), failed=count.failed + failed)
    seconds = max(1, math.ceil(exchange.duration_ms / 1000))
    latency = f"{_LAST_LATENCY_S}+" if seconds > _LAST_LATENCY_S else str(seconds)
    errors = count.errors
    if is_request_error(exchange):
        errors = {**errors, exchange.error_type: errors.get(exchange.error_type, 0) + 1}
    latencies = {**count.latencies, latency: count.latencies.get(latency, 0) + 1}
    return replace(count, requests=count.requests + 1, errors=errors, latencies=latencies)


def _single(value: float) -> list[dict[str, Any]]:
    return [{"key": "value", "value": value}]


def _show_latencies(count: EndpointCount) -> list[dict[str, Any]]:
    names = [*map(str, range(1, _LAST_LATENCY_S + 1)), f"{_LAST_LATENCY_S}+"]
    return [{"key": name, "value": count.latencies[name]} for name in names if name in count.latencies]


# fmt: off
_METRICS: Final[dict[str, Callable[[EndpointCount], list[dict[str, Any]]]]] = {
    "ENDPOINT_REQUEST_COUNT":      lambda count: _single(count.requests),
    "ENDPOINT_REQUEST_ERROR":      lambda count: [{"key": key, "value": value} for key, value in count.errors.items()],
    "ENDPOINT_REQUEST_ERROR_RATE": lambda count: _single(
        sum(count.errors.values()) / count.requests if count.requests else 0
    ),
    "ENDPOINT_REQUEST_LATENCY_SECONDS_CEIL": _show_latencies,
    "ENDPOINT_AVAILABILITY":       lambda count: [{"key": "succeeded", "value": count.succeeded},
                                                  {"key": "failed", "value": count.failed}],
}
# fmt: on
_METRIC_FIELD: Final = re.compile(r"(?:^|,)\s*metric((?:\.\w+\([^()]*\))*)")
_ARGUMENT: Final = re.compile(r"\.(\w+)\(([^()]*)\)")
_ARGUMENTS: Final = ("name", "granularity", "since", "until")


class MetricQuery(NamedTuple):
    """A metric that was requested among the fields of a Flow."""

    name: str
    granularity: str
    since_ms: int
    until_ms: int


def read_metric_query(fields: str) -> MetricQuery | None:
    """Return the metric among requested fields; None if there is none.

    Raises:
        GraphApiError: code 100, an argument is missing, unknown or invalid.
    """
    match = _METRIC_FIELD.search(fields)
    if match is None:
        return None
    given = {name: value.strip() for name, value in _ARGUMENT.findall(match[1])}
    unknown = next((name for name in given if name not in _ARGUMENTS), None)
    if unknown is not None:
        raise bad_parameter(f"metric has no argument {unknown[:40]}; it has {', '.join(_ARGUMENTS)}.")
    name, granularity = given.get("name", "").upper(), given.get("granularity", "").upper()
    if name not in _METRICS:
        raise bad_parameter(f"metric.name must be one of {{{', '.join(_METRICS)}}}.")
    if granularity not in PERIODS:
        raise bad_parameter(f"metric.granularity must be one of {{{', '.join(PERIODS)}}}.")
    since, until = (_read_day(given, name) for name in ("since", "until"))
    if since is not None and until is not None and since > until:
        raise bad_parameter("metric.since must not be after metric.until.")
    return MetricQuery(name, granularity, 0 if since is None else since, 2**62 if until is None else until)


def _read_day(given: dict[str, str], name: str) -> int | None:
    """Return the start of a day in UTC, in milliseconds; None if none is given."""
    if name not in given:
        return None
    try:
        day = date.fromisoformat(given[name])
    except ValueError:
        raise bad_parameter(f"metric.{name} must be a day as YYYY-MM-DD.") from None
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)


def find_metric(state: SimulatorState, flow_id: str, query: MetricQuery) -> dict[str, Any] | None:
    """Return a metric as the Metrics API shows it; None if the Flow has too few requests.

    Periods without a request are left out. `since` is included, `until` is not.
    """
    counts = state.values(_COUNTS, flow_id)
    lifetime = counts.get(_key("LIFETIME", 0))
    if lifetime is None or lifetime.requests < MIN_METRIC_REQUESTS:
        return None
    chosen = [count for key, count in counts.items() if key.startswith(f"{query.granularity} ")]
    if query.granularity != "LIFETIME":
        chosen = [count for count in chosen if query.since_ms <= count.start_ms < query.until_ms]
    points = [
        {"timestamp": _iso(count.start_ms), "data": _METRICS[query.name](count)}
        for count in sorted(chosen, key=lambda count: count.start_ms)
    ]
    return {"granularity": query.granularity, "name": query.name, "data_points": points}


def _iso(at_ms: int) -> str:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)
    return at.strftime("%Y-%m-%dT%H:%M:%S+0000")
