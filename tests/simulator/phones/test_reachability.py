"""Unreachable phones: offline phones, blocked businesses and message lifetimes."""

import asyncio
from typing import Any

import pytest

from tests.simulator.conftest import ANN, BUSINESS, Bench
from tests.support.manual_clock import ManualClock
from waypost.simulator.templates.template import SimulatedTemplate, lifetime_ms

OFFLINE = {"is_offline": True}
ONLINE = {"is_offline": False}
DAY_MS = 24 * 3600 * 1000
JsonObject = dict[str, Any]


async def change_phone(bench: Bench, changes: JsonObject) -> JsonObject:
    response = await bench.control("PUT", f"phones/{ANN}", changes)
    assert response.status == 200, response.body
    return response.body


def status_names(bench: Bench, wamid: str) -> list[str]:
    return [status["status"] for status in bench.receiver.statuses(wamid)]


async def assert_statuses(bench: Bench, wamid: str, statuses: list[str]) -> None:
    await bench.receiver.wait_until(lambda: len(status_names(bench, wamid)) >= len(statuses))
    assert status_names(bench, wamid) == statuses


async def test_phone_gets_waiting_messages_in_order_when_back_online(bench: Bench) -> None:
    await bench.send_from_phone()
    await change_phone(bench, {**OFFLINE, "read_after_ms": 0})
    wamids = [await bench.send_text(f"No {nth}") for nth in range(3)]
    for wamid in wamids:
        await assert_statuses(bench, wamid, ["sent"])
    waiting = (await bench.control("GET", f"phones/{ANN}")).body["waiting"]

    back = await change_phone(bench, ONLINE)

    for wamid in wamids:
        await assert_statuses(bench, wamid, ["sent", "delivered", "read"])
    delivered = [status["id"] for status in bench.receiver.statuses() if status["status"] == "delivered"]
    assert delivered == wamids
    assert (waiting, back["waiting"]) == (3, 0)
    assert [shown["text"] for shown in await bench.inbox()][1:] == ["No 0", "No 1", "No 2"]
    last = bench.receiver.statuses(wamids[0])
    assert last[1]["pricing"] == last[0]["pricing"]


async def test_undelivered_messages_and_planned_reads_wait_while_offline(slow: Bench, clock: ManualClock) -> None:
    await slow.send_from_phone()
    await change_phone(slow, {"read_after_ms": 5000})
    delivered = await slow.send_text("Delivered, not read")
    clock.advance(ms=1000)
    await assert_statuses(slow, delivered, ["sent", "delivered"])
    undelivered = await slow.send_text("Under way")

    await change_phone(slow, OFFLINE)
    clock.advance(ms=60_000)
    inbox = await slow.inbox()
    before = (status_names(slow, delivered), len(inbox))
    await change_phone(slow, ONLINE)
    await assert_statuses(slow, undelivered, ["sent", "delivered"])
    clock.advance(ms=5000)

    await assert_statuses(slow, undelivered, ["sent", "delivered", "read"])
    await assert_statuses(slow, delivered, ["sent", "delivered", "read"])
    assert before == (["sent", "delivered"], 2)


async def send_code(bench: Bench) -> str:
    """Send a one-time code, which expires after ten minutes, and return the message id."""
    buttons = {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]}
    await bench.seed_template([{"type": "BODY"}, buttons], category="AUTHENTICATION", name="code")
    parameter = {"type": "text", "text": "1234"}
    filled = [
        {"type": "body", "parameters": [parameter]},
        {"type": "button", "sub_type": "url", "index": "0", "parameters": [parameter]},
    ]
    response = await bench.send_template(filled, name="code")
    return response.body["messages"][0]["id"]


async def test_expired_message_is_dropped_without_a_status(slow: Bench, clock: ManualClock) -> None:
    await slow.send_from_phone()
    await change_phone(slow, OFFLINE)
    code = await send_code(slow)
    notice = await slow.send_text("Good for thirty days")
    clock.advance(ms=11 * 60_000)

    await change_phone(slow, ONLINE)

    await assert_statuses(slow, notice, ["sent", "delivered"])
    assert status_names(slow, code) == ["sent"]
    assert [shown["wamid"] for shown in await slow.inbox()][1:] == [notice]


async def test_message_that_would_be_delivered_too_late_stays_sent(slow: Bench, clock: ManualClock) -> None:
    await change_phone(slow, {"deliver_after_ms": 11 * 60_000})

    code = await send_code(slow)

    await assert_statuses(slow, code, ["sent"])
    await slow.wait_until_drained()
    clock.advance(ms=DAY_MS)
    assert await slow.inbox() == []


async def test_offline_phone_cannot_act(bench: Bench) -> None:
    await bench.send_from_phone()
    await change_phone(bench, OFFLINE)

    responses = [
        await bench.control("POST", f"phones/{ANN}/messages", {"to": BUSINESS, "text": "x"}),
        await bench.control("POST", f"phones/{ANN}/read"),
        await bench.control("POST", f"phones/{ANN}/number", {"to": "15550009999"}),
    ]

    assert [(response.status, response.body["rule"]) for response in responses] == [(409, "is offline")] * 3


async def test_offline_phone_gets_its_messages_after_a_restart(bench: Bench) -> None:
    await bench.send_from_phone()
    await change_phone(bench, OFFLINE)
    wamid = await bench.send_text()

    await bench.restart()
    await change_phone(bench, ONLINE)

    await bench.receiver.wait_until(lambda: "delivered" in status_names(bench, wamid))
    assert [shown["text"] for shown in await bench.inbox()] == ["Hi", "Hello"]


async def test_nothing_is_lost_while_a_phone_toggles_between_online_and_offline(bench: Bench) -> None:
    await bench.send_from_phone()
    wamids: list[str] = []

    async def send_messages() -> None:
        wamids.extend([await bench.send_text(f"No {nth}") for nth in range(40)])

    async def toggle_offline() -> None:
        for _ in range(10):
            await change_phone(bench, OFFLINE)
            await change_phone(bench, ONLINE)

    await asyncio.gather(send_messages(), toggle_offline())

    assert len(wamids) == 40
    for wamid in wamids:
        await assert_statuses(bench, wamid, ["sent", "delivered"])


async def test_message_of_a_blocked_business_stays_sent(bench: Bench) -> None:
    await bench.send_from_phone()
    await bench.control("POST", f"phones/{ANN}/block", {"to": BUSINESS, "blocks": True})
    lost = await bench.send_text("Never seen")
    blocked = await bench.control("POST", f"phones/{ANN}/messages", {"to": BUSINESS, "text": "x"})

    await bench.control("POST", f"phones/{ANN}/block", {"to": BUSINESS, "blocks": False})
    received = await bench.send_text("Seen")

    await assert_statuses(bench, received, ["sent", "delivered"])
    assert status_names(bench, lost) == ["sent"]
    assert (blocked.status, blocked.body["field"]) == (409, "to")
    assert [shown["text"] for shown in await bench.inbox()] == ["Hi", "Seen"]


async def test_blocking_stops_undelivered_messages(slow: Bench, clock: ManualClock) -> None:
    await slow.send_from_phone()
    wamid = await slow.send_text()
    await assert_statuses(slow, wamid, ["sent"])

    await slow.control("POST", f"phones/{ANN}/block", {"to": BUSINESS, "blocks": True})
    clock.advance(ms=2000)

    await slow.wait_until_drained()
    assert [shown["text"] for shown in await slow.inbox()] == ["Hi"]


# fmt: off
LIFETIMES: list[tuple[str, int | None, int]] = [
    # category         own_s   lives_ms
    ("AUTHENTICATION", None,   600_000),
    ("UTILITY",        None,   30 * DAY_MS),
    ("MARKETING",      None,   30 * DAY_MS),
    ("AUTHENTICATION", 30,     30_000),
    ("UTILITY",        43_200, 43_200_000),
    ("AUTHENTICATION", -1,     30 * DAY_MS),
]
# fmt: on


@pytest.mark.parametrize(("category", "own_s", "expected_ms"), LIFETIMES)
def test_template_decides_the_lifetime_of_its_messages(category: str, own_s: int | None, expected_ms: int) -> None:
    template = SimulatedTemplate(
        template_id="1",
        waba_id="2",
        name="a",
        language="en",
        category=category,
        components=[],
        message_send_ttl_seconds=own_s,
    )

    assert lifetime_ms(template) == expected_ms
    assert lifetime_ms(None) == 30 * DAY_MS
