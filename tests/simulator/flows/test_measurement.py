"""What is measured of the endpoint of a published Flow: metrics, alerts, health checks."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.simulator.conftest import WABA, Bench
from tests.simulator.flows.conftest import answer_booking, exchange, publish_booking
from tests.support.flow_endpoint import FlowEndpoint
from tests.support.manual_clock import ManualClock
from tests.support.polling import poll_until

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
TOKEN = {"flow_token": "token-1"}


@pytest_asyncio.fixture
async def flow_id(slow: Bench, endpoint: FlowEndpoint) -> AsyncIterator[str]:
    await slow.control("PUT", "settings", {"endpoint_ping_ms": None})
    yield await publish_booking(slow, endpoint)


async def read_metric(bench: Bench, flow_id: str, arguments: str) -> Any:
    response = await bench.graph("GET", f"{flow_id}?fields=id,metric.{arguments}")
    return response.body.get("metric") or response.error


async def fill(bench: Bench, flow_id: str, count: int) -> None:
    for _ in range(count):
        await exchange(bench, flow_id, **TOKEN)


async def test_metrics_are_shown_from_the_250th_request(
    slow: Bench, endpoint: FlowEndpoint, clock: ManualClock, flow_id: str
) -> None:
    await fill(slow, flow_id, 244)
    endpoint.status = 500
    await fill(slow, flow_id, 5)
    endpoint.status = 200
    too_few = await read_metric(slow, flow_id, "name(ENDPOINT_REQUEST_COUNT).granularity(DAY)")
    clock.advance(ms=DAY_MS)

    def answer_late(request: dict[str, Any]) -> Any:
        clock.advance(ms=2500)
        return answer_booking(request)

    endpoint.respond = answer_late
    await fill(slow, flow_id, 1)
    await exchange(slow, flow_id, "ping")

    assert (too_few["code"], too_few["error_user_msg"]) == (139006, "The flow has fewer than 250 requests.")
    counts = await read_metric(slow, flow_id, "name(ENDPOINT_REQUEST_COUNT).granularity(day)")
    assert counts == {
        "granularity": "DAY",
        "name": "ENDPOINT_REQUEST_COUNT",
        "data_points": [
            {"timestamp": "2025-10-09T00:00:00+0000", "data": [{"key": "value", "value": 249}]},
            {"timestamp": "2025-10-10T00:00:00+0000", "data": [{"key": "value", "value": 1}]},
        ],
    }
    lifetime = {
        name: (await read_metric(slow, flow_id, f"name({name}).granularity(LIFETIME)"))["data_points"][0]["data"]
        for name in ("ENDPOINT_REQUEST_ERROR", "ENDPOINT_REQUEST_ERROR_RATE", "ENDPOINT_REQUEST_LATENCY_SECONDS_CEIL",
                     "ENDPOINT_AVAILABILITY")
    }  # fmt: skip
    assert lifetime == {
        "ENDPOINT_REQUEST_ERROR": [{"key": "unexpected_http_status_code", "value": 5}],
        "ENDPOINT_REQUEST_ERROR_RATE": [{"key": "value", "value": 0.02}],
        "ENDPOINT_REQUEST_LATENCY_SECONDS_CEIL": [{"key": "1", "value": 249}, {"key": "3", "value": 1}],
        "ENDPOINT_AVAILABILITY": [{"key": "succeeded", "value": 1}, {"key": "failed", "value": 0}],
    }
    of_a_day = "name(ENDPOINT_REQUEST_COUNT).granularity(HOUR).since(2025-10-09).until(2025-10-10)"
    hours = (await read_metric(slow, flow_id, of_a_day))["data_points"]
    assert [hour["timestamp"] for hour in hours] == ["2025-10-09T08:00:00+0000"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("name(REQUESTS).granularity(DAY)", "metric.name"),
        ("name(ENDPOINT_REQUEST_COUNT)", "metric.granularity"),
        ("name(ENDPOINT_REQUEST_COUNT).granularity(WEEK)", "metric.granularity"),
        ("name(ENDPOINT_REQUEST_COUNT).granularity(DAY).since(yesterday)", "metric.since"),
        ("name(ENDPOINT_REQUEST_COUNT).granularity(DAY).since(2025-10-10).until(2025-10-09)", "metric.since"),
        ("name(ENDPOINT_REQUEST_COUNT).granularity(DAY).before(2025-10-10)", "no argument before"),
        ("granularity(DAY)", "metric.name"),
    ],
)
async def test_invalid_metric_is_named(slow: Bench, flow_id: str, arguments: str, named: str) -> None:
    error = await read_metric(slow, flow_id, arguments)

    assert error["code"] == 100
    assert named in error["message"]


async def test_draft_is_not_measured(slow: Bench, endpoint: FlowEndpoint, flow_id: str) -> None:
    changed = json.dumps({"version": "7.3", "screens": []})
    copy = {"name": "copy", "categories": ["OTHER"], "flow_json": changed, "endpoint_uri": endpoint.url}
    draft = (await slow.graph("POST", f"{WABA}/flows", json=copy)).body["id"]
    endpoint.status = 500

    await exchange(slow, draft, **TOKEN)
    await slow.wait_until_drained()

    assert alerts(slow) == []
    assert flow_id != draft


def alerts(bench: Bench) -> list[dict[str, Any]]:
    return [one for one in bench.receiver.changes("flows") if "alert_state" in one]


async def wait_for_alerts(bench: Bench, count: int) -> list[dict[str, Any]]:
    return await bench.receiver.wait_until(lambda: alerts(bench) if len(alerts(bench)) >= count else None)


def in_short(found: list[dict[str, Any]]) -> list[tuple[str, int, str]]:
    return [(one["event"], one["threshold"], one["alert_state"]) for one in found]


async def test_error_rate_activates_each_threshold_that_it_reaches_and_deactivates_it_later(
    slow: Bench, endpoint: FlowEndpoint, clock: ManualClock, flow_id: str
) -> None:
    await fill(slow, flow_id, 6)
    endpoint.status = 500
    await fill(slow, flow_id, 1)
    reached = list(await wait_for_alerts(slow, 2))
    clock.advance(ms=30 * MINUTE_MS)
    ended = (await wait_for_alerts(slow, 4))[2:]

    assert in_short(reached) == [("ENDPOINT_ERROR_RATE", 5, "ACTIVATED"), ("ENDPOINT_ERROR_RATE", 10, "ACTIVATED")]
    assert reached[1] == {
        "event": "ENDPOINT_ERROR_RATE",
        "message": "The flow endpoint request error rate has reached the 10% threshold in the last 30 minutes.",
        "flow_id": flow_id,
        "error_rate": 14.28,
        "errors": [{"error_type": "unexpected_http_status_code", "error_rate": 100.0, "error_count": 1}],
        "threshold": 10,
        "alert_state": "ACTIVATED",
    }
    assert in_short(ended) == [("ENDPOINT_ERROR_RATE", 5, "DEACTIVATED"), ("ENDPOINT_ERROR_RATE", 10, "DEACTIVATED")]
    assert (ended[0]["error_rate"], ended[0]["errors"]) == (0.0, [])


async def test_invalid_answers_count_as_errors_of_the_client(
    slow: Bench, endpoint: FlowEndpoint, clock: ManualClock, flow_id: str
) -> None:
    await fill(slow, flow_id, 3)
    endpoint.respond = lambda _: {"screen": "NONE", "data": {}}
    await fill(slow, flow_id, 1)
    reached = list(await wait_for_alerts(slow, 2))
    clock.advance(ms=60 * MINUTE_MS - 1)
    await slow.wait_until_drained()
    assert len(alerts(slow)) == 2
    clock.advance(ms=1)
    ended = (await wait_for_alerts(slow, 4))[2:]

    assert in_short(reached) == [("CLIENT_ERROR_RATE", 5, "ACTIVATED"), ("CLIENT_ERROR_RATE", 10, "ACTIVATED")]
    assert reached[0]["errors"] == [{"error_type": "invalid-screen-transition", "error_rate": 100.0, "error_count": 1}]
    assert in_short(ended) == [("CLIENT_ERROR_RATE", 5, "DEACTIVATED"), ("CLIENT_ERROR_RATE", 10, "DEACTIVATED")]


async def test_invalid_flow_token_is_no_error(slow: Bench, endpoint: FlowEndpoint, flow_id: str) -> None:
    endpoint.status = 427

    await fill(slow, flow_id, 2)
    await slow.wait_until_drained()

    assert alerts(slow) == []


async def test_latency_of_the_slowest_tenth_raises_an_alert(
    slow: Bench, endpoint: FlowEndpoint, clock: ManualClock, flow_id: str
) -> None:
    durations = iter(
        [500, 1000, 8000, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100]
    )

    def answer_late(request: dict[str, Any]) -> Any:
        clock.advance(ms=next(durations))
        return answer_booking(request)

    endpoint.respond = answer_late
    await fill(slow, flow_id, 3)
    reached = list(await wait_for_alerts(slow, 3))
    await fill(slow, flow_id, 17)
    ended = (await wait_for_alerts(slow, 6))[3:]

    assert in_short(reached) == [("ENDPOINT_LATENCY", limit, "ACTIVATED") for limit in (1000, 5000, 7000)]
    assert {name: reached[0][name] for name in ("p90_latency", "p50_latency", "requests_count")} == {
        "p90_latency": 1000,
        "p50_latency": 500,
        "requests_count": 2,
    }
    assert (reached[2]["p90_latency"], reached[2]["p50_latency"], reached[2]["requests_count"]) == (8000, 1000, 3)
    assert sorted(in_short(ended)) == [("ENDPOINT_LATENCY", limit, "DEACTIVATED") for limit in (1000, 5000, 7000)]


async def test_endpoints_of_published_flows_are_asked_for_their_health(
    slow: Bench, endpoint: FlowEndpoint, clock: ManualClock, flow_id: str
) -> None:
    await slow.control("PUT", "settings", {"endpoint_ping_ms": 2 * MINUTE_MS})
    endpoint.status = 503
    for count in range(1, 5):
        await advance_to_ping(slow, endpoint, clock, count)
        endpoint.status = 200
    reached = list(await wait_for_alerts(slow, 1))
    await slow.control("PUT", f"flows/{flow_id}/status", {"status": "DEPRECATED"})
    clock.advance(ms=10 * MINUTE_MS)
    ended = (await wait_for_alerts(slow, 2))[1:]

    assert all(request == {"version": "4.0", "action": "ping"} for request in endpoint.requests)
    assert len(endpoint.requests) == 4
    assert reached == [
        {
            "event": "ENDPOINT_AVAILABILITY",
            "message": "The flow endpoint availability is below the 90% threshold in the last 10 minutes.",
            "flow_id": flow_id,
            "availability": 0,
            "threshold": 90,
            "alert_state": "ACTIVATED",
        }
    ]
    assert in_short(ended) == [("ENDPOINT_AVAILABILITY", 90, "DEACTIVATED")]


async def advance_to_ping(bench: Bench, endpoint: FlowEndpoint, clock: ManualClock, count: int) -> None:
    """Advance the clock in steps until the endpoint has been asked so often, and its answer is kept."""

    async def read() -> int:
        clock.advance(ms=10_000)
        return len(endpoint.requests)

    await poll_until(read, lambda found: found >= count)
    await poll_until(lambda: _is_idle(bench))


async def _is_idle(bench: Bench) -> bool:
    return not bench.simulator.busy


async def test_alert_ends_after_a_restart(
    slow: Bench, endpoint: FlowEndpoint, clock: ManualClock, flow_id: str
) -> None:
    endpoint.status = 500
    await fill(slow, flow_id, 1)
    await wait_for_alerts(slow, 3)
    await slow.wait_until_drained()

    await slow.restart()
    ended = (await wait_for_alerts(slow, 6))[3:]

    assert {one["alert_state"] for one in ended} == {"DEACTIVATED"}
    assert clock.now_ms() > 0
    assert flow_id in {one["flow_id"] for one in ended}


async def test_deleted_flow_leaves_nothing(bench: Bench, endpoint: FlowEndpoint) -> None:
    await publish_booking(bench, endpoint)
    draft = {"name": "draft", "categories": ["OTHER"], "endpoint_uri": endpoint.url}
    flow_id = (await bench.graph("POST", f"{WABA}/flows", json=draft)).body["id"]
    await exchange(bench, flow_id, **TOKEN)

    await bench.graph("DELETE", flow_id)
    rows = await bench.simulator._state.store.column(  # pyright: ignore[reportPrivateUsage]
        "SELECT kind FROM state WHERE owner=:flow_id OR key=:flow_id", flow_id=flow_id
    )

    assert rows == []
