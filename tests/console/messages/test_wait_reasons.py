"""A message or callback that waits: trace, pages, doctor, admin API and metrics say why in the same words."""

import re
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import pytest_asyncio

from tests.console.conftest import LOOP, ConsoleClient
from tests.support.callback_sink import CallbackSink, respond_always
from tests.support.polling import poll_until
from waypost.assembly.dev import demo
from waypost.cli.commands.inspection import format_trace
from waypost.domain.wait_reasons import WAIT_EXPLANATIONS, WaitReason

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

OTHER_PHONE = "15550007777"
LIST = f"/apps/{demo.APP_ID}/messages"
INVALID_TOKEN = 190
"""The operator's code after which all messages of the account wait for a minute."""


@pytest_asyncio.fixture(loop_scope=LOOP)
async def sink() -> AsyncGenerator[CallbackSink]:
    """A receiver."""
    sink = CallbackSink()
    await sink.open()
    yield sink
    await sink.close()


async def get_trace(console: ConsoleClient, message_id: str) -> dict[str, Any]:
    return await console.admin.json("GET", f"/admin/trace/{message_id}")


async def get_metrics(console: ConsoleClient) -> str:
    headers = {"Authorization": f"Bearer {console.running.variables['ADMIN_TOKEN']}"}
    async with console.http.get(f"{console.base_url}/metrics", headers=headers) as response:
        assert response.status == 200
        return await response.text()


async def test_message_that_waits_for_the_operator_shows_one_reason_everywhere(console: ConsoleClient) -> None:
    text = WAIT_EXPLANATIONS[WaitReason.OPERATOR_PAUSE].text
    fault = {"on": "call", "call": "messages.send", "what": {"error": INVALID_TOKEN}, "when": {"next": 1}}
    await console.control.json("POST", "/control/faults", {"faults": [fault]})
    first = await console.send_text("Rejected")
    await poll_until(lambda: get_trace(console, first), lambda trace: trace["events"])
    second = await console.send_text("Behind it", to=OTHER_PHONE)

    trace = await poll_until(
        lambda: get_trace(console, second), lambda trace: bool(trace["waiting"] and trace["waiting"]["wait"])
    )

    assert (trace["waiting"]["wait"]["reason"], trace["waiting"]["wait"]["text"]) == ("operator_pause", text)
    assert any(f"because {text}, until " in line for line in format_trace(trace))
    assert text in await console.get(f"/apps/{console.app_id}/messages/{second}")
    assert f"waiting: {text}" in await console.get(f"/apps/{console.app_id}")
    results = (await console.admin.json("GET", "/admin/doctor"))["results"]
    [result] = [result for result in results if result["subject"] == "queue outbound"]
    assert (result["state"], result["text"]) == ("warning", f"2 jobs wait: {text}")
    metrics = await get_metrics(console)
    assert re.search(r'waypost_queue_waiting_groups\{[^}]*queue="outbound",reason="operator_pause"[^}]*\} 1', metrics)
    retried = (await get_trace(console, first))["waiting"]["wait"]
    assert retried["text"] == WAIT_EXPLANATIONS[WaitReason.RETRY].text


async def test_callback_that_waits_for_its_receiver_shows_one_reason_everywhere(
    console: ConsoleClient, sink: CallbackSink
) -> None:
    text = WAIT_EXPLANATIONS[WaitReason.RECEIVER_PAUSE].text
    fields = {"modes": "ENQUEUED,SENT,DELIVERED", "tag": "busy", "version": "2", "url": sink.url}
    await console.api.form("POST", f"/partner/app/{demo.APP_ID}/subscription", fields)
    sink.choose_status, sink.choose_headers = respond_always(429), lambda _: {"Retry-After": "600"}
    await console.send_text("Rejected")
    await sink.wait_until(lambda: len(sink.requests) >= 2)  # the first is the ping
    message_id = await console.send_text("Later", to=OTHER_PHONE)

    def find_waiting(trace: dict[str, Any]) -> str | None:
        """Return the id of a callback that waits for this reason."""
        for callback in trace["callbacks"]:
            wait = callback["waiting"] and callback["waiting"]["wait"]
            if wait and wait["text"] == text:
                return callback["id"]
        return None

    trace = await poll_until(lambda: get_trace(console, message_id), lambda trace: find_waiting(trace) is not None)
    callback_id = find_waiting(trace)
    assert any(f"because {text}, until " in line for line in format_trace(trace))
    assert text in await console.get(f"{LIST}/{message_id}")
    assert text in await console.get(f"/apps/{console.app_id}/callbacks/deliveries/{callback_id}")
