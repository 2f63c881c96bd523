"""The life of a version of Flow JSON by the clock: current, frozen, expired."""

import json

import pytest

from tests.simulator.conftest import WABA, Bench
from tests.simulator.flows.test_sessions import ASK_AND_SHOW, open_flow, publish_flow, send_flow, steps
from tests.support.manual_clock import ManualClock
from waypost.base.clock import DAY_MS

VERSION = "7.3"


async def set_dates(bench: Bench, frozen_ms: int | None, expired_ms: int | None) -> str:
    body = {"frozen_ms": frozen_ms, "expired_ms": expired_ms}
    changed = await bench.control("PUT", f"flow-versions/{VERSION}", body)
    assert changed.status == 200, changed.body
    return changed.body["state"]


async def read_state(bench: Bench) -> str:
    versions = (await bench.control("GET", "flow-versions")).body["versions"]
    [found] = [one["state"] for one in versions if one["version"] == VERSION]
    return found


async def test_version_is_frozen_and_expires_by_the_clock(slow: Bench, clock: ManualClock) -> None:
    bench, now_ms = slow, clock.now_ms()
    flow_id = await publish_flow(bench, ASK_AND_SHOW)
    await send_flow(bench, flow_id)
    clock.advance(ms=2000)
    assert (await open_flow(bench)).status == 200

    assert await set_dates(bench, now_ms + 30 * DAY_MS, now_ms + 60 * DAY_MS) == "current"
    late = {"name": "late", "categories": ["OTHER"], "flow_json": json.dumps(ASK_AND_SHOW)}
    draft_id = (await bench.graph("POST", f"{WABA}/flows", json=late)).body["id"]
    warned = await bench.receiver.wait_until(
        lambda: [one for one in bench.receiver.changes("flows") if one.get("flow_id") == draft_id and "warning" in one]
    )
    assert [one["event"] for one in warned] == ["FLOW_VERSION_FREEZE_WARNING", "FLOW_VERSION_EXPIRY_WARNING"]
    assert "will be frozen on 20" in warned[0]["warning"]

    clock.advance(ms=31 * DAY_MS)
    assert await read_state(bench) == "frozen"
    refused = await bench.graph("POST", f"{draft_id}/publish")
    assert refused.error["code"] == 139002
    assert "not available for publishing" in refused.error["error_user_title"]
    await send_flow(bench, flow_id)
    clock.advance(ms=2000)
    assert (await open_flow(bench)).status == 200

    clock.advance(ms=30 * DAY_MS)
    assert await read_state(bench) == "expired"
    for refused_step in (await open_flow(bench), await steps(bench, {"fill": {"name": "Bo"}})):
        assert (refused_step.status, refused_step.body["field"]) == (409, "flow")
        assert "has Flow JSON 7.3, which has expired" in refused_step.body["rule"]
    with pytest.raises(AssertionError, match=r"131009.*has Flow JSON 7\.3, which has expired"):
        await send_flow(bench, flow_id)
    health = await bench.graph("GET", f"{flow_id}?fields=health_status")
    assert health.body["health_status"]["can_send_message"] == "BLOCKED"
    created = await bench.graph("POST", f"{WABA}/flows", json={**late, "name": "later"})
    assert [one["error"] for one in created.body["validation_errors"]] == ["INVALID_FLOW_JSON_VERSION"]


@pytest.mark.parametrize(
    ("version", "body", "field"),
    [
        ("9.9", {}, "version"),
        ("7.3", {"frozen_ms": -1}, "frozen_ms"),
        ("7.3", {"frozen_ms": 10, "expired_ms": 5}, "expired_ms"),
    ],
)
async def test_dates_of_no_version_or_in_no_order_are_refused(
    bench: Bench, version: str, body: dict[str, int], field: str
) -> None:
    refused = await bench.control("PUT", f"flow-versions/{version}", body)

    assert refused.status in (400, 404)
    assert refused.body["field"] == field
