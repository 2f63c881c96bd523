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
from tests.support.patience import patiently
from tests.support.street import API_KEY, Street
from waypost.admin import provisioning
from waypost.admin.apps import NewApp, add_app
from waypost.base.clock import ManualClock
from waypost.dispatch.media_copies import FORGET_EVERY_MS

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
async def operator(street: Street) -> AsyncIterator[SlowOperator]:
    operator = SlowOperator()
    application = web.Application(client_max_size=0)
    application.router.add_route("*", "/{path:.*}", operator.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    await provisioning.put_operator_account(street.waypost.office, replace(OPERATOR, base_url=base_url))
    yield operator
    operator.takes_files.set()
    await runner.cleanup()


async def add_number(street: Street, name: str, number: str, number_id: str) -> None:
    await add_app(street.waypost.office, NewApp(PARTNER.id, name, number, number_id, ACCOUNT.id))


async def send(
    street: Street, message: dict[str, Any], *, to: str = ANN, source: str = APP.phone_number, name: str = APP.name
) -> str:
    form = {
        "channel": "whatsapp",
        "source": source,
        "destination": to,
        "src.name": name,
        "message": json.dumps(message),
    }
    answer = await street.ask("POST", "/wa/api/v1/msg", form, {"apikey": API_KEY})
    assert answer.status == 200, answer
    return answer.body["messageId"]


async def submissions(street: Street) -> dict[str, int]:
    return (await street.queue_depths())["outbound"]


async def test_slow_uploads_hold_up_neither_other_numbers_nor_their_own(street: Street, operator: SlowOperator) -> None:
    second, third = ("15550001112", "Second"), ("15550001113", "Third")
    await add_number(street, second[1], second[0], "2000000000000012")
    await add_number(street, third[1], third[0], "2000000000000013")
    image = {"type": "image", "id": await street.upload(PNG, "image/png")}
    for at in range(50):
        for number, name in ((APP.phone_number, APP.name), second):
            await send(street, image, to=f"1555200{at:04d}", source=number, name=name)
    await patiently(lambda: asyncio.sleep(0, operator.files), lambda files: len(files) == 2)

    await send(street, {"type": "text", "text": "own"}, to=BEN)
    await send(street, {"type": "text", "text": "other"}, source=third[0], name=third[1])

    await patiently(lambda: submissions(street), lambda depth: depth == {"open": 100})
    during = (sorted(operator.texts()), len(operator.files))
    operator.takes_files.set()
    await patiently(lambda: submissions(street), lambda depth: not depth.get("open"))
    assert during == (["other", "own"], 2)
    assert len(operator.messages) == 102
    assert len(operator.files) == 2


async def test_text_behind_an_upload_to_the_same_recipient_waits(street: Street, operator: SlowOperator) -> None:
    image = {"type": "image", "id": await street.upload(PNG, "image/png")}
    await send(street, image)
    await send(street, {"type": "text", "text": "after"})
    await send(street, {"type": "text", "text": "meanwhile"}, to=BEN)
    await patiently(lambda: asyncio.sleep(0, operator.texts()), lambda texts: bool(texts))
    before = operator.texts()

    operator.takes_files.set()

    await patiently(lambda: asyncio.sleep(0, operator.messages), lambda sent: len(sent) == 3)
    assert before == ["meanwhile"]
    assert [one["type"] for one in operator.messages] == ["text", "image", "text"]


async def test_refused_upload_fails_every_message_that_waits_for_it(street: Street, operator: SlowOperator) -> None:
    operator.file_answer = MEDIUM_REFUSED
    image = {"type": "image", "id": await street.upload(PNG, "image/png")}
    ids = [await send(street, image, to=f"1555200{at:04d}") for at in range(5)]
    await patiently(lambda: asyncio.sleep(0, operator.files), lambda files: bool(files))
    await asyncio.sleep(0.2)

    operator.takes_files.set()

    told = [await street.events_of(one, until="failed") for one in ids]
    assert [one[-1]["payload"]["code"] for one in told] == [100] * 5
    assert "no such file type" in told[0][-1]["payload"]["reason"]
    assert (len(operator.files), operator.messages) == (1, [])


async def test_upload_that_does_not_succeed_is_tried_again_later(street: Street, operator: SlowOperator) -> None:
    operator.takes_files.set()
    operator.file_answer = (503, {})
    image = {"type": "image", "id": await street.upload(PNG, "image/png")}
    await send(street, image)
    await patiently(street.submission_attempts, lambda attempts: attempts > 0)

    operator.file_answer = None

    await patiently(lambda: asyncio.sleep(0, operator.messages), lambda sent: bool(sent))
    assert operator.messages[0]["image"]["id"].startswith("file-")


async def create_shoe(street: Street, name: str, handle: str) -> str:
    template = await street.create_template(
        elementName=name,
        templateType="IMAGE",
        category="MARKETING",
        content="Look at this shoe.",
        example="Look at this shoe.",
        enableSample="true",
        exampleMedia=handle,
    )
    return template["id"]


async def test_slow_samples_hold_up_no_other_template(street: Street, operator: SlowOperator) -> None:
    handle = await street.upload_sample(PNG, "image/png")
    for at in range(50):
        await create_shoe(street, f"shoe_{at}", handle)

    await street.create_template(elementName="plain")

    await patiently(lambda: asyncio.sleep(0, operator.messages), lambda told: bool(told))
    assert [one["name"] for one in operator.messages] == ["plain"]
    assert len(operator.files) == 1


async def test_refused_sample_rejects_its_template_with_the_operators_words(
    street: Street, operator: SlowOperator
) -> None:
    operator.takes_files.set()
    operator.file_answer = MEDIUM_REFUSED

    template_id = await create_shoe(street, "shoe", await street.upload_sample(PNG, "image/png"))

    told = await street.wait_for_callback(is_event("template-event", id=template_id, status="rejected"))
    assert "no such file type" in told["payload"]["rejectedReason"]


@pytest.mark.parametrize(
    ("code", "words", "uploads"),
    [(100, "Invalid parameter", 1), (100, "Object with ID '1' does not exist", 2), (131053, "Media upload error", 2)],
)
async def test_refusals_that_come_again_upload_a_medium_once_more_at_most(
    street: Street, operator: SlowOperator, code: int, words: str, uploads: int
) -> None:
    operator.takes_files.set()
    operator.message_answer = (400, {"error": {"message": words, "code": code}})
    image = {"type": "image", "id": await street.upload(PNG, "image/png")}

    for at in range(20):
        await send(street, image, to=f"1555200{at:04d}")
        await asyncio.sleep(0.01)

    await patiently(lambda: submissions(street), lambda depth: not depth.get("open"))
    assert len(operator.files) == uploads


async def test_copy_is_forgotten_anew_once_some_minutes_have_passed(make_street: Any) -> None:
    clock = ManualClock()
    street: Street = await make_street(clock=clock)
    await street.open_window()
    image = {"type": "image", "id": await street.upload(PNG, "image/png")}
    for _ in range(3):
        await street.events_of(await send(street, image), until="delivered")
        for held in (await street.control("GET", "media"))["media"]:
            await street.control("POST", f"media/{held['media_id']}/expire", {})
        clock.advance(ms=FORGET_EVERY_MS)

    await street.events_of(await send(street, image), until="delivered")

    assert len((await street.control("GET", "media"))["media"]) == 4


async def test_messages_that_name_a_lost_copy_at_the_same_time_are_all_sent(street: Street) -> None:
    image = {"type": "image", "id": await street.upload(PNG, "image/png")}
    await street.open_window(ANN)
    await street.open_window(BEN)
    await street.events_of(await send(street, image), until="delivered")
    [lost] = (await street.control("GET", "media"))["media"]
    await street.control("POST", f"media/{lost['media_id']}/expire", {})

    ids = [await send(street, image, to=to) for to in (ANN, BEN)]

    told = [await street.events_of(one, until="delivered") for one in ids]
    assert [one[-1]["type"] for one in told] == ["delivered", "delivered"]
    assert len((await street.control("GET", "media"))["media"]) == 2
