"""Calls: a phone calls the number, the partner acts on the call by its API, and gets the events and the prices."""

from typing import Any, Final

import pytest

from tests.support.builders import ANN, APP, OPERATOR
from tests.support.pipeline import PipelineHarness
from tests.support.version_3_receiver import Version3Receiver, field_of, open_version_3_receiver, value_of
from waypost.base.clock import VirtualClock

OFFER: Final = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\na=setup:actpass\r\n"
ANSWER: Final = "v=0\r\no=- 2 1 IN IP4 127.0.0.1\r\ns=-\r\na=setup:active\r\n"


async def post(pipeline: PipelineHarness, path: str, **content: Any) -> dict[str, Any]:
    async with pipeline.http.post(
        f"{pipeline.service_url}/partner/app/{APP.id}/{path}", headers={"Authorization": pipeline.app_token}, **content
    ) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def act(pipeline: PipelineHarness, call_id: str, action: str, **more: Any) -> None:
    voice = {"messaging_product": "whatsapp", "action": action, "call_id": call_id, **more}
    await post(pipeline, "v1/event", json={"type": "voice-event", "voice": voice})


async def start_call(pipeline: PipelineHarness) -> str:
    """Enable calls through the partner API, and call the number as Ann; return the call's id."""
    await post(pipeline, "voice", data={"enable": "true", "iconVisibility": "DEFAULT"})
    body = {"to": APP.phone_number, "sdp": OFFER}
    return (await pipeline.control("POST", f"phones/{ANN}/calls", body))["call_id"]


async def call_of(receiver: Version3Receiver, event: str) -> dict[str, Any]:
    """Return the call in the first callback about this event."""
    return (await receiver.value("calls", event=event))["calls"][0]


@pytest.mark.holds("post-v1-event-call", "post-voice", "event-78", "event-68")
async def test_accepted_call_is_reported_and_priced(make_pipeline: Any) -> None:
    """Both session descriptions are passed on unchanged."""
    pipeline: PipelineHarness = await make_pipeline(clock=VirtualClock())
    async with open_version_3_receiver(pipeline, "VOICE,BILLING") as receiver:
        call_id = await start_call(pipeline)
        started = await call_of(receiver, "connect")
        await act(pipeline, call_id, "accept", session={"sdp_type": "answer", "sdp": ANSWER})
        [shown] = (await pipeline.control("GET", f"phones/{ANN}/calls"))["calls"]
        await pipeline.travel(ms=18_000)
        await act(pipeline, call_id, "terminate")
        ended = await call_of(receiver, "terminate")
        bills = await receiver.sink.wait_for(lambda callback: field_of(callback) == "billing-event", count=2)

    assert (started["id"], started["from"], started["session"]["sdp"]) == (call_id, ANN, OFFER)
    assert (shown["state"], shown["business_sdp"]) == ("connected", ANSWER)
    assert (ended["id"], ended["status"]) == (call_id, "COMPLETED")
    assert ended["duration"] >= 18
    priced = [value_of(bill)["billing"] for bill in bills]
    assert {(bill["deductions"]["source"], bill["deductions"]["billable"]) for bill in priced} == {
        ("whatsapp", "true"),
        ("gupshup", "false"),
    }
    assert all(bill["references"]["duration"] == ended["duration"] for bill in priced)


async def test_call_that_nobody_accepts_ends_by_itself(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(clock=VirtualClock())
    async with open_version_3_receiver(pipeline, "VOICE") as receiver:
        call_id = await start_call(pipeline)
        await pipeline.travel(ms=60_000)
        ended = await call_of(receiver, "terminate")

    assert (ended["id"], ended["status"]) == (call_id, "FAILED")
    assert "duration" not in ended


async def test_sip_server_and_hours_reach_the_operator(pipeline: PipelineHarness) -> None:
    hours = {
        "status": "ENABLED",
        "timezone_id": "Asia/Kolkata",
        "weekly_operating_hours": [{"day_of_week": "MONDAY", "open_time": "0400", "close_time": "1020"}],
    }
    account = {"user": "911", "host": "sip.shop.example", "port": "5071", "secret_key": "k", "force_tcp": False}

    form = {"enable": "true", "mode": "GS_SIP", "metaData": [account], "additionalParams": {"call_hours": hours}}
    done = await post(pipeline, "voice", json=form)

    assert done == {"message": "Whatsapp voice status updated to true", "status": "success"}
    url = f"{pipeline.operator_url}/v25.0/{APP.phone_number_id}/settings"
    async with pipeline.http.get(url, headers={"Authorization": f"Bearer {OPERATOR['token']}"}) as response:
        settings = await response.json()
    assert settings["calling"] == {
        "status": "ENABLED",
        "call_hours": hours,
        "sip": {"status": "ENABLED", "servers": [{"hostname": "sip.shop.example", "port": 5071}]},
    }
