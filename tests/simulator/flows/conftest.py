"""A Flow of two screens with an endpoint, and a published one."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio

from tests.simulator.conftest import NUMBER_ID, SECRET, WABA, Bench
from tests.support.flow_endpoint import FlowEndpoint, public_pem, running_flow_endpoint

DECLARED = {
    "times": {
        "type": "array",
        "items": {"type": "object", "properties": {"id": {"type": "string"}, "title": {"type": "string"}}},
        "__example__": [{"id": "1", "title": "9:00"}],
    },
    "count": {"type": "number", "__example__": 1},
}


def footer(label: str, action: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Footer", "label": label, "on-click-action": {"name": action, "payload": payload}}


def two_screens(version: str = "7.3", data_api_version: str = "4.0") -> dict[str, Any]:
    """Return a Flow whose endpoint leads from ASK over TIMES to the end."""
    layout = {"type": "SingleColumnLayout"}
    dropdown = {"type": "Dropdown", "name": "time", "label": "Time", "data-source": "${data.times}"}
    screens = [
        {
            "id": "ASK",
            "title": "Ask",
            "data": {},
            "layout": {**layout, "children": [footer("Next", "data_exchange", {})]},
        },
        {
            "id": "TIMES",
            "title": "Times",
            "terminal": True,
            "data": DECLARED,
            "layout": {**layout, "children": [dropdown, footer("Book", "data_exchange", {"time": "${form.time}"})]},
        },
    ]
    routes: dict[str, list[str]] = {"ASK": ["TIMES"], "TIMES": []}
    return {"version": version, "data_api_version": data_api_version, "routing_model": routes, "screens": screens}


def answer_booking(request: dict[str, Any]) -> dict[str, Any]:
    """Respond to the requests of `two_screens` as documented."""
    match request:
        case {"action": "ping"}:
            return {"data": {"status": "active"}}
        case {"data": {"error": str()}}:
            return {"data": {"acknowledged": True}}
        case {"action": "INIT" | "BACK"}:
            return {"screen": "ASK", "data": {}}
        case {"screen": "ASK"}:
            return {"screen": "TIMES", "data": {"times": [{"id": "1", "title": "9:00"}], "count": 1}}
        case _:
            params = {"flow_token": request["flow_token"], **request["data"]}
            return {"screen": "SUCCESS", "data": {"extension_message_response": {"params": params}}}


async def publish_booking(bench: Bench, endpoint: FlowEndpoint, **changes: Any) -> str:
    """Publish a Flow of `two_screens` with this endpoint; return its id."""
    key = {"business_public_key": public_pem()}
    await bench.graph("POST", f"{NUMBER_ID}/whatsapp_business_encryption", json=key)
    endpoint.respond = answer_booking
    flow = {"name": "booking", "categories": ["OTHER"], "endpoint_uri": endpoint.url, "publish": True}
    content = json.dumps({**two_screens(), **changes})
    created = await bench.graph("POST", f"{WABA}/flows", json={**flow, "flow_json": content})
    assert created.body.get("validation_errors") == [], created.body
    endpoint.requests.clear()
    return created.body["id"]


async def exchange(bench: Bench, flow_id: str, action: str = "INIT", **more: Any) -> dict[str, Any]:
    """Let a handset send a request to the endpoint of a Flow; return the exchange."""
    response = await bench.control("POST", f"flows/{flow_id}/exchanges", {"action": action, **more})
    assert response.status == 200, response.body
    return response.body


@pytest_asyncio.fixture
async def endpoint() -> AsyncIterator[FlowEndpoint]:
    async with running_flow_endpoint(SECRET) as running:
        yield running
