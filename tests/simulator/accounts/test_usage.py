"""What headers tell of calls, and what happens when there are too many."""

import json

import pytest

from tests.simulator.conftest import NUMBER_ID, WABA, Bench
from waypost.base.clock import ManualClock

HOUR_MS = 3_600_000


async def test_headers_tell_the_share_of_the_hours_calls(slow: Bench) -> None:
    await slow.control("PUT", "settings", {"calls_per_hour": 10})

    await slow.graph("GET", f"{WABA}/phone_numbers")
    answer = await slow.graph("GET", WABA)

    # The header speaks of the calls before this one. Source: facts 1.
    [usage] = json.loads(answer.headers["x-business-use-case-usage"])[WABA]
    assert (usage["type"], usage["call_count"]) == ("whatsapp_business_management", 10)
    assert usage["estimated_time_to_regain_access"] == 0
    assert json.loads(answer.headers["x-app-usage"])["call_count"] == 10
    for name in ("facebook-api-version", "x-fb-request-id", "x-fb-trace-id"):
        assert answer.headers[name]


async def test_call_beyond_the_hours_share_is_refused_until_there_is_room(slow: Bench, manual: ManualClock) -> None:
    await slow.control("PUT", "settings", {"calls_per_hour": 2})

    first = await slow.graph("GET", WABA)
    manual.advance(ms=HOUR_MS // 2)
    second = await slow.graph("GET", WABA)
    refused = await slow.graph("GET", f"{WABA}/message_templates")
    uncounted = await slow.graph("GET", NUMBER_ID)
    manual.advance(ms=HOUR_MS // 2)
    later = await slow.graph("GET", f"{WABA}/message_templates")

    assert (first.status, second.status, uncounted.status, later.status) == (200, 200, 200, 200)
    assert (refused.status, refused.error["code"]) == (400, 80008)
    [usage] = json.loads(refused.headers["x-business-use-case-usage"])[WABA]
    assert (usage["call_count"], usage["estimated_time_to_regain_access"]) == (100, 30)


async def test_calls_are_not_counted_without_limits(slow: Bench) -> None:
    await slow.control("PUT", "settings", {"calls_per_hour": 1, "limits": False})

    answers = [await slow.graph("GET", WABA) for _ in range(3)]

    assert [answer.status for answer in answers] == [200, 200, 200]


@pytest.mark.parametrize("status", [400, 429])
async def test_throttled_messages_have_the_wished_status(slow: Bench, status: int) -> None:
    # Source: facts 13: both have been seen.
    await slow.control("PUT", "settings", {"throttle_status": status, "tells_retry_after": True})
    for _ in range(45):
        await slow.send_text()

    refused = await slow.send({"text": {"body": "Hello"}})

    assert (refused.status, refused.error["code"]) == (status, 131056)
    assert refused.headers.get("Retry-After") == ("6" if status == 429 else None)
