"""The trace page of a message: every step with its bytes, the reason of a failure, the content, and resending."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from typer.testing import CliRunner

from tests.console.conftest import LOOP, ConsoleClient, Tabs, answer_question, close_console, open_console
from tests.support.builders import PARTNER
from tests.support.callback_sink import CallbackSink, respond_always, respond_in_turn
from tests.support.polling import poll_until
from waypost.assembly.dev import demo
from waypost.cli.command_tree import app
from waypost.cli.mcp.connection import ServiceConnection
from waypost.cli.mcp.server import run_tool
from waypost.config import Settings
from waypost.console.web.zones import iso_time

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

LIST = f"/apps/{demo.APP_ID}/messages"


@pytest_asyncio.fixture(loop_scope=LOOP)
async def console(tmp_path: Path, demo_data: Path) -> AsyncGenerator[ConsoleClient]:
    """A client of a console without rate limits that hides text."""
    console = await open_console(tmp_path, demo_data=demo_data, changes={"rates": False, "show_text": False})
    yield console
    await close_console(console)


@pytest_asyncio.fixture(loop_scope=LOOP)
async def sink(console: ConsoleClient) -> AsyncGenerator[CallbackSink]:
    """A receiver of the demo app's callbacks."""
    sink = CallbackSink()
    await sink.open()
    fields = {
        "modes": "ENQUEUED,SENT,DELIVERED,READ,FAILED", "tag": "shop", "version": "2", "url": sink.url,
    }  # fmt: skip
    await console.api.form("POST", f"/partner/app/{console.app_id}/subscription", fields)
    yield sink
    await sink.close()


async def arm(console: ConsoleClient, **fault: Any) -> None:
    await console.control.json("POST", "/control/faults", {"faults": [fault]})


async def fail_next_send(console: ConsoleClient, code: int) -> None:
    await arm(console, on="call", call="messages.send", what={"fail": code}, when={"next": 1})


async def get_trace(console: ConsoleClient, message_id: str) -> dict[str, Any]:
    return await console.admin.json("GET", f"/admin/trace/{message_id}")


async def wait_for_state(console: ConsoleClient, message_id: str, state: str) -> dict[str, Any]:
    return await poll_until(lambda: get_trace(console, message_id), lambda trace: trace["state"] == state)


async def test_failed_message_shows_the_reason_and_a_fix_hint(console: ConsoleClient) -> None:
    await fail_next_send(console, 131049)
    message_id = await console.send_text("Buy now")
    trace = await wait_for_state(console, message_id, "failed")

    page = await console.get(f"{LIST}/{message_id}")

    assert "The recipient&#39;s marketing limit is reached" in page
    assert "Wait at least 24 hours before you send it again." in page
    assert trace["reason"] in page
    assert f"{LIST}?code=131049" in page
    assert f"/phones?show={demo.DESTINATION}" in page
    assert "Buy now" not in page


async def test_open_trace_grows_with_each_attempt_at_the_operator(tabs: Tabs, console: ConsoleClient) -> None:
    await arm(console, on="call", call="messages.send", what={"error": 131016}, when={"next": 1})
    message_id = await console.send_text("Twice")
    await poll_until(lambda: get_trace(console, message_id), lambda trace: trace["events"])

    tab = await tabs(f"{LIST}/{message_id}")

    await tab.page.get_by_text("Attempt 1 failed").wait_for()
    await tab.page.get_by_text("The operator was unavailable (code 131016)").wait_for()
    await tab.page.locator(".step-title", has_text="Delivered").wait_for()


async def test_callback_shows_its_bytes_headers_response_and_signature(
    tabs: Tabs, console: ConsoleClient, sink: CallbackSink
) -> None:
    sink.choose_status = respond_in_turn(503, 200)  # the subscription has had its ping
    message_id = await console.send_text("Sent twice")
    await wait_for_state(console, message_id, "delivered")
    await sink.wait_until(lambda: len(sink.accepted) >= 3)
    first = next(attempt for attempt in sink.requests if attempt.status == 503)

    tab = await tabs(f"{LIST}/{message_id}")
    callback = tab.page.locator(f"#s-callback-{first.callback_id}")
    await callback.locator("summary").click()

    assert first.body.decode() in await callback.inner_text()
    # Both attempts have the same signature if they are in the same second.
    await callback.get_by_text(first.headers["webhook-signature"]).first.wait_for()
    await callback.get_by_text("status 503").wait_for()
    await callback.get_by_text("status 200").wait_for()
    assert await callback.get_by_role("link", name="View delivery").get_attribute("href") == (
        f"/apps/{console.app_id}/callbacks/deliveries/{first.callback_id}"
    )


async def test_missing_response_to_a_callback_is_shown(console: ConsoleClient, sink: CallbackSink) -> None:
    await sink.close()
    message_id = await console.send_text("No receiver")
    await poll_until(
        lambda: get_trace(console, message_id), lambda trace: trace["callbacks"] and trace["callbacks"][0]["attempts"]
    )

    page = await console.get(f"{LIST}/{message_id}")

    assert "Retrying: no response, next" in page or "Blocked: no response since" in page


async def test_trace_has_a_branch_for_each_subscription_below_its_event(
    tabs: Tabs, console: ConsoleClient, sink: CallbackSink
) -> None:
    fields = {"modes": "DELIVERED", "tag": "books", "version": "2", "url": sink.url}
    await console.api.form("POST", f"/partner/app/{console.app_id}/subscription", fields)
    message_id = await console.send_text("Two receivers")
    await wait_for_state(console, message_id, "delivered")
    await poll_until(
        lambda: get_trace(console, message_id),
        lambda trace: [one["delivered"] for one in trace["callbacks"]].count(True) == 4,
    )

    tab = await tabs(f"{LIST}/{message_id}")
    steps = tab.page.locator("#steps > li")
    delivered = steps.filter(has=tab.page.locator(".step-title", has_text="Delivered"))
    sent = steps.filter(has=tab.page.locator(".step-title", has_text="Sent to recipient"))

    assert await delivered.locator(".branch-tag").all_inner_texts() == ["books", "shop"]
    assert await sent.locator(".branch-tag").all_inner_texts() == ["shop"]
    assert await delivered.locator(".branch summary .badge").all_inner_texts() == ["200 OK", "200 OK"]
    timing = await tab.page.locator("#timing").inner_text()
    assert re.fullmatch(
        r"Accepted by operator after .+ · sent after .+ · delivered after .+ · callbacks delivered within .+", timing
    )


async def test_trace_is_copied_as_a_link_and_as_json_in_utc(
    tabs: Tabs, console: ConsoleClient, sink: CallbackSink
) -> None:
    message_id = await console.send_text("Copy me")
    await sink.wait_until(lambda: len(sink.accepted) >= 3)
    trace = await wait_for_state(console, message_id, "delivered")
    tab = await tabs(f"{LIST}/{message_id}", timezone_id="Asia/Kolkata")
    await tab.page.locator(".bar-zone button").wait_for()

    await tab.page.get_by_role("button", name="Copy link").click()
    link = await tab.page.evaluate("navigator.clipboard.readText()")
    await tab.page.get_by_role("link", name="Copy as JSON").click()
    await tab.page.locator("[data-copy-from].is-copied").wait_for()
    copied = json.loads(await tab.page.evaluate("navigator.clipboard.readText()"))

    assert link == f"{console.base_url}{LIST}/{message_id}"
    assert copied["id"] == message_id
    assert copied["accepted_on"] == iso_time(trace["accepted_on_ms"])
    assert [event["event"] for event in copied["events"]] == ["enqueued", "sent", "delivered"]
    assert copied["events"][0]["at"].endswith("+00:00")
    assert "Copy me" not in json.dumps(copied)
    assert "_on_ms" not in json.dumps(copied)


async def test_content_is_shown_only_on_demand(tabs: Tabs, console: ConsoleClient) -> None:
    message_id = await console.send_text("Meet me <b>behind</b> the mill")
    await wait_for_state(console, message_id, "delivered")
    assert "behind" not in await console.get(f"{LIST}/{message_id}")

    tab = await tabs(f"{LIST}/{message_id}")
    await tab.page.get_by_role("button", name="Show content").click()

    await tab.page.get_by_text("Meet me <b>behind</b> the mill", exact=True).wait_for()
    content = await tab.page.locator("#content").inner_text()
    assert "curl http" in content
    assert "$APP_TOKEN" in content
    assert console.running.variables["APP_TOKEN"] not in content
    assert await tab.page.locator("#content b").count() == 0


async def test_resend_creates_a_new_message(tabs: Tabs, console: ConsoleClient) -> None:
    message_id = await console.send_text("Once more")
    await wait_for_state(console, message_id, "delivered")
    tab = await tabs(f"{LIST}/{message_id}")

    await tab.page.get_by_role("button", name="Resend").click()
    await answer_question(tab.page, "Resend")

    await tab.page.get_by_text("Resent as a new message").wait_for()
    resent_id = tab.page.url.rpartition("/")[2]
    assert resent_id != message_id
    trace = await wait_for_state(console, resent_id, "delivered")
    assert trace["request"]["message"] == {"type": "text", "text": "(9 characters)"}


REQUESTS = (
    ("template/msg", {"source": demo.SOURCE, "destination": demo.DESTINATION, "src.name": demo.APP_NAME,
     "channel": "whatsapp", "template": json.dumps({"id": demo.TEMPLATE_ID, "params": ["Ann", "1 & 2"]})}),
    ("v3/message", {"messaging_product": "whatsapp", "recipient_type": "individual", "to": demo.DESTINATION,
     "type": "text", "text": json.dumps({"body": "As it is"})}),
)  # fmt: skip


@pytest.mark.parametrize(("path", "fields"), REQUESTS, ids=["template", "passthrough"])
async def test_every_kind_of_request_can_be_resent(console: ConsoleClient, path: str, fields: dict[str, str]) -> None:
    response = await console.api.form("POST", f"/partner/app/{console.app_id}/{path}", fields)
    message_id = response.get("messageId") or response["messages"][0]["id"]

    redirect = await console.post(f"{LIST}/{message_id}/resend")

    resent_id = redirect.headers["Location"].rpartition("/")[2]
    traces = [await get_trace(console, sent_id) for sent_id in (message_id, resent_id)]
    assert traces[0]["request"] == traces[1]["request"]
    assert traces[0]["kind"] == traces[1]["kind"]


async def test_operator_message_id_opens_the_trace(console: ConsoleClient) -> None:
    message_id = await console.send_text("By the ID of the operator")
    wamid = (await wait_for_state(console, message_id, "delivered"))["operator_message_id"]

    page = await console.get(f"{LIST}/{wamid}")

    assert message_id in page
    assert "<h2>Trace</h2>" in page


async def test_late_status_is_shown_as_late(console: ConsoleClient) -> None:
    await arm(console, on="webhook", webhook="sent", what={"delay_ms": 300})
    message_id = await console.send_text("Out of order")
    await poll_until(
        lambda: get_trace(console, message_id), lambda trace: any(not step["applied"] for step in trace["events"])
    )

    page = await console.get(f"{LIST}/{message_id}")

    assert "Late status “sent”" in page
    assert "caused no callback" in page


async def test_unconfirmed_message_is_shown_as_waiting_for_a_status(console: ConsoleClient) -> None:
    await arm(console, on="call", call="messages.send", what={"reset": "before"}, when={"next": 1})
    message_id = await console.send_text("Lost?")
    await wait_for_state(console, message_id, "uncertain")

    page = await console.get(f"{LIST}/{message_id}")

    assert "Unconfirmed: the message may have been sent" in page
    assert "Waiting for a status from the operator" in page


async def test_another_partners_message_does_not_exist(console: ConsoleClient) -> None:
    unknown = f"01990000-0000-7000-8000-{PARTNER.id:012d}"
    other = await console.admin.json(
        "POST", "/admin/partners", {"name": "Other", "email": "o@o.test", "password": "Other-password-1"}
    )  # fmt: skip
    assert other
    for path in (unknown, "wamid.none", "wamid.a/b+c="):
        await console.get(f"{LIST}/{path}", status=404)
    await console.post(f"{LIST}/{unknown}/resend", status=404)
    await console.post(f"{LIST}/{unknown}/content", status=404)
    for path in ("", f"/{unknown}", "/more", "/export"):
        await console.get(f"/apps/{unknown}/messages{path}", status=404)


@pytest.mark.parametrize("width", [360, 1440])
async def test_trace_needs_no_horizontal_scrolling(
    tabs: Tabs, console: ConsoleClient, sink: CallbackSink, width: int
) -> None:
    sink.choose_status = respond_always(200)
    message_id = await console.send_text("Long" * 200)
    await sink.wait_until(lambda: len(sink.accepted) >= 3)

    tab = await tabs(f"{LIST}/{message_id}", width=width)
    await tab.page.get_by_role("button", name="Show content").click()
    await tab.page.get_by_text("curl", exact=True).wait_for()
    for summary in await tab.page.locator("#steps summary").all():
        await summary.click()

    assert await tab.page.evaluate("document.documentElement.scrollWidth") <= width


async def test_content_of_a_template_is_shown_with_its_values(console: ConsoleClient) -> None:
    response = await console.api.form("POST", f"/partner/app/{console.app_id}/template/msg", REQUESTS[0][1])

    revealed = json.loads(await console.reveal(f"{LIST}/{response['messageId']}/content"))

    [element] = revealed["pieces"]
    assert "Hi Ann, your order 1 &amp; 2 is ready." in element["html"]
    assert "[Yes please]" in element["html"]


async def test_timing_counts_callbacks_that_are_not_delivered(console: ConsoleClient, sink: CallbackSink) -> None:
    broken = CallbackSink()
    await broken.open()
    fields = {"modes": "SENT,DELIVERED", "tag": "broken", "version": "2", "url": broken.url}
    await console.api.form("POST", f"/partner/app/{console.app_id}/subscription", fields)
    broken.choose_status = respond_always(503)
    message_id = await console.send_text("Two receivers")
    await poll_until(
        lambda: get_trace(console, message_id),
        lambda trace: (
            [one["delivered"] for one in trace["callbacks"]].count(True) == 3 and len(trace["callbacks"]) == 5
        ),
    )

    page = await console.get(f"{LIST}/{message_id}")
    await broken.close()

    assert "3 of 5 callbacks delivered within" in page


@pytest.mark.parametrize("kind", ["image", "file"])
async def test_medium_has_the_name_of_its_own_kind_in_every_list(console: ConsoleClient, kind: str) -> None:
    link = "https://media.example/a"
    content = {"type": kind, "originalUrl": link, "previewUrl": link, "url": link, "filename": "a.pdf"}
    fields = {
        "channel": "whatsapp", "source": demo.SOURCE, "destination": demo.DESTINATION, "src.name": demo.APP_NAME,
        "message": json.dumps(content),
    }  # fmt: skip
    label = {"image": "Image", "file": "Document"}[kind]
    conversations = f"/apps/{console.app_id}/conversations"

    async def send_and_read() -> dict[str, str]:
        sent = await console.api.form("POST", f"/partner/app/{console.app_id}/msg", fields)
        await wait_for_state(console, sent["messageId"], "delivered")
        paths = (
            conversations,
            LIST,
            f"{LIST}/{sent['messageId']}",
            f"/apps/{console.app_id}",
            f"/phones?show={console.phone}",
        )
        return {path: await console.get(path) for path in paths}

    def has_label(page: str) -> bool:
        return re.search(rf"\b{label}\b", page) is not None

    # A conversation shows its newest message, which may be the last one of the test before.
    pages = await poll_until(send_and_read, lambda pages: has_label(pages[conversations]))

    assert [path for path, page in pages.items() if not has_label(page)] == []
    assert [path for path, page in pages.items() if re.search(r">\s*Media\s*<", page.partition("<main")[2])] == [
        LIST  # the filter by kind
    ]


async def test_media_link_that_the_simulator_does_not_fetch_is_said_in_page_command_and_tool(
    tabs: Tabs, console: ConsoleClient, tmp_path: Path
) -> None:
    link = "https://media.example/a.png"
    message = json.dumps({"type": "image", "originalUrl": link, "previewUrl": link})
    fields = {
        "channel": "whatsapp", "source": demo.SOURCE, "destination": demo.DESTINATION, "src.name": demo.APP_NAME,
        "message": message,
    }  # fmt: skip
    env_file = tmp_path / "waypost-dev.env"
    env_file.write_text("".join(f"{name}={text}\n" for name, text in console.running.variables.items()))
    expected = "1 media link leads outside WAYPOST_ALLOWED_NETWORKS"

    sent = await console.api.form("POST", f"/partner/app/{console.app_id}/msg", fields)
    tab = await tabs(f"{LIST}/{sent['messageId']}")
    await tab.page.locator("#steps").get_by_text("Media not fetched").wait_for()
    tool = await run_tool(ServiceConnection(Settings(), env_file), "explain_message", {"message_id": sent["messageId"]})
    env = {
        "WAYPOST_ADMIN_URL": console.running.base_url,
        "WAYPOST_ADMIN_TOKEN": console.running.variables["ADMIN_TOKEN"],
        "WAYPOST_CONTROL_URL": console.running.variables["CONTROL_URL"],
    }
    printed = await asyncio.to_thread(CliRunner(env=env).invoke, app, ["trace", sent["messageId"]])
    other = await console.send_text("Good morning")
    await wait_for_state(console, other, "delivered")

    assert expected in await tab.page.locator("#steps").inner_text()
    assert expected in printed.stdout
    assert expected in str(tool.content[0])
    assert link not in printed.stdout
    assert "Media not fetched" not in await console.get(f"{LIST}/{other}")


async def test_content_is_shown_at_once_unless_texts_are_hidden(
    tmp_path: Path, demo_data: Path, console: ConsoleClient
) -> None:
    open_texts = await open_console(tmp_path / "open", demo_data=demo_data)
    pages = [await each.get(f"{LIST}/{await each.send_text('Zinnia for you')}") for each in (open_texts, console)]
    await close_console(open_texts)

    assert ["Zinnia for you" in page for page in pages] == [True, False]
    assert ["Show content" in page for page in pages] == [False, True]
