"""Users who opt in and out: called back once, and listed with when they wrote."""

import asyncio

from tests.support.builders import ANN, APP, is_event
from tests.support.pipeline import API_KEY, PipelineHarness

KEY = {"apikey": API_KEY}
OPTED = {True: "in", False: "out"}


async def opt(pipeline: PipelineHarness, *, to: bool, phone: str = ANN) -> None:
    path = f"/sm/api/v1/app/opt/{OPTED[to]}/{APP.name}"
    answer = await pipeline.ask("POST", path, {"user": phone}, KEY)
    assert (answer.status, answer.headers["Deprecation"]) == (202, "@1751241600")


async def users(pipeline: PipelineHarness) -> list[dict[str, object]]:
    answer = await pipeline.ask("GET", f"/sm/api/v1/users/{APP.name}", None, KEY)
    assert answer.status == 200, answer
    return answer.body["users"]


async def test_each_change_is_called_back_once(pipeline: PipelineHarness) -> None:
    for to in (True, True, False, False, True):
        await opt(pipeline, to=to)

    await pipeline.sink.wait_until(lambda: len(pipeline.callbacks) >= 3)
    await pipeline.reply(ANN, "Hello?")  # what comes after it was told after it
    told = [one for one in pipeline.callbacks if one["type"] == "user-event"]
    assert [one["payload"] for one in told] == [{"phone": ANN, "type": f"opted-{way}"} for way in ("in", "out", "in")]
    assert {one["version"] for one in told} == {2}


async def test_list_says_when_a_user_opted_and_wrote(pipeline: PipelineHarness) -> None:
    await opt(pipeline, to=False)
    [silent] = await users(pipeline)
    await pipeline.reply(ANN, "Hello?")

    [written] = await users(pipeline)

    now_ms = pipeline.clock.now_ms()
    assert (silent["optinStatus"], silent["lastMessageTimeStamp"]) == ("OPT_OUT", 0)
    assert (written["countryCode"], written["phoneCode"]) == (ANN[:1], ANN[1:])
    for name in ("optinTimeStamp", "lastMessageTimeStamp"):
        at_ms = written[name]
        assert isinstance(at_ms, int)
        assert now_ms - 60_000 < at_ms <= now_ms


async def test_user_who_stops_marketing_has_opted_out(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    await opt(pipeline, to=True)

    await pipeline.control("POST", f"phones/{ANN}/marketing", {"to": APP.phone_number, "wants": False})

    await pipeline.wait_for_callback(is_event("user-event", type="opted-out"))
    [user] = await users(pipeline)
    assert (user["optinStatus"], user["optinSource"]) == ("OPT_OUT", "USER")


async def test_many_who_opt_in_at_once_are_all_listed(pipeline: PipelineHarness) -> None:
    phones = [f"1555000{number:04d}" for number in range(2001, 2009)]

    await asyncio.gather(*(opt(pipeline, to=True, phone=one) for one in phones))

    assert {f"1{user['phoneCode']}" for user in await users(pipeline)} == set(phones)


async def test_message_to_the_older_address_goes_the_whole_way(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    form = {"source": APP.phone_number, "destination": ANN, "src.name": APP.name, "message": "Hello"}

    answer = await pipeline.ask("POST", "/sm/api/v1/msg", form, KEY)

    events = await pipeline.events_of(answer.body["messageId"], until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
