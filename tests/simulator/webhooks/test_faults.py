"""Faults of calls: each kind as a client of the operator sees it, when they fire, and what is kept."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.simulator.conftest import ANN, NUMBER_ID, TOKEN, WABA, Answer, Bench, Receiver, make_bench
from waypost.base.clock import ManualClock, SystemClock

BEN = "15551234568"
SEND: dict[str, Any] = {"on": "call", "call": "messages.send"}
BUSY: dict[str, Any] = {**SEND, "what": {"error": 131016}}
MESSAGE = {"messaging_product": "whatsapp", "type": "text", "text": {"body": "Hello"}}


async def test_error_is_the_documented_envelope_and_takes_nothing(bench: Bench) -> None:
    what = {"error": 80007, "subcode": 99, "details": "Slow down.", "retry_after_s": 7}
    await arm(bench, {**SEND, "what": what})

    answer = await say(bench)

    assert answer.status == 429
    assert answer.headers["Retry-After"] == "7"
    assert answer.error == {
        "message": "(#80007) Rate limit issues",
        "type": "OAuthException",
        "code": 80007,
        "error_subcode": 99,
        "error_data": {"messaging_product": "whatsapp", "details": "Slow down."},
        "fbtrace_id": answer.error["fbtrace_id"],
    }
    assert await deliveries(bench) == []


async def test_error_may_have_any_code_and_status(bench: Bench) -> None:
    await arm(bench, {**SEND, "what": {"error": 424242, "status": 599}})

    answer = await say(bench)

    assert (answer.status, answer.error["code"]) == (599, 424242)


async def test_failure_comes_as_a_status_after_a_good_answer(bench: Bench) -> None:
    await bench.let_write()
    await arm(bench, {**SEND, "what": {"fail": 131049}})

    wamid = await bench.send_text()

    await bench.receiver.until(lambda: bench.receiver.statuses(wamid))
    [failed] = bench.receiver.statuses(wamid)
    assert (failed["status"], failed["errors"][0]["code"]) == ("failed", 131049)
    assert [one["state"] for one in await deliveries(bench)] == ["failed"]


async def test_failure_may_have_a_code_that_nobody_knows(bench: Bench) -> None:
    await bench.let_write()
    await arm(bench, {**SEND, "what": {"fail": 139999}})

    wamid = await bench.send_text()

    await bench.receiver.until(lambda: bench.receiver.statuses(wamid))
    [failed] = bench.receiver.statuses(wamid)
    assert failed["errors"][0]["code"] == 139999


@pytest.mark.parametrize(("taken", "taken_count"), [(True, 1), (False, 0)])
async def test_answer_that_never_comes(bench: Bench, taken: bool, taken_count: int) -> None:
    await arm(bench, {**SEND, "what": {"timeout": True, "taken": taken}})

    with pytest.raises(TimeoutError):
        await say(bench, timeout=aiohttp.ClientTimeout(total=0.2))

    assert len(await deliveries(bench)) == taken_count


@pytest.mark.parametrize(("moment", "taken_count"), [("before", 0), ("after", 1)])
async def test_connection_is_reset_without_an_answer(bench: Bench, moment: str, taken_count: int) -> None:
    await arm(bench, {**SEND, "what": {"reset": moment}})

    with pytest.raises((aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)):
        await say(bench)

    assert len(await deliveries(bench)) == taken_count


async def test_reset_is_one_on_the_wire_and_no_orderly_end(bench: Bench) -> None:
    await arm(bench, {**SEND, "what": {"reset": "before"}})
    host, _, port = bench.base.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = b'{"messaging_product":"whatsapp"}'
    head = (
        f"POST /v25.0/{NUMBER_ID}/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )

    writer.write(head.encode() + body)

    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.close()


async def test_slow_answer_is_the_proper_one_and_the_call_is_carried_out_at_once(bench: Bench) -> None:
    await bench.let_write()
    await arm(bench, {**SEND, "what": {"slow_ms": 300}})

    saying = asyncio.create_task(say(bench))
    await bench.receiver.until(bench.receiver.statuses)
    was_answered = saying.done()
    answer = await saying

    assert not was_answered
    assert answer.body["messages"][0]["id"] == bench.receiver.statuses()[0]["id"]


async def test_slow_refusal_is_the_proper_one(bench: Bench) -> None:
    await arm(bench, {**SEND, "what": {"slow_ms": 1}})

    answer = await bench.send({"type": "text", "text": {}})

    assert answer.status == 400
    assert answer.error["fbtrace_id"]


# fmt: off
GARBAGE = {
    # how          status  content type
    "html":       (502,   "text/html; charset=UTF-8"),
    "empty":      (200,   "text/plain"),
    "not_json":   (200,   "application/json; charset=UTF-8"),
}
# fmt: on


@pytest.mark.parametrize("how", GARBAGE)
@pytest.mark.parametrize("taken", [True, False])
async def test_garbage_is_an_answer_that_is_no_json(bench: Bench, how: str, taken: bool) -> None:
    status, content_type = GARBAGE[how]
    await arm(bench, {**SEND, "what": {"garbage": how, "status": status, "taken": taken}})

    async with bench.http.post(
        f"{bench.base}/v25.0/{NUMBER_ID}/messages",
        json={**MESSAGE, "to": ANN},
        headers={"Authorization": f"Bearer {TOKEN}"},
    ) as answer:
        text = await answer.text()

    assert (answer.status, answer.headers["Content-Type"]) == (status, content_type)
    assert not text.endswith("]}")
    assert len(await deliveries(bench)) == int(taken)


async def test_truncated_answer_breaks_off_in_the_middle(bench: Bench) -> None:
    await arm(bench, {**SEND, "what": {"garbage": "truncated", "status": 200}})

    with pytest.raises(aiohttp.ClientPayloadError):
        await say(bench)


async def test_next_fires_so_often_and_then_no_more(bench: Bench) -> None:
    [fault] = await arm(bench, {**BUSY, "when": {"next": 2}})

    statuses = [(await say(bench)).status for _ in range(4)]

    assert statuses == [503, 503, 200, 200]
    shown = await show(bench, fault)
    assert (shown["hits"], shown["left"], shown["is_armed"]) == (2, 0, False)


async def test_every_fires_at_each_so_manyth(bench: Bench) -> None:
    await arm(bench, {**BUSY, "when": {"every": 3}})

    statuses = [(await say(bench)).status for _ in range(7)]

    assert statuses == [200, 200, 503, 200, 200, 503, 200]


async def test_probability_is_the_same_in_every_run(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"limits": False})
    runs: list[list[int]] = []
    for seed in (7, 7, 8):
        await arm(bench, {**BUSY, "when": {"probability": 0.4}, "seed": seed})
        runs.append([(await say(bench)).status for _ in range(40)])
        await bench.control("DELETE", "faults")

    assert runs[0] == runs[1] != runs[2]
    assert 5 < runs[0].count(503) < 30


async def test_fault_ends_by_the_clock(slow: Bench, manual: ManualClock) -> None:
    [fault] = await arm(slow, {**BUSY, "until_ms": manual.now_ms() + 1000})
    before = await say(slow)

    manual.advance(ms=1000)
    after = await say(slow)

    assert (before.status, after.status) == (503, 200)
    assert (await show(slow, fault))["is_armed"] is False


async def test_filters_narrow_a_fault(bench: Bench) -> None:
    await bench.seed_template([{"type": "BODY", "text": "Hello there"}])
    narrow = [
        {**BUSY, "phone": BEN},
        {**BUSY, "template": "seeded", "what": {"error": 132015}},
        {**BUSY, "waba_id": "1000000000000099"},
        {**BUSY, "number": "15559999999"},
        {**BUSY, "app": "99"},
        {"on": "call", "call": "templates.list", "waba_id": WABA, "what": {"error": 2}},
    ]
    await arm(bench, *narrow)

    to_ann = await say(bench)
    to_ben = await say(bench, to=f"+{BEN}")
    by_template = await bench.send_template()
    listed = await bench.graph("GET", f"{WABA}/message_templates")
    node = await bench.graph("GET", WABA)

    assert to_ann.status == node.status == 200
    assert [to_ben.error["code"], by_template.error["code"]] == [131016, 132015]
    assert listed.error["code"] == 2


async def test_number_may_be_named_by_its_digits_or_its_id(bench: Bench) -> None:
    await arm(bench, {**BUSY, "number": "15550001111", "when": {"next": 1}})
    await arm(bench, {**BUSY, "number": NUMBER_ID, "when": {"next": 1}})

    statuses = [(await say(bench)).status for _ in range(3)]

    assert statuses == [503, 503, 200]


async def test_reading_a_message_is_not_sending_one(bench: Bench) -> None:
    wamid = await bench.let_write()
    await arm(bench, BUSY)
    read = {"messaging_product": "whatsapp", "status": "read", "message_id": wamid}

    answer = await bench.graph("POST", f"{NUMBER_ID}/messages", json=read)

    assert answer.body == {"success": True}


async def test_oldest_fault_that_fires_is_the_one_and_those_behind_are_not_asked(bench: Bench) -> None:
    first, second = await arm(bench, {**BUSY, "when": {"every": 2}}, {**SEND, "what": {"error": 131000}})

    codes = [(await say(bench)).error["code"] for _ in range(4)]

    assert codes == [131000, 131016, 131000, 131016]
    assert ((await show(bench, first))["seen"], (await show(bench, second))["seen"]) == (4, 2)


async def test_download_of_media_may_go_wrong_too(bench: Bench) -> None:
    media_id = await bench.media_of("image/png")
    url = (await bench.graph("GET", media_id)).body["url"]
    await arm(bench, {"on": "call", "call": "media.download", "number": NUMBER_ID,
                      "what": {"error": 1, "status": 500}})  # fmt: skip

    async with bench.http.get(url, headers={"Authorization": f"Bearer {TOKEN}"}) as answer:
        assert answer.status == 500


async def test_firings_are_listed_and_only_the_last_hundred(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"limits": False})
    [fault] = await arm(bench, BUSY)

    for _ in range(103):
        await say(bench)

    shown = await show(bench, fault)
    assert [one["hit"] for one in shown["firings"]] == list(range(4, 104))
    assert shown["firings"][0] == {
        "hit": 4, "at_ms": shown["firings"][0]["at_ms"], "call": "messages.send", "about": ANN,
    }  # fmt: skip


async def test_armed_faults_are_shown_and_taken_away(bench: Bench) -> None:
    wishes = [{**BUSY, "label": "busy"}, {"on": "webhook", "what": {"drop": True}}]
    answer = await bench.control("POST", "faults", {"faults": wishes, "seed": 5})
    state = await bench.control("GET", "state")

    first = await bench.control("DELETE", "faults/1")
    unknown = await bench.control("DELETE", "faults/1")
    rest = await bench.control("DELETE", "faults")

    assert answer.body == {
        "faults": [
            {"id": 1, "label": "busy", "on": "call", "call": "messages.send",
             "when": {"always": True}, "what": {"error": 131016}, "seed": 5, "is_armed": True,
             "seen": 0, "hits": 0, "left": None},
            {"id": 2, "on": "webhook", "webhook": "*", "when": {"always": True},
             "what": {"drop": True}, "seed": 5, "is_armed": True, "seen": 0, "hits": 0, "left": None},
        ]
    }  # fmt: skip
    assert state.body["faults"] == answer.body["faults"]
    assert (first.body, unknown.status, rest.body) == ({"disarmed": [1]}, 404, {"disarmed": [2]})
    assert (await bench.control("GET", "faults")).body == {"faults": []}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"on":"call"}', b'{"on":"\xff"}', b"[" * 5000])
async def test_unreadable_fault_is_refused_with_what_would_do(bench: Bench, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}

    answer = await bench.ask("POST", "/control/faults", data=body, headers=headers)

    assert answer.status == 400
    assert set(answer.body) == {"error", "field", "rule", "accepted"}


@pytest.mark.parametrize("fault_id", ["0", "x", "%C2%B2", "9" * 40])
async def test_fault_that_is_none_is_not_found(bench: Bench, fault_id: str) -> None:
    answer = await bench.control("GET", f"faults/{fault_id}")

    assert (answer.status, answer.body["field"]) == (404, "fault_id")


async def test_faults_armed_at_one_moment_have_ids_of_their_own(bench: Bench) -> None:
    armed = await asyncio.gather(*(arm(bench, BUSY, BUSY) for _ in range(8)))

    ids = [fault["id"] for faults in armed for fault in faults]
    assert sorted(ids) == list(range(1, 17))


async def test_reset_takes_faults_away(bench: Bench) -> None:
    await arm(bench, BUSY)

    await bench.control("POST", "reset")

    assert (await bench.control("GET", "faults")).body == {"faults": []}
    assert (await say(bench)).status == 200


async def test_counts_outlive_a_restart(tmp_path: Path, receiver: Receiver, http: aiohttp.ClientSession) -> None:
    bench = make_bench(tmp_path, SystemClock(), receiver, http)
    await bench.start()
    [fault] = await arm(bench, {**BUSY, "when": {"next": 3}})
    await say(bench)
    before = await show(bench, fault)

    await bench.restart()
    after = await show(bench, fault)
    statuses = [(await say(bench)).status for _ in range(3)]
    await bench.stop()

    assert before == after
    assert before["left"] == 2
    assert statuses == [503, 503, 200]


async def arm(bench: Bench, *faults: dict[str, Any]) -> list[dict[str, Any]]:
    """Arm faults, and give them as they are shown."""
    answer = await bench.control("POST", "faults", {"faults": list(faults)})
    assert answer.status == 200, answer.body
    return answer.body["faults"]


async def show(bench: Bench, fault: dict[str, Any]) -> dict[str, Any]:
    """A fault as it is now."""
    return (await bench.control("GET", f"faults/{fault['id']}")).body


async def say(bench: Bench, *, to: str = f"+{ANN}", **more: Any) -> Answer:
    """Send a text."""
    message = {**MESSAGE, "to": to}
    return await bench.graph("POST", f"{NUMBER_ID}/messages", json=message, **more)


async def deliveries(bench: Bench) -> list[dict[str, Any]]:
    """What the operator has taken."""
    return (await bench.control("GET", "deliveries")).body["deliveries"]
