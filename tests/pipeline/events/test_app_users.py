"""Users who opt in and out: each change is called back once, and the list has the times."""

import asyncio

from tests.support.builders import ANN, APP, is_event
from tests.support.pipeline import API_KEY, PipelineHarness

KEY = {"apikey": API_KEY}
DIRECTIONS = {True: "in", False: "out"}


async def set_opt_in(pipeline: PipelineHarness, *, to: bool, phone: str = ANN) -> None:
    path = f"/sm/api/v1/app/opt/{DIRECTIONS[to]}/{APP.name}"
    response = await pipeline.send_request("POST", path, {"user": phone}, KEY)
    assert (response.status, response.headers["Deprecation"]) == (202, "@1751241600")


async def list_users(pipeline: PipelineHarness) -> list[dict[str, object]]:
    response = await pipeline.send_request("GET", f"/sm/api/v1/users/{APP.name}", None, KEY)
    assert response.status == 200, response
    return response.body["users"]


async def test_each_change_is_called_back_once(pipeline: PipelineHarness) -> None:
    for to in (True, True, False, False, True):
        await set_opt_in(pipeline, to=to)

    await pipeline.sink.wait_until(lambda: len(pipeline.callbacks) >= 3)
    await pipeline.reply(ANN, "Hello?")  # its callback is delivered after those of the changes
    user_events = [callback for callback in pipeline.callbacks if callback["type"] == "user-event"]
    assert [event["payload"] for event in user_events] == [
        {"phone": ANN, "type": f"opted-{direction}"} for direction in ("in", "out", "in")
    ]
    assert {event["version"] for event in user_events} == {2}


async def test_list_has_the_times_when_a_user_opted_and_wrote(pipeline: PipelineHarness) -> None:
    await set_opt_in(pipeline, to=False)
    [silent] = await list_users(pipeline)
    await pipeline.reply(ANN, "Hello?")

    [written] = await list_users(pipeline)

    now_ms = pipeline.clock.now_ms()
    assert (silent["optinStatus"], silent["lastMessageTimeStamp"]) == ("OPT_OUT", 0)
    assert (written["countryCode"], written["phoneCode"]) == (ANN[:1], ANN[1:])
    for name in ("optinTimeStamp", "lastMessageTimeStamp"):
        at_ms = written[name]
        assert isinstance(at_ms, int)
        assert now_ms - 60_000 < at_ms <= now_ms


async def test_user_who_stops_marketing_has_opted_out(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    await set_opt_in(pipeline, to=True)

    await pipeline.control("POST", f"phones/{ANN}/marketing", {"to": APP.phone_number, "wants": False})

    await pipeline.wait_for_callback(is_event("user-event", type="opted-out"))
    [user] = await list_users(pipeline)
    assert (user["optinStatus"], user["optinSource"]) == ("OPT_OUT", "USER")


async def test_many_who_opt_in_at_once_are_all_listed(pipeline: PipelineHarness) -> None:
    phones = [f"1555000{number:04d}" for number in range(2001, 2009)]

    await asyncio.gather(*(set_opt_in(pipeline, to=True, phone=phone) for phone in phones))

    assert {f"1{user['phoneCode']}" for user in await list_users(pipeline)} == set(phones)


async def test_message_to_the_older_endpoint_is_sent_and_delivered(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    form = {"source": APP.phone_number, "destination": ANN, "src.name": APP.name, "message": "Hello"}

    response = await pipeline.send_request("POST", "/sm/api/v1/msg", form, KEY)

    events = await pipeline.events_of(response.body["messageId"], until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
