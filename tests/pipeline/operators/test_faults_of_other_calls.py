"""Faults of calls that send no message: templates, uploads and downloads still succeed."""

import asyncio
import base64
from typing import Any, Final

import pytest

from tests.support.builders import ANN, APP, is_event
from tests.support.manual_clock import ServiceClock
from tests.support.media_samples import sample
from tests.support.pipeline import PipelineHarness

PNG: Final = sample("png")

# fmt: off
CALL_FAULTS: Final[dict[str, dict[str, Any]]] = {
    "busy":                {"error": 2},
    "an_error_of_500":     {"error": 131000, "status": 500},
    "never_answered":      {"timeout": True},
    "never_taken":         {"timeout": True, "processed": False},
    "cut_off_before":      {"reset": "before"},
    "cut_off_after":       {"reset": "after"},
    "a_page_of_a_gateway": {"garbage": "html"},
    "half_an_answer":      {"garbage": "truncated", "status": 200, "processed": True},
    "no_json":             {"garbage": "not_json", "status": 200, "processed": True},
    "nothing":             {"garbage": "empty", "status": 200},
}
# fmt: on
FILE_FAULTS: Final = {name: what for name, what in CALL_FAULTS.items() if "timeout" not in what}
"""A transfer of a file times out only after half a minute without data, which is too long for a test."""


@pytest.fixture
async def impatient_pipeline(make_pipeline: Any) -> PipelineHarness:
    """A pipeline whose clock the test advances, and whose calls to the operator time out soon."""
    return await make_pipeline(clock=ServiceClock(), changes={"operator_timeout_s": 0.5})


async def test_template_is_submitted_once_and_its_approval_called_back_once(
    impatient_pipeline: PipelineHarness,
) -> None:
    for name, what in CALL_FAULTS.items():
        await arm(impatient_pipeline, "templates.create", what)

        template = await impatient_pipeline.create_template(
            elementName=name, content=f"Hi {{{{1}}}}, shall we come after {name}?"
        )

        approved = is_event("template-event", id=template["id"], status="approved")
        await impatient_pipeline.pass_time_until(lambda of=approved: any(map(of, impatient_pipeline.callbacks)))
    events = [callback["payload"] for callback in impatient_pipeline.callbacks if callback["type"] == "template-event"]
    assert [event["status"] for event in events] == ["approved"] * len(CALL_FAULTS)
    templates = (await impatient_pipeline.control("GET", "templates"))["templates"]
    assert [template["name"] for template in templates] == list(CALL_FAULTS)


async def test_message_with_a_file_is_sent_once_whatever_fault_its_upload_has(
    impatient_pipeline: PipelineHarness,
) -> None:
    await impatient_pipeline.open_window()
    for name, what in FILE_FAULTS.items():
        media_id = await impatient_pipeline.upload(PNG, "image/png", name=f"{name}.png")
        await arm(impatient_pipeline, "media.upload", what)

        message_id = await impatient_pipeline.send_session({"type": "image", "id": media_id})

        await impatient_pipeline.pass_time_until(
            lambda of=message_id: "delivered" in received_events(impatient_pipeline, of)
        )
        assert received_events(impatient_pipeline, message_id) == ["enqueued", "sent", "delivered"], name
        assert len(await impatient_pipeline.deliveries(message_id)) == 1, name


@pytest.mark.parametrize("call", ["media.read", "media.download"])
async def test_file_of_a_recipient_is_served_whole_whatever_fault_its_download_has(
    impatient_pipeline: PipelineHarness, call: str
) -> None:
    medium = {"content": base64.b64encode(PNG).decode(), "mime_type": "image/png"}
    inbound = {"to": APP.phone_number, "type": "image", "media": medium}
    for name, what in FILE_FAULTS.items():
        await arm(impatient_pipeline, call, what)

        response = await impatient_pipeline.control("POST", f"phones/{ANN}/messages", inbound)
        callback = await impatient_pipeline.wait_for_callback(is_event("message", id=response["wamid"]))

        fetching = asyncio.create_task(fetch(impatient_pipeline, callback["payload"]["payload"]["url"]))
        try:
            await impatient_pipeline.pass_time_until(fetching.done)
            assert await fetching == PNG, name
        finally:
            fetching.cancel()


async def arm(pipeline: PipelineHarness, call: str, what: dict[str, Any]) -> None:
    """Arm a fault for the next two calls of a name."""
    fault = {"on": "call", "call": call, "when": {"next": 2}, "what": what}
    await pipeline.control("POST", "faults", fault)


def received_events(pipeline: PipelineHarness, message_id: str) -> list[str]:
    """Return the events of a message that were called back, in order."""
    return [
        callback["payload"]["type"]
        for callback in pipeline.callbacks
        if callback["type"] == "message-event"
        and message_id in (callback["payload"]["id"], callback["payload"].get("gsId"))
    ]


async def fetch(pipeline: PipelineHarness, url: str) -> bytes:
    """Request a URL of ours until it is served; return the content."""
    while True:
        async with pipeline.http.get(url) as response:
            if response.status == 200:
                return await response.read()
        await asyncio.sleep(0.02)
