"""Flows that are played on phones over the control API: screens, endpoints, restarts, answers."""

import json
from typing import Any

from tests.simulator.conftest import ANN, BUSINESS, NUMBER_ID, WABA, Bench, SimulatorResponse

ASK_AND_SHOW: dict[str, Any] = {
    "version": "7.3",
    "screens": [
        {
            "id": "ASK",
            "title": "Ask",
            "layout": {
                "type": "SingleColumnLayout",
                "children": [
                    {"type": "TextInput", "name": "name", "label": "Name", "required": True, "min-chars": 2},
                    {
                        "type": "Footer",
                        "label": "Next",
                        "on-click-action": {
                            "name": "navigate",
                            "next": {"type": "screen", "name": "SHOW"},
                            "payload": {"name": "${form.name}"},
                        },
                    },
                ],
            },
        },
        {
            "id": "SHOW",
            "title": "Show",
            "terminal": True,
            "data": {"name": {"type": "string", "__example__": "Bo"}},
            "layout": {
                "type": "SingleColumnLayout",
                "children": [
                    {"type": "TextBody", "text": "${data.name}"},
                    {
                        "type": "Footer",
                        "label": "Done",
                        "on-click-action": {"name": "complete", "payload": {"name": "${data.name}"}},
                    },
                ],
            },
        },
    ],
}


async def publish_flow(bench: Bench, flow: dict[str, Any], **more: Any) -> str:
    body = {"name": "booking", "categories": ["OTHER"], "flow_json": json.dumps(flow), **more}
    created = await bench.graph("POST", f"{WABA}/flows", json=body)
    assert created.body["validation_errors"] == []
    published = await bench.graph("POST", f"{created.body['id']}/publish")
    assert published.body == {"success": True}, published.body
    return created.body["id"]


async def send_flow(bench: Bench, flow_id: str, **more: Any) -> str:
    parameters = {"flow_message_version": "3", "flow_id": flow_id, "flow_cta": "Book", "flow_token": "t-1", **more}
    action = {"name": "flow", "parameters": parameters}
    content = {"type": "flow", "body": {"text": "Book?"}, "action": action}
    body = {"messaging_product": "whatsapp", "to": ANN, "type": "interactive", "interactive": content}
    await bench.control("POST", f"phones/{ANN}/messages", {"to": BUSINESS, "text": "hello"})
    sent = await bench.graph("POST", f"{NUMBER_ID}/messages", json=body)
    assert sent.status == 200, sent.body
    return sent.body["messages"][0]["id"]


async def open_flow(bench: Bench, **more: Any) -> SimulatorResponse:
    return await bench.control("POST", f"phones/{ANN}/flow", {"wait_ms": 5000, **more})


async def steps(bench: Bench, *steps: dict[str, Any], **more: Any) -> SimulatorResponse:
    return await bench.control("POST", f"phones/{ANN}/flow/steps", {"steps": list(steps), **more})


async def replies(bench: Bench) -> list[dict[str, Any]]:
    """Return the messages with answers that the business has received."""
    await bench.wait_until_drained()
    messages = [one for value in bench.receiver.changes() for one in value.get("messages", [])]
    return [one for one in messages if one["type"] == "interactive"]


async def test_flow_is_filled_in_and_its_answers_reach_the_business(bench: Bench) -> None:
    wamid = await send_flow(bench, await publish_flow(bench, ASK_AND_SHOW))

    opened = await open_flow(bench)
    early = await steps(bench, {"fill": {"name": "B"}}, {"tap": "Next"})
    shown = await steps(bench, {"fill": {"name": "Bo"}}, {"tap": "Next"})
    ended = await steps(bench, {"tap": "Done"})
    again = await open_flow(bench, message_id=wamid)

    assert opened.body["view"]["screen_id"] == "ASK"
    assert (early.status, early.body["field"], early.body["rule"]) == (
        409,
        "steps[1]",
        "name: min-chars: Enter at least 2 characters.",
    )
    assert [one["text"] for one in shown.body["view"]["components"] if one["type"] == "TextBody"] == ["Bo"]
    assert ended.body["view"]["state"] == "completed"
    assert ended.body["view"]["summary"] == [{"label": "Name", "value": "Bo"}]
    assert again.status == 409
    [reply] = await replies(bench)
    assert reply["context"]["id"] == wamid
    assert json.loads(reply["interactive"]["nfm_reply"]["response_json"]) == {"flow_token": "t-1", "name": "Bo"}
