"""Calls from phones: the webhooks about their start and end, the business's actions, and the setting `calling`."""

from typing import Any

import pytest

from tests.simulator.conftest import ANN, BUSINESS, NUMBER_ID, Bench
from tests.support.manual_clock import ManualClock

SETTINGS = f"{NUMBER_ID}/settings"
SDP = "v=0\r\no=- 7 1 IN IP4 127.0.0.1\r\ns=-\r\na=setup:active\r\n"
MONDAY = {"day_of_week": "MONDAY", "open_time": "0800", "close_time": "1200"}
HOLIDAY = {"date": "2999-01-01", "start_time": "0000", "end_time": "2359"}
HOURS = {
    "status": "ENABLED",
    "timezone_id": "Asia/Kolkata",
    "weekly_operating_hours": [MONDAY, {**MONDAY, "open_time": "1300", "close_time": "1800"}],
    "holiday_schedule": [HOLIDAY],
}


async def enable_calling(bench: Bench, **calling: Any) -> None:
    response = await bench.graph("POST", SETTINGS, json={"calling": {"status": "ENABLED", **calling}})
    assert response.status == 200, response.body


async def start_call(bench: Bench, **more: Any) -> str:
    """Call the business as Ann and return the call's id, once the business has its webhook."""
    before = len(bench.receiver.changes("calls"))
    started = await bench.control("POST", f"phones/{ANN}/calls", {"to": BUSINESS, **more})
    assert started.status == 200, started.body
    await bench.receiver.wait_until(lambda: len(bench.receiver.changes("calls")) > before)
    return started.body["call_id"]


async def act(bench: Bench, call_id: str, action: str, **more: Any) -> tuple[int, Any]:
    """Act on a call as the business; return the status and the error's code, or the body."""
    body = {"messaging_product": "whatsapp", "call_id": call_id, "action": action, **more}
    response = await bench.graph("POST", f"{NUMBER_ID}/calls", json=body)
    return response.status, response.body.get("error", {}).get("code") or response.body


def answer(sdp: str = SDP) -> dict[str, Any]:
    return {"session": {"sdp_type": "answer", "sdp": sdp}}


async def ended_call(bench: Bench) -> dict[str, Any]:
    """Return the last webhook about an end."""

    def find_end() -> dict[str, Any] | None:
        calls = [call for change in bench.receiver.changes("calls") for call in change["calls"]]
        return calls[-1] if calls and calls[-1]["event"] == "terminate" else None

    return await bench.receiver.wait_until(find_end)


async def state_of_call(bench: Bench) -> dict[str, Any]:
    [call] = (await bench.control("GET", f"phones/{ANN}/calls")).body["calls"]
    return call


DONE = (200, {"messaging_product": "whatsapp", "success": True})


async def test_call_is_reported_with_the_phones_sdp(bench: Bench) -> None:
    await enable_calling(bench)
    call_id = await start_call(bench, sdp=SDP)

    [value] = bench.receiver.changes("calls")
    [call] = value["calls"]
    assert value["metadata"] == {"display_phone_number": BUSINESS, "phone_number_id": NUMBER_ID}
    assert value["contacts"][0]["wa_id"] == ANN
    assert type(call.pop("timestamp")) is str
    assert call.pop("from_user_id", "US.").startswith("US.")
    assert call == {
        "id": call_id,
        "from": ANN,
        "to": BUSINESS,
        "event": "connect",
        "direction": "USER_INITIATED",
        "session": {"sdp_type": "offer", "sdp": SDP},
    }
    assert call_id.startswith("wacid.")


async def test_accepted_call_is_completed_with_its_duration(slow: Bench, clock: ManualClock) -> None:
    await enable_calling(slow)
    call_id = await start_call(slow)

    assert await act(slow, call_id, "pre_accept", **answer()) == DONE
    assert (await state_of_call(slow))["state"] == "pre_accepted"
    assert await act(slow, call_id, "accept", **answer(), biz_opaque_callback_data="ticket 7") == DONE
    connected = await state_of_call(slow)
    clock.advance(ms=90_000)
    assert await act(slow, call_id, "terminate") == DONE

    ended = await ended_call(slow)
    assert (connected["state"], connected["business_sdp"]) == ("connected", SDP)
    assert (ended["status"], ended["duration"]) == ("COMPLETED", 90)
    assert int(ended["end_time"]) - int(ended["start_time"]) == 90
    assert ended["biz_opaque_callback_data"] == "ticket 7"
    assert [call["event"] for change in slow.receiver.changes("calls") for call in change["calls"]] == [
        "connect",
        "terminate",
    ]


@pytest.mark.parametrize("side", ["reject", "terminate", "phone"])
async def test_call_that_was_not_accepted_has_failed(bench: Bench, side: str) -> None:
    await enable_calling(bench)
    call_id = await start_call(bench)

    if side == "phone":
        assert (await bench.control("DELETE", f"phones/{ANN}/calls/{call_id}")).status == 200
    else:
        assert await act(bench, call_id, side) == DONE

    ended = await ended_call(bench)
    assert ended["status"] == "FAILED"
    assert not {"start_time", "end_time", "duration"} & ended.keys()
    assert (await state_of_call(bench))["state"] == "ended"


async def test_unaccepted_call_ends_after_a_minute(slow: Bench, clock: ManualClock) -> None:
    await enable_calling(slow)
    call_id = await start_call(slow)

    clock.advance(ms=60_000)
    ended = await ended_call(slow)

    assert (ended["id"], ended["status"]) == (call_id, "FAILED")
    assert await act(slow, call_id, "accept", **answer()) == (400, 100)
    assert (await slow.control("DELETE", f"phones/{ANN}/calls/{call_id}")).status == 409


async def test_sdp_of_accept_must_be_that_of_pre_accept(bench: Bench) -> None:
    await enable_calling(bench)
    call_id = await start_call(bench)
    await act(bench, call_id, "pre_accept", **answer())

    assert await act(bench, call_id, "accept", **answer(SDP + "a=x\r\n")) == (400, 100)
    assert await act(bench, call_id, "accept", **answer()) == DONE
    assert await act(bench, call_id, "accept", **answer()) == (400, 100)
    assert await act(bench, call_id, "reject") == (400, 100)


@pytest.mark.parametrize(
    "body",
    [
        {"action": "accept"},
        {"action": "accept", "session": {"sdp_type": "offer", "sdp": SDP}},
        {"action": "accept", "session": {"sdp_type": "answer"}},
        {"action": "accept", "biz_opaque_callback_data": 7, **answer()},
        {"action": "connect", **answer()},
        {"action": "reject", "call_id": "wacid.unknown"},
        {"action": "reject", "call_id": 7},
        {"action": "reject", "messaging_product": "sms"},
    ],
    ids=str,
)
async def test_invalid_action_is_rejected(bench: Bench, body: dict[str, Any]) -> None:
    await enable_calling(bench)
    call_id = await start_call(bench)

    whole = {"messaging_product": "whatsapp", "call_id": call_id, **body}
    response = await bench.graph("POST", f"{NUMBER_ID}/calls", json=whole)

    assert (response.status, response.error["code"]) == (400, 100)
    assert (await state_of_call(bench))["state"] == "ringing"


async def test_number_without_calling_takes_no_calls(bench: Bench) -> None:
    refused = await bench.control("POST", f"phones/{ANN}/calls", {"to": BUSINESS})

    assert refused.status == 409
    assert await act(bench, "wacid.x", "reject") == (401, 138000)


async def test_number_with_sip_takes_no_calls_by_webhook(bench: Bench) -> None:
    server = {"hostname": "sip.shop.example", "port": 5061}
    await enable_calling(bench, sip={"status": "ENABLED", "servers": [server]})

    assert (await bench.control("POST", f"phones/{ANN}/calls", {"to": BUSINESS})).status == 409
    assert await act(bench, "wacid.x", "reject") == (400, 131055)


async def test_phone_has_one_call_with_a_business(bench: Bench) -> None:
    await enable_calling(bench)
    call_id = await start_call(bench)

    assert (await bench.control("POST", f"phones/{ANN}/calls", {"to": BUSINESS})).status == 409
    await act(bench, call_id, "reject")
    await ended_call(bench)
    assert await start_call(bench) != call_id
    assert await act(bench, call_id, "terminate") == (400, 100)


async def test_other_phones_end_no_call(bench: Bench) -> None:
    await enable_calling(bench)
    call_id = await start_call(bench)

    assert (await bench.control("DELETE", f"phones/15557654321/calls/{call_id}")).status == 404
    assert (await state_of_call(bench))["state"] == "ringing"


async def test_offline_or_blocking_phone_calls_nobody(bench: Bench) -> None:
    await enable_calling(bench)
    await bench.control("POST", f"phones/{ANN}/block", {"to": BUSINESS, "blocks": True})

    assert (await bench.control("POST", f"phones/{ANN}/calls", {"to": BUSINESS})).status == 409


async def test_calls_survive_a_restart(bench: Bench) -> None:
    await enable_calling(bench)
    call_id = await start_call(bench)

    await bench.restart()

    assert await act(bench, call_id, "accept", **answer()) == DONE


async def test_absent_members_of_calling_stay(bench: Bench) -> None:
    await enable_calling(bench, call_hours=HOURS, callback_permission_status="ENABLED")
    await bench.graph("POST", SETTINGS, json={"calling": {"call_icon_visibility": "DISABLE_ALL"}})

    shown = await bench.graph("GET", SETTINGS)

    assert shown.body["calling"] == {
        "status": "ENABLED",
        "call_hours": HOURS,
        "callback_permission_status": "ENABLED",
        "call_icon_visibility": "DISABLE_ALL",
    }


@pytest.mark.parametrize(
    "calling",
    [
        {"status": "on"},
        {"call_icon_visibility": "HIDDEN"},
        {"callback_permission_status": True},
        {"call_hours": []},
        {"call_hours": {**HOURS, "status": None}},
        {"call_hours": {**HOURS, "timezone_id": "Mars/Base"}},
        {"call_hours": {**HOURS, "timezone_id": "../etc/passwd"}},
        {"call_hours": {**HOURS, "weekly_operating_hours": []}},
        {"call_hours": {**HOURS, "weekly_operating_hours": [{**MONDAY, "day_of_week": "Monday"}]}},
        {"call_hours": {**HOURS, "weekly_operating_hours": [{**MONDAY, "close_time": "0700"}]}},
        {"call_hours": {**HOURS, "weekly_operating_hours": [{**MONDAY, "close_time": "24:00"}]}},
        {"call_hours": {**HOURS, "weekly_operating_hours": [MONDAY, {**MONDAY, "open_time": "1159"}]}},
        {
            "call_hours": {
                **HOURS,
                "weekly_operating_hours": [
                    {**MONDAY, "open_time": f"0{hour}00", "close_time": f"0{hour}30"} for hour in (1, 2, 3)
                ],
            }
        },
        {"call_hours": {**HOURS, "holiday_schedule": [{**HOLIDAY, "date": "2001-01-01"}]}},
        {"call_hours": {**HOURS, "holiday_schedule": [{**HOLIDAY, "date": "2999-02-30"}]}},
        {"call_hours": {**HOURS, "holiday_schedule": [HOLIDAY] * 21}},
        {"sip": "on"},
        {"sip": {"status": "ENABLED"}},
        {"sip": {"status": "ENABLED", "servers": [{"hostname": "a.example", "port": "5061"}]}},
    ],
    ids=str,
)
async def test_invalid_calling_is_rejected(bench: Bench, calling: dict[str, Any]) -> None:
    rejected = await bench.graph("POST", SETTINGS, json={"calling": calling})

    assert (rejected.status, rejected.error["code"]) == (400, 100)
    assert (await bench.graph("GET", SETTINGS)).body == {}
