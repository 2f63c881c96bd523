"""Flows that scripts fill in, on one phone or on each phone of a fleet."""

import json
from typing import Any

import pytest

from tests.simulator.conftest import ANN, BUSINESS, NUMBER_ID, Bench
from tests.simulator.flows.test_sessions import ASK_AND_SHOW, open_flow, publish_flow, replies, send_flow
from tests.support.manual_clock import ManualClock
from tests.support.polling import poll_until
from waypost.simulator.apis import endpoint_client

FILL_IN: list[dict[str, Any]] = [{"fill": {"name": "Bo"}}, {"tap": "Next"}, {"tap": "Done"}]


def flow_message(flow_id: str, phone: str) -> dict[str, Any]:
    parameters = {"flow_message_version": "3", "flow_id": flow_id, "flow_cta": "Book", "flow_token": f"t-{phone}"}
    content = {"type": "flow", "body": {"text": "Book?"}, "action": {"name": "flow", "parameters": parameters}}
    return {"messaging_product": "whatsapp", "to": phone, "type": "interactive", "interactive": content}


async def test_each_phone_of_a_fleet_fills_in_its_flow(bench: Bench) -> None:
    script = [{"on": "form", "do": "play", "steps": FILL_IN}]
    fleet = {"name": "crowd", "first": "15551000000", "count": 5, "seed": 7, "script": script}
    assert (await bench.control("POST", "fleets", {**fleet, "open_window_to": BUSINESS})).status == 200
    flow_id = await publish_flow(bench, ASK_AND_SHOW)
    phones = [f"1555100000{number}" for number in range(5)]

    for phone in phones:
        sent = await bench.graph("POST", f"{NUMBER_ID}/messages", json=flow_message(flow_id, phone))
        assert sent.status == 200, sent.body

    answers = await poll_until(lambda: replies(bench), lambda found: len(found) == 5)
    values = [json.loads(one["interactive"]["nfm_reply"]["response_json"]) for one in answers]
    assert {one["from"]: value for one, value in zip(answers, values, strict=True)} == {
        phone: {"flow_token": f"t-{phone}", "name": "Bo"} for phone in phones
    }
    crowd = await poll_until(lambda: bench.control("GET", "fleets/crowd"), lambda it: it.body["steps"][0]["done"] == 5)
    assert crowd.body["counts"]["forms"] == 5


async def test_flows_beyond_what_is_filled_in_at_once_wait_their_turn(
    slow: Bench, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_client, "_MAX_TASKS", 1)
    script = [{"on": "form", "do": "play", "steps": FILL_IN}]
    fleet = {"name": "crowd", "first": "15551000000", "count": 3, "script": script, "open_window_to": BUSINESS}
    assert (await slow.control("POST", "fleets", fleet)).status == 200
    flow_id = await publish_flow(slow, ASK_AND_SHOW)
    for number in range(3):
        sent = await slow.graph("POST", f"{NUMBER_ID}/messages", json=flow_message(flow_id, f"1555100000{number}"))
        assert sent.status == 200, sent.body

    async def pass_a_second() -> list[dict[str, Any]]:
        clock.advance(ms=1000)
        return await replies(slow)

    answers = await poll_until(pass_a_second, lambda found: len(found) == 3)
    assert {one["from"] for one in answers} == {"15551000000", "15551000001", "15551000002"}


async def test_script_that_the_handset_does_not_allow_leaves_the_flow_open(bench: Bench) -> None:
    script = [{"on": "form", "do": "play", "steps": [{"fill": {"name": "B"}}, {"tap": "Next"}]}]
    assert (await bench.control("PUT", f"phones/{ANN}", {"script": script})).status == 200
    await send_flow(bench, await publish_flow(bench, ASK_AND_SHOW))

    async def shown() -> dict[str, Any]:
        return (await bench.control("GET", f"phones/{ANN}/flow")).body

    def has_error(body: dict[str, Any]) -> bool:
        return any(one.get("error") for one in body.get("view", {}).get("components", []))

    stopped = await poll_until(shown, has_error)
    assert stopped["view"]["screen_id"] == "ASK"
    assert await replies(bench) == []
    assert (await open_flow(bench)).status == 200


async def test_message_without_a_flow_is_not_played(bench: Bench) -> None:
    script = [{"on": "message", "do": "play", "steps": FILL_IN}, {"on": "message", "do": "reply", "text": "Hm?"}]
    assert (await bench.control("PUT", f"phones/{ANN}", {"script": script})).status == 200
    await bench.control("POST", f"phones/{ANN}/messages", {"to": BUSINESS, "text": "hello"})
    body = {"messaging_product": "whatsapp", "to": ANN, "type": "text", "text": {"body": "Hi"}}
    assert (await bench.graph("POST", f"{NUMBER_ID}/messages", json=body)).status == 200

    def answered() -> list[Any]:
        messages = [one for value in bench.receiver.changes() for one in value.get("messages", [])]
        return [one for one in messages if one.get("text") == {"body": "Hm?"}]

    assert await bench.receiver.wait_until(answered)
    assert (await bench.control("GET", f"phones/{ANN}/flow")).status == 404


@pytest.mark.parametrize(
    ("steps", "field"),
    [
        ([], "script[0].steps"),
        ([{"tap": "Next"}] * 101, "script[0].steps"),
        ([{"tap": "Next"}, {"tap": ""}], "script[0].steps[1]"),
        ([{"tap": "Next", "back": True}], "script[0].steps[0]"),
        ([{"upload": {"name": "photos", "content": "eA=="}}], "script[0].steps[0]"),
        ([{"back": False}], "script[0].steps[0]"),
        (["tap"], "script[0].steps[0]"),
        (5, "script[0].steps"),
    ],
)
async def test_steps_are_checked_before_a_script_is_kept(bench: Bench, steps: Any, field: str) -> None:
    script = [{"on": "form", "do": "play", "steps": steps}]

    refused = await bench.control("PUT", f"phones/{ANN}", {"script": script})

    assert (refused.status, refused.body["field"]) == (400, field)
