"""One message's way on its page: every step with its bytes, why it failed, what it says, and the same once more."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.console.conftest import LOOP, Desk, Tabs, close_desk, open_desk
from tests.support.builders import PARTNER
from tests.support.callback_sink import CallbackSink, always, in_turn
from tests.support.waiting import patiently
from waypost.assembly.dev import demo

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

LIST = f"/apps/{demo.APP_ID}/messages"


@pytest_asyncio.fixture(loop_scope=LOOP)
async def desk(tmp_path: Path, begun: Path) -> AsyncGenerator[Desk]:
    """Without limits of how much is sent."""
    desk = await open_desk(tmp_path, begun=begun, changes={"rates": False, "show_text": False})
    yield desk
    await close_desk(desk)


@pytest_asyncio.fixture(loop_scope=LOOP)
async def sink(desk: Desk) -> AsyncGenerator[CallbackSink]:
    """A receiver of the demo app's callbacks."""
    sink = CallbackSink()
    await sink.open()
    fields = {
        "modes": "ENQUEUED,SENT,DELIVERED,READ,FAILED", "tag": "shop", "version": "2", "url": sink.url,
    }  # fmt: skip
    await desk.api.form("POST", f"/partner/app/{desk.app_id}/subscription", fields)
    yield sink
    await sink.close()


async def arm(desk: Desk, **fault: Any) -> None:
    await desk.control.json("POST", "/control/faults", {"faults": [fault]})


async def fail_the_next(desk: Desk, code: int) -> None:
    await arm(desk, on="call", call="messages.send", what={"fail": code}, when={"next": 1})


async def trace_of(desk: Desk, message_id: str) -> dict[str, Any]:
    return await desk.admin.json("GET", f"/admin/trace/{message_id}")


async def until(desk: Desk, message_id: str, state: str) -> dict[str, Any]:
    return await patiently(lambda: trace_of(desk, message_id), lambda trace: trace["state"] == state)


async def test_failed_message_says_why_and_what_to_do(desk: Desk) -> None:
    await fail_the_next(desk, 131049)
    message_id = await desk.send_text("Buy now")
    trace = await until(desk, message_id, "failed")

    page = await desk.get(f"{LIST}/{message_id}")

    assert "The recipient&#39;s marketing limit is reached" in page
    assert "Wait at least 24 hours before you send it again." in page
    assert trace["reason"] in page
    assert f"{LIST}?code=131049" in page
    assert f"/phones?show={demo.DESTINATION}" in page
    assert "Buy now" not in page


async def test_way_grows_while_it_is_looked_at_with_each_try_at_the_operator(tabs: Tabs, desk: Desk) -> None:
    await arm(desk, on="call", call="messages.send", what={"error": 131016}, when={"next": 1})
    message_id = await desk.send_text("Twice")
    await patiently(lambda: trace_of(desk, message_id), lambda trace: trace["news"])

    tab = await tabs(f"{LIST}/{message_id}")

    await tab.page.get_by_text("Attempt 1 failed").wait_for()
    await tab.page.get_by_text("The operator was unavailable (code 131016)").wait_for()
    await tab.page.locator(".step-title", has_text="Delivered").wait_for()


async def test_callback_shows_its_bytes_headers_answer_and_signature(
    tabs: Tabs, desk: Desk, sink: CallbackSink
) -> None:
    sink.answers = in_turn(503, 200)  # registration has had its answer
    message_id = await desk.send_text("Told twice")
    await until(desk, message_id, "delivered")
    await sink.wait_until(lambda: len(sink.taken) >= 3)
    first = next(one for one in sink.tries if one.status == 503)

    tab = await tabs(f"{LIST}/{message_id}")
    callback = tab.page.locator(f"#s-callback-{first.callback_id}")
    await callback.locator("summary").click()

    assert first.body.decode() in await callback.inner_text()
    # Both tries have the same signature where they fall into the same second.
    await callback.get_by_text(first.headers["webhook-signature"]).first.wait_for()
    await callback.get_by_text("status 503").wait_for()
    await callback.get_by_text("status 200").wait_for()
    assert await callback.get_by_role("link", name="View delivery").get_attribute("href") == (
        f"/apps/{desk.app_id}/callbacks/deliveries/{first.callback_id}"
    )


async def test_answer_that_never_came_says_so(desk: Desk, sink: CallbackSink) -> None:
    await sink.close()
    message_id = await desk.send_text("Nobody listens")
    await patiently(
        lambda: trace_of(desk, message_id), lambda trace: trace["callbacks"] and trace["callbacks"][0]["attempts"]
    )

    page = await desk.get(f"{LIST}/{message_id}")

    assert "no response" in page
    assert "so far" in page


async def test_words_are_shown_only_when_they_are_asked_for(tabs: Tabs, desk: Desk) -> None:
    message_id = await desk.send_text("Meet me <b>behind</b> the mill")
    await until(desk, message_id, "delivered")
    assert "behind" not in await desk.get(f"{LIST}/{message_id}")

    tab = await tabs(f"{LIST}/{message_id}")
    await tab.page.get_by_role("button", name="Show content").click()

    await tab.page.get_by_text("Meet me <b>behind</b> the mill", exact=True).wait_for()
    words = await tab.page.locator("#content").inner_text()
    assert "curl http" in words
    assert "$APP_TOKEN" in words
    assert desk.running.variables["APP_TOKEN"] not in words
    assert await tab.page.locator("#content b").count() == 0


async def test_sent_again_it_is_a_new_message(tabs: Tabs, desk: Desk) -> None:
    message_id = await desk.send_text("Once more")
    await until(desk, message_id, "delivered")
    tab = await tabs(f"{LIST}/{message_id}")
    tab.page.on("dialog", lambda dialog: dialog.accept())

    await tab.page.get_by_role("button", name="Resend").click()

    await tab.page.get_by_text("Resent as a new message").wait_for()
    again = tab.page.url.rpartition("/")[2]
    assert again != message_id
    trace = await until(desk, again, "delivered")
    assert trace["request"]["message"] == {"type": "text", "text": "(9 characters)"}


KINDS = (
    ("template/msg", {"source": demo.SOURCE, "destination": demo.DESTINATION, "src.name": demo.APP_NAME,
     "channel": "whatsapp", "template": json.dumps({"id": demo.TEMPLATE_ID, "params": ["Ann", "1 & 2"]})}),
    ("v3/message", {"messaging_product": "whatsapp", "recipient_type": "individual", "to": demo.DESTINATION,
     "type": "text", "text": json.dumps({"body": "As it is"})}),
)  # fmt: skip


@pytest.mark.parametrize(("path", "fields"), KINDS, ids=["template", "passthrough"])
async def test_every_form_of_request_can_be_sent_again(desk: Desk, path: str, fields: dict[str, str]) -> None:
    answer = await desk.api.form("POST", f"/partner/app/{desk.app_id}/{path}", fields)
    message_id = answer.get("messageId") or answer["messages"][0]["id"]

    answered = await desk.post(f"{LIST}/{message_id}/resend")

    again = answered.headers["Location"].rpartition("/")[2]
    both = [await trace_of(desk, one) for one in (message_id, again)]
    assert both[0]["request"] == both[1]["request"]
    assert both[0]["kind"] == both[1]["kind"]


async def test_operators_id_leads_to_the_page_of_ours(desk: Desk) -> None:
    message_id = await desk.send_text("Whoever gave the id")
    wamid = (await until(desk, message_id, "delivered"))["operator_message_id"]

    page = await desk.get(f"{LIST}/{wamid}")

    assert message_id in page
    assert "<h2>Trace</h2>" in page


async def test_status_that_came_late_is_told_as_such(desk: Desk) -> None:
    await arm(desk, on="webhook", webhook="sent", what={"delay_ms": 300})
    message_id = await desk.send_text("Out of order")
    await patiently(lambda: trace_of(desk, message_id), lambda trace: any(not line["moved"] for line in trace["news"]))

    page = await desk.get(f"{LIST}/{message_id}")

    assert "Late status “sent”" in page
    assert "caused no callback" in page


async def test_message_in_doubt_says_that_it_is_not_sent_again_on_a_guess(desk: Desk) -> None:
    await arm(desk, on="call", call="messages.send", what={"reset": "before"}, when={"next": 1})
    message_id = await desk.send_text("Lost?")
    await until(desk, message_id, "uncertain")

    page = await desk.get(f"{LIST}/{message_id}")

    assert "Unconfirmed: the message may have been sent" in page
    assert "Waiting for a status from the operator" in page


async def test_another_partners_message_does_not_exist(desk: Desk) -> None:
    unknown = f"01990000-0000-7000-8000-{PARTNER.id:012d}"
    other = await desk.admin.json(
        "POST", "/admin/partners", {"name": "Other", "email": "o@o.test", "password": "Other-password-1"}
    )  # fmt: skip
    assert other
    for path in (unknown, "wamid.none", "wamid.a/b+c="):
        await desk.get(f"{LIST}/{path}", status=404)
    await desk.post(f"{LIST}/{unknown}/resend", status=404)
    await desk.post(f"{LIST}/{unknown}/content", status=404)
    for path in ("", f"/{unknown}", "/more", "/export"):
        await desk.get(f"/apps/{unknown}/messages{path}", status=404)


@pytest.mark.parametrize("width", [360, 1440])
async def test_way_needs_no_scrolling_sideways(tabs: Tabs, desk: Desk, sink: CallbackSink, width: int) -> None:
    sink.answers = always(200)
    message_id = await desk.send_text("Long" * 200)
    await sink.wait_until(lambda: len(sink.taken) >= 3)

    tab = await tabs(f"{LIST}/{message_id}", width=width)
    await tab.page.get_by_role("button", name="Show content").click()
    await tab.page.get_by_text("curl", exact=True).wait_for()
    for summary in await tab.page.locator("#steps summary").all():
        await summary.click()

    assert await tab.page.evaluate("document.documentElement.scrollWidth") <= width


async def test_template_is_shown_with_its_values_in_their_places(desk: Desk) -> None:
    answer = await desk.api.form("POST", f"/partner/app/{desk.app_id}/template/msg", KINDS[0][1])

    told = json.loads(await desk.reveal(f"{LIST}/{answer['messageId']}/content"))

    [piece] = told["pieces"]
    assert "Hi Ann, your order 1 &amp; 2 is ready." in piece["html"]
    assert "[Yes please]" in piece["html"]
