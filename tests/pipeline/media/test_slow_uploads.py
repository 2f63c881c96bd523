"""An operator that is slow with files or rejects them affects only the messages that need the file."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest
from aiohttp import web

from tests.support.builders import ACCOUNT, ANN, APP, BEN, OPERATOR, PARTNER, is_event
from tests.support.manual_clock import ServiceClock
from tests.support.media_samples import sample
from tests.support.pipeline import API_KEY, PipelineHarness
from tests.support.polling import poll_until
from waypost.admin import provisioning
from waypost.admin.apps import NewApp, add_app
from waypost.dispatch.media_copies import COPY_DROP_INTERVAL_MS

pytestmark = pytest.mark.content_only

PNG: Final = sample("png")
MEDIA_ERROR: Final = (400, {"error": {"message": "no such file type", "code": 100}})


@dataclass
class SlowOperator:
    """Accept messages at once, and files only when the test says so.

    Attributes:
        accepts_files: requests with files get a response once it is set.
        file_response: status and body for a file; None to accept it.
        message_response: likewise for a message.
        files: paths of the requests with files, in order.
        messages: bodies of the messages.
    """

    accepts_files: asyncio.Event = field(default_factory=asyncio.Event)
    file_response: tuple[int, Any] | None = None
    message_response: tuple[int, Any] | None = None
    files: list[str] = field(default_factory=list[str])
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def respond(self, request: web.Request) -> web.Response:
        """Respond to any request."""
        path = request.path
        if path.endswith(("/media", "/uploads")):
            await request.read()
            self.files.append(path)
            await self.accepts_files.wait()
            status, body = self.file_response or (200, {"id": f"file-{len(self.files)}"})
        else:
            self.messages.append(await request.json())
            number = len(self.messages)
            accepted = {"messages": [{"id": f"wamid.{number}"}], "id": str(number)}
            status, body = self.message_response or (200, accepted)
        return web.json_response(body, status=status)

    def texts(self) -> list[str]:
        """Return the bodies of the texts sent, in order."""
        return [message["text"]["body"] for message in self.messages if message.get("type") == "text"]


@pytest.fixture
async def operator(pipeline: PipelineHarness) -> AsyncIterator[SlowOperator]:
    operator = SlowOperator()
    application = web.Application(client_max_size=0)
    application.router.add_route("*", "/{path:.*}", operator.respond)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    await provisioning.put_operator_account(pipeline.waypost.admin_context, replace(OPERATOR, base_url=base_url))
    yield operator
    operator.accepts_files.set()
    await runner.cleanup()


async def add_number(pipeline: PipelineHarness, name: str, number: str, number_id: str) -> None:
    await add_app(pipeline.waypost.admin_context, NewApp(PARTNER.id, name, number, number_id, ACCOUNT.id))


async def send(
    pipeline: PipelineHarness,
    message: dict[str, Any],
    *,
    to: str = ANN,
    source: str = APP.phone_number,
    name: str = APP.name,
) -> str:
    form = {
        "channel": "whatsapp",
        "source": source,
        "destination": to,
        "src.name": name,
        "message": json.dumps(message),
    }
    response = await pipeline.send_request("POST", "/wa/api/v1/msg", form, {"apikey": API_KEY})
    assert response.status == 200, response
    return response.body["messageId"]


async def read_outbound_depths(pipeline: PipelineHarness) -> dict[str, int]:
    return (await pipeline.queue_depths())["outbound"]


@pytest.mark.both_engines
async def test_slow_uploads_block_neither_other_numbers_nor_their_own(
    pipeline: PipelineHarness, operator: SlowOperator
) -> None:
    second, third = ("15550001112", "Second"), ("15550001113", "Third")
    await add_number(pipeline, second[1], second[0], "2000000000000012")
    await add_number(pipeline, third[1], third[0], "2000000000000013")
    image = {"type": "image", "id": await pipeline.upload(PNG, "image/png")}
    for at in range(50):
        for number, name in ((APP.phone_number, APP.name), second):
            await send(pipeline, image, to=f"1555200{at:04d}", source=number, name=name)
    await poll_until(lambda: asyncio.sleep(0, operator.files), lambda files: len(files) == 2)

    await send(pipeline, {"type": "text", "text": "own"}, to=BEN)
    await send(pipeline, {"type": "text", "text": "other"}, source=third[0], name=third[1])

    await poll_until(lambda: read_outbound_depths(pipeline), lambda depth: depth == {"open": 100})
    counts_while_slow = (sorted(operator.texts()), len(operator.files))
    operator.accepts_files.set()
    await poll_until(lambda: read_outbound_depths(pipeline), lambda depth: not depth.get("open"))
    assert counts_while_slow == (["other", "own"], 2)
    assert len(operator.messages) == 102
    assert len(operator.files) == 2


async def test_text_after_an_upload_to_the_same_recipient_waits(
    pipeline: PipelineHarness, operator: SlowOperator
) -> None:
    image = {"type": "image", "id": await pipeline.upload(PNG, "image/png")}
    await send(pipeline, image)
    await send(pipeline, {"type": "text", "text": "after"})
    await send(pipeline, {"type": "text", "text": "meanwhile"}, to=BEN)
    await poll_until(lambda: asyncio.sleep(0, operator.texts()), lambda texts: bool(texts))
    before = operator.texts()

    operator.accepts_files.set()

    await poll_until(lambda: asyncio.sleep(0, operator.messages), lambda sent: len(sent) == 3)
    assert before == ["meanwhile"]
    assert [message["type"] for message in operator.messages] == ["text", "image", "text"]


async def test_rejected_upload_fails_every_message_that_waits_for_it(
    pipeline: PipelineHarness, operator: SlowOperator
) -> None:
    operator.file_response = MEDIA_ERROR
    image = {"type": "image", "id": await pipeline.upload(PNG, "image/png")}
    ids = [await send(pipeline, image, to=f"1555200{at:04d}") for at in range(5)]
    await poll_until(lambda: asyncio.sleep(0, operator.files), lambda files: bool(files))
    await asyncio.sleep(0.2)

    operator.accepts_files.set()

    events_by_message = [await pipeline.events_of(message_id, until="failed") for message_id in ids]
    assert [events[-1]["payload"]["code"] for events in events_by_message] == [100] * 5
    assert "no such file type" in events_by_message[0][-1]["payload"]["reason"]
    assert (len(operator.files), operator.messages) == (1, [])


@pytest.mark.both_engines
async def test_upload_that_does_not_succeed_is_retried_later(pipeline: PipelineHarness, operator: SlowOperator) -> None:
    operator.accepts_files.set()
    operator.file_response = (503, {})
    image = {"type": "image", "id": await pipeline.upload(PNG, "image/png")}
    await send(pipeline, image)
    await poll_until(pipeline.submission_attempts, lambda attempts: attempts > 0)

    operator.file_response = None

    await poll_until(lambda: asyncio.sleep(0, operator.messages), lambda sent: bool(sent))
    assert operator.messages[0]["image"]["id"].startswith("file-")


async def create_shoe(pipeline: PipelineHarness, name: str, handle: str) -> str:
    template = await pipeline.create_template(
        elementName=name,
        templateType="IMAGE",
        category="MARKETING",
        content="Look at this shoe.",
        example="Look at this shoe.",
        enableSample="true",
        exampleMedia=handle,
    )
    return template["id"]


async def test_slow_samples_block_no_other_template(pipeline: PipelineHarness, operator: SlowOperator) -> None:
    handle = await pipeline.upload_sample(PNG, "image/png")
    for at in range(50):
        await create_shoe(pipeline, f"shoe_{at}", handle)

    await pipeline.create_template(elementName="plain")

    await poll_until(lambda: asyncio.sleep(0, operator.messages), lambda messages: bool(messages))
    assert [message["name"] for message in operator.messages] == ["plain"]
    assert len(operator.files) == 1


async def test_rejected_sample_rejects_its_template_with_the_error_of_the_operator(
    pipeline: PipelineHarness, operator: SlowOperator
) -> None:
    operator.accepts_files.set()
    operator.file_response = MEDIA_ERROR

    template_id = await create_shoe(pipeline, "shoe", await pipeline.upload_sample(PNG, "image/png"))

    callback = await pipeline.wait_for_callback(is_event("template-event", id=template_id, status="rejected"))
    assert "no such file type" in callback["payload"]["rejectedReason"]


@pytest.mark.parametrize(
    ("code", "error_text", "uploads"),
    [(100, "Invalid parameter", 1), (100, "Object with ID '1' does not exist", 2), (131053, "Media upload error", 2)],
)
async def test_repeated_errors_upload_a_medium_at_most_once_more(
    pipeline: PipelineHarness, operator: SlowOperator, code: int, error_text: str, uploads: int
) -> None:
    operator.accepts_files.set()
    operator.message_response = (400, {"error": {"message": error_text, "code": code}})
    image = {"type": "image", "id": await pipeline.upload(PNG, "image/png")}

    for at in range(20):
        await send(pipeline, image, to=f"1555200{at:04d}")
        await asyncio.sleep(0.01)

    await poll_until(lambda: read_outbound_depths(pipeline), lambda depth: not depth.get("open"))
    assert len(operator.files) == uploads


async def test_lost_medium_is_uploaded_again_each_time_after_the_drop_interval(make_pipeline: Any) -> None:
    clock = ServiceClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    await pipeline.open_window()
    image = {"type": "image", "id": await pipeline.upload(PNG, "image/png")}
    for _ in range(3):
        await pipeline.events_of(await send(pipeline, image), until="delivered")
        for operator_media in (await pipeline.control("GET", "media"))["media"]:
            await pipeline.control("POST", f"media/{operator_media['media_id']}/expire", {})
        clock.advance(ms=COPY_DROP_INTERVAL_MS)

    await pipeline.events_of(await send(pipeline, image), until="delivered")

    assert len((await pipeline.control("GET", "media"))["media"]) == 4


@pytest.mark.both_engines
async def test_messages_with_the_same_lost_medium_are_all_sent(pipeline: PipelineHarness) -> None:
    image = {"type": "image", "id": await pipeline.upload(PNG, "image/png")}
    await pipeline.open_window(ANN)
    await pipeline.open_window(BEN)
    await pipeline.events_of(await send(pipeline, image), until="delivered")
    [lost] = (await pipeline.control("GET", "media"))["media"]
    await pipeline.control("POST", f"media/{lost['media_id']}/expire", {})

    ids = [await send(pipeline, image, to=to) for to in (ANN, BEN)]

    events_by_message = [await pipeline.events_of(message_id, until="delivered") for message_id in ids]
    assert [events[-1]["type"] for events in events_by_message] == ["delivered", "delivered"]
    assert len((await pipeline.control("GET", "media"))["media"]) == 2
