"""Flows: drafts, flow JSON, publishing, deprecation and deletion."""

import io
import json
from typing import Any

import aiohttp
import pytest

from tests.simulator.conftest import WABA, Bench, SimulatorResponse
from tests.simulator.onboarding.conftest import get_token, play
from tests.support.flow_json import one_screen_flow
from tests.support.manual_clock import ManualClock
from waypost.simulator.flows.model import PUBLISHED, Flow, PublishedFlow

HOUR_MS = 3_600_000
CONTENT: dict[str, Any] = one_screen_flow(screen_id="THANK_YOU")
GO_ON: dict[str, Any] = {
    "type": "Footer",
    "label": "Next",
    "on-click-action": {"name": "navigate", "next": {"type": "screen", "name": "THANK_YOU"}, "payload": {}},
}
CONTENT["screens"].insert(
    0, {"id": "ASK", "title": "Ask", "layout": {"type": "SingleColumnLayout", "children": [GO_ON]}}
)


async def create_flow(bench: Bench, name: str = "booking", **more: Any) -> SimulatorResponse:
    body = {"name": name, "categories": ["APPOINTMENT_BOOKING", "SURVEY"], **more}
    return await bench.graph("POST", f"{WABA}/flows", json=body)


async def put_asset(bench: Bench, flow_id: str, text: str | None, **more: str) -> SimulatorResponse:
    form = aiohttp.FormData({"name": "flow.json", "asset_type": "FLOW_JSON", **more})
    if text is None:
        form = aiohttp.FormData({"name": "flow.json", **more}, default_to_multipart=True)
    else:
        form.add_field("file", io.BytesIO(text.encode()), filename="flow.json", content_type="application/json")
    return await bench.graph("POST", f"{flow_id}/assets", data=form)


async def test_flow_is_a_draft_then_published_then_deprecated(bench: Bench) -> None:
    created = await create_flow(bench)
    flow_id = created.body["id"]

    too_soon = await bench.graph("POST", f"{flow_id}/publish")
    asset = await put_asset(bench, flow_id, json.dumps(CONTENT))
    published = await bench.graph("POST", f"{flow_id}/publish")
    shown = await bench.graph("GET", flow_id)
    again = await bench.graph("POST", f"{flow_id}/publish")
    deleted = await bench.graph("DELETE", flow_id)
    deprecated = await bench.graph("POST", f"{flow_id}/deprecate")
    twice = await bench.graph("POST", f"{flow_id}/deprecate")
    edited = await bench.graph("POST", flow_id, json={"name": "other"})
    replaced = await put_asset(bench, flow_id, "{}")

    assert created.body == {"id": flow_id, "success": True, "validation_errors": []}
    assert asset.body == {"success": True, "validation_errors": []}
    assert published.body == deprecated.body == {"success": True}
    assert shown.body == {
        "id": flow_id,
        "name": "booking",
        "status": "PUBLISHED",
        "categories": ["APPOINTMENT_BOOKING", "SURVEY"],
        "validation_errors": [],
    }
    codes = [response.error["code"] for response in (too_soon, again, deleted, twice, edited, replaced)]
    assert codes == [139002, 139002, 139004, 139003, 139001, 139001]
    assert (await bench.graph("GET", f"{flow_id}?fields=status")).body["status"] == "DEPRECATED"


async def test_draft_can_be_changed_and_deleted(bench: Bench) -> None:
    flow_id = (await create_flow(bench)).body["id"]
    other = (await create_flow(bench, "other")).body["id"]
    change = {"name": "table", "categories": ["OTHER"], "endpoint_uri": "https://shop.example/f"}

    changed = await bench.graph("POST", flow_id, json=change)
    duplicate = await bench.graph("POST", flow_id, json={"name": "other"})
    shown = await bench.graph("GET", f"{flow_id}?fields=name,categories,endpoint_uri")
    listed = await bench.graph("GET", f"{WABA}/flows?fields=id")
    deleted = await bench.graph("DELETE", flow_id)

    assert changed.body == deleted.body == {"success": True}
    assert "unique" in duplicate.error["message"]
    assert shown.body == {"id": flow_id, **change}
    assert listed.body["data"] == [{"id": flow_id}, {"id": other}]
    assert (await bench.graph("GET", flow_id)).error["error_subcode"] == 33


@pytest.mark.parametrize(("length", "status"), [(0, 400), (1, 200), (200, 200), (201, 400)])
async def test_name_has_1_to_200_characters(bench: Bench, length: int, status: int) -> None:
    created = await create_flow(bench, "n" * length)

    assert created.status == status


@pytest.mark.parametrize(
    "more",
    [
        {"categories": []},
        {"categories": ["SALES"]},
        {"categories": None},
        {"clone_flow_id": "999"},
        {"publish": True},
        {"publish": True, "flow_json": "{}"},
    ],
)
async def test_invalid_flow_is_rejected(bench: Bench, more: dict[str, Any]) -> None:
    created = await create_flow(bench, **more)

    assert created.status == 400
    assert (await bench.graph("GET", f"{WABA}/flows")).body["data"] == []


async def test_flow_is_published_and_copied_in_one_call(bench: Bench) -> None:
    first = await create_flow(bench, flow_json=json.dumps(CONTENT), publish=True)
    copy = await create_flow(bench, "copy", clone_flow_id=first.body["id"])

    shown = await bench.graph("GET", f"{copy.body['id']}?fields=status,json_version")
    [asset] = (await bench.graph("GET", f"{copy.body['id']}/assets")).body["data"]
    fetched = await bench.request("GET", asset["download_url"].removeprefix(bench.base))
    assert (await bench.graph("GET", first.body["id"])).body["status"] == "PUBLISHED"
    assert (shown.body["status"], shown.body["json_version"]) == ("DRAFT", "7.0")
    assert fetched.body == CONTENT


def test_flow_lists_its_screens() -> None:
    text = json.dumps(CONTENT)
    flow = Flow("1", WABA, "booking", ["OTHER"], PUBLISHED, text, published=[PublishedFlow(1, text)])
    empty = Flow("2", WABA, "empty", ["OTHER"])

    assert flow.screens == ["ASK", "THANK_YOU"]
    assert flow.is_sendable
    assert (empty.screens, empty.is_sendable) == ([], False)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "INVALID_FLOW_JSON"),
        ("[" * 100_000, "INVALID_FLOW_JSON"),
        ("[]", "INVALID_FLOW_JSON"),
        (json.dumps({**CONTENT, "version": "99.9"}), "INVALID_FLOW_JSON_VERSION"),
    ],
)
async def test_invalid_flow_json_is_stored_with_its_errors_and_not_published(
    bench: Bench, text: str, error: str
) -> None:
    flow_id = (await create_flow(bench)).body["id"]

    asset = await put_asset(bench, flow_id, text)

    published = await bench.graph("POST", f"{flow_id}/publish")
    shown = await bench.graph("GET", f"{flow_id}?fields=validation_errors")
    [validation_error] = asset.body["validation_errors"]
    assert validation_error["error"] == error
    assert {"error_type", "message", "line_start", "column_end", "pointers"} <= set(validation_error)
    assert shown.body["validation_errors"] == asset.body["validation_errors"]
    assert published.error["code"] == 139002


async def test_asset_can_be_fetched_without_a_token_for_an_hour(slow: Bench, clock: ManualClock) -> None:
    flow_id = (await create_flow(slow)).body["id"]
    before = await slow.graph("GET", f"{flow_id}/assets")
    await put_asset(slow, flow_id, json.dumps(CONTENT))

    listed = await slow.graph("GET", f"{flow_id}/assets")

    [asset] = listed.body["data"]
    url = asset.pop("download_url").removeprefix(slow.base)
    fetched = await slow.request("GET", url)
    forged = await slow.request("GET", url.replace("ext=", "ext=9"))
    clock.advance(ms=HOUR_MS)
    late = await slow.request("GET", url)
    assert before.body == {"data": []}
    assert asset == {"name": "flow.json", "asset_type": "FLOW_JSON"}
    assert fetched.body == CONTENT
    assert (forged.status, late.status) == (400, 400)


@pytest.mark.parametrize(
    ("text", "more"), [(None, {"asset_type": "FLOW_JSON"}), ("{}", {"name": "x"}), ("{}", {"asset_type": "OTHER"})]
)
async def test_asset_needs_its_three_fields(bench: Bench, text: str | None, more: dict[str, str]) -> None:
    flow_id = (await create_flow(bench)).body["id"]

    response = await put_asset(bench, flow_id, text, **more)

    assert (response.status, response.error["code"]) == (400, 100)


async def test_preview_and_account_are_shown_when_requested(bench: Bench) -> None:
    flow_id = (await create_flow(bench, flow_json=json.dumps(CONTENT))).body["id"]

    fields = "preview.invalidate(false),json_version,whatsapp_business_account{id}"
    shown = await bench.graph("GET", f"{flow_id}?fields={fields}")
    unknown = await bench.graph("GET", f"{flow_id}?fields=nothing")

    preview = shown.body["preview"]
    async with bench.http.get(preview["preview_url"]) as page:
        assert (page.status, page.content_type) == (200, "text/html")
        assert CONTENT["screens"][0]["title"] in await page.text()
    assert preview["expires_at"].endswith("+0000")
    assert shown.body["json_version"] == "7.0"
    assert shown.body["whatsapp_business_account"]["id"] == WABA
    assert unknown.error["code"] == 100


async def test_flows_survive_a_restart_and_are_deleted_by_a_reset(bench: Bench) -> None:
    flow_id = (await create_flow(bench, flow_json=json.dumps(CONTENT), publish=True)).body["id"]

    await bench.restart()
    after_restart = await bench.graph("GET", flow_id)
    await bench.control("POST", "reset")

    assert after_restart.body["status"] == "PUBLISHED"
    assert (await bench.graph("GET", flow_id)).status == 400


def flow_message(flow_id: str, mode: str) -> dict[str, Any]:
    parameters = {"flow_message_version": "3", "flow_id": flow_id, "flow_cta": "Go", "flow_token": "t", "mode": mode}
    action = {"name": "flow", "parameters": parameters}
    return {"type": "interactive", "interactive": {"type": "flow", "body": {"text": "Book"}, "action": action}}


async def test_edited_flow_is_a_draft_whose_published_version_can_still_be_sent(bench: Bench) -> None:
    flow_id = (await create_flow(bench, flow_json=json.dumps(CONTENT), publish=True)).body["id"]
    before = await bench.send(flow_message(flow_id, "draft"))

    edited = await put_asset(bench, flow_id, json.dumps(one_screen_flow(screen_id="EDITED")))

    assert edited.body == {"success": True, "validation_errors": []}
    assert (await bench.graph("GET", f"{flow_id}?fields=status")).body["status"] == "DRAFT"
    sent = [await bench.send(flow_message(flow_id, mode)) for mode in ("published", "draft")]
    assert (before.status, *(response.status for response in sent)) == (400, 200, 200)
    assert (await bench.graph("DELETE", flow_id)).error["code"] == 139004


async def test_every_change_of_a_flows_status_is_told_by_a_webhook(bench: Bench) -> None:
    flow_id = (await create_flow(bench, flow_json=json.dumps(CONTENT))).body["id"]

    await bench.graph("POST", f"{flow_id}/publish")
    await bench.graph("POST", flow_id, json={"endpoint_uri": "https://shop.example/f"})
    await bench.graph("POST", f"{flow_id}/publish")
    await bench.graph("POST", f"{flow_id}/deprecate")

    told = await bench.receiver.wait_until(
        lambda: changes if len(changes := bench.receiver.changes("flows")) > 4 else 0
    )
    assert {change["event"] for change in told} == {"FLOW_STATUS_CHANGE"}
    assert [(change.get("old_status"), change["new_status"]) for change in told] == [
        (None, "DRAFT"),
        ("DRAFT", "PUBLISHED"),
        ("PUBLISHED", "DRAFT"),
        ("DRAFT", "PUBLISHED"),
        ("PUBLISHED", "DEPRECATED"),
    ]


async def test_five_published_versions_are_kept(bench: Bench) -> None:
    flow_id = (await create_flow(bench)).body["id"]
    for number in range(6):
        await put_asset(bench, flow_id, json.dumps(one_screen_flow(label=f"Book {number}")))
        assert (await bench.graph("POST", f"{flow_id}/publish")).status == 200

    shown = await bench.control("GET", f"flows/{flow_id}")

    assert [version["number"] for version in shown.body["published"]] == [2, 3, 4, 5, 6]
    assert "Book 5" in json.dumps(shown.body["published"][-1]["content"])


async def test_flows_are_copied_into_another_account_of_the_business(bench: Bench) -> None:
    first = await play(bench)
    second = await play(bench, person_id=first["person_id"], business_id=first["business_id"])
    token, others_token = await get_token(bench, first), await get_token(bench, second)
    body = {"name": "booking", "categories": ["OTHER"], "flow_json": json.dumps(CONTENT)}
    created = await bench.graph("POST", f"{first['waba_id']}/flows", token, json=body)
    wanted = {"source_waba_id": first["waba_id"], "source_flow_names": ["booking", "nothing"]}

    moved = await bench.graph("POST", f"{second['waba_id']}/migrate_flows", others_token, json=wanted)
    again = await bench.graph("POST", f"{second['waba_id']}/migrate_flows", others_token, json=wanted)
    foreign = await bench.graph("POST", f"{WABA}/migrate_flows", json=wanted)

    [copied] = moved.body["migrated_flows"]
    assert (copied["source_name"], copied["source_id"]) == ("booking", created.body["id"])
    assert [one["error_code"] for one in moved.body["failed_flows"]] == ["4233041"]
    shown = await bench.graph("GET", f"{copied['migrated_id']}?fields=status,json_version", others_token)
    assert (shown.body["status"], shown.body["json_version"]) == ("DRAFT", "7.0")
    assert "already" in again.body["failed_flows"][0]["error_message"]
    assert foreign.error["code"] == 100


async def test_health_says_what_a_flow_lacks(bench: Bench) -> None:
    draft = (await create_flow(bench)).body["id"]
    published = (await create_flow(bench, "other", flow_json=json.dumps(CONTENT), publish=True)).body["id"]

    lacking = (await bench.graph("GET", f"{draft}?fields=health_status")).body["health_status"]
    await bench.control("PUT", f"flows/{published}/status", {"status": "THROTTLED"})
    throttled = (await bench.graph("GET", f"{published}?fields=health_status")).body["health_status"]
    metric = await bench.graph("GET", f"{published}?fields=metric.name(ENDPOINT_REQUEST_COUNT).granularity(DAY)")

    assert (lacking["can_send_message"], throttled["can_send_message"]) == ("BLOCKED", "LIMITED")
    titles = [one["error_description"] for one in lacking["entities"][0]["errors"]]
    assert titles[0] == "Publishing Flow with validation errors"
    assert [entity["entity_type"] for entity in throttled["entities"]] == ["FLOW", "WABA", "BUSINESS", "APP"]
    assert metric.error["code"] == 139006
