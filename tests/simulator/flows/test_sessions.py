"""Flows that are played on phones over the control API: screens, endpoints, restarts, files."""

import asyncio
import base64
import hashlib
import hmac
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from tests.simulator.conftest import ANN, BUSINESS, NUMBER_ID, SECRET, WABA, Bench, SimulatorResponse
from tests.support.flow_components import footer, navigate, screen, text_data
from tests.support.flow_endpoint import PING_RESPONSE, FlowEndpoint, public_pem, running_flow_endpoint
from tests.support.polling import HANGS_AFTER_S
from waypost.simulator.flows.sessions import MAX_PREVIEW_SESSIONS

NAME = {"type": "TextInput", "name": "name", "label": "Name", "required": True, "min-chars": 2}
ASK_AND_SHOW: dict[str, Any] = {
    "version": "7.3",
    "screens": [
        screen("ASK", NAME, footer("Next", navigate("SHOW", name="${form.name}"))),
        screen(
            "SHOW",
            {"type": "TextBody", "text": "${data.name}"},
            footer("Done", {"name": "complete", "payload": {"name": "${data.name}"}}),
            terminal=True,
            data=text_data("name"),
        ),
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


async def set_key(bench: Bench) -> None:
    path = f"{NUMBER_ID}/whatsapp_business_encryption"
    assert (await bench.graph("POST", path, json={"business_public_key": public_pem()})).status == 200


WITH_ENDPOINT: dict[str, Any] = {
    "version": "7.3",
    "data_api_version": "3.0",
    "routing_model": {"ASK": ["SHOW"], "SHOW": []},
    "screens": [
        screen(
            "ASK",
            {"type": "TextInput", "name": "name", "label": "Name"},
            footer("Next", {"name": "data_exchange", "payload": {"name": "${form.name}"}}),
        ),
        screen(
            "SHOW",
            {"type": "TextBody", "text": "${data.text}"},
            footer("Done", {"name": "data_exchange", "payload": {}}),
            terminal=True,
            data=text_data("text"),
        ),
    ],
}


@pytest_asyncio.fixture
async def endpoint() -> AsyncIterator[FlowEndpoint]:
    async with running_flow_endpoint(SECRET) as running:
        running.respond = respond
        yield running


def respond(request: dict[str, Any]) -> Any:
    """Respond as a business that greets, and then ends the Flow."""
    match request["action"], request.get("screen"):
        case "ping", _:
            return PING_RESPONSE
        case "INIT", _:
            return {"screen": "ASK", "data": {}}
        case "data_exchange", "ASK":
            return {"screen": "SHOW", "data": {"text": f"Hello {request['data']['name']}"}}
        case _:
            params = {"flow_token": request["flow_token"], "greeted": True}
            return {"screen": "SUCCESS", "data": {"extension_message_response": {"params": params}}}


async def publish_endpoint_flow(bench: Bench, endpoint: FlowEndpoint) -> str:
    await set_key(bench)
    return await publish_flow(bench, WITH_ENDPOINT, endpoint_uri=endpoint.url)


def played(endpoint: FlowEndpoint) -> list[dict[str, Any]]:
    """Return the requests of handsets, without the health checks."""
    return [request for request in endpoint.requests if request["action"] != "ping"]


async def test_endpoint_decides_the_screens_until_it_ends_the_flow(bench: Bench, endpoint: FlowEndpoint) -> None:
    flow_id = await publish_endpoint_flow(bench, endpoint)
    await send_flow(bench, flow_id, flow_action="data_exchange")

    opened = await open_flow(bench)
    shown = await steps(bench, {"fill": {"name": "Bo"}}, {"tap": "Next"})
    ended = await steps(bench, {"tap": "Done"})

    assert opened.body["view"]["screen_id"] == "ASK"
    assert [one["text"] for one in shown.body["view"]["components"] if one["type"] == "TextBody"] == ["Hello Bo"]
    assert [event["type"] for event in ended.body["events"]] == ["exchange", "completed"]
    requests = played(endpoint)
    assert [(one["action"], one.get("screen"), one.get("data")) for one in requests] == [
        ("INIT", None, None),
        ("data_exchange", "ASK", {"name": "Bo"}),
        ("data_exchange", "SHOW", {}),
    ]
    assert {(one["version"], one["flow_token"]) for one in requests} == {("3.0", "t-1")}
    [reply] = await replies(bench)
    assert json.loads(reply["interactive"]["nfm_reply"]["response_json"]) == {"flow_token": "t-1", "greeted": True}


async def test_invalid_token_disables_the_button_for_good(bench: Bench, endpoint: FlowEndpoint) -> None:
    wamid = await send_flow(bench, await publish_endpoint_flow(bench, endpoint))
    await open_flow(bench)
    endpoint.status = 427
    endpoint.respond = lambda _request: {"error_msg": "Already ordered"}

    ended = await steps(bench, {"tap": "Next"})
    again = await open_flow(bench, message_id=wamid)

    assert (ended.body["view"]["state"], ended.body["view"]["error"]) == ("token_invalid", "Already ordered")
    assert (again.status, again.body["rule"]) == (409, f"the button is disabled: {ended.body['view']['error']}")


async def test_failing_endpoint_shows_the_general_error_and_can_be_tried_again(
    bench: Bench, endpoint: FlowEndpoint
) -> None:
    await send_flow(bench, await publish_endpoint_flow(bench, endpoint))
    await open_flow(bench)
    endpoint.status = 500

    failed = await steps(bench, {"fill": {"name": "Bo"}}, {"tap": "Next"})
    endpoint.status = 200
    repeated = await steps(bench, {"refresh": True})

    assert failed.body["view"]["snackbar"] == "Something went wrong. Please try again later."
    assert failed.body["events"][0]["error_type"] == "unexpected_http_status_code"
    assert repeated.body["view"]["screen_id"] == "SHOW"


async def test_screen_that_the_routing_model_forbids_is_told_to_the_endpoint(
    bench: Bench, endpoint: FlowEndpoint
) -> None:
    await send_flow(bench, await publish_endpoint_flow(bench, endpoint))
    await open_flow(bench)
    endpoint.respond = lambda request: (
        {"data": {"acknowledged": True}} if "error" in request.get("data", {}) else {"screen": "NOWHERE", "data": {}}
    )

    failed = await steps(bench, {"tap": "Next"})

    assert failed.body["view"]["snackbar"]
    async with asyncio.timeout(HANGS_AFTER_S):
        while not (notices := [one["data"] for one in played(endpoint) if "error" in one.get("data", {})]):  # noqa: ASYNC110  there is no event for it
            await asyncio.sleep(0.001)
    assert notices[0]["error"] == "invalid-screen-transition"


async def test_flow_goes_on_after_a_restart(bench: Bench) -> None:
    await send_flow(bench, await publish_flow(bench, ASK_AND_SHOW))
    await open_flow(bench)
    await steps(bench, {"fill": {"name": "Bo"}}, {"tap": "Next"})

    await bench.restart()
    shown = await bench.control("GET", f"phones/{ANN}/flow")
    ended = await steps(bench, {"tap": "Done"})

    assert shown.body["view"]["screen_id"] == "SHOW"
    assert ended.body["view"]["state"] == "completed"


async def test_closed_flow_is_opened_where_it_was_left(bench: Bench) -> None:
    await send_flow(bench, await publish_flow(bench, ASK_AND_SHOW))
    await open_flow(bench)
    closed = await steps(bench, {"fill": {"name": "Bo"}}, {"close": True})
    early = await steps(bench, {"tap": "Next"})

    resumed = await open_flow(bench)
    anew = await open_flow(bench, restart=True)

    assert closed.body["view"]["state"] == "closed"
    assert early.status == 409
    assert [one.body["view"]["components"][0]["value"] for one in (resumed, anew)] == ["Bo", ""]


async def test_message_opens_the_version_with_which_it_was_sent(bench: Bench) -> None:
    flow_id = await publish_flow(bench, ASK_AND_SHOW)
    first = await send_flow(bench, flow_id)

    async def publish_again() -> None:
        text = json.dumps(ASK_AND_SHOW).replace("Name", "Full name")
        form = aiohttp.FormData({"name": "flow.json", "asset_type": "FLOW_JSON"})
        form.add_field("file", io.BytesIO(text.encode()), filename="flow.json", content_type="application/json")
        assert (await bench.graph("POST", f"{flow_id}/assets", data=form)).body["success"]
        assert (await bench.graph("POST", f"{flow_id}/publish")).body == {"success": True}

    await publish_again()
    second = await send_flow(bench, flow_id)
    labels = [
        (await open_flow(bench, message_id=wamid)).body["view"]["components"][0]["label"] for wamid in (first, second)
    ]
    for _ in range(4):
        await publish_again()
    too_old = await open_flow(bench, message_id=first, restart=True)

    assert labels == ["Name", "Full name"]
    assert (too_old.status, too_old.body["rule"]) == (409, f"version 1 of {flow_id} can no longer be opened")


async def test_draft_is_opened_only_in_its_mode_and_a_blocked_flow_never(bench: Bench) -> None:
    body = {"name": "draft", "categories": ["OTHER"], "flow_json": json.dumps(ASK_AND_SHOW)}
    flow_id = (await bench.graph("POST", f"{WABA}/flows", json=body)).body["id"]
    wamid = await send_flow(bench, flow_id, mode="draft")

    opened = await open_flow(bench)
    await bench.control("PUT", f"flows/{flow_id}/status", {"status": "BLOCKED"})
    blocked = await open_flow(bench, message_id=wamid, restart=True)

    assert opened.body["is_draft"] is True
    assert (blocked.status, blocked.body["rule"]) == (409, f"{flow_id} is blocked")


async def test_button_of_a_template_opens_its_flow(bench: Bench) -> None:
    flow_id = await publish_flow(bench, ASK_AND_SHOW)
    button = {"type": "FLOW", "text": "Book", "flow_id": flow_id, "flow_action": "navigate", "navigate_screen": "SHOW"}
    body = {"type": "BODY", "text": "Book?"}
    await bench.seed_template([body, {"type": "BUTTONS", "buttons": [button]}], category="MARKETING")
    action = {"flow_token": "t-2", "flow_action_data": {"name": "Ann"}}
    parameters = [{"type": "action", "action": action}]
    sent = await bench.send_template([{"type": "button", "sub_type": "flow", "index": "0", "parameters": parameters}])
    assert sent.status == 200, sent.body

    opened = await open_flow(bench)
    await steps(bench, {"tap": "Done"})

    assert (opened.body["view"]["screen_id"], opened.body["flow_token"]) == ("SHOW", "t-2")
    [reply] = await replies(bench)
    assert json.loads(reply["interactive"]["nfm_reply"]["response_json"]) == {"flow_token": "t-2", "name": "Ann"}


async def test_template_may_have_the_flow_itself(bench: Bench) -> None:
    button = {"type": "FLOW", "text": "Book", "flow_json": json.dumps(ASK_AND_SHOW)}
    await bench.seed_template(
        [{"type": "BODY", "text": "Book?"}, {"type": "BUTTONS", "buttons": [button]}], category="MARKETING"
    )
    sent = await bench.send_template([{"type": "button", "sub_type": "flow", "index": "0", "parameters": []}])
    assert sent.status == 200, sent.body

    opened = await open_flow(bench)

    assert opened.body["view"]["screen_id"] == "ASK"


async def test_files_reach_the_endpoint_encrypted_and_the_business_as_media(
    bench: Bench, endpoint: FlowEndpoint
) -> None:
    picker = {"type": "PhotoPicker", "name": "photos", "label": "Photos", "max-uploaded-photos": 2}
    exchange = {"name": "data_exchange", "payload": {"photos": "${form.photos}"}}
    flow = {
        **WITH_ENDPOINT,
        "routing_model": {"ASK": ["END"], "END": []},
        "screens": [
            screen("ASK", picker, footer("Next", exchange)),
            screen(
                "END",
                footer("Done", {"name": "complete", "payload": {"photos": "${screen.ASK.form.photos}"}}),
                terminal=True,
            ),
        ],
    }
    endpoint.respond = lambda request: PING_RESPONSE if request["action"] == "ping" else {"screen": "END", "data": {}}
    await set_key(bench)
    await send_flow(bench, await publish_flow(bench, flow, endpoint_uri=endpoint.url))
    await open_flow(bench)
    content = b"a picture" * 100

    upload = {"name": "photos", "file_name": "a.png", "mime_type": "image/png"}
    added = await steps(bench, {"upload": {**upload, "content": base64.b64encode(content).decode()}})
    await steps(bench, {"tap": "Next"}, {"tap": "Done"})

    [file] = added.body["view"]["components"][0]["files"]
    assert (file["file_name"], file["size_bytes"]) == ("a.png", len(content))
    [shown] = played(endpoint)[-1]["data"]["photos"]
    assert set(shown) == {"media_id", "cdn_url", "file_name", "encryption_metadata"}
    async with bench.http.get(shown["cdn_url"]) as response:
        stored = await response.read()
    assert decrypt(stored, shown["encryption_metadata"]) == content
    [reply] = await replies(bench)
    [medium] = json.loads(reply["interactive"]["nfm_reply"]["response_json"])["photos"]
    digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
    assert (medium["file_name"], medium["mime_type"], medium["sha256"]) == ("a.png", "image/png", digest)
    read = await bench.graph("GET", medium["id"])
    assert read.body["file_size"] == len(content)


def decrypt(stored: bytes, metadata: dict[str, str]) -> bytes:
    """Return the file at a `cdn_url`, after the checks that the operator's page shows."""
    key, hmac_key, vector = (base64.b64decode(metadata[name]) for name in ("encryption_key", "hmac_key", "iv"))
    assert base64.b64encode(hashlib.sha256(stored).digest()).decode() == metadata["encrypted_hash"]
    data, mac = stored[:-10], stored[-10:]
    assert hmac.new(hmac_key, vector + data, hashlib.sha256).digest()[:10] == mac
    decryptor = Cipher(AES(key), CBC(vector)).decryptor()
    padded = decryptor.update(data) + decryptor.finalize()
    content = padded[: -padded[-1]]
    assert base64.b64encode(hashlib.sha256(content).digest()).decode() == metadata["plaintext_hash"]
    return content


async def test_preview_plays_a_text_or_a_draft_without_a_phone(bench: Bench) -> None:
    text = json.dumps(ASK_AND_SHOW)
    opened = await bench.control("POST", "flow-sessions", {"flow_json": text, "flow_token": "t-3"})
    path = f"flow-sessions/{opened.body['session_id']}"

    await bench.control("POST", f"{path}/steps", {"steps": [{"fill": {"name": "Bo"}}, {"tap": "Next"}]})
    shown = await bench.control("GET", path)
    ended = await bench.control("POST", f"{path}/steps", {"steps": [{"tap": "Done"}]})
    broken = await bench.control("POST", "flow-sessions", {"flow_json": text.replace("TextBody", "TextBodies")})

    assert shown.body["view"]["screen_id"] == "SHOW"
    assert ended.body["events"] == [{"type": "completed", "response": {"flow_token": "t-3", "name": "Bo"}}]
    assert (broken.status, broken.body["field"]) == (422, "flow_json")


WRONG_STEPS: list[tuple[dict[str, Any], str]] = [
    ({"steps": []}, "steps"),
    ({"steps": [{}]}, "steps[0]"),
    ({"steps": [{"tap": "Next", "back": True}]}, "steps[0]"),
    ({"steps": [{"back": False}]}, "steps[0]"),
    ({"steps": [{"fill": {"nobody": "x"}}]}, "steps[0]"),
    ({"steps": [{"upload": {"name": "name", "content": "eA=="}}]}, "steps[0]"),
    ({"steps": [{"unknown": 1}]}, "steps[0].unknown"),
    ({"steps": [{"tap": "Next"}] * 101}, "steps"),
]


@pytest.mark.parametrize(("body", "field"), WRONG_STEPS)
async def test_wrong_step_is_named(bench: Bench, body: dict[str, Any], field: str) -> None:
    opened = await bench.control("POST", "flow-sessions", {"flow_json": json.dumps(ASK_AND_SHOW)})

    wrong = await bench.control("POST", f"flow-sessions/{opened.body['session_id']}/steps", body)

    assert (wrong.status in (400, 409), wrong.body["field"]) == (True, field)


async def test_oldest_sessions_are_deleted(bench: Bench) -> None:
    opened = [
        (await bench.control("POST", "flow-sessions", {"flow_json": json.dumps(ASK_AND_SHOW)})).body["session_id"]
        for _ in range(MAX_PREVIEW_SESSIONS + 1)
    ]

    found = [(await bench.control("GET", f"flow-sessions/{one}")).status for one in (opened[0], opened[1], opened[-1])]

    assert found == [404, 200, 200]


async def test_preview_plays_the_draft_or_a_published_version(bench: Bench) -> None:
    flow_id = await publish_flow(bench, ASK_AND_SHOW)
    text = json.dumps(ASK_AND_SHOW).replace("Name", "Full name")
    form = aiohttp.FormData({"name": "flow.json", "asset_type": "FLOW_JSON"})
    form.add_field("file", io.BytesIO(text.encode()), filename="flow.json", content_type="application/json")
    await bench.graph("POST", f"{flow_id}/assets", data=form)

    opened = [
        await bench.control("POST", "flow-sessions", {"flow_id": flow_id, "version": version}) for version in (0, 1, 2)
    ]

    assert [one.status for one in opened] == [200, 200, 409]
    shown = [(one.body["is_draft"], one.body["view"]["components"][0]["label"]) for one in opened[:2]]
    assert shown == [(True, "Full name"), (False, "Name")]


async def test_file_is_uploaded_by_its_media_id_and_can_be_removed(bench: Bench) -> None:
    picker = {"type": "DocumentPicker", "name": "papers", "label": "Papers", "max-uploaded-documents": 1}
    end = footer("Send", {"name": "complete", "payload": {"papers": "${form.papers}"}})
    flow = {"version": "7.3", "screens": [screen("ONE", picker, end, terminal=True)]}
    opened = await bench.control("POST", "flow-sessions", {"flow_json": json.dumps(flow)})
    file = {"to": BUSINESS, "mime_type": "application/pdf", "file_name": "a.pdf"}
    content = base64.b64encode(bytes(700_000)).decode()
    stored = await bench.control("POST", "media", {**file, "content": content})
    path = f"flow-sessions/{opened.body['session_id']}/steps"

    upload = {"upload": {"name": "papers", "media_id": stored.body["media_id"]}}
    added = await bench.control("POST", path, {"steps": [upload]})
    second = await bench.control("POST", path, {"steps": [upload]})
    [shown] = added.body["view"]["components"][0]["files"]
    removed = await bench.control("POST", path, {"steps": [{"remove": {"papers": shown["media_id"]}}]})

    assert (shown["file_name"], shown["mime_type"], shown["size_bytes"]) == ("a.pdf", "application/pdf", 700_000)
    assert (second.status, second.body["rule"]) == (409, "papers: max-uploaded-documents is 1")
    assert "files" not in removed.body["view"]["components"][0]


async def test_session_is_played_by_one_call_at_a_time(bench: Bench, endpoint: FlowEndpoint) -> None:
    await send_flow(bench, await publish_endpoint_flow(bench, endpoint))
    await open_flow(bench)

    both = await asyncio.gather(*(steps(bench, {"tap": "Next"}) for _ in range(2)))

    assert sorted(one.status for one in both) == [200, 409]
    assert len(played(endpoint)) == 1
