"""Phones out of reach: offline and back, and businesses that were blocked."""

import asyncio
from typing import Any

import pytest

from tests.simulator.conftest import ANN, BUSINESS, Bench
from waypost.base.clock import ManualClock
from waypost.simulator.phones.conditions import lifetime_ms
from waypost.simulator.templates.template import SimulatedTemplate

OFFLINE = {"is_offline": True}
ONLINE = {"is_offline": False}
DAY_MS = 24 * 3600 * 1000
Part = dict[str, Any]


async def put(bench: Bench, changes: Part) -> Part:
    answer = await bench.control("PUT", f"phones/{ANN}", changes)
    assert answer.status == 200, answer.body
    return answer.body


def names(bench: Bench, wamid: str) -> list[str]:
    return [one["status"] for one in bench.receiver.statuses(wamid)]


async def told(bench: Bench, wamid: str, statuses: list[str]) -> None:
    await bench.receiver.until(lambda: len(names(bench, wamid)) >= len(statuses))
    assert names(bench, wamid) == statuses


async def test_offline_phone_gets_everything_in_order_when_it_is_back(bench: Bench) -> None:
    await bench.let_write()
    await put(bench, {**OFFLINE, "read_after_ms": 0})
    wamids = [await bench.send_text(f"No {nth}") for nth in range(3)]
    for wamid in wamids:
        await told(bench, wamid, ["sent"])
    waiting = (await bench.control("GET", f"phones/{ANN}")).body["waiting"]

    back = await put(bench, ONLINE)

    for wamid in wamids:
        await told(bench, wamid, ["sent", "delivered", "read"])
    delivered = [one["id"] for one in bench.receiver.statuses() if one["status"] == "delivered"]
    assert delivered == wamids
    assert (waiting, back["waiting"]) == (3, 0)
    assert [shown["text"] for shown in await bench.inbox()][1:] == ["No 0", "No 1", "No 2"]
    last = bench.receiver.statuses(wamids[0])
    assert last[1]["pricing"] == last[0]["pricing"]


async def test_what_is_on_its_way_waits_too(slow: Bench, manual: ManualClock) -> None:
    await slow.let_write()
    await put(slow, {"read_after_ms": 5000})
    delivered = await slow.send_text("Delivered, not read")
    manual.advance(ms=1000)
    await told(slow, delivered, ["sent", "delivered"])
    under_way = await slow.send_text("Under way")

    await put(slow, OFFLINE)
    manual.advance(ms=60_000)
    inbox = await slow.inbox()
    before = (names(slow, delivered), len(inbox))
    await put(slow, ONLINE)
    await told(slow, under_way, ["sent", "delivered"])
    manual.advance(ms=5000)

    await told(slow, under_way, ["sent", "delivered", "read"])
    await told(slow, delivered, ["sent", "delivered", "read"])
    assert before == (["sent", "delivered"], 2)


async def send_code(bench: Bench) -> str:
    """Send a one-time code, which lives ten minutes; gives the message's id."""
    buttons = {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]}
    await bench.seed_template([{"type": "BODY"}, buttons], category="AUTHENTICATION", name="code")
    parameter = {"type": "text", "text": "1234"}
    filled = [
        {"type": "body", "parameters": [parameter]},
        {"type": "button", "sub_type": "url", "index": "0", "parameters": [parameter]},
    ]
    answer = await bench.send_template(filled, name="code")
    return answer.body["messages"][0]["id"]


async def test_what_has_outlived_itself_is_dropped_and_nobody_is_told(slow: Bench, manual: ManualClock) -> None:
    await slow.let_write()
    await put(slow, OFFLINE)
    code = await send_code(slow)
    notice = await slow.send_text("Good for thirty days")
    manual.advance(ms=11 * 60_000)

    await put(slow, ONLINE)

    await told(slow, notice, ["sent", "delivered"])
    assert names(slow, code) == ["sent"]
    assert [shown["wamid"] for shown in await slow.inbox()][1:] == [notice]


async def test_message_that_would_arrive_too_late_stays_sent(slow: Bench, manual: ManualClock) -> None:
    await put(slow, {"deliver_after_ms": 11 * 60_000})

    code = await send_code(slow)

    await told(slow, code, ["sent"])
    await slow.drained()
    manual.advance(ms=DAY_MS)
    assert await slow.inbox() == []


async def test_offline_phone_can_do_nothing(bench: Bench) -> None:
    await bench.let_write()
    await put(bench, OFFLINE)

    answers = [
        await bench.control("POST", f"phones/{ANN}/messages", {"to": BUSINESS, "text": "x"}),
        await bench.control("POST", f"phones/{ANN}/read"),
        await bench.control("POST", f"phones/{ANN}/number", {"to": "15550009999"}),
    ]

    assert [(one.status, one.body["rule"]) for one in answers] == [(409, "is offline")] * 3


async def test_offline_phone_gets_its_messages_after_a_restart(bench: Bench) -> None:
    await bench.let_write()
    await put(bench, OFFLINE)
    wamid = await bench.send_text()

    await bench.restart()
    await put(bench, ONLINE)

    await bench.receiver.until(lambda: "delivered" in names(bench, wamid))
    assert [shown["text"] for shown in await bench.inbox()] == ["Hi", "Hello"]


async def test_nothing_is_lost_between_leaving_and_sending(bench: Bench) -> None:
    await bench.let_write()
    wamids: list[str] = []

    async def keep_sending() -> None:
        wamids.extend([await bench.send_text(f"No {nth}") for nth in range(40)])

    async def come_and_go() -> None:
        for _ in range(10):
            await put(bench, OFFLINE)
            await put(bench, ONLINE)

    await asyncio.gather(keep_sending(), come_and_go())

    assert len(wamids) == 40
    for wamid in wamids:
        await told(bench, wamid, ["sent", "delivered"])


async def test_blocked_business_gets_no_further_than_sent(bench: Bench) -> None:
    await bench.let_write()
    await bench.control("POST", f"phones/{ANN}/block", {"to": BUSINESS, "blocks": True})
    lost = await bench.send_text("Never seen")
    silent = await bench.control("POST", f"phones/{ANN}/messages", {"to": BUSINESS, "text": "x"})

    await bench.control("POST", f"phones/{ANN}/block", {"to": BUSINESS, "blocks": False})
    seen = await bench.send_text("Seen")

    await told(bench, seen, ["sent", "delivered"])
    assert names(bench, lost) == ["sent"]
    assert (silent.status, silent.body["field"]) == (409, "to")
    assert [shown["text"] for shown in await bench.inbox()] == ["Hi", "Seen"]


async def test_blocking_stops_what_is_on_its_way(slow: Bench, manual: ManualClock) -> None:
    await slow.let_write()
    wamid = await slow.send_text()
    await told(slow, wamid, ["sent"])

    await slow.control("POST", f"phones/{ANN}/block", {"to": BUSINESS, "blocks": True})
    manual.advance(ms=2000)

    await slow.drained()
    assert [shown["text"] for shown in await slow.inbox()] == ["Hi"]


# fmt: off
LIVES: list[tuple[str, int | None, int]] = [
    # category         own_s   lives_ms
    ("AUTHENTICATION", None,   600_000),
    ("UTILITY",        None,   30 * DAY_MS),
    ("MARKETING",      None,   30 * DAY_MS),
    ("AUTHENTICATION", 30,     30_000),
    ("UTILITY",        43_200, 43_200_000),
    ("AUTHENTICATION", -1,     30 * DAY_MS),
]
# fmt: on


@pytest.mark.parametrize(("category", "own_s", "lives_ms"), LIVES)
def test_template_says_how_long_its_messages_live(category: str, own_s: int | None, lives_ms: int) -> None:
    template = SimulatedTemplate(
        template_id="1",
        waba_id="2",
        name="a",
        language="en",
        category=category,
        components=[],
        message_send_ttl_seconds=own_s,
    )

    assert lifetime_ms(template) == lives_ms
    assert lifetime_ms(None) == 30 * DAY_MS
