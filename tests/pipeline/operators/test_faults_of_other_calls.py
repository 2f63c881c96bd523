"""Faults of calls that send no message: templates, uploads and downloads come through whatever happens."""

import asyncio
import base64
from typing import Any, Final

import pytest

from tests.support.builders import ANN, APP, is_event
from tests.support.media_samples import sample
from tests.support.pipeline import PipelineHarness
from waypost.base.clock import ManualClock

PNG: Final = sample("png")

# fmt: off
MISHAPS: Final[dict[str, dict[str, Any]]] = {
    "busy":                {"error": 2},
    "an_error_of_500":     {"error": 131000, "status": 500},
    "never_answered":      {"timeout": True},
    "never_taken":         {"timeout": True, "taken": False},
    "cut_off_before":      {"reset": "before"},
    "cut_off_after":       {"reset": "after"},
    "a_page_of_a_gateway": {"garbage": "html"},
    "half_an_answer":      {"garbage": "truncated", "status": 200, "taken": True},
    "no_json":             {"garbage": "not_json", "status": 200, "taken": True},
    "nothing":             {"garbage": "empty", "status": 200},
}
# fmt: on
OF_FILES: Final = {name: what for name, what in MISHAPS.items() if "timeout" not in what}
"""Files have as long as they move: half a minute of silence ends them, which is too long for a test."""


@pytest.fixture
async def hasty(make_pipeline: Any) -> PipelineHarness:
    """A pipeline whose clock the test moves, and whose service does not wait long for an answer."""
    return await make_pipeline(clock=ManualClock(), changes={"operator_timeout_s": 0.5})


async def test_template_is_handed_in_once_and_its_approval_told_once(hasty: PipelineHarness) -> None:
    for name, what in MISHAPS.items():
        await arm(hasty, "templates.create", what)

        template = await hasty.create_template(elementName=name, content=f"Hi {{{{1}}}}, shall we come after {name}?")

        approved = is_event("template-event", id=template["id"], status="approved")
        await hasty.pass_time_until(lambda of=approved: any(map(of, hasty.callbacks)))
    told = [one["payload"] for one in hasty.callbacks if one["type"] == "template-event"]
    assert [one["status"] for one in told] == ["approved"] * len(MISHAPS)
    taken = (await hasty.control("GET", "templates"))["templates"]
    assert [one["name"] for one in taken] == list(MISHAPS)


async def test_message_with_a_file_is_sent_once_whatever_its_upload_meets(hasty: PipelineHarness) -> None:
    await hasty.open_window()
    for name, what in OF_FILES.items():
        media_id = await hasty.upload(PNG, "image/png", name=f"{name}.png")
        await arm(hasty, "media.upload", what)

        message_id = await hasty.send_session({"type": "image", "id": media_id})

        await hasty.pass_time_until(lambda of=message_id: "delivered" in heard(hasty, of))
        assert heard(hasty, message_id) == ["enqueued", "sent", "delivered"], name
        assert len(await hasty.deliveries(message_id)) == 1, name


@pytest.mark.parametrize("call", ["media.read", "media.download"])
async def test_file_of_a_recipient_arrives_whole_whatever_its_download_meets(hasty: PipelineHarness, call: str) -> None:
    medium = {"content": base64.b64encode(PNG).decode(), "mime_type": "image/png"}
    wish = {"to": APP.phone_number, "type": "image", "media": medium}
    for name, what in OF_FILES.items():
        await arm(hasty, call, what)

        told = await hasty.control("POST", f"phones/{ANN}/messages", wish)
        callback = await hasty.wait_for_callback(is_event("message", id=told["wamid"]))

        fetching = asyncio.create_task(fetch(hasty, callback["payload"]["payload"]["url"]))
        try:
            await hasty.pass_time_until(fetching.done)
            assert await fetching == PNG, name
        finally:
            fetching.cancel()


async def arm(pipeline: PipelineHarness, call: str, what: dict[str, Any]) -> None:
    """Let the next call of a name go wrong, and the one after the next."""
    fault = {"on": "call", "call": call, "when": {"next": 2}, "what": what}
    await pipeline.control("POST", "faults", fault)


def heard(pipeline: PipelineHarness, message_id: str) -> list[str]:
    """What the partner has been told of a message, in order."""
    return [
        one["payload"]["type"]
        for one in pipeline.callbacks
        if one["type"] == "message-event" and message_id in (one["payload"]["id"], one["payload"].get("gsId"))
    ]


async def fetch(pipeline: PipelineHarness, url: str) -> bytes:
    """The bytes behind an address of ours, asked for until they are there."""
    while True:
        async with pipeline.http.get(url) as answer:
            if answer.status == 200:
                return await answer.read()
        await asyncio.sleep(0.02)
