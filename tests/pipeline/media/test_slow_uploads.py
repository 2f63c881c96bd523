"""An operator that is slow with files, or refuses them: it concerns only those who need the file."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest
from aiohttp import web

from tests.support.builders import ACCOUNT, ANN, APP, BEN, OPERATOR, PARTNER, is_event
from tests.support.media_samples import sample
from tests.support.pipeline import API_KEY, PipelineHarness
from tests.support.waiting import patiently
from waypost.admin import provisioning
from waypost.admin.apps import NewApp, add_app
from waypost.base.clock import ManualClock
from waypost.dispatch.media_copies import COPY_DROP_INTERVAL_MS

pytestmark = pytest.mark.content_only

PNG: Final = sample("png")
MEDIUM_REFUSED: Final = (400, {"error": {"message": "no such file type", "code": 100}})


@dataclass
class SlowOperator:
    """Takes messages at once, and files only when it is told to.

    Attributes:
        takes_files: files are answered once it is set.
        file_answer: status and body for a file; None to take it.
        message_answer: likewise for a message.
        files: paths of the files asked for, in order.
        messages: bodies of the messages.
    """

    takes_files: asyncio.Event = field(default_factory=asyncio.Event)
    file_answer: tuple[int, Any] | None = None
    message_answer: tuple[int, Any] | None = None
    files: list[str] = field(default_factory=list[str])
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def answer(self, request: web.Request) -> web.Response:
        """Any request."""
        path = request.path
        if path.endswith(("/media", "/uploads")):
            await request.read()
            self.files.append(path)
            await self.takes_files.wait()
            status, told = self.file_answer or (200, {"id": f"file-{len(self.files)}"})
        else:
            self.messages.append(await request.json())
            number = len(self.messages)
            taken = {"messages": [{"id": f"wamid.{number}"}], "id": str(number)}
            status, told = self.message_answer or (200, taken)
        return web.json_response(told, status=status)

    def texts(self) -> list[str]:
        """Bodies of the texts sent, in order."""
        return [one["text"]["body"] for one in self.messages if one.get("type") == "text"]


@pytest.fixture
async def operator(pipeline: PipelineHarness) -> AsyncIterator[SlowOperator]:
    operator = SlowOperator()
    application = web.Application(client_max_size=0)
    application.router.add_route("*", "/{path:.*}", operator.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    await provisioning.put_operator_account(pipeline.waypost.admin_context, replace(OPERATOR, base_url=base_url))
    yield operator
    operator.takes_files.set()
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
    answer = await pipeline.ask("POST", "/wa/api/v1/msg", form, {"apikey": API_KEY})
    assert answer.status == 200, answer
    return answer.body["messageId"]


async def submissions(pipeline: PipelineHarness) -> dict[str, int]:
    return (await pipeline.queue_depths())["outbound"]


@pytest.mark.both_engines
async def test_slow_uploads_hold_up_neither_other_numbers_nor_their_own(
    pipeline: PipelineHarness, operator: SlowOperator
) -> None:
    second, third = ("15550001112", "Second"), ("15550001113", "Third")
    await add_number(pipeline, second[1], second[0], "2000000000000012")
    await add_number(pipeline, third[1], third[0], "2000000000000013")
    image = {"type": "image", "id": await pipeline.upload(PNG, "image/png")}
    for at in range(50):
        for number, name in ((APP.phone_number, APP.name), second):
            await send(pipeline, image, to=f"1555200{at:04d}", source=number, name=name)
    await patiently(lambda: asyncio.sleep(0, operator.files), lambda files: len(files) == 2)

    await send(pipeline, {"type": "text", "text": "own"}, to=BEN)
    await send(pipeline, {"type": "text", "text": "other"}, source=third[0], name=third[1])

    await patiently(lambda: submissions(pipeline), lambda depth: depth == {"open": 100})
    during = (sorted(operator.texts()), len(operator.files))
    operator.takes_files.set()
    await patiently(lambda: submissions(pipeline), lambda depth: not depth.get("open"))
    assert during == (["other", "own"], 2)
    assert len(operator.messages) == 102
    assert len(operator.files) == 2


async def test_text_behind_an_upload_to_the_same_recipient_waits(
    pipeline: PipelineHarness, operator: SlowOperator
) -> None:
    image = {"type": "image", "id": await pipeline.upload(PNG, "image/png")}
    await send(pipeline, image)
    await send(pipeline, {"type": "text", "text": "after"})
    await send(pipeline, {"type": "text", "text": "meanwhile"}, to=BEN)
    await patiently(lambda: asyncio.sleep(0, operator.texts()), lambda texts: bool(texts))
    before = operator.texts()

    operator.takes_files.set()

    await patiently(lambda: asyncio.sleep(0, operator.messages), lambda sent: len(sent) == 3)
    assert before == ["meanwhile"]
    assert [one["type"] for one in operator.messages] == ["text", "image", "text"]


async def test_refused_upload_fails_every_message_that_waits_for_it(
    pipeline: PipelineHarness, operator: SlowOperator
) -> None:
    operator.file_answer = MEDIUM_REFUSED
    image = {"type": "image", "id": await pipeline.upload(PNG, "image/png")}
    ids = [await send(pipeline, image, to=f"1555200{at:04d}") for at in range(5)]
    await patiently(lambda: asyncio.sleep(0, operator.files), lambda files: bool(files))
    await asyncio.sleep(0.2)

    operator.takes_files.set()

    told = [await pipeline.events_of(one, until="failed") for one in ids]
    assert [one[-1]["payload"]["code"] for one in told] == [100] * 5
    assert "no such file type" in told[0][-1]["payload"]["reason"]
    assert (len(operator.files), operator.messages) == (1, [])


@pytest.mark.both_engines
async def test_upload_that_does_not_succeed_is_tried_again_later(
    pipeline: PipelineHarness, operator: SlowOperator
) -> None:
    operator.takes_files.set()
    operator.file_answer = (503, {})
    image = {"type": "image", "id": await pipeline.upload(PNG, "image/png")}
    await send(pipeline, image)
    await patiently(pipeline.submission_attempts, lambda attempts: attempts > 0)

    operator.file_answer = None

    await patiently(lambda: asyncio.sleep(0, operator.messages), lambda sent: bool(sent))
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


async def test_slow_samples_hold_up_no_other_template(pipeline: PipelineHarness, operator: SlowOperator) -> None:
    handle = await pipeline.upload_sample(PNG, "image/png")
    for at in range(50):
        await create_shoe(pipeline, f"shoe_{at}", handle)

    await pipeline.create_template(elementName="plain")

    await patiently(lambda: asyncio.sleep(0, operator.messages), lambda told: bool(told))
    assert [one["name"] for one in operator.messages] == ["plain"]
    assert len(operator.files) == 1


async def test_refused_sample_rejects_its_template_with_the_operators_words(
    pipeline: PipelineHarness, operator: SlowOperator
) -> None:
    operator.takes_files.set()
    operator.file_answer = MEDIUM_REFUSED

    template_id = await create_shoe(pipeline, "shoe", await pipeline.upload_sample(PNG, "image/png"))

    told = await pipeline.wait_for_callback(is_event("template-event", id=template_id, status="rejected"))
    assert "no such file type" in told["payload"]["rejectedReason"]


@pytest.mark.parametrize(
    ("code", "words", "uploads"),
    [(100, "Invalid parameter", 1), (100, "Object with ID '1' does not exist", 2), (131053, "Media upload error", 2)],
)
async def test_refusals_that_come_again_upload_a_medium_once_more_at_most(
    pipeline: PipelineHarness, operator: SlowOperator, code: int, words: str, uploads: int
) -> None:
    operator.takes_files.set()
    operator.message_answer = (400, {"error": {"message": words, "code": code}})
    image = {"type": "image", "id": await pipeline.upload(PNG, "image/png")}

    for at in range(20):
        await send(pipeline, image, to=f"1555200{at:04d}")
        await asyncio.sleep(0.01)

    await patiently(lambda: submissions(pipeline), lambda depth: not depth.get("open"))
    assert len(operator.files) == uploads


async def test_copy_is_forgotten_anew_once_some_minutes_have_passed(make_pipeline: Any) -> None:
    clock = ManualClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    await pipeline.open_window()
    image = {"type": "image", "id": await pipeline.upload(PNG, "image/png")}
    for _ in range(3):
        await pipeline.events_of(await send(pipeline, image), until="delivered")
        for held in (await pipeline.control("GET", "media"))["media"]:
            await pipeline.control("POST", f"media/{held['media_id']}/expire", {})
        clock.advance(ms=COPY_DROP_INTERVAL_MS)

    await pipeline.events_of(await send(pipeline, image), until="delivered")

    assert len((await pipeline.control("GET", "media"))["media"]) == 4


@pytest.mark.both_engines
async def test_messages_that_name_a_lost_copy_at_the_same_time_are_all_sent(pipeline: PipelineHarness) -> None:
    image = {"type": "image", "id": await pipeline.upload(PNG, "image/png")}
    await pipeline.open_window(ANN)
    await pipeline.open_window(BEN)
    await pipeline.events_of(await send(pipeline, image), until="delivered")
    [lost] = (await pipeline.control("GET", "media"))["media"]
    await pipeline.control("POST", f"media/{lost['media_id']}/expire", {})

    ids = [await send(pipeline, image, to=to) for to in (ANN, BEN)]

    told = [await pipeline.events_of(one, until="delivered") for one in ids]
    assert [one[-1]["type"] for one in told] == ["delivered", "delivered"]
    assert len((await pipeline.control("GET", "media"))["media"]) == 2
