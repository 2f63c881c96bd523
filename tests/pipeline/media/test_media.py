"""Media in both directions: uploads of partners reach phones, and media from phones reach partners."""

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
from tests.support.manual_clock import ServiceClock
from tests.support.media_samples import sample
from tests.support.pipeline import API_KEY, HttpResponse, PipelineHarness
from tests.support.polling import HANGS_AFTER_S, poll_until
from waypost.admin import provisioning
from waypost.api import public_files
from waypost.base.clock import DAY_MS
from waypost.domain.media import InboundMedia, UploadedMedia
from waypost.operators.cloud.adapter import CloudOperator
from waypost.operators.contract import OperatorUpload
from waypost.store import tables
from waypost.store.media.media import add_inbound_media
from waypost.store.queue.job_subjects import QueueName

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
) -> HttpResponse:
    form = aiohttp.FormData()
    form.add_field("file", io.BytesIO(content), filename=name, content_type=file_type)
    form.add_field("file_type", file_type)
    url = f"{pipeline.service_url}/partner/app/{APP.id}/{path}"
    async with pipeline.http.post(url, data=form, headers={"token": pipeline.app_token}) as response:
        raw = await response.read()
        return HttpResponse(response.status, json.loads(raw), response.headers, raw)


async def upload_media(pipeline: PipelineHarness, content: bytes = PNG) -> str:
    response = await upload(pipeline, content)
    assert response.status == 200, response
    return response.body["mediaId"]


async def upload_sample(pipeline: PipelineHarness, content: bytes, file_type: str) -> str:
    response = await upload(pipeline, content, file_type=file_type, path="upload/media")
    assert response.status == 200, response
    return response.body["handleId"]["message"]


async def send(pipeline: PipelineHarness, message: Mapping[str, Any], *, to: str = ANN) -> str:
    form = {
        "channel": "whatsapp",
        "source": APP.phone_number,
        "destination": to,
        "src.name": APP.name,
        "message": json.dumps(message),
    }
    response = await pipeline.send_request("POST", "/wa/api/v1/msg", form, {"apikey": API_KEY})
    assert response.status == 200, response
    return response.body["messageId"]


def set_mime_type(connection: Connection, media_id: str, mime_type: str) -> None:
    """Change the MIME type, as if an older version had accepted a type that the operator does not."""
    connection.execute(update(tables.media).where(tables.media.c.id == media_id).values(mime_type=mime_type))


def read_single_upload(connection: Connection) -> UploadedMedia:
    return UploadedMedia(**connection.execute(select(tables.media)).mappings().one())


async def get(pipeline: PipelineHarness, url: str) -> tuple[int, bytes, Mapping[str, str]]:
    async with pipeline.http.get(url) as response:
        return response.status, await response.read(), response.headers


async def list_operator_media(pipeline: PipelineHarness, *, inbound: bool = False) -> list[dict[str, Any]]:
    media = (await pipeline.control("GET", "media"))["media"]
    return [medium for medium in media if medium["is_inbound"] is inbound]


async def test_upload_succeeds_while_the_operator_is_down_and_is_sent_when_it_is_up(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    await pipeline.close_operator()
    media_id = await upload_media(pipeline)
    message_id = await send(pipeline, {"type": "image", "id": media_id, "caption": "New"})
    await poll_until(pipeline.submission_attempts, lambda attempts: attempts > 0)

    await pipeline.open_operator()

    events = await pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    [operator_media] = await list_operator_media(pipeline)
    assert (operator_media["mime_type"], operator_media["size_bytes"]) == ("image/png", len(PNG))
    assert operator_media["media_id"] != media_id
    shown = (await pipeline.inbox())[-1]["media"]
    assert (shown["id"], shown["caption"]) == (operator_media["media_id"], "New")


@pytest.mark.both_engines
async def test_many_messages_with_one_medium_need_one_upload(pipeline: PipelineHarness) -> None:
    await pipeline.open_window(ANN)
    await pipeline.open_window(BEN)
    media_id = await upload_media(pipeline)

    ids = [await send(pipeline, {"type": "image", "id": media_id}, to=to) for to in (ANN, BEN) for _ in range(10)]

    await asyncio.gather(*(pipeline.events_of(message_id, until="delivered") for message_id in ids))
    assert len(await list_operator_media(pipeline)) == 1


@pytest.mark.both_engines
async def test_later_message_to_a_recipient_waits_while_a_medium_is_uploaded(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    media_id = await upload_media(pipeline)

    first = await send(pipeline, {"type": "image", "id": media_id})
    second = await pipeline.send_text("after it")

    await pipeline.events_of(second, until="delivered")
    sent = [delivery["callback_data"] for delivery in await list_deliveries(pipeline) if delivery["callback_data"]]
    assert sent == [first, second]


async def list_deliveries(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    return (await pipeline.control("GET", "deliveries"))["deliveries"]


async def test_medium_that_the_operator_has_lost_is_uploaded_again(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    media_id = await upload_media(pipeline)
    first = await send(pipeline, {"type": "image", "id": media_id})
    await pipeline.events_of(first, until="delivered")
    [lost] = await list_operator_media(pipeline)
    await pipeline.control("POST", f"media/{lost['media_id']}/expire", {})

    second = await send(pipeline, {"type": "image", "id": media_id})

    events = await pipeline.events_of(second, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert len(await list_operator_media(pipeline)) == 2


async def test_media_id_that_is_not_ours_is_sent_to_the_operator_unchanged(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()

    message_id = await send(pipeline, {"type": "image", "id": "1037543291543636"})

    [failed] = await pipeline.events_of(message_id, until="failed")
    assert failed["payload"]["code"] in (100, 131009, 131053)


async def test_media_id_is_sent_unchanged_once_its_thirty_days_are_over(make_pipeline: Any) -> None:
    clock = ServiceClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    media_id = await upload_media(pipeline)
    clock.advance(ms=30 * DAY_MS)
    await pipeline.open_window()

    message_id = await send(pipeline, {"type": "image", "id": media_id})
    await poll_until(pipeline.submission_attempts)
    clock.advance(ms=2000)  # a message that is rejected for its medium is attempted once more

    await pipeline.events_of(message_id, until="failed")
    assert await list_operator_media(pipeline) == []


async def test_our_media_id_inside_a_passthrough_body_is_replaced(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    media_id = await upload_media(pipeline)
    message = {
        "messaging_product": "whatsapp",
        "to": ANN,
        "type": "image",
        "image": {"id": media_id, "caption": media_id},
    }

    async with pipeline.http.post(
        f"{pipeline.service_url}/partner/app/{APP.id}/v3/message",
        json=message,
        headers={"Authorization": pipeline.app_token},
    ) as response:
        body = await response.json()

    await pipeline.events_of(body["messages"][0]["id"], until="delivered")
    [operator_media] = await list_operator_media(pipeline)
    shown = (await pipeline.inbox())[-1]["media"]
    assert (shown["id"], shown["caption"]) == (operator_media["media_id"], media_id)


async def test_file_that_the_operator_rejects_fails_the_message_with_the_error_of_the_operator(
    pipeline: PipelineHarness,
) -> None:
    await pipeline.open_window()
    media_id = await upload_media(pipeline)
    await pipeline.waypost.database.write(set_mime_type, media_id, "text/csv")

    message_id = await send(pipeline, {"type": "document", "id": media_id})

    [failed] = await pipeline.events_of(message_id, until="failed")
    assert failed["payload"]["code"] == 100
    assert "text/csv" in failed["payload"]["reason"]


async def test_template_gets_the_operators_handle_with_all_its_lines(pipeline: PipelineHarness) -> None:
    handle = await upload_sample(pipeline, sample("mp4", 9 * 1024 * 1024), "video/mp4")

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
    [operator_handle] = (await pipeline.control("GET", "handles"))["handles"]
    assert operator_handle["handle"].count("\n") == 2
    assert operator_handle["size_bytes"] == 9 * 1024 * 1024


@pytest.mark.holds("handle-lines")
async def test_handle_that_is_not_ours_is_sent_unchanged_with_its_three_lines(
    pipeline: PipelineHarness, tmp_path: Any
) -> None:
    path = tmp_path / "clip"
    path.write_bytes(sample("mp4", 9 * 1024 * 1024))
    await upload_sample(pipeline, sample("mp4"), "video/mp4")
    media = await pipeline.waypost.database.read(read_single_upload)
    adapter = CloudOperator()
    await adapter.open()
    account = replace(OPERATOR, base_url=pipeline.operator_url)
    operator_upload = await adapter.upload_sample(account, replace(media, size_bytes=path.stat().st_size), path)
    await adapter.close()
    assert isinstance(operator_upload, OperatorUpload)
    assert operator_upload.operator_id.count("\n") == 2

    template = await pipeline.create_template(
        elementName="clip",
        templateType="VIDEO",
        category="MARKETING",
        content="Look at this clip.",
        example="Look at this clip.",
        enableSample="true",
        exampleMedia=operator_upload.operator_id,
    )

    await pipeline.wait_for_callback(is_event("template-event", id=template["id"], status="approved"))
    assert len((await pipeline.control("GET", "handles"))["handles"]) == 1


@pytest.mark.both_engines
async def test_template_waits_for_an_operator_that_is_down(pipeline: PipelineHarness) -> None:
    await pipeline.close_operator()
    handle = await upload_sample(pipeline, PNG, "image/png")
    template = await pipeline.create_template(
        elementName="shoe",
        templateType="IMAGE",
        category="MARKETING",
        content="Look at this shoe.",
        example="Look at this shoe.",
        enableSample="true",
        exampleMedia=handle,
    )
    await poll_until(pipeline.submission_attempts, lambda attempts: attempts > 0)

    await pipeline.open_operator()

    await pipeline.wait_for_callback(is_event("template-event", id=template["id"], status="approved"))


async def test_url_is_fetched_before_the_response(pipeline: PipelineHarness, files: FileServer) -> None:
    form = {"file": f"{files.url}/png", "file_type": "image/png"}

    response = await pipeline.send_request("POST", f"/partner/app/{APP.id}/media", form, {"token": pipeline.app_token})

    assert response.status == 200
    assert files.requested_paths == ["/png"]


async def test_upload_through_the_messaging_api_has_a_url(pipeline: PipelineHarness) -> None:
    form = aiohttp.FormData()
    form.add_field("file", PNG, filename="größe.png", content_type="image/png")
    async with pipeline.http.post(
        f"{pipeline.service_url}/wa/{APP.id}/wa/media/", data=form, headers={"apikey": API_KEY}
    ) as response:
        media = (await response.json())["media"]

    status, content, headers = await get(pipeline, media["url"])

    assert (status, content) == (200, PNG)
    assert headers["Content-Type"] == "image/png"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert media["url"].endswith(".png")
    bare = media["url"].removesuffix(".png")
    assert (await get(pipeline, bare))[0] == 200
    wrong = bare[:-1] + ("0" if bare[-1] != "0" else "1")
    assert (await get(pipeline, wrong))[0] == 404
    assert (await get(pipeline, f"{wrong}.png"))[0] == 404


async def test_upload_gets_the_documented_error_when_the_disk_is_not_writable(pipeline: PipelineHarness) -> None:
    shutil.rmtree(pipeline.folder / "media")

    response = await upload(pipeline)

    assert response.status == 500
    assert response.body == {"status": "error", "message": "Unable to upload requested Media"}


async def receive_image(pipeline: PipelineHarness) -> str:
    """Send an image from a phone; return the URL in the partner's callback."""
    inbound = await pipeline.control(
        "POST",
        f"phones/{ANN}/messages",
        {"to": APP.phone_number, "type": "image", "media": _medium("png", "image/png")},
    )
    callback = await pipeline.wait_for_callback(is_event("message", id=inbound["wamid"]))
    payload = callback["payload"]["payload"]
    assert payload["contentType"] == "image/png"
    return payload["url"]


@pytest.mark.parametrize(
    ("kind", "mime_type"),
    [
        ("audio", "audio/ogg; codecs=opus"),
        ("document", "text/csv"),
        ("document", "text/html"),
        ("document", "application/vnd.android.package-archive"),
    ],
)
async def test_mime_type_of_a_customers_file_reaches_the_callback_as_sent(
    pipeline: PipelineHarness, kind: str, mime_type: str
) -> None:
    inbound = await pipeline.control(
        "POST",
        f"phones/{ANN}/messages",
        {"to": APP.phone_number, "type": kind, "media": {**_medium("png", mime_type), "voice": True}},
    )

    callback = await pipeline.wait_for_callback(is_event("message", id=inbound["wamid"]))

    payload = callback["payload"]["payload"]
    assert payload["contentType"] == mime_type
    status, content, headers = await get(pipeline, payload["url"])
    assert (status, content) == (200, PNG)
    assert headers["Content-Type"].startswith(mime_type)


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


async def test_inbound_image_that_our_disk_could_not_store_is_fetched_again(pipeline: PipelineHarness) -> None:
    """And that is no defect of the job, of which five make a dead letter."""
    folder = pipeline.folder / "media"
    away = folder.rename(folder.with_name("media-away"))
    url = await receive_image(pipeline)

    attempts = await poll_until(
        lambda: pipeline.waypost.database.read(read_media_jobs), lambda rows: rows and rows[0].attempt
    )
    away.rename(folder)

    assert [tuple(row) for row in attempts] == [(1, 0, "it cannot be stored: No such file or directory")]

    async def is_served() -> bool:
        return (await get(pipeline, url))[:2] == (200, PNG)

    await poll_until(is_served)


def read_media_jobs(connection: Connection) -> list[Any]:
    jobs = tables.queue_jobs.c
    query = select(jobs.attempt, jobs.defects, jobs.note).where(jobs.queue == QueueName.MEDIA)
    return [*connection.execute(query)]


async def test_inbound_image_is_served_by_its_operator_id_too(pipeline: PipelineHarness) -> None:
    await get(pipeline, await receive_image(pipeline))
    [operator_media] = await list_operator_media(pipeline, inbound=True)

    response = await pipeline.send_request(
        "GET", f"/partner/app/{APP.id}/media/{operator_media['media_id']}", headers={"token": pipeline.app_token}
    )

    assert (response.status, response.raw) == (200, PNG)


async def test_medium_that_only_the_operator_has_is_fetched_for_the_response(pipeline: PipelineHarness) -> None:
    """Media inside a flow's reply are such media."""
    operator_media = await pipeline.control("POST", "media", {"to": APP.phone_number, **_medium("png", "image/png")})

    response = await pipeline.send_request(
        "GET",
        f"/partner/app/{APP.id}/media/{operator_media['media_id']}?fileName=photo.png",
        headers={"token": pipeline.app_token},
    )

    assert (response.status, response.raw) == (200, PNG)
    assert response.headers["Content-Disposition"] == 'attachment; filename="photo.png"'
    assert response.headers["Content-Type"] == "image/png"


async def test_media_id_that_the_operator_does_not_have_is_invalid(pipeline: PipelineHarness) -> None:
    response = await pipeline.send_request(
        "GET", f"/partner/app/{APP.id}/media/1037543291543636", headers={"token": pipeline.app_token}
    )

    assert response.status == 404
    assert response.body == {"status": "error", "message": "Invalid Media Id"}


def make_inbound(pipeline: PipelineHarness, key: str, media_id: str) -> InboundMedia:
    expires_on_ms = pipeline.clock.now_ms() + 7 * DAY_MS
    return InboundMedia(key, 7, APP.id, media_id, "image/png", "", expires_on_ms)


async def add_inbound(pipeline: PipelineHarness, media: InboundMedia) -> str:
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
async def test_request_before_a_medium_is_fetched_waits_for_its_content(pipeline: PipelineHarness) -> None:
    operator_media = await pipeline.control("POST", "media", {"to": APP.phone_number, **_medium("png", "image/png")})
    await pipeline.close_operator()
    url = await add_inbound(pipeline, make_inbound(pipeline, "a" * 64, operator_media["media_id"]))

    request = asyncio.create_task(get(pipeline, url))
    await asyncio.sleep(0.3)
    await pipeline.open_operator()

    assert (await request)[:2] == (200, PNG)


async def test_medium_that_cannot_be_fetched_gets_an_error_with_the_reason(pipeline: PipelineHarness) -> None:
    url = await add_inbound(pipeline, make_inbound(pipeline, "b" * 64, "1037543291543636"))

    status, content, headers = await get(pipeline, url)

    assert status == 404
    assert json.loads(content)["message"] == "The medium could not be fetched."
    assert "1037543291543636" in headers["Waypost-Reason"]


async def test_inbound_image_is_not_served_after_seven_days(make_pipeline: Any) -> None:
    clock = ServiceClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    url = await receive_image(pipeline)
    clock.advance(ms=7 * DAY_MS - 1)
    assert (await get(pipeline, url))[0] == 200

    clock.advance(ms=1)

    assert (await get(pipeline, url))[0] == 404


def _medium(kind: str, mime_type: str) -> dict[str, str]:
    content = base64.b64encode(sample(kind)).decode()
    return {"content": content, "mime_type": mime_type}


async def test_public_file_endpoint_sends_retry_after_while_the_operator_is_unreachable(
    pipeline: PipelineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public_files, "WAIT_S", 0.2)
    await pipeline.close_operator()
    url = await add_inbound(pipeline, make_inbound(pipeline, "c" * 64, "1037543291543636"))

    status, _, headers = await get(pipeline, url)

    assert status == 503
    assert headers["Retry-After"] == "5"


@pytest.mark.both_engines
async def test_sweep_deletes_expired_files_and_keeps_those_that_are_still_used(make_pipeline: Any) -> None:
    clock = ServiceClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    await upload_media(pipeline)
    clock.advance(ms=10 * DAY_MS)
    await upload_media(pipeline)  # the same bytes
    other = await upload_media(pipeline, sample("png", 1000))
    for path in (pipeline.folder / "media").iterdir():
        os.utime(path, (0, 0))

    clock.advance(ms=20 * DAY_MS)
    await pipeline.waypost.media_sweep.sweep()
    count_after_first = len(list((pipeline.folder / "media").iterdir()))
    clock.advance(ms=10 * DAY_MS)
    await pipeline.waypost.media_sweep.sweep()

    assert count_after_first == 2
    assert other
    await poll_until(lambda: asyncio.to_thread(os.listdir, pipeline.folder / "media"), lambda names: names == [])


@pytest.mark.parametrize("days", [1, 31, 100])
async def test_template_is_edited_with_its_sample_however_old_the_sample_is(make_pipeline: Any, days: int) -> None:
    clock = ServiceClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    handle = await upload_sample(pipeline, PNG, "image/png")
    template_id = await pipeline.approved_template(templateType="IMAGE", enableSample="true", exampleMedia=handle)
    for path in (pipeline.folder / "media").iterdir():
        os.utime(path, (0, 0))
    clock.advance(ms=days * DAY_MS)
    await pipeline.waypost.media_sweep.sweep()

    path = f"/partner/app/{APP.id}/templates/{template_id}"
    response = await pipeline.send_request("PUT", path, {"footer": "Bye"}, {"token": pipeline.app_token})

    assert response.status == 200, response
    await pipeline.sink.wait_for(is_event("template-event", id=template_id, status="approved"), count=2)


async def test_service_sweeps_expired_files_by_itself(make_pipeline: Any) -> None:
    clock = ServiceClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    await upload_media(pipeline)
    [path] = (pipeline.folder / "media").iterdir()
    os.utime(path, (0, 0))

    clock.advance(ms=30 * DAY_MS)

    await poll_until(lambda: asyncio.to_thread(path.exists), lambda exists: not exists)


@pytest.mark.both_engines
async def test_message_is_not_uncertain_when_a_stop_interrupts_its_upload(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(changes={"stop_within_s": 0})
    await pipeline.open_window()
    requested = asyncio.Event()

    async def hang(_request: web.Request) -> web.StreamResponse:
        requested.set()
        await asyncio.sleep(60)
        return web.Response()

    application = web.Application()
    application.router.add_post("/{path:.*}", hang)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    await provisioning.put_operator_account(pipeline.waypost.admin_context, replace(OPERATOR, base_url=base_url))
    message_id = await send(pipeline, {"type": "image", "id": await upload_media(pipeline)})
    await asyncio.wait_for(requested.wait(), HANGS_AFTER_S)
    depths = (await pipeline.queue_depths())["outbound"]

    await pipeline.close_service()
    await pipeline.open_service()

    events = await pipeline.events_of(message_id, until="delivered")
    await runner.cleanup()
    assert depths == {"open": 1}
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
