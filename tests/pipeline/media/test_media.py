"""Media both ways: what partners upload reaches phones, and what phones send reaches partners."""

import asyncio
import base64
import io
import json
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any, Final

import aiohttp
import pytest
from aiohttp import web
from sqlalchemy import Connection, select, update

from tests.support.builders import ANN, APP, BEN, OPERATOR, is_event
from tests.support.file_server import FileServer
from tests.support.media_samples import sample
from tests.support.pipeline import API_KEY, Answer, PipelineHarness
from tests.support.waiting import HANGS_AFTER_S, patiently
from waypost.admin import provisioning
from waypost.api.media import public_files
from waypost.base.clock import DAY_MS, ManualClock
from waypost.domain.media import InboundMedia, UploadedMedia
from waypost.operators.cloud.adapter import CloudOperator
from waypost.operators.contract import OperatorUpload
from waypost.store import tables
from waypost.store.media.media import add_inbound_media

pytestmark = pytest.mark.content_only

PNG: Final = sample("png")


@pytest.fixture
async def files() -> AsyncIterator[FileServer]:
    files = FileServer()
    await files.open()
    yield files
    await files.close()


async def upload(
    pipeline: PipelineHarness,
    content: bytes = PNG,
    *,
    file_type: str = "image/png",
    path: str = "media",
    name: str = "shoe.png",
) -> Answer:
    form = aiohttp.FormData()
    form.add_field("file", io.BytesIO(content), filename=name, content_type=file_type)
    form.add_field("file_type", file_type)
    url = f"{pipeline.service_url}/partner/app/{APP.id}/{path}"
    async with pipeline.http.post(url, data=form, headers={"token": pipeline.app_token}) as answer:
        raw = await answer.read()
        return Answer(answer.status, json.loads(raw), answer.headers, raw)


async def media_id_of(pipeline: PipelineHarness, content: bytes = PNG) -> str:
    answer = await upload(pipeline, content)
    assert answer.status == 200, answer
    return answer.body["mediaId"]


async def handle_of(pipeline: PipelineHarness, content: bytes, file_type: str) -> str:
    answer = await upload(pipeline, content, file_type=file_type, path="upload/media")
    assert answer.status == 200, answer
    return answer.body["handleId"]["message"]


async def send(pipeline: PipelineHarness, message: Mapping[str, Any], *, to: str = ANN) -> str:
    form = {
        "channel": "whatsapp",
        "source": APP.phone_number,
        "destination": to,
        "src.name": APP.name,
        "message": json.dumps(message),
    }
    answer = await pipeline.ask("POST", "/wa/api/v1/msg", form, {"apikey": API_KEY})
    assert answer.status == 200, answer
    return answer.body["messageId"]


def call_it(connection: Connection, media_id: str, mime_type: str) -> None:
    """As if an older version had taken what the operator does not."""
    connection.execute(update(tables.media).where(tables.media.c.id == media_id).values(mime_type=mime_type))


def newest_upload(connection: Connection) -> UploadedMedia:
    return UploadedMedia(**connection.execute(select(tables.media)).mappings().one())


async def get(pipeline: PipelineHarness, url: str) -> tuple[int, bytes, Mapping[str, str]]:
    async with pipeline.http.get(url) as answer:
        return answer.status, await answer.read(), answer.headers


async def at_operator(pipeline: PipelineHarness, *, inbound: bool = False) -> list[dict[str, Any]]:
    held = (await pipeline.control("GET", "media"))["media"]
    return [one for one in held if one["is_inbound"] is inbound]


async def test_upload_succeeds_while_the_operator_is_down_and_is_sent_when_it_is_up(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    await pipeline.close_operator()
    media_id = await media_id_of(pipeline)
    message_id = await send(pipeline, {"type": "image", "id": media_id, "caption": "New"})
    await patiently(pipeline.submission_attempts, lambda attempts: attempts > 0)

    await pipeline.open_operator()

    events = await pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    [held] = await at_operator(pipeline)
    assert (held["mime_type"], held["size_bytes"]) == ("image/png", len(PNG))
    assert held["media_id"] != media_id
    shown = (await pipeline.inbox())[-1]["media"]
    assert (shown["id"], shown["caption"]) == (held["media_id"], "New")


@pytest.mark.both_engines
async def test_many_messages_with_one_medium_need_one_upload(pipeline: PipelineHarness) -> None:
    await pipeline.open_window(ANN)
    await pipeline.open_window(BEN)
    media_id = await media_id_of(pipeline)

    ids = [await send(pipeline, {"type": "image", "id": media_id}, to=to) for to in (ANN, BEN) for _ in range(10)]

    await asyncio.gather(*(pipeline.events_of(one, until="delivered") for one in ids))
    assert len(await at_operator(pipeline)) == 1


@pytest.mark.both_engines
async def test_message_waits_its_turn_while_its_medium_is_uploaded(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    media_id = await media_id_of(pipeline)

    first = await send(pipeline, {"type": "image", "id": media_id})
    second = await pipeline.send_text("after it")

    await pipeline.events_of(second, until="delivered")
    sent = [one["callback_data"] for one in await deliveries(pipeline) if one["callback_data"]]
    assert sent == [first, second]


async def deliveries(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    return (await pipeline.control("GET", "deliveries"))["deliveries"]


async def test_copy_that_the_operator_has_lost_is_uploaded_again(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    media_id = await media_id_of(pipeline)
    first = await send(pipeline, {"type": "image", "id": media_id})
    await pipeline.events_of(first, until="delivered")
    [lost] = await at_operator(pipeline)
    await pipeline.control("POST", f"media/{lost['media_id']}/expire", {})

    second = await send(pipeline, {"type": "image", "id": media_id})

    events = await pipeline.events_of(second, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert len(await at_operator(pipeline)) == 2


async def test_id_that_is_not_ours_goes_to_the_operator_as_it_is(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()

    message_id = await send(pipeline, {"type": "image", "id": "1037543291543636"})

    [failed] = await pipeline.events_of(message_id, until="failed")
    assert failed["payload"]["code"] in (100, 131009, 131053)


async def test_id_goes_as_it_is_once_its_thirty_days_are_over(make_pipeline: Any) -> None:
    clock = ManualClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    media_id = await media_id_of(pipeline)
    clock.advance(ms=30 * DAY_MS)
    await pipeline.open_window()

    message_id = await send(pipeline, {"type": "image", "id": media_id})
    await patiently(pipeline.submission_attempts)
    clock.advance(ms=2000)  # what is refused for its medium is tried once more

    await pipeline.events_of(message_id, until="failed")
    assert await at_operator(pipeline) == []


async def test_our_id_inside_a_passthrough_body_is_replaced(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    media_id = await media_id_of(pipeline)
    body = {"messaging_product": "whatsapp", "to": ANN, "type": "image", "image": {"id": media_id, "caption": media_id}}

    async with pipeline.http.post(
        f"{pipeline.service_url}/partner/app/{APP.id}/v3/message",
        json=body,
        headers={"Authorization": pipeline.app_token},
    ) as answer:
        told = await answer.json()

    await pipeline.events_of(told["messages"][0]["id"], until="delivered")
    [held] = await at_operator(pipeline)
    shown = (await pipeline.inbox())[-1]["media"]
    assert (shown["id"], shown["caption"]) == (held["media_id"], media_id)


async def test_file_that_the_operator_refuses_fails_the_message_with_its_words(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    media_id = await media_id_of(pipeline)
    await pipeline.waypost.database.write(call_it, media_id, "text/csv")

    message_id = await send(pipeline, {"type": "document", "id": media_id})

    [failed] = await pipeline.events_of(message_id, until="failed")
    assert failed["payload"]["code"] == 100
    assert "text/csv" in failed["payload"]["reason"]


async def test_template_gets_the_operators_handle_with_all_its_lines(pipeline: PipelineHarness) -> None:
    handle = await handle_of(pipeline, sample("mp4", 9 * 1024 * 1024), "video/mp4")

    template = await pipeline.create_template(
        elementName="clip",
        templateType="VIDEO",
        category="MARKETING",
        content="Look at this clip.",
        example="Look at this clip.",
        enableSample="true",
        exampleMedia=handle,
    )

    await pipeline.wait_for_callback(is_event("template-event", id=template["id"], status="approved"))
    [held] = (await pipeline.control("GET", "handles"))["handles"]
    assert held["handle"].count("\n") == 2
    assert held["size_bytes"] == 9 * 1024 * 1024


@pytest.mark.holds("handle-lines")
async def test_handle_of_another_with_three_lines_passes_untouched(pipeline: PipelineHarness, tmp_path: Any) -> None:
    path = tmp_path / "clip"
    path.write_bytes(sample("mp4", 9 * 1024 * 1024))
    await handle_of(pipeline, sample("mp4"), "video/mp4")
    media = await pipeline.waypost.database.read(newest_upload)
    adapter = CloudOperator()
    await adapter.open()
    account = replace(OPERATOR, base_url=pipeline.operator_url)
    theirs = await adapter.upload_sample(account, replace(media, size_bytes=path.stat().st_size), path)
    await adapter.close()
    assert isinstance(theirs, OperatorUpload)
    assert theirs.operator_id.count("\n") == 2

    template = await pipeline.create_template(
        elementName="clip",
        templateType="VIDEO",
        category="MARKETING",
        content="Look at this clip.",
        example="Look at this clip.",
        enableSample="true",
        exampleMedia=theirs.operator_id,
    )

    await pipeline.wait_for_callback(is_event("template-event", id=template["id"], status="approved"))
    assert len((await pipeline.control("GET", "handles"))["handles"]) == 1


@pytest.mark.both_engines
async def test_template_waits_for_an_operator_that_is_down(pipeline: PipelineHarness) -> None:
    await pipeline.close_operator()
    handle = await handle_of(pipeline, PNG, "image/png")
    template = await pipeline.create_template(
        elementName="shoe",
        templateType="IMAGE",
        category="MARKETING",
        content="Look at this shoe.",
        example="Look at this shoe.",
        enableSample="true",
        exampleMedia=handle,
    )
    await patiently(pipeline.submission_attempts, lambda attempts: attempts > 0)

    await pipeline.open_operator()

    await pipeline.wait_for_callback(is_event("template-event", id=template["id"], status="approved"))


async def test_address_is_fetched_before_the_answer(pipeline: PipelineHarness, files: FileServer) -> None:
    form = {"file": f"{files.url}/png", "file_type": "image/png"}

    answer = await pipeline.ask("POST", f"/partner/app/{APP.id}/media", form, {"token": pipeline.app_token})

    assert answer.status == 200
    assert files.asked == ["/png"]


async def test_upload_through_the_messaging_api_has_an_address_of_its_own(pipeline: PipelineHarness) -> None:
    form = aiohttp.FormData()
    form.add_field("file", PNG, filename="größe.png", content_type="image/png")
    async with pipeline.http.post(
        f"{pipeline.service_url}/wa/{APP.id}/wa/media/", data=form, headers={"apikey": API_KEY}
    ) as answer:
        media = (await answer.json())["media"]

    status, content, headers = await get(pipeline, media["url"])

    assert (status, content) == (200, PNG)
    assert headers["Content-Type"] == "image/png"
    assert headers["X-Content-Type-Options"] == "nosniff"
    wrong = media["url"][:-1] + ("0" if media["url"][-1] != "0" else "1")
    assert (await get(pipeline, wrong))[0] == 404


async def test_disk_that_takes_nothing_is_told_as_documented(pipeline: PipelineHarness) -> None:
    shutil.rmtree(pipeline.folder / "media")

    answer = await upload(pipeline)

    assert answer.status == 500
    assert answer.body == {"status": "error", "message": "Unable to upload requested Media"}


async def receive_image(pipeline: PipelineHarness) -> str:
    """A phone sends an image; the address that the partner is called back with."""
    told = await pipeline.control(
        "POST",
        f"phones/{ANN}/messages",
        {"to": APP.phone_number, "type": "image", "media": _medium("png", "image/png")},
    )
    callback = await pipeline.wait_for_callback(is_event("message", id=told["wamid"]))
    payload = callback["payload"]["payload"]
    assert payload["contentType"] == "image/png"
    return payload["url"]


async def test_inbound_image_is_fetched_and_served_without_a_credential(pipeline: PipelineHarness) -> None:
    url = await receive_image(pipeline)

    status, content, headers = await get(pipeline, url)

    assert (status, content) == (200, PNG)
    assert headers["Content-Type"] == "image/png"
    assert headers["Content-Disposition"].startswith("inline")
    assert (await get(pipeline, url.partition("?")[0] + "?download=true"))[2]["Content-Disposition"].startswith(
        "attachment"
    )


@pytest.mark.both_engines
async def test_inbound_image_is_there_after_a_restart(pipeline: PipelineHarness) -> None:
    url = await receive_image(pipeline)
    await get(pipeline, url)

    await pipeline.close_service()
    await pipeline.open_service()

    assert (await get(pipeline, url))[:2] == (200, PNG)


async def test_inbound_image_comes_by_its_operators_id_too(pipeline: PipelineHarness) -> None:
    await get(pipeline, await receive_image(pipeline))
    [held] = await at_operator(pipeline, inbound=True)

    answer = await pipeline.ask(
        "GET", f"/partner/app/{APP.id}/media/{held['media_id']}", headers={"token": pipeline.app_token}
    )

    assert (answer.status, answer.raw) == (200, PNG)


async def test_what_only_the_operator_has_is_fetched_for_the_answer(pipeline: PipelineHarness) -> None:
    """Media inside a flow's reply come so."""
    kept = await pipeline.control("POST", "media", {"to": APP.phone_number, **_medium("png", "image/png")})

    answer = await pipeline.ask(
        "GET",
        f"/partner/app/{APP.id}/media/{kept['media_id']}?fileName=photo.png",
        headers={"token": pipeline.app_token},
    )

    assert (answer.status, answer.raw) == (200, PNG)
    assert answer.headers["Content-Disposition"] == 'attachment; filename="photo.png"'
    assert answer.headers["Content-Type"] == "image/png"


async def test_id_that_the_operator_does_not_know_is_nobodys(pipeline: PipelineHarness) -> None:
    answer = await pipeline.ask(
        "GET", f"/partner/app/{APP.id}/media/1037543291543636", headers={"token": pipeline.app_token}
    )

    assert answer.status == 401
    assert answer.body == {"status": "error", "message": "Unauthorized Access"}


def inbound(pipeline: PipelineHarness, key: str, media_id: str) -> InboundMedia:
    expires_on_ms = pipeline.clock.now_ms() + 7 * DAY_MS
    return InboundMedia(key, 7, APP.id, media_id, "image/png", "", expires_on_ms)


async def come_in(pipeline: PipelineHarness, media: InboundMedia) -> str:
    def add(connection: Any) -> None:
        add_inbound_media(
            connection,
            media,
            operator_account_id=OPERATOR.id,
            phone_number_id=APP.phone_number_id,
            now_ms=pipeline.clock.now_ms(),
        )

    await pipeline.waypost.database.write(add)
    return f"{pipeline.service_url}/media/{media.key}"


@pytest.mark.both_engines
async def test_whoever_asks_early_waits_until_the_bytes_are_here(pipeline: PipelineHarness) -> None:
    kept = await pipeline.control("POST", "media", {"to": APP.phone_number, **_medium("png", "image/png")})
    await pipeline.close_operator()
    url = await come_in(pipeline, inbound(pipeline, "a" * 64, kept["media_id"]))

    asked = asyncio.create_task(get(pipeline, url))
    await asyncio.sleep(0.3)
    await pipeline.open_operator()

    assert (await asked)[:2] == (200, PNG)


async def test_medium_that_the_operator_does_not_give_is_told_with_the_reason(pipeline: PipelineHarness) -> None:
    url = await come_in(pipeline, inbound(pipeline, "b" * 64, "1037543291543636"))

    status, content, headers = await get(pipeline, url)

    assert status == 404
    assert json.loads(content)["message"] == "The medium could not be fetched."
    assert "1037543291543636" in headers["Waypost-Reason"]


async def test_inbound_image_is_gone_after_seven_days(make_pipeline: Any) -> None:
    clock = ManualClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    url = await receive_image(pipeline)
    clock.advance(ms=7 * DAY_MS - 1)
    assert (await get(pipeline, url))[0] == 200

    clock.advance(ms=1)

    assert (await get(pipeline, url))[0] == 404


def _medium(kind: str, mime_type: str) -> dict[str, str]:
    content = base64.b64encode(sample(kind)).decode()
    return {"content": content, "mime_type": mime_type}


async def test_door_says_when_to_come_again_while_the_operator_is_away(
    pipeline: PipelineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public_files, "WAIT_S", 0.2)
    await pipeline.close_operator()
    url = await come_in(pipeline, inbound(pipeline, "c" * 64, "1037543291543636"))

    status, _, headers = await get(pipeline, url)

    assert status == 503
    assert headers["Retry-After"] == "5"


@pytest.mark.both_engines
async def test_sweep_removes_what_is_over_and_keeps_what_others_need(make_pipeline: Any) -> None:
    clock = ManualClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    await media_id_of(pipeline)
    clock.advance(ms=10 * DAY_MS)
    await media_id_of(pipeline)  # the same bytes
    other = await media_id_of(pipeline, sample("png", 1000))
    for path in (pipeline.folder / "media").iterdir():
        os.utime(path, (0, 0))

    clock.advance(ms=20 * DAY_MS)
    await pipeline.waypost.media_sweep.sweep()
    after_the_first = len(list((pipeline.folder / "media").iterdir()))
    clock.advance(ms=10 * DAY_MS)
    await pipeline.waypost.media_sweep.sweep()

    assert after_the_first == 2
    assert other
    await patiently(lambda: asyncio.to_thread(os.listdir, pipeline.folder / "media"), lambda names: names == [])


@pytest.mark.parametrize("days", [1, 31, 100])
async def test_template_is_edited_with_its_sample_however_old_that_is(make_pipeline: Any, days: int) -> None:
    clock = ManualClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    handle = await handle_of(pipeline, PNG, "image/png")
    template_id = await pipeline.approved_template(templateType="IMAGE", enableSample="true", exampleMedia=handle)
    for path in (pipeline.folder / "media").iterdir():
        os.utime(path, (0, 0))
    clock.advance(ms=days * DAY_MS)
    await pipeline.waypost.media_sweep.sweep()

    path = f"/partner/app/{APP.id}/templates/{template_id}"
    answer = await pipeline.ask("PUT", path, {"footer": "Bye"}, {"token": pipeline.app_token})

    assert answer.status == 200, answer
    await pipeline.sink.wait_for(is_event("template-event", id=template_id, status="approved"), count=2)


async def test_hour_passes_and_the_service_sweeps_by_itself(make_pipeline: Any) -> None:
    clock = ManualClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    await media_id_of(pipeline)
    [path] = (pipeline.folder / "media").iterdir()
    os.utime(path, (0, 0))

    clock.advance(ms=30 * DAY_MS)

    await patiently(lambda: asyncio.to_thread(path.exists), lambda there: not there)


@pytest.mark.both_engines
async def test_message_whose_upload_is_cut_off_by_a_stop_is_not_uncertain(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(changes={"stop_within_s": 0})
    await pipeline.open_window()
    asked = asyncio.Event()

    async def hang(_request: web.Request) -> web.StreamResponse:
        asked.set()
        await asyncio.sleep(60)
        return web.Response()

    application = web.Application()
    application.router.add_post("/{path:.*}", hang)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    await provisioning.put_operator_account(pipeline.waypost.admin_context, replace(OPERATOR, base_url=base_url))
    message_id = await send(pipeline, {"type": "image", "id": await media_id_of(pipeline)})
    await asyncio.wait_for(asked.wait(), HANGS_AFTER_S)
    during = (await pipeline.queue_depths())["outbound"]

    await pipeline.close_service()
    await pipeline.open_service()

    events = await pipeline.events_of(message_id, until="delivered")
    await runner.cleanup()
    assert during == {"open": 1}
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
