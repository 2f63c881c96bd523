"""Call faults: each kind as an API client sees it, triggers, filters and stored counts."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.simulator.conftest import ANN, NUMBER_ID, TOKEN, WABA, Bench, Receiver, SimulatorResponse, make_bench
from tests.support.manual_clock import ManualClock
from waypost.base.clock import SystemClock

BEN = "15551234568"
SEND: dict[str, Any] = {"on": "call", "call": "messages.send"}
BUSY: dict[str, Any] = {**SEND, "what": {"error": 131016}}
MESSAGE = {"messaging_product": "whatsapp", "type": "text", "text": {"body": "Hello"}}


async def test_error_has_the_documented_envelope_and_accepts_nothing(bench: Bench) -> None:
    what = {"error": 80007, "subcode": 99, "details": "Slow down.", "retry_after_s": 7}
    await arm(bench, {**SEND, "what": what})

    response = await send_message(bench)

    assert response.status == 429
    assert response.headers["Retry-After"] == "7"
    assert response.error == {
        "message": "(#80007) Rate limit issues",
        "type": "OAuthException",
        "code": 80007,
        "error_subcode": 99,
        "error_data": {"messaging_product": "whatsapp", "details": "Slow down."},
        "fbtrace_id": response.error["fbtrace_id"],
    }
    assert await list_deliveries(bench) == []


async def test_error_may_have_any_code_and_status(bench: Bench) -> None:
    await arm(bench, {**SEND, "what": {"error": 424242, "status": 599}})

    response = await send_message(bench)

    assert (response.status, response.error["code"]) == (599, 424242)


async def test_failure_is_sent_as_a_status_after_a_successful_response(bench: Bench) -> None:
    await bench.send_from_phone()
    await arm(bench, {**SEND, "what": {"fail": 131049}})

    wamid = await bench.send_text()

    await bench.receiver.wait_until(lambda: bench.receiver.statuses(wamid))
    [failed] = bench.receiver.statuses(wamid)
    assert (failed["status"], failed["errors"][0]["code"]) == ("failed", 131049)
    assert [delivery["state"] for delivery in await list_deliveries(bench)] == ["failed"]


async def test_failure_may_have_an_unknown_code(bench: Bench) -> None:
    await bench.send_from_phone()
    await arm(bench, {**SEND, "what": {"fail": 139999}})

    wamid = await bench.send_text()

    await bench.receiver.wait_until(lambda: bench.receiver.statuses(wamid))
    [failed] = bench.receiver.statuses(wamid)
    assert failed["errors"][0]["code"] == 139999


@pytest.mark.parametrize(("accepted", "expected_count"), [(True, 1), (False, 0)])
async def test_call_times_out_without_a_response(bench: Bench, accepted: bool, expected_count: int) -> None:
    await arm(bench, {**SEND, "what": {"timeout": True, "processed": accepted}})

    with pytest.raises(TimeoutError):
        await send_message(bench, timeout=aiohttp.ClientTimeout(total=0.2))

    assert len(await list_deliveries(bench)) == expected_count


@pytest.mark.parametrize(("moment", "expected_count"), [("before", 0), ("after", 1)])
async def test_connection_is_reset_without_a_response(bench: Bench, moment: str, expected_count: int) -> None:
    await arm(bench, {**SEND, "what": {"reset": moment}})

    with pytest.raises((aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)):
        await send_message(bench)

    assert len(await list_deliveries(bench)) == expected_count


async def test_reset_is_a_tcp_reset_and_not_an_orderly_close(bench: Bench) -> None:
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


async def test_slow_response_is_unchanged_and_the_call_is_executed_at_once(bench: Bench) -> None:
    await bench.send_from_phone()
    await arm(bench, {**SEND, "what": {"slow_ms": 300}})

    sending = asyncio.create_task(send_message(bench))
    await bench.receiver.wait_until(bench.receiver.statuses)
    was_done = sending.done()
    response = await sending

    assert not was_done
    assert response.body["messages"][0]["id"] == bench.receiver.statuses()[0]["id"]


async def test_slow_error_response_is_unchanged(bench: Bench) -> None:
    await arm(bench, {**SEND, "what": {"slow_ms": 1}})

    response = await bench.send({"type": "text", "text": {}})

    assert response.status == 400
    assert response.error["fbtrace_id"]


# fmt: off
GARBAGE = {
    # kind         status  content type
    "html":       (502,   "text/html; charset=UTF-8"),
    "empty":      (200,   "text/plain"),
    "not_json":   (200,   "application/json; charset=UTF-8"),
}
# fmt: on


@pytest.mark.parametrize("kind", GARBAGE)
@pytest.mark.parametrize("accepted", [True, False])
async def test_garbage_is_a_response_that_is_not_json(bench: Bench, kind: str, accepted: bool) -> None:
    status, content_type = GARBAGE[kind]
    await arm(bench, {**SEND, "what": {"garbage": kind, "status": status, "processed": accepted}})

    async with bench.http.post(
        f"{bench.base}/v25.0/{NUMBER_ID}/messages",
        json={**MESSAGE, "to": ANN},
        headers={"Authorization": f"Bearer {TOKEN}"},
    ) as response:
        text = await response.text()

    assert (response.status, response.headers["Content-Type"]) == (status, content_type)
    assert not text.endswith("]}")
    assert len(await list_deliveries(bench)) == int(accepted)


async def test_truncated_response_breaks_off_in_the_middle(bench: Bench) -> None:
    await arm(bench, {**SEND, "what": {"garbage": "truncated", "status": 200}})

    with pytest.raises(aiohttp.ClientPayloadError):
        await send_message(bench)


async def test_next_fires_for_the_given_number_of_calls(bench: Bench) -> None:
    [fault] = await arm(bench, {**BUSY, "when": {"next": 2}})

    statuses = [(await send_message(bench)).status for _ in range(4)]

    assert statuses == [503, 503, 200, 200]
    shown = await show_fault(bench, fault)
    assert (shown["hits"], shown["left"], shown["is_armed"]) == (2, 0, False)


async def test_every_fires_on_every_nth_call(bench: Bench) -> None:
    await arm(bench, {**BUSY, "when": {"every": 3}})

    statuses = [(await send_message(bench)).status for _ in range(7)]

    assert statuses == [200, 200, 503, 200, 200, 503, 200]


async def test_probability_is_the_same_in_every_run(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"limits": False})
    runs: list[list[int]] = []
    for seed in (7, 7, 8):
        await arm(bench, {**BUSY, "when": {"probability": 0.4}, "seed": seed})
        runs.append([(await send_message(bench)).status for _ in range(40)])
        await bench.control("DELETE", "faults")

    assert runs[0] == runs[1] != runs[2]
    assert 5 < runs[0].count(503) < 30


async def test_fault_ends_at_its_until_time(slow: Bench, clock: ManualClock) -> None:
    [fault] = await arm(slow, {**BUSY, "until_ms": clock.now_ms() + 1000})
    before = await send_message(slow)

    clock.advance(ms=1000)
    after = await send_message(slow)

    assert (before.status, after.status) == (503, 200)
    assert (await show_fault(slow, fault))["is_armed"] is False


async def test_filters_limit_a_fault(bench: Bench) -> None:
    await bench.seed_template([{"type": "BODY", "text": "Hello there"}])
    filtered = [
        {**BUSY, "phone": BEN},
        {**BUSY, "template": "seeded", "what": {"error": 132015}},
        {**BUSY, "waba_id": "1000000000000099"},
        {**BUSY, "number": "15559999999"},
        {**BUSY, "app": "99"},
        {"on": "call", "call": "templates.list", "waba_id": WABA, "what": {"error": 2}},
    ]
    await arm(bench, *filtered)

    to_ann = await send_message(bench)
    to_ben = await send_message(bench, to=f"+{BEN}")
    by_template = await bench.send_template()
    listed = await bench.graph("GET", f"{WABA}/message_templates")
    node = await bench.graph("GET", WABA)

    assert to_ann.status == node.status == 200
    assert [to_ben.error["code"], by_template.error["code"]] == [131016, 132015]
    assert listed.error["code"] == 2


async def test_number_may_be_named_by_its_digits_or_its_id(bench: Bench) -> None:
    await arm(bench, {**BUSY, "number": "15550001111", "when": {"next": 1}})
    await arm(bench, {**BUSY, "number": NUMBER_ID, "when": {"next": 1}})

    statuses = [(await send_message(bench)).status for _ in range(3)]

    assert statuses == [503, 503, 200]


async def test_send_fault_does_not_apply_to_marking_as_read(bench: Bench) -> None:
    wamid = await bench.send_from_phone()
    await arm(bench, BUSY)
    read = {"messaging_product": "whatsapp", "status": "read", "message_id": wamid}

    response = await bench.graph("POST", f"{NUMBER_ID}/messages", json=read)

    assert response.body == {"success": True}


async def test_oldest_matching_fault_fires_and_later_ones_are_not_evaluated(bench: Bench) -> None:
    first, second = await arm(bench, {**BUSY, "when": {"every": 2}}, {**SEND, "what": {"error": 131000}})

    codes = [(await send_message(bench)).error["code"] for _ in range(4)]

    assert codes == [131000, 131016, 131000, 131016]
    assert ((await show_fault(bench, first))["seen"], (await show_fault(bench, second))["seen"]) == (4, 2)


async def test_media_download_can_have_a_fault(bench: Bench) -> None:
    media_id = await bench.upload_media("image/png")
    url = (await bench.graph("GET", media_id)).body["url"]
    await arm(bench, {"on": "call", "call": "media.download", "number": NUMBER_ID,
                      "what": {"error": 1, "status": 500}})  # fmt: skip

    async with bench.http.get(url, headers={"Authorization": f"Bearer {TOKEN}"}) as response:
        assert response.status == 500


async def test_last_hundred_firings_are_listed(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"limits": False})
    [fault] = await arm(bench, BUSY)

    for _ in range(103):
        await send_message(bench)

    shown = await show_fault(bench, fault)
    assert [firing["hit"] for firing in shown["firings"]] == list(range(4, 104))
    assert shown["firings"][0] == {
        "hit": 4, "at_ms": shown["firings"][0]["at_ms"], "call": "messages.send", "subject": ANN,
    }  # fmt: skip


async def test_armed_faults_are_shown_and_disarmed(bench: Bench) -> None:
    requested = [{**BUSY, "label": "busy"}, {"on": "webhook", "what": {"drop": True}}]
    response = await bench.control("POST", "faults", {"faults": requested, "seed": 5})
    state = await bench.control("GET", "state")

    first = await bench.control("DELETE", "faults/1")
    unknown = await bench.control("DELETE", "faults/1")
    rest = await bench.control("DELETE", "faults")

    assert response.body == {
        "faults": [
            {"id": 1, "label": "busy", "on": "call", "call": "messages.send",
             "when": {"always": True}, "what": {"error": 131016}, "seed": 5, "is_armed": True,
             "seen": 0, "hits": 0, "left": None},
            {"id": 2, "on": "webhook", "webhook": "*", "when": {"always": True},
             "what": {"drop": True}, "seed": 5, "is_armed": True, "seen": 0, "hits": 0, "left": None},
        ]
    }  # fmt: skip
    assert state.body["faults"] == response.body["faults"]
    assert (first.body, unknown.status, rest.body) == ({"disarmed": [1]}, 404, {"disarmed": [2]})
    assert (await bench.control("GET", "faults")).body == {"faults": []}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"on":"call"}', b'{"on":"\xff"}', b"[" * 5000])
async def test_unreadable_fault_is_rejected_with_the_accepted_values(bench: Bench, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}

    response = await bench.request("POST", "/control/faults", data=body, headers=headers)

    assert response.status == 400
    assert set(response.body) == {"error", "field", "rule", "accepted"}


@pytest.mark.parametrize("fault_id", ["0", "x", "%C2%B2", "9" * 40])
async def test_unknown_fault_is_not_found(bench: Bench, fault_id: str) -> None:
    response = await bench.control("GET", f"faults/{fault_id}")

    assert (response.status, response.body["field"]) == (404, "fault_id")


async def test_faults_armed_concurrently_have_distinct_ids(bench: Bench) -> None:
    armed = await asyncio.gather(*(arm(bench, BUSY, BUSY) for _ in range(8)))

    ids = [fault["id"] for faults in armed for fault in faults]
    assert sorted(ids) == list(range(1, 17))


async def test_missing_faults_are_armed_once_even_concurrently(bench: Bench) -> None:
    body = {"faults": [BUSY, {**BUSY, "when": {"next": 1}}], "if_missing": True}

    responses = await asyncio.gather(*(bench.control("POST", "faults", body) for _ in range(5)))
    await send_message(bench)
    await send_message(bench)
    again = await bench.control("POST", "faults", {**BUSY, "until_ms": 2**50, "if_missing": True})
    invalid = await bench.control("POST", "faults", {**BUSY, "if_missing": "yes"})

    counts = sorted((len(response.body["faults"]), len(response.body["existing"])) for response in responses)
    assert counts == [(0, 2)] * 4 + [(2, 0)]
    assert (again.body["faults"], [fault["id"] for fault in again.body["existing"]]) == ([], [1])
    assert (invalid.status, invalid.body["field"]) == (400, "if_missing")


async def test_reset_disarms_faults(bench: Bench) -> None:
    await arm(bench, BUSY)

    await bench.control("POST", "reset")

    assert (await bench.control("GET", "faults")).body == {"faults": []}
    assert (await send_message(bench)).status == 200


async def test_fault_counts_survive_a_restart(tmp_path: Path, receiver: Receiver, http: aiohttp.ClientSession) -> None:
    bench = make_bench(tmp_path, SystemClock(), receiver, http)
    await bench.start()
    [fault] = await arm(bench, {**BUSY, "when": {"next": 3}})
    await send_message(bench)
    before = await show_fault(bench, fault)

    await bench.restart()
    after = await show_fault(bench, fault)
    statuses = [(await send_message(bench)).status for _ in range(3)]
    await bench.stop()

    assert before == after
    assert before["left"] == 2
    assert statuses == [503, 503, 200]


async def arm(bench: Bench, *faults: dict[str, Any]) -> list[dict[str, Any]]:
    """Arm faults and return them as the control API shows them."""
    response = await bench.control("POST", "faults", {"faults": list(faults)})
    assert response.status == 200, response.body
    return response.body["faults"]


async def show_fault(bench: Bench, fault: dict[str, Any]) -> dict[str, Any]:
    """Return the current state of a fault."""
    return (await bench.control("GET", f"faults/{fault['id']}")).body


async def send_message(bench: Bench, *, to: str = f"+{ANN}", **more: Any) -> SimulatorResponse:
    """Send a text message."""
    message = {**MESSAGE, "to": to}
    return await bench.graph("POST", f"{NUMBER_ID}/messages", json=message, **more)


async def list_deliveries(bench: Bench) -> list[dict[str, Any]]:
    """Return the messages that the operator accepted."""
    return (await bench.control("GET", "deliveries")).body["deliveries"]
