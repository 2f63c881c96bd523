"""Messages that are held until their template's quality is known."""

from typing import Any

import pytest

from tests.simulator.conftest import ANN, Bench
from tests.support.manual_clock import ManualClock

ID = "1400000000000004"
HELLO: list[dict[str, Any]] = [{"type": "BODY", "text": "Hello there"}]
HOUR_MS = 3_600_000


async def send_held(bench: Bench) -> str:
    response = await bench.send_template(biz_opaque_callback_data="mine")
    assert response.body["messages"][0]["message_status"] == "held_for_quality_assessment"
    return response.body["messages"][0]["id"]


async def test_held_message_is_delivered_on_release(slow: Bench, clock: ManualClock) -> None:
    # Source: facts 3.2, "pacing".
    await slow.seed_template(HELLO, category="MARKETING")
    await slow.control("POST", f"templates/{ID}/pace", {"for_ms": HOUR_MS})

    wamid = await send_held(slow)
    before = await slow.inbox()
    clock.advance(ms=HOUR_MS)
    await slow.receiver.wait_until(lambda: slow.receiver.statuses(wamid))
    clock.advance(ms=1000)
    statuses = await slow.receiver.wait_until(
        lambda: statuses if len(statuses := slow.receiver.statuses(wamid)) == 2 else None
    )

    assert before == []
    assert [status["status"] for status in statuses] == ["sent", "delivered"]
    assert {status["biz_opaque_callback_data"] for status in statuses} == {"mine"}
    assert int(statuses[0]["timestamp"]) == (clock.now_ms() - 1000) // 1000
    assert [message["wamid"] for message in await slow.inbox()] == [wamid]
    after = await slow.send_template()
    assert after.body["messages"][0]["message_status"] == "accepted"


async def test_dropped_message_fails_and_its_template_is_paused(slow: Bench, clock: ManualClock) -> None:
    await slow.seed_template(HELLO, category="MARKETING")
    await slow.control("POST", f"templates/{ID}/pace", {"for_ms": HOUR_MS, "verdict": "drop"})

    wamid = await send_held(slow)
    clock.advance(ms=HOUR_MS)
    [failed] = await slow.receiver.wait_until(lambda: slow.receiver.statuses(wamid))
    [paused] = await slow.receiver.wait_until(slow.receiver.template_events)
    rejected = await slow.send_template()

    assert (failed["status"], failed["errors"][0]["code"]) == ("failed", 132015)
    assert (paused["event"], paused["other_info"]["title"]) == ("PAUSED", "RATE_LIMITING_PAUSE")
    assert rejected.error["code"] == 132015
    assert await slow.inbox() == []


@pytest.mark.parametrize(("action", "status"), [("release", "sent"), ("drop", "failed")])
async def test_pacing_can_be_decided_at_once(bench: Bench, action: str, status: str) -> None:
    await bench.seed_template(HELLO)
    await bench.control("POST", f"templates/{ID}/pace")
    wamids = [await send_held(bench) for _ in range(3)]

    await bench.control("POST", f"templates/{ID}/{action}")

    for wamid in wamids:
        statuses = await bench.receiver.wait_until(lambda wamid=wamid: bench.receiver.statuses(wamid))
        assert statuses[0]["status"] == status


async def test_held_messages_survive_a_restart(slow: Bench, clock: ManualClock) -> None:
    await slow.seed_template(HELLO)
    await slow.control("POST", f"templates/{ID}/pace", {"for_ms": HOUR_MS})
    wamid = await send_held(slow)

    await slow.restart()
    clock.advance(ms=HOUR_MS)

    statuses = await slow.receiver.wait_until(lambda: slow.receiver.statuses(wamid))
    assert statuses[0]["status"] == "sent"


async def test_deleting_a_template_drops_its_held_messages(bench: Bench) -> None:
    await bench.seed_template(HELLO)
    await bench.control("POST", f"templates/{ID}/pace")
    wamid = await send_held(bench)

    await bench.control("POST", f"templates/{ID}/delete")

    [failed] = await bench.receiver.wait_until(lambda: bench.receiver.statuses(wamid))
    assert failed["errors"][0]["code"] == 132015


async def test_only_an_approved_template_is_paced(bench: Bench) -> None:
    await bench.seed_template(HELLO)
    await bench.control("POST", f"templates/{ID}/disable")

    rejected = await bench.control("POST", f"templates/{ID}/pace")
    sent = await bench.send({"to": ANN, "text": {"body": "x"}})

    assert (rejected.status, rejected.body["accepted"]) == (409, "an APPROVED template")
    assert "message_status" not in sent.body["messages"][0]


# fmt: off
OFFLINE_PHASES = [
    # offline at send  offline at release  statuses before it is online again
    (True,             True,                ["sent"]),
    (True,             False,               ["sent", "delivered"]),
    (False,            True,                ["sent"]),
]
# fmt: on


@pytest.mark.parametrize(("offline_at_send", "offline_at_release", "expected"), OFFLINE_PHASES)
async def test_released_message_waits_for_an_offline_phone(
    bench: Bench, offline_at_send: bool, offline_at_release: bool, expected: list[str]
) -> None:
    await bench.seed_template(HELLO)
    await bench.control("POST", f"templates/{ID}/pace")
    await bench.control("PUT", f"phones/{ANN}", {"is_offline": offline_at_send})
    wamid = await send_held(bench)
    await bench.control("PUT", f"phones/{ANN}", {"is_offline": offline_at_release})

    await bench.control("POST", f"templates/{ID}/release")

    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == len(expected))
    assert [status["status"] for status in bench.receiver.statuses(wamid)] == expected
    await bench.control("PUT", f"phones/{ANN}", {"is_offline": False})
    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)
    assert [message["wamid"] for message in await bench.inbox()] == [wamid]


# fmt: off
SCRIPT_CASES: list[tuple[bool, str, list[str]]] = [
    # offline while it is held  action     replies of the phone
    (False,                     "release", ["replied"]),
    (True,                      "release", ["replied"]),
    (False,                     "drop",    []),
]
# fmt: on


@pytest.mark.parametrize(("toggles_offline", "action", "replies"), SCRIPT_CASES)
async def test_phones_follow_their_scripts_when_held_messages_are_released(
    slow: Bench, clock: ManualClock, toggles_offline: bool, action: str, replies: list[str]
) -> None:
    script = [{"on": "template", "do": "reply", "text": "replied", "after_ms": 5000}]
    await slow.control("PUT", f"phones/{ANN}", {"script": script})
    await slow.seed_template(HELLO)
    await slow.control("POST", f"templates/{ID}/pace")
    wamid = await send_held(slow)
    for is_offline in (True, False) if toggles_offline else ():
        await slow.control("PUT", f"phones/{ANN}", {"is_offline": is_offline})
    clock.advance(ms=HOUR_MS)
    await slow.restart()
    early = slow.receiver.messages()

    await slow.control("POST", f"templates/{ID}/{action}")
    await slow.receiver.wait_until(lambda: slow.receiver.statuses(wamid))
    clock.advance(ms=5999)
    await slow.wait_until_drained()
    before = slow.receiver.messages()
    clock.advance(ms=1)

    await slow.receiver.wait_until(lambda: len(slow.receiver.messages()) == len(replies))
    await slow.wait_until_drained()
    assert early == before == []
    assert [message["text"]["body"] for message in slow.receiver.messages()] == replies
    rows = (await slow.control("GET", f"phones/{ANN}")).body["messages"]
    assert len([message for message in rows if message.get("wamid") == wamid]) == (action == "release")


async def test_released_message_to_an_unreachable_phone_fails(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{ANN}", {"condition": "not_on_whatsapp"})
    await bench.seed_template(HELLO)
    await bench.control("POST", f"templates/{ID}/pace")
    wamid = await send_held(bench)

    await bench.control("POST", f"templates/{ID}/release")

    [failed] = await bench.receiver.wait_until(lambda: bench.receiver.statuses(wamid))
    [delivery] = (await bench.control("GET", "deliveries")).body["deliveries"]
    assert failed["errors"][0]["code"] == 131026
    assert delivery["state"] == "failed"
