"""The clock of `waypost dev`: read, moved, stopped, run faster, and kept."""

import asyncio
import json

import pytest

from tests.dev.conftest import Started, Starter
from tests.support.callback_sink import CallbackSink, Try
from tests.support.waiting import HANGS_AFTER_S

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


async def test_the_clock_is_the_machines_until_it_is_moved(start: Starter) -> None:
    started = await start()

    clock = await started.control("GET", "clock")

    assert clock["factor"] == 1
    assert not clock["is_frozen"]
    assert abs(clock["ahead_ms"]) < 1000


async def test_a_day_later_the_window_is_closed_and_the_message_fails(start: Starter) -> None:
    started = await start()
    await started.travel(DAY_MS + 1000)

    message_id = await started.send_text("too late")
    await started.travel(1000)

    assert await _state(started, message_id) == "failed"


async def test_an_advance_answers_when_everything_on_the_way_has_happened(start: Starter) -> None:
    started = await start()
    await started.control("POST", "clock/freeze", {})
    form = {
        "elementName": "a_day",
        "languageCode": "en_US",
        "category": "UTILITY",
        "templateType": "TEXT",
        "vertical": "Days",
        "content": "It is a day.",
        "example": "It is a day.",
    }
    app_id = started.running.variables["APP_ID"]
    made = await started.ask("POST", f"/partner/app/{app_id}/templates", form)

    told = await started.control("POST", "clock/advance", {"ms": HOUR_MS})

    listed = await started.ask("GET", f"/partner/app/{app_id}/templates")
    [status] = [one["status"] for one in listed["templates"] if one["id"] == made["template"]["id"]]
    assert status == "APPROVED"
    assert told["steps"] >= 1


async def test_what_is_due_next_is_shown_for_each_side(start: Starter) -> None:
    started = await start()
    await started.control("POST", "clock/freeze", {})
    await started.control("PUT", "settings", {"deliver_after_ms": 60_000})
    now_ms = (await started.control("GET", "clock"))["now_ms"]
    await started.send_text("in a minute")
    await started.travel(0)

    due = await started.control("GET", "clock/due")

    by_name = {side["name"]: side["next_due_ms"] for side in due["sides"]}
    assert due["now_ms"] == now_ms
    assert by_name["the simulator"] == now_ms + 60_000
    assert set(by_name) == {"the service", "the simulator"}


async def test_a_frozen_clock_stands_still_and_goes_on_when_it_runs(start: Starter) -> None:
    started = await start()

    frozen = await started.control("POST", "clock/freeze", {})
    later = await started.control("GET", "clock")
    running = await started.control("POST", "clock/run", {"factor": 1000})

    assert frozen["is_frozen"]
    assert later["now_ms"] == frozen["now_ms"]
    assert running["factor"] == 1000


async def test_a_moved_clock_goes_on_after_a_restart(start: Starter) -> None:
    started = await start()
    before = await started.control("POST", "clock/advance", {"ms": 40 * DAY_MS})
    await start.stop(started)

    again = await start()

    after = await again.control("GET", "clock")
    assert after["now_ms"] >= before["now_ms"]
    assert again.running.ahead_ms >= 40 * DAY_MS - 1000


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "ms"),
        ({"ms": 1, "to_ms": 1}, "ms"),
        ({"to_ms": 1}, "to_ms"),
        ({"ms": -1}, "ms"),
        ({"to_ms": 32_503_680_000_001}, "to_ms"),
        ({"ms": "1"}, "ms"),
        ({"days": 1}, "days"),
    ],
)
async def test_a_journey_that_cannot_be_is_refused_by_its_field(
    start: Starter, body: dict[str, object], field: str
) -> None:
    started = await start()

    refusal = await started.control("POST", "clock/advance", body, status=400)

    assert refusal["field"] in (field, "body")
    assert field in refusal["error"]


async def test_a_day_with_a_receiver_that_is_down_has_few_stops(start: Starter) -> None:
    """It is tried once a minute in vain; a clock that is moved need not stop 1,440 times for that."""
    started = await start()
    sink = CallbackSink()
    await sink.open()
    await _subscribe(started, sink.url)
    await sink.close()
    known = started.running.variables
    for number in range(40):
        await started.ask(
            "POST",
            "/wa/api/v1/msg",
            {
                "source": known["SOURCE"],
                "destination": f"155500120{number:02d}",
                "src.name": known["SRC_NAME"],
                "message": json.dumps({"type": "text", "text": "one of many"}),
            },
        )

    journey = await started.control("POST", "clock/advance", {"ms": DAY_MS, "within_ms": 60_000})

    assert journey["is_complete"]
    assert journey["left_ms"] == 0
    assert 20 < journey["steps"] < 150


async def test_a_receiver_that_is_back_gets_everything_after_a_journey(start: Starter) -> None:
    started = await start()
    sink = CallbackSink()
    await sink.open()
    await _subscribe(started, sink.url)
    await sink.close()
    message_id = await started.send_text("while nobody listened")
    await started.travel(20 * HOUR_MS)

    await sink.open()
    await started.travel(12 * HOUR_MS)  # by then its next retry is due, whatever chance made of it

    types = [
        one["payload"]["type"]
        for one in sink.callbacks
        if message_id in (one["payload"].get("gsId"), one["payload"].get("id"))
    ]
    await sink.close()
    assert types == ["enqueued", "sent", "delivered"]


async def test_a_long_journey_answers_in_time_and_can_be_continued(start: Starter) -> None:
    started = await start()
    await started.control("POST", "clock/freeze", {})
    await started.send_text("on the way")
    before_ms = (await started.control("GET", "clock"))["now_ms"]

    part = await started.control("POST", "clock/advance", {"ms": DAY_MS, "within_ms": 1})
    rest = await started.control("POST", "clock/advance", {"ms": part["left_ms"]})

    assert not part["is_complete"]
    assert part["now_ms"] + part["left_ms"] == before_ms + DAY_MS
    assert rest["is_complete"]
    assert rest["now_ms"] == before_ms + DAY_MS


async def test_a_journey_ends_where_it_is_when_its_client_leaves(start: Starter) -> None:
    started = await start()
    await started.control("POST", "clock/freeze", {})
    before_ms = (await started.control("GET", "clock"))["now_ms"]
    sink = CallbackSink()
    await sink.open()
    await _subscribe(started, sink.url)

    def fail_and_then_hang(_: Try) -> int:
        if len(sink.tries) >= 5:  # three open the circuit; the others come as time goes on
            sink.gate.clear()
        return 500

    sink.answers = fail_and_then_hang
    await started.send_text("held up")
    url = f"{started.running.variables['CONTROL_URL']}/clock/advance"
    advancing = asyncio.create_task(started.http.post(url, json={"ms": DAY_MS}))
    await sink.wait_until(lambda: len(sink.tries) == 6)

    advancing.cancel()
    async with asyncio.timeout(HANGS_AFTER_S):  # a journey keeps others from the clock until it ends
        clock = await started.control("POST", "clock/freeze", {})

    sink.gate.set()
    await sink.close()
    assert before_ms < clock["now_ms"] < before_ms + HOUR_MS


async def _subscribe(started: Started, url: str) -> None:
    app_id = started.running.variables["APP_ID"]
    form = {"modes": "ENQUEUED,SENT,DELIVERED,FAILED", "tag": "clock", "version": "2", "url": url}
    await started.ask("POST", f"/partner/app/{app_id}/subscription", form)


async def _state(started: Started, message_id: str) -> str:
    known = started.running.variables
    async with started.http.get(
        f"{known['ADMIN_URL']}/messages/{message_id}", headers={"Authorization": f"Bearer {known['ADMIN_TOKEN']}"}
    ) as answer:
        return (await answer.json())["state"]
