"""Users who opt in and out: called back once, and listed with when they wrote."""

import asyncio

from tests.support.builders import ANN, APP, is_event
from tests.support.street import API_KEY, Street

KEY = {"apikey": API_KEY}
OPTED = {True: "in", False: "out"}


async def opt(street: Street, *, to: bool, phone: str = ANN) -> None:
    path = f"/sm/api/v1/app/opt/{OPTED[to]}/{APP.name}"
    answer = await street.ask("POST", path, {"user": phone}, KEY)
    assert (answer.status, answer.headers["Deprecation"]) == (202, "@1751241600")


async def users(street: Street) -> list[dict[str, object]]:
    answer = await street.ask("GET", f"/sm/api/v1/users/{APP.name}", None, KEY)
    assert answer.status == 200, answer
    return answer.body["users"]


async def test_each_change_is_called_back_once(street: Street) -> None:
    for to in (True, True, False, False, True):
        await opt(street, to=to)

    await street.sink.wait_until(lambda: len(street.callbacks) >= 3)
    await street.reply(ANN, "Hello?")  # what comes after it was told after it
    told = [one for one in street.callbacks if one["type"] == "user-event"]
    assert [one["payload"] for one in told] == [{"phone": ANN, "type": f"opted-{way}"} for way in ("in", "out", "in")]
    assert {one["version"] for one in told} == {2}


async def test_list_says_when_a_user_opted_and_wrote(street: Street) -> None:
    await opt(street, to=False)
    [silent] = await users(street)
    await street.reply(ANN, "Hello?")

    [written] = await users(street)

    now_ms = street.clock.now_ms()
    assert (silent["optinStatus"], silent["lastMessageTimeStamp"]) == ("OPT_OUT", 0)
    assert (written["countryCode"], written["phoneCode"]) == (ANN[:1], ANN[1:])
    for name in ("optinTimeStamp", "lastMessageTimeStamp"):
        at_ms = written[name]
        assert isinstance(at_ms, int)
        assert now_ms - 60_000 < at_ms <= now_ms


async def test_user_who_stops_marketing_has_opted_out(street: Street) -> None:
    await street.open_window()
    await opt(street, to=True)

    await street.control("POST", f"phones/{ANN}/marketing", {"to": APP.phone_number, "wants": False})

    await street.wait_for_callback(is_event("user-event", type="opted-out"))
    [user] = await users(street)
    assert (user["optinStatus"], user["optinSource"]) == ("OPT_OUT", "USER")


async def test_many_who_opt_in_at_once_are_all_listed(street: Street) -> None:
    phones = [f"1555000{number:04d}" for number in range(2001, 2009)]

    await asyncio.gather(*(opt(street, to=True, phone=one) for one in phones))

    assert {f"1{user['phoneCode']}" for user in await users(street)} == set(phones)


async def test_message_to_the_older_address_goes_the_whole_way(street: Street) -> None:
    await street.open_window()
    form = {"source": APP.phone_number, "destination": ANN, "src.name": APP.name, "message": "Hello"}

    answer = await street.ask("POST", "/sm/api/v1/msg", form, KEY)

    events = await street.events_of(answer.body["messageId"], until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
