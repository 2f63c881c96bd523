"""The clock of `waypost dev`: read, advanced, frozen, accelerated, and stored."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from tests.dev.conftest import DevStarter, RunningDev
from tests.support.callback_sink import CallbackSink, ReceivedCallback
from tests.support.polling import HANGS_AFTER_S

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


async def test_the_clock_equals_the_machines_until_it_is_changed(start: DevStarter) -> None:
    started = await start()

    clock = await started.control("GET", "clock")

    assert clock["factor"] == 1
    assert not clock["is_frozen"]
    assert abs(clock["ahead_ms"]) < 1000


async def test_a_message_fails_a_day_later_because_the_window_is_closed(start: DevStarter) -> None:
    started = await start()
    await started.travel(DAY_MS + 1000)

    message_id = await started.send_text("too late")
    await started.travel(1000)

    assert await _read_state(started, message_id) == "failed"


async def test_an_advance_responds_when_everything_due_has_happened(start: DevStarter) -> None:
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
    made = await started.request("POST", f"/partner/app/{app_id}/templates", form)

    advance = await started.control("POST", "clock/advance", {"ms": HOUR_MS})

    listed = await started.request("GET", f"/partner/app/{app_id}/templates")
    [status] = [template["status"] for template in listed["templates"] if template["id"] == made["template"]["id"]]
    assert status == "APPROVED"
    assert advance["steps"] >= 1


async def test_the_next_due_time_is_shown_for_service_and_simulator(start: DevStarter) -> None:
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


async def test_a_frozen_clock_does_not_advance_until_it_is_run(start: DevStarter) -> None:
    started = await start()

    frozen = await started.control("POST", "clock/freeze", {})
    later = await started.control("GET", "clock")
    running = await started.control("POST", "clock/run", {"factor": 1000})

    assert frozen["is_frozen"]
    assert later["now_ms"] == frozen["now_ms"]
    assert running["factor"] == 1000


async def test_an_advanced_clock_stays_ahead_after_a_restart(start: DevStarter) -> None:
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
async def test_an_invalid_advance_is_an_error_that_names_its_field(
    start: DevStarter, body: dict[str, object], field: str
) -> None:
    started = await start()

    error = await started.control("POST", "clock/advance", body, status=400)

    assert error["field"] in (field, "body")
    assert field in error["error"]


async def test_an_advance_of_a_day_with_a_failing_receiver_has_few_steps(start: DevStarter) -> None:
    """Callbacks are attempted once a minute; an advance need not stop 1,440 times for that."""
    started = await start()
    sink = CallbackSink()
    await sink.open()
    await _subscribe(started, sink.url)
    await sink.close()
    variables = started.running.variables
    for number in range(40):
        await started.request(
            "POST",
            "/wa/api/v1/msg",
            {
                "source": variables["SOURCE"],
                "destination": f"155500120{number:02d}",
                "src.name": variables["SRC_NAME"],
                "message": json.dumps({"type": "text", "text": "one of many"}),
            },
        )

    advance = await started.control("POST", "clock/advance", {"ms": DAY_MS, "within_ms": 60_000})

    assert advance["is_complete"]
    assert advance["left_ms"] == 0
    assert 20 < advance["steps"] < 150


@pytest.mark.parametrize(("duration_ms", "most_steps"), [(HOUR_MS, 300), (DAY_MS, 600)])
@pytest.mark.parametrize("is_reached", [False, True])
async def test_an_advance_with_many_operators_that_are_away_has_few_steps(
    start: DevStarter, duration_ms: int, most_steps: int, is_reached: bool
) -> None:
    """Probes and retries are on one grid: forty that are away need no more stops than one.

    One that is reached and says that it is down opens no circuit, because the cause may be the only message: that is
    retried instead.
    """
    down = await _serve_outage() if is_reached else None
    base_url = f"http://127.0.0.1:{down.addresses[0][1]}" if down else "http://127.0.0.1:9"
    started = await start()
    await started.control("POST", "clock/freeze", {})
    accounts = [f"away-{number}" for number in range(40)]
    for number, account in enumerate(accounts):
        await _connect_app(started, account, phone_number=f"15559{number:06d}", base_url=base_url)
    for number, account in enumerate(accounts):
        await started.send_text("waits", source=f"15559{number:06d}", app_name=account)

    advance = await started.control("POST", "clock/advance", {"ms": duration_ms, "within_ms": 60_000})

    assert advance["is_complete"]
    if down:
        await down.cleanup()
    assert 10 < advance["steps"] < most_steps


async def test_a_receiver_that_recovers_gets_every_callback_after_an_advance(start: DevStarter) -> None:
    started = await start()
    sink = CallbackSink()
    await sink.open()
    await _subscribe(started, sink.url)
    await sink.close()
    message_id = await started.send_text("while nobody listened")
    await started.travel(20 * HOUR_MS)

    await sink.open()
    await started.travel(12 * HOUR_MS)  # by then its next retry is due, whatever its random delay

    types = [
        callback["payload"]["type"]
        for callback in sink.callbacks
        if message_id in (callback["payload"].get("gsId"), callback["payload"].get("id"))
    ]
    await sink.close()
    assert types == ["enqueued", "sent", "delivered"]


async def test_a_long_advance_responds_in_time_and_can_be_continued(start: DevStarter) -> None:
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


async def test_an_advance_stops_when_its_client_disconnects(start: DevStarter) -> None:
    started = await start()
    await started.control("POST", "clock/freeze", {})
    before_ms = (await started.control("GET", "clock"))["now_ms"]
    sink = CallbackSink()
    await sink.open()
    await _subscribe(started, sink.url)

    def fail_and_then_hang(_: ReceivedCallback) -> int:
        if len(sink.requests) >= 5:  # three attempts open the circuit; the others follow in time
            sink.gate.clear()
        return 500

    sink.choose_status = fail_and_then_hang
    await started.send_text("held up")
    url = f"{started.running.variables['CONTROL_URL']}/clock/advance"
    advancing = asyncio.create_task(started.http.post(url, json={"ms": DAY_MS}))
    await sink.wait_until(lambda: len(sink.requests) == 6)

    advancing.cancel()
    async with asyncio.timeout(HANGS_AFTER_S):  # an advance locks the clock until it ends
        clock = await started.control("POST", "clock/freeze", {})

    sink.gate.set()
    await sink.close()
    assert before_ms < clock["now_ms"] < before_ms + HOUR_MS


async def _serve_outage() -> web.AppRunner:
    """Return an operator that responds to every call that it is down."""

    async def respond(_: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "(#2) Service temporarily unavailable", "code": 2}}, status=503)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", respond)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner


async def _subscribe(started: RunningDev, url: str) -> None:
    app_id = started.running.variables["APP_ID"]
    form = {"modes": "ENQUEUED,SENT,DELIVERED,FAILED", "tag": "clock", "version": "2", "url": url}
    await started.request("POST", f"/partner/app/{app_id}/subscription", form)


async def _read_state(started: RunningDev, message_id: str) -> str:
    variables = started.running.variables
    async with started.http.get(
        f"{variables['ADMIN_URL']}/messages/{message_id}",
        headers={"Authorization": f"Bearer {variables['ADMIN_TOKEN']}"},
    ) as response:
        return (await response.json())["state"]


async def _connect_app(started: RunningDev, account_id: str, *, phone_number: str, base_url: str) -> None:
    """Create an operator account at a URL, with an app of the demonstration's partner."""
    variables = started.running.variables
    headers = {"Authorization": f"Bearer {variables['ADMIN_TOKEN']}"}

    async def admin(method: str, path: str, body: object = None) -> Any:
        async with started.http.request(
            method, f"{variables['ADMIN_URL']}{path}", json=body, headers=headers
        ) as response:
            content = await response.json()
            assert response.status in (200, 201), content
            return content

    partner_id = (await admin("GET", "/partners"))["partners"][0]["id"]
    secrets = {"token": "t-1", "app_id": "1", "app_secret": "s-1", "verify_token": "v-1"}
    await admin("PUT", f"/operator-accounts/{account_id}", {"base_url": base_url, **secrets})
    business = {"id": phone_number, "partner_id": partner_id, "operator_account_id": account_id, "namespace": "n"}
    await admin("POST", "/business-accounts", business)
    app = {"name": account_id, "phone_number": phone_number, "phone_number_id": f"9{phone_number}"}
    await admin("POST", "/apps", {**app, "partner_id": partner_id, "business_account_id": phone_number})
