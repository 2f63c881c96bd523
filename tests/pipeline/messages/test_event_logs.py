"""The logs of one message: its own steps, and the callbacks about it; and the deliveries of a subscription."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.builders import ANN, APP
from tests.support.pipeline import PipelineHarness
from waypost.base.encryption import hash_secret
from waypost.base.ids import RandomIds
from waypost.store.accounts.partners import add_partner_token, partner_by_id
from waypost.wire.tokens import issue_partner_token

LOG = "/partner/account/api/event"
INTERVAL_MS = 60 * 60 * 1000


async def log_of(pipeline: PipelineHarness, direction: str, message_id: str, **more: int) -> list[dict[str, Any]]:
    """Return the log of a message of today."""
    now_ms = pipeline.clock.now_ms()
    day = datetime.fromtimestamp(now_ms / 1000, tz=UTC).strftime("%d-%m-%Y")
    query = f"id={message_id}&appId={APP.id}&date={day}"
    query += "".join(f"&{name}={value}" for name, value in more.items())
    headers = {"token": await partner_token(pipeline)}
    response = await pipeline.send_request("GET", f"{LOG}/{direction}?{query}", headers=headers)
    assert response.status == 200, response.raw
    return response.body["eventList"]


async def partner_token(pipeline: PipelineHarness) -> str:
    """Return a new token of the partner."""
    database, now_ms = pipeline.waypost.database, pipeline.clock.now_ms()
    partner = await database.read(partner_by_id, APP.partner_id)
    assert partner is not None
    token = issue_partner_token(
        pipeline.waypost.admin_context.secret_box, partner, jti=RandomIds(pipeline.clock).new(), now_ms=now_ms
    )
    await database.write(add_partner_token, hash_secret(token), partner.id, now_ms, now_ms + INTERVAL_MS, None)
    return token


@pytest.mark.holds("get-account-api-event-outgoing")
async def test_outgoing_log_has_each_step_of_a_message(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_text("Hello")
    await pipeline.events_of(message_id, until="delivered")

    events = await log_of(pipeline, "outgoing", message_id)

    descriptions = [event["eventDescription"] for event in events]
    assert descriptions[0] == "Send message request received"
    assert descriptions.index("Send message completed") < descriptions.index("Message delivered")
    assert events[0]["startTime"] is None
    assert {(event["eventId"], event["source"], event["dest"]) for event in events} == {
        (message_id, APP.phone_number, ANN)
    }
    assert all(event["delay"] == event["endTime"] - event["startTime"] for event in events[1:])


@pytest.mark.holds("get-account-api-event-incoming")
async def test_incoming_log_has_the_callbacks_about_a_message_within_the_time(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_text("Hello")
    await pipeline.events_of(message_id, until="delivered")
    now_ms = pipeline.clock.now_ms()

    events = await log_of(pipeline, "incoming", message_id, start=now_ms - 300_000, end=now_ms + 300_000)
    none = await log_of(pipeline, "incoming", message_id, start=now_ms + 300_000, end=now_ms + 600_000)

    assert [event["eventDescription"] for event in events[:3]] == [
        "Enqueued event sent to the Callback URL",
        "Sent event sent to the Callback URL",
        "Delivered event sent to the Callback URL",
    ]
    assert {(event["eventId"], event["source"], event["dest"]) for event in events} == {(message_id, APP.name, ANN)}
    assert none == []


async def test_incoming_log_finds_the_callbacks_of_a_received_message(pipeline: PipelineHarness) -> None:
    first = await pipeline.reply(ANN, "Where is my order?")
    await pipeline.reply(ANN, "Hello?")
    now_ms = pipeline.clock.now_ms()

    events = await log_of(pipeline, "incoming", first["payload"]["id"], start=now_ms - 300_000, end=now_ms + 300_000)

    assert [event["eventDescription"] for event in events] == ["Text event sent to the Callback URL"]
    assert events[0]["endTime"] >= events[0]["startTime"]


@pytest.mark.holds("get-subscription-one-analytics")
async def test_analytics_count_deliveries_and_failures_by_interval(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_text("Hello")
    await pipeline.events_of(message_id, until="delivered")
    headers = {"Authorization": pipeline.app_token}
    path = f"/partner/app/{APP.id}/subscription"
    [subscription] = (await pipeline.send_request("GET", path, headers=headers)).body["subscriptions"]

    response = await pipeline.send_request("GET", f"{path}/{subscription['id']}/analytics?aggBy=1hr", headers=headers)

    assert response.status == 200, response.raw
    analytics = response.body["analytics"]
    summary = analytics["summary"]
    assert summary["successCount"] >= 3
    assert (summary["failureCount"], summary["failureRate"]) == (0, 0)
    assert summary["maxLatency"] >= summary["averageLatency"] >= 0
    assert sum(point["successCount"] for point in analytics["series"]) == summary["successCount"]
    assert all(point["timestamp"] % INTERVAL_MS == 0 for point in analytics["series"])
