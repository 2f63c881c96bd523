"""Messages that are held until their template's quality is known."""

from typing import Any

import pytest

from tests.simulator.conftest import ANN, Bench
from waypost.base.clock import ManualClock

ID = "1400000000000004"
HELLO: list[dict[str, Any]] = [{"type": "BODY", "text": "Hello there"}]
HOUR_MS = 3_600_000


async def held(bench: Bench) -> str:
    answer = await bench.send_template(biz_opaque_callback_data="mine")
    assert answer.body["messages"][0]["message_status"] == "held_for_quality_assessment"
    return answer.body["messages"][0]["id"]


async def test_held_message_is_delivered_when_it_is_released(slow: Bench, manual: ManualClock) -> None:
    # Source: facts 3.2, "pacing".
    await slow.seed_template(HELLO, category="MARKETING")
    await slow.control("POST", f"templates/{ID}/pace", {"for_ms": HOUR_MS})

    wamid = await held(slow)
    before = await slow.inbox()
    manual.advance(ms=HOUR_MS)
    await slow.receiver.until(lambda: slow.receiver.statuses(wamid))
    manual.advance(ms=1000)
    told = await slow.receiver.until(lambda: told if len(told := slow.receiver.statuses(wamid)) == 2 else None)

    assert before == []
    assert [one["status"] for one in told] == ["sent", "delivered"]
    assert {one["biz_opaque_callback_data"] for one in told} == {"mine"}
    assert int(told[0]["timestamp"]) == (manual.now_ms() - 1000) // 1000
    assert [one["wamid"] for one in await slow.inbox()] == [wamid]
    after = await slow.send_template()
    assert after.body["messages"][0]["message_status"] == "accepted"


async def test_dropped_message_fails_and_its_template_is_paused(slow: Bench, manual: ManualClock) -> None:
    await slow.seed_template(HELLO, category="MARKETING")
    await slow.control("POST", f"templates/{ID}/pace", {"for_ms": HOUR_MS, "verdict": "drop"})

    wamid = await held(slow)
    manual.advance(ms=HOUR_MS)
    [failed] = await slow.receiver.until(lambda: slow.receiver.statuses(wamid))
    [paused] = await slow.receiver.until(slow.receiver.templates)
    refused = await slow.send_template()

    assert (failed["status"], failed["errors"][0]["code"]) == ("failed", 132015)
    assert (paused["event"], paused["other_info"]["title"]) == ("PAUSED", "RATE_LIMITING_PAUSE")
    assert refused.error["code"] == 132015
    assert await slow.inbox() == []


@pytest.mark.parametrize(("act", "status"), [("release", "sent"), ("drop", "failed")])
async def test_verdict_can_be_given_at_once(bench: Bench, act: str, status: str) -> None:
    await bench.seed_template(HELLO)
    await bench.control("POST", f"templates/{ID}/pace")
    wamids = [await held(bench) for _ in range(3)]

    await bench.control("POST", f"templates/{ID}/{act}")

    for wamid in wamids:
        told = await bench.receiver.until(lambda wamid=wamid: bench.receiver.statuses(wamid))
        assert told[0]["status"] == status


async def test_held_messages_outlive_a_restart(slow: Bench, manual: ManualClock) -> None:
    await slow.seed_template(HELLO)
    await slow.control("POST", f"templates/{ID}/pace", {"for_ms": HOUR_MS})
    wamid = await held(slow)

    await slow.restart()
    manual.advance(ms=HOUR_MS)

    told = await slow.receiver.until(lambda: slow.receiver.statuses(wamid))
    assert told[0]["status"] == "sent"


async def test_deleting_a_template_drops_what_was_held(bench: Bench) -> None:
    await bench.seed_template(HELLO)
    await bench.control("POST", f"templates/{ID}/pace")
    wamid = await held(bench)

    await bench.control("POST", f"templates/{ID}/delete")

    [failed] = await bench.receiver.until(lambda: bench.receiver.statuses(wamid))
    assert failed["errors"][0]["code"] == 132015


async def test_only_an_approved_template_is_paced(bench: Bench) -> None:
    await bench.seed_template(HELLO)
    await bench.control("POST", f"templates/{ID}/disable")

    refused = await bench.control("POST", f"templates/{ID}/pace")
    sent = await bench.send({"to": ANN, "text": {"body": "x"}})

    assert (refused.status, refused.body["accepted"]) == (409, "an APPROVED template")
    assert "message_status" not in sent.body["messages"][0]


# fmt: off
ABSENCES = [
    # when it is sent  when it is released  what is told by the end
    (True,             True,                ["sent"]),
    (True,             False,               ["sent", "delivered"]),
    (False,            True,                ["sent"]),
]
# fmt: on


@pytest.mark.parametrize(("at_first", "at_last", "told"), ABSENCES)
async def test_released_message_waits_for_a_phone_that_is_offline(
    bench: Bench, at_first: bool, at_last: bool, told: list[str]
) -> None:
    await bench.seed_template(HELLO)
    await bench.control("POST", f"templates/{ID}/pace")
    await bench.control("PUT", f"phones/{ANN}", {"is_offline": at_first})
    wamid = await held(bench)
    await bench.control("PUT", f"phones/{ANN}", {"is_offline": at_last})

    await bench.control("POST", f"templates/{ID}/release")

    await bench.receiver.until(lambda: len(bench.receiver.statuses(wamid)) == len(told))
    assert [one["status"] for one in bench.receiver.statuses(wamid)] == told
    await bench.control("PUT", f"phones/{ANN}", {"is_offline": False})
    await bench.receiver.until(lambda: len(bench.receiver.statuses(wamid)) == 2)
    assert [one["wamid"] for one in await bench.inbox()] == [wamid]


# fmt: off
FATES: list[tuple[bool, str, list[str]]] = [
    # offline while it is held  act        what the phone then does
    (False,                     "release", ["answered"]),
    (True,                      "release", ["answered"]),
    (False,                     "drop",    []),
]
# fmt: on


@pytest.mark.parametrize(("goes_away", "act", "does"), FATES)
async def test_phones_follow_their_scripts_when_held_messages_are_released(
    slow: Bench, manual: ManualClock, goes_away: bool, act: str, does: list[str]
) -> None:
    script = [{"on": "template", "do": "answer", "text": "answered", "after_ms": 5000}]
    await slow.control("PUT", f"phones/{ANN}", {"script": script})
    await slow.seed_template(HELLO)
    await slow.control("POST", f"templates/{ID}/pace")
    wamid = await held(slow)
    for is_offline in (True, False) if goes_away else ():
        await slow.control("PUT", f"phones/{ANN}", {"is_offline": is_offline})
    manual.advance(ms=HOUR_MS)
    await slow.restart()
    early = slow.receiver.messages()

    await slow.control("POST", f"templates/{ID}/{act}")
    await slow.receiver.until(lambda: slow.receiver.statuses(wamid))
    manual.advance(ms=5999)
    await slow.drained()
    before = slow.receiver.messages()
    manual.advance(ms=1)

    await slow.receiver.until(lambda: len(slow.receiver.messages()) == len(does))
    await slow.drained()
    assert early == before == []
    assert [one["text"]["body"] for one in slow.receiver.messages()] == does
    rows = (await slow.control("GET", f"phones/{ANN}")).body["messages"]
    assert len([one for one in rows if one.get("wamid") == wamid]) == (act == "release")


async def test_released_message_to_a_phone_that_takes_none_has_failed(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{ANN}", {"condition": "not_on_whatsapp"})
    await bench.seed_template(HELLO)
    await bench.control("POST", f"templates/{ID}/pace")
    wamid = await held(bench)

    await bench.control("POST", f"templates/{ID}/release")

    [failed] = await bench.receiver.until(lambda: bench.receiver.statuses(wamid))
    [delivery] = (await bench.control("GET", "deliveries")).body["deliveries"]
    assert failed["errors"][0]["code"] == 131026
    assert delivery["state"] == "failed"
