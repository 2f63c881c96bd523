"""The clock of `waypost dev`: read, moved, stopped, run faster, and kept."""

import pytest

from tests.dev.conftest import Started, Starter

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
    await started.control("POST", "clock/advance", {"ms": DAY_MS + 1000})

    message_id = await started.send_text("too late")
    await started.control("POST", "clock/advance", {"ms": 1000})

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
    await started.control("POST", "clock/advance", {"ms": 0})

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


async def _state(started: Started, message_id: str) -> str:
    known = started.running.variables
    async with started.http.get(
        f"{known['ADMIN_URL']}/messages/{message_id}",
        headers={"Authorization": f"Bearer {known['ADMIN_TOKEN']}"},
    ) as answer:
        return (await answer.json())["state"]
