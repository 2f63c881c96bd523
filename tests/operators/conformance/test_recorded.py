"""Recorded exchanges: what the adapter asks, and what it makes of each answer and each webhook.

Each file of `tests/operators/recorded` holds either calls with the operator's answers, or a webhook's
body with the events in it. The values are ours; the shapes are the operator's.
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

from tests.operators.conformance.conftest import ADAPTERS, DIRECT_CALLS, serving
from tests.support.builders import ANN, APP, AT_MS, OPERATOR, message, template
from waypost.domain.app import OperatorAccount
from waypost.domain.media import UploadedMedia
from waypost.domain.message import Passthrough
from waypost.operators.contract import Operator

FOLDER: Final = Path(__file__).parent.parent / "recorded"
RECORDED: Final = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
CALLS: Final = [name for name, one in RECORDED.items() if "do" in one]
WEBHOOKS: Final = [name for name, one in RECORDED.items() if "webhook" in one]
# fmt: off
KINDS: Final = {  # every kind of webhook there is. Source: operator's facts 3.3, 7.2, 7.3, 7.4
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
    """The operator of a recording: answers in its order, and keeps what it was asked."""

    exchanges: Sequence[dict[str, Any]] = ()
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def handle(self, request: web.Request) -> web.StreamResponse:
        wanted = self.exchanges[len(self.asked)]
        asked: dict[str, Any] = {
            "method": request.method,
            "path": request.path,
            "query": dict(request.query),
            "authorization": request.headers["Authorization"].partition(" ")[2],
        }
        if "body" in wanted["request"]:
            asked["body"] = await request.json()
        else:
            await request.read()
        self.asked.append(asked)
        answer = wanted["response"]
        text = answer["text"] if "text" in answer else json.dumps(answer["body"])
        headers = {"Content-Type": "application/json", **answer.get("headers", {})}
        return web.Response(text=text, status=answer["status"], headers=headers)

    @property
    def wanted(self) -> list[dict[str, Any]]:
        """What the recording says that it is asked."""
        found: list[dict[str, Any]] = []
        for one in self.exchanges:
            path, _, query = one["request"]["path"].partition("?")
            wanted = {
                "method": one["request"]["method"],
                "path": path,
                "query": dict(parse_qsl(query)),
                "authorization": OPERATOR["token"],
            }
            if "body" in one["request"]:
                wanted["body"] = one["request"]["body"]
            found.append(wanted)
        return found


@dataclass
class Desk:
    """The operator of a recording, and our account at it."""

    replay: Replay
    account: OperatorAccount
    folder: Path
    stack: AsyncExitStack

    async def adapter(self, name: str) -> Operator:
        """The adapter that a recording is for."""
        adapter = ADAPTERS[name].make()
        await adapter.open()
        self.stack.push_async_callback(adapter.close)
        return adapter


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        replay = Replay()
        url = await serving(stack, replay.handle)
        yield Desk(replay, replace(OPERATOR, base_url=url), tmp_path, stack)


@pytest.mark.parametrize("name", CALLS)
async def test_recorded_call_has_its_outcome(desk: Desk, name: str) -> None:
    recorded = RECORDED[name]
    desk.replay.exchanges = recorded["exchanges"]
    adapter = await desk.adapter(recorded["adapter"])

    outcome = await call(adapter, desk, recorded["do"])

    assert desk.replay.asked == desk.replay.wanted
    assert_is(outcome, recorded["outcome"])


@pytest.mark.parametrize("name", WEBHOOKS)
async def test_recorded_webhook_has_its_events(desk: Desk, name: str) -> None:
    recorded = RECORDED[name]
    adapter = await desk.adapter(recorded["adapter"])

    items = adapter.split(desk.account, json.dumps(recorded["webhook"]).encode())

    news = {item.dedupe_key: item for item in reversed(items)}
    events = [adapter.read(item.payload) for item in items if news[item.dedupe_key] is item]
    assert len(events) == len(recorded["events"])
    for event, wanted in zip(events, recorded["events"], strict=True):
        assert_is(event, wanted)


def test_every_kind_of_webhook_is_recorded() -> None:
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    bodies = [RECORDED[name]["webhook"] for name in WEBHOOKS]
    changes = [one for body in bodies for entry in body["entry"] for one in entry["changes"]]
    for change in changes:
        value = change["value"]
        messages = value.get("messages", [])
        found["fields"].add(change["field"])
        found["statuses"].update(one["status"] for one in value.get("statuses", []))
        found["messages"].update(one["type"] for one in messages)
        found["interactive"].update(one["interactive"]["type"] for one in messages if "interactive" in one)
        if change["field"] == "message_template_status_update":
            found["events"].add(value["event"].upper())

    assert {kind: KINDS[kind] - there for kind, there in found.items() if KINDS[kind] - there} == {}


@pytest.mark.parametrize("name", RECORDED)
def test_recording_says_why_and_whence(name: str) -> None:
    recorded = RECORDED[name]

    assert recorded["why"].endswith(".")
    assert recorded["source"]
    assert recorded["adapter"] in ADAPTERS


async def call(adapter: Operator, desk: Desk, do: dict[str, Any]) -> object:
    """Carry out what a recording does."""
    account = desk.account
    match do:
        case {"call": "send", "type": kind, "content": content}:
            wish = message(content=Passthrough(kind, content), destination=do.get("to", ANN))
            reply_to = do.get("reply_to")
            return await adapter.send(account, APP, wish, template=None, reply_to=reply_to, copies={})
        case {"call": "submit_template"}:
            return await adapter.submit_template(account, template(), {})
        case {"call": "edit_template", "operator_template_id": operator_id}:
            edited = template(operator_template_id=operator_id)
            return await adapter.edit_template(account, edited, {})
        case {"call": "delete_template", "operator_template_id": operator_id}:
            return await adapter.delete_template(account, template(operator_template_id=operator_id))
        case {"call": "upload_media"}:
            return await adapter.upload_media(account, APP, *picture(desk.folder))
        case {"call": "upload_sample"}:
            return await adapter.upload_sample(account, *picture(desk.folder))
        case {"call": str(kind), **fields} if kind in DIRECT_CALLS:
            return await adapter.call(account, msgspec.convert(fields, DIRECT_CALLS[kind]))
        case _:
            raise AssertionError(f"nobody knows how to do {do}")


def picture(folder: Path) -> tuple[UploadedMedia, Path]:
    """A file of twelve bytes, and what we know of it."""
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


def assert_is(found: object, wanted: dict[str, Any]) -> None:
    """Whether something is of a type, and has these attributes or items; other attributes do not matter."""
    assert type(found).__name__ == wanted["is"], found
    if isinstance(found, list):
        items = cast("list[object]", found)
        assert len(items) == len(wanted["items"])
        for item, one in zip(items, wanted["items"], strict=True):
            assert_is(item, one)
        return
    attributes = {name: msgspec.to_builtins(getattr(found, name)) for name in wanted if name != "is"}
    assert attributes == {name: value for name, value in wanted.items() if name != "is"}
