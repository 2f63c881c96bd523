"""Recorded exchanges: the requests of the adapter, and how it reads each response and each webhook.

Each file of `tests/operators/recorded` holds either calls with the operator's responses, or a webhook's
body with the events in it. The values are ours; the structure is the operator's.
"""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import parse_qsl

import msgspec
import pytest
from aiohttp import web

from tests.operators.conformance.conftest import ADAPTERS, DIRECT_CALLS, serve_handler
from tests.support.builders import ANN, APP, AT_MS, OPERATOR, message, template
from waypost.domain.app import OperatorAccount
from waypost.domain.media import UploadedMedia
from waypost.domain.message import Passthrough
from waypost.operators.contract import GraphRequest, Operator

FOLDER: Final = Path(__file__).parent.parent / "recorded"
RECORDED: Final = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
CALLS: Final = [name for name, recorded in RECORDED.items() if "do" in recorded]
WEBHOOKS: Final = [name for name, recorded in RECORDED.items() if "webhook" in recorded]
# fmt: off
WEBHOOK_KINDS: Final = {  # every kind of webhook. Source: operator's facts 3.3, 7.2, 7.3, 7.4
    "fields": {
        "messages", "message_template_status_update", "message_template_quality_update", "template_category_update",
        "message_template_components_update", "phone_number_quality_update", "account_update", "account_alerts",
        "business_capability_update", "user_preferences",
    },
    "statuses": {"sent", "delivered", "read", "played", "failed", "deleted", "warning"},
    "messages": {
        "text", "image", "video", "audio", "document", "sticker", "location", "contacts", "button", "interactive",
        "order", "reaction", "system", "unsupported", "edit", "revoke",
    },
    "interactive": {"button_reply", "list_reply", "nfm_reply", "call_permission_reply"},
    "events": {
        "APPROVED", "REJECTED", "PAUSED", "DISABLED", "PENDING_DELETION", "DELETED", "FLAGGED", "REINSTATED", "LOCKED",
        "ARCHIVED", "UNARCHIVED", "IN_APPEAL", "LIMIT_EXCEEDED",
    },
}
# fmt: on
PICTURE: Final = b"\x89PNG\r\n\x1a\n1234"


@dataclass
class Replay:
    """The operator of a recording: sends its responses in order, and stores the requests."""

    exchanges: Sequence[dict[str, Any]] = ()
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def handle(self, request: web.Request) -> web.StreamResponse:
        exchange = self.exchanges[len(self.requests)]
        received: dict[str, Any] = {
            "method": request.method,
            "path": request.path,
            "query": dict(request.query),
            "authorization": request.headers["Authorization"].partition(" ")[2],
        }
        if "body" in exchange["request"]:
            received["body"] = await request.json()
        else:
            await request.read()
        self.requests.append(received)
        response = exchange["response"]
        text = response["text"] if "text" in response else json.dumps(response["body"])
        headers = {"Content-Type": "application/json", **response.get("headers", {})}
        return web.Response(text=text, status=response["status"], headers=headers)

    @property
    def expected_requests(self) -> list[dict[str, Any]]:
        """The requests of the recording."""
        requests: list[dict[str, Any]] = []
        for exchange in self.exchanges:
            path, _, query = exchange["request"]["path"].partition("?")
            expected = {
                "method": exchange["request"]["method"],
                "path": path,
                "query": dict(parse_qsl(query)),
                "authorization": OPERATOR["token"],
            }
            if "body" in exchange["request"]:
                expected["body"] = exchange["request"]["body"]
            requests.append(expected)
        return requests


@dataclass
class ReplayHarness:
    """The operator of a recording, and our account there."""

    replay: Replay
    account: OperatorAccount
    folder: Path
    stack: AsyncExitStack

    async def adapter(self, name: str) -> Operator:
        """Open the adapter that a recording is for."""
        adapter = ADAPTERS[name].make()
        await adapter.open()
        self.stack.push_async_callback(adapter.close)
        return adapter


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[ReplayHarness]:
    async with AsyncExitStack() as stack:
        replay = Replay()
        url = await serve_handler(stack, replay.handle)
        yield ReplayHarness(replay, replace(OPERATOR, base_url=url), tmp_path, stack)


@pytest.mark.parametrize("name", CALLS)
async def test_recorded_call_has_its_outcome(harness: ReplayHarness, name: str) -> None:
    recorded = RECORDED[name]
    harness.replay.exchanges = recorded["exchanges"]
    adapter = await harness.adapter(recorded["adapter"])

    outcome = await make_call(adapter, harness, recorded["do"])

    assert harness.replay.requests == harness.replay.expected_requests
    assert_is(outcome, recorded["outcome"])


@pytest.mark.parametrize("name", WEBHOOKS)
async def test_recorded_webhook_has_its_events(harness: ReplayHarness, name: str) -> None:
    recorded = RECORDED[name]
    adapter = await harness.adapter(recorded["adapter"])

    items = adapter.split(harness.account, json.dumps(recorded["webhook"]).encode())

    first_by_key = {item.dedupe_key: item for item in reversed(items)}
    events = [adapter.read(item.payload) for item in items if first_by_key[item.dedupe_key] is item]
    assert len(events) == len(recorded["events"])
    for event, expected in zip(events, recorded["events"], strict=True):
        assert_is(event, expected)


def test_every_kind_of_webhook_is_recorded() -> None:
    recorded: dict[str, set[str]] = {kind: set() for kind in WEBHOOK_KINDS}
    bodies = [RECORDED[name]["webhook"] for name in WEBHOOKS]
    changes = [change for body in bodies for entry in body["entry"] for change in entry["changes"]]
    for change in changes:
        value = change["value"]
        messages = value.get("messages", [])
        recorded["fields"].add(change["field"])
        recorded["statuses"].update(status["status"] for status in value.get("statuses", []))
        recorded["messages"].update(message["type"] for message in messages)
        recorded["interactive"].update(
            message["interactive"]["type"] for message in messages if "interactive" in message
        )
        if change["field"] == "message_template_status_update":
            recorded["events"].add(value["event"].upper())

    assert {kind: WEBHOOK_KINDS[kind] - names for kind, names in recorded.items() if WEBHOOK_KINDS[kind] - names} == {}


@pytest.mark.parametrize("name", RECORDED)
def test_recording_states_its_reason_and_its_source(name: str) -> None:
    recorded = RECORDED[name]

    assert recorded["why"].endswith(".")
    assert recorded["source"]
    assert recorded["adapter"] in ADAPTERS


async def make_call(adapter: Operator, harness: ReplayHarness, do: dict[str, Any]) -> object:
    """Make the call of a recording, and return its outcome."""
    account = harness.account
    match do:
        case {"call": "send", "type": kind, "content": content}:
            outbound = message(content=Passthrough(kind, content), destination=do.get("to", ANN))
            reply_to = do.get("reply_to")
            return await adapter.send(account, APP, outbound, template=None, reply_to=reply_to, copies={})
        case {"call": "submit_template"}:
            return await adapter.submit_template(account, template(), {})
        case {"call": "edit_template", "operator_template_id": operator_id}:
            edited = template(operator_template_id=operator_id)
            return await adapter.edit_template(account, edited, {})
        case {"call": "delete_template", "operator_template_id": operator_id}:
            return await adapter.delete_template(account, template(operator_template_id=operator_id))
        case {"call": "upload_media"}:
            return await adapter.upload_media(account, APP, *picture(harness.folder))
        case {"call": "upload_sample"}:
            return await adapter.upload_sample(account, *picture(harness.folder))
        case {"call": "graph", **graph}:
            assert adapter.graph is not None
            return await adapter.graph.request(account, GraphRequest(**graph))
        case {"call": str(kind), **fields} if kind in DIRECT_CALLS:
            return await adapter.call(account, msgspec.convert(fields, DIRECT_CALLS[kind]))
        case _:
            raise AssertionError(f"unknown call: {do}")


def picture(folder: Path) -> tuple[UploadedMedia, Path]:
    """Write a file of twelve bytes; return its record and its path."""
    path = folder / "picture"
    path.write_bytes(PICTURE)
    media = UploadedMedia(
        id="1234567890123456",
        partner_id=7,
        app_id=APP.id,
        handle=None,
        mime_type="image/png",
        size_bytes=len(PICTURE),
        sha256="0" * 64,
        file_name="picture.png",
        created_on_ms=AT_MS,
        expires_on_ms=AT_MS + 1,
    )
    return media, path


def assert_is(value: object, expected: dict[str, Any]) -> None:
    """Assert that a value has this type and these attributes or items; other attributes are ignored."""
    assert type(value).__name__ == expected["is"], value
    if isinstance(value, dict):
        assert value == expected["members"]
        return
    if isinstance(value, list):
        items = cast("list[object]", value)
        assert len(items) == len(expected["items"])
        for item, expected_item in zip(items, expected["items"], strict=True):
            assert_is(item, expected_item)
        return
    attributes = {name: msgspec.to_builtins(getattr(value, name)) for name in expected if name != "is"}
    assert attributes == {name: member for name, member in expected.items() if name != "is"}
