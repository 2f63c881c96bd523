"""Alerts about the endpoints of published Flows: webhooks when a rate crosses a threshold, up or down.

What was measured is in memory only: after a restart the windows begin empty. Which alerts are active is stored.

Source: the operator's page "Flows webhooks"; decision 0130.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from waypost.base.clock import MINUTE_MS
from waypost.simulator.flows.exchanges import EndpointExchange
from waypost.simulator.flows.metrics import is_request_error
from waypost.simulator.flows.model import Flow
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind

MAX_MEASUREMENTS: Final = 1000
"""Of one Flow, the newest; older ones do not count, even within a window."""


class EndpointMeasurement(NamedTuple):
    """The part of one exchange with an endpoint that alerts depend on."""

    at_ms: int
    is_ping: bool
    duration_ms: int
    request_error: str  # the type, if the endpoint did not serve the request
    client_error: str  # the type, if the handset could not use the response


class _Finding(NamedTuple):
    """The measurement of a rule: a value to compare with its thresholds, and the members of the webhook."""

    value: float
    members: dict[str, Any]


Measure = Callable[[Sequence[EndpointMeasurement]], _Finding]
"""Returns what the measurements of a window give; without any, what a healthy endpoint would give."""


class AlertRule(NamedTuple):
    """One kind of alert."""

    event: str
    window_ms: int
    thresholds: tuple[int, ...]
    measure: Measure
    message: str  # with `{threshold}` and `{minutes}`
    is_floor: bool = False  # an alert is active below the threshold, not at it or above


def _measure_errors(error_of: Callable[[EndpointMeasurement], str]) -> Measure:
    def measure(window: Sequence[EndpointMeasurement]) -> _Finding:
        requests = [one for one in window if not one.is_ping]
        types = Counter(error for one in requests if (error := error_of(one)))
        rate, total = 100 * types.total() / max(1, len(requests)), types.total()
        errors = [
            {"error_type": name, "error_rate": _round_down(100 * count / total), "error_count": count}
            for name, count in types.most_common()
        ]
        return _Finding(rate, {"error_rate": _round_down(rate), "errors": errors})

    return measure


def _measure_latency(window: Sequence[EndpointMeasurement]) -> _Finding:
    durations = sorted(one.duration_ms for one in window if not one.is_ping)
    p90, p50 = (durations[math.ceil(len(durations) * share / 100) - 1] if durations else 0 for share in (90, 50))
    return _Finding(p90, {"p90_latency": p90, "p50_latency": p50, "requests_count": len(durations)})


def _measure_availability(window: Sequence[EndpointMeasurement]) -> _Finding:
    pings = [one for one in window if one.is_ping]
    failed = sum(bool(one.request_error or one.client_error) for one in pings)
    available = 100 - 100 * failed / max(1, len(pings))
    return _Finding(available, {"availability": math.floor(available)})


def _round_down(value: float) -> float:
    """Return a percentage with two decimals, as the operator's samples round them."""
    return math.floor(value * 100) / 100


_ERROR_RATES: Final = (5, 10, 50)
# fmt: off
ALERT_RULES: Final = (
    #         event                  window           thresholds          measure
    AlertRule("CLIENT_ERROR_RATE",     60 * MINUTE_MS, _ERROR_RATES,       _measure_errors(lambda one: one.client_error),
              "The flow client request error rate {crossed} the {threshold}% threshold in the last {minutes} minutes."),
    AlertRule("ENDPOINT_ERROR_RATE",   30 * MINUTE_MS, _ERROR_RATES,       _measure_errors(lambda one: one.request_error),
              "The flow endpoint request error rate {crossed} the {threshold}% threshold in the last {minutes} minutes."),
    AlertRule("ENDPOINT_LATENCY",      30 * MINUTE_MS, (1000, 5000, 7000), _measure_latency,
              "Flow endpoint latency {crossed} the p90 threshold of {threshold} ms in the last {minutes} minutes."),
    AlertRule("ENDPOINT_AVAILABILITY", 10 * MINUTE_MS, (90,),              _measure_availability,
              "The flow endpoint availability {crossed} the {threshold}% threshold in the last {minutes} minutes.", True),
)
# fmt: on
_LONGEST_WINDOW_MS: Final = max(rule.window_ms for rule in ALERT_RULES)
_ACTIVE_ALERTS: Final = StoredKind("flow_alert", int)
"""Of a Flow, by event and threshold: since when it is active."""


def add_measurement(
    state: SimulatorState, flow_id: str, exchange: EndpointExchange, *, is_ping: bool
) -> list[EndpointMeasurement]:
    """Add an exchange to what is measured of a Flow; return all of it, oldest first."""
    request_error = exchange.error_type if is_request_error(exchange) else ""
    is_client_error = exchange.error_type and not request_error and not exchange.is_token_invalid
    client_error = exchange.error_type if is_client_error else ""
    measured = state.endpoint_measurements[flow_id]
    measured.append(EndpointMeasurement(exchange.at_ms, is_ping, exchange.duration_ms, request_error, client_error))
    while len(measured) > MAX_MEASUREMENTS or measured[0].at_ms <= exchange.at_ms - _LONGEST_WINDOW_MS:
        measured.popleft()
    return list(measured)


def update_alerts(transaction: Transaction, flow: Flow, measured: Sequence[EndpointMeasurement]) -> None:
    """Activate and deactivate the alerts of a Flow by what its windows have now, each with its webhook."""
    now_ms, active = transaction.state.clock.now_ms(), transaction.values(_ACTIVE_ALERTS, flow.flow_id)
    for rule in ALERT_RULES:
        finding = rule.measure([one for one in measured if one.at_ms > now_ms - rule.window_ms])
        for threshold in rule.thresholds:
            key = _alert_key(rule, threshold)
            is_crossed = finding.value < threshold if rule.is_floor else finding.value >= threshold
            if is_crossed == (key in active):
                continue
            if is_crossed:
                transaction.save(_ACTIVE_ALERTS, now_ms, key, flow.flow_id)
            else:
                transaction.delete(_ACTIVE_ALERTS, key, flow.flow_id)
            went_up = is_crossed != rule.is_floor
            transaction.notify(flow.waba_id, "flows", _build_webhook(flow, rule, threshold, finding, went_up=went_up))


def _alert_key(rule: AlertRule, threshold: int) -> str:
    return f"{rule.event} {threshold}"


def _build_webhook(flow: Flow, rule: AlertRule, threshold: int, finding: _Finding, *, went_up: bool) -> dict[str, Any]:
    crossed = "has reached" if went_up else "is below"
    return {
        "event": rule.event,
        "message": rule.message.format(crossed=crossed, threshold=threshold, minutes=rule.window_ms // MINUTE_MS),
        "flow_id": flow.flow_id,
        **finding.members,
        "threshold": threshold,
        "alert_state": "ACTIVATED" if went_up != rule.is_floor else "DEACTIVATED",
    }


def delete_alerts(transaction: Transaction, flow_id: str) -> None:
    """Delete the active alerts of a Flow, without webhooks."""
    transaction.delete_owner(_ACTIVE_ALERTS, flow_id)


def next_alert_change_ms(state: SimulatorState, flow_id: str) -> int | None:
    """Return when the next measurement leaves a window, so that an active alert may end; None if none is active."""
    active = state.values(_ACTIVE_ALERTS, flow_id)
    windows = {
        rule.window_ms
        for rule in ALERT_RULES
        if any(_alert_key(rule, threshold) in active for threshold in rule.thresholds)
    }
    if not windows:
        return None
    now_ms, measured = state.clock.now_ms(), state.endpoint_measurements.get(flow_id, ())
    leaving = (one.at_ms + window_ms for one in measured for window_ms in windows)
    return min((at_ms for at_ms in leaving if at_ms > now_ms), default=now_ms)
