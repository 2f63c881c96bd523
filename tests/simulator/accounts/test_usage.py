"""Usage headers and the hourly limit of calls."""

import json

import pytest

from tests.simulator.conftest import NUMBER_ID, WABA, Bench
from tests.support.manual_clock import ManualClock

HOUR_MS = 3_600_000


async def test_headers_show_the_usage_of_the_hourly_call_limit(slow: Bench) -> None:
    await slow.control("PUT", "settings", {"calls_per_hour": 10})

    await slow.graph("GET", f"{WABA}/phone_numbers")
    response = await slow.graph("GET", WABA)

    # The header counts the calls before this request. Source: facts 1.
    [usage] = json.loads(response.headers["x-business-use-case-usage"])[WABA]
    assert (usage["type"], usage["call_count"]) == ("whatsapp_business_management", 10)
    assert usage["estimated_time_to_regain_access"] == 0
    assert json.loads(response.headers["x-app-usage"])["call_count"] == 10
    for name in ("facebook-api-version", "x-fb-request-id", "x-fb-trace-id"):
        assert response.headers[name]


async def test_call_beyond_the_hourly_limit_is_rejected_until_usage_drops(slow: Bench, clock: ManualClock) -> None:
    await slow.control("PUT", "settings", {"calls_per_hour": 2})

    first = await slow.graph("GET", WABA)
    clock.advance(ms=HOUR_MS // 2)
    second = await slow.graph("GET", WABA)
    rejected = await slow.graph("GET", f"{WABA}/message_templates")
    uncounted = await slow.graph("GET", NUMBER_ID)
    clock.advance(ms=HOUR_MS // 2)
    later = await slow.graph("GET", f"{WABA}/message_templates")

    assert (first.status, second.status, uncounted.status, later.status) == (200, 200, 200, 200)
    assert (rejected.status, rejected.error["code"]) == (400, 80008)
    [usage] = json.loads(rejected.headers["x-business-use-case-usage"])[WABA]
    assert (usage["call_count"], usage["estimated_time_to_regain_access"]) == (100, 30)


async def test_calls_are_not_counted_without_limits(slow: Bench) -> None:
    await slow.control("PUT", "settings", {"calls_per_hour": 1, "limits": False})

    responses = [await slow.graph("GET", WABA) for _ in range(3)]

    assert [response.status for response in responses] == [200, 200, 200]


@pytest.mark.parametrize("status", [400, 429])
async def test_throttled_messages_have_the_configured_status(slow: Bench, status: int) -> None:
    # Source: facts 13: both have been observed.
    await slow.control("PUT", "settings", {"throttle_status": status, "send_retry_after": True})
    for _ in range(45):
        await slow.send_text()

    rejected = await slow.send({"text": {"body": "Hello"}})

    assert (rejected.status, rejected.error["code"]) == (status, 131056)
    assert rejected.headers.get("Retry-After") == ("6" if status == 429 else None)
