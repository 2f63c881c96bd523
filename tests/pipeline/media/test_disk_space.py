"""Disk space for files: what is reserved for the store, and the quota of each partner."""

from io import BytesIO
from typing import Any

import aiohttp
import pytest

from tests.support.builders import APP
from tests.support.file_server import FileServer
from tests.support.media_samples import sample
from tests.support.pipeline import PipelineHarness

MEDIA = f"/partner/app/{APP.id}/media"
SAMPLES = f"/partner/app/{APP.id}/upload/media"


async def upload(pipeline: PipelineHarness, content: bytes | str, path: str = MEDIA) -> aiohttp.ClientResponse:
    """Upload bytes, or the content of a URL; return the response, with its body read."""
    form = aiohttp.FormData()
    if isinstance(content, str):
        form.add_field("file", content)
    else:
        form.add_field("file", BytesIO(content), filename="a.png", content_type="image/png")
    form.add_field("file_type", "image/png")
    headers = {"token": pipeline.app_token}
    async with pipeline.http.post(pipeline.service_url + path, data=form, headers=headers) as response:
        await response.read()
        return response


def png(fill: bytes, size_bytes: int = 600_000) -> bytes:
    return sample("png") + fill * (size_bytes - len(sample("png")))


@pytest.mark.parametrize("path", [MEDIA, SAMPLES])
async def test_upload_and_fetch_beyond_the_quota_are_rejected_until_media_are_deleted(
    make_pipeline: Any, path: str, files: FileServer
) -> None:
    pipeline: PipelineHarness = await make_pipeline(changes={"media_quota_mb": 1})
    first = await pipeline.upload(png(b"1"), "image/png")
    url = f"{files.url}/png/600000"

    rejected = [await upload(pipeline, content, path) for content in (png(b"2"), url)]

    for response in rejected:
        body = await response.json()
        assert (response.status, body["status"]) == (413, "error")
        assert "quota of stored media is 1000000 bytes" in body["message"]
    small = await upload(pipeline, png(b"3", 300_000), path)
    assert small.status == 200
    deletion = await pipeline.http.delete(
        f"{pipeline.service_url}{MEDIA}/{first}", headers={"token": pipeline.app_token}
    )
    assert deletion.status < 300
    assert (await upload(pipeline, png(b"2"), path)).status == 200


async def test_quota_counts_content_once_and_no_rejected_upload(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(changes={"media_quota_mb": 2})

    statuses = [(await upload(pipeline, png(b"1"))).status for _ in range(4)]
    broken = [(await upload(pipeline, b"no image" * 100_000)).status for _ in range(5)]

    assert statuses == [200] * 4
    assert broken == [400] * 5
    assert (await upload(pipeline, png(b"2"))).status == 200


@pytest.mark.parametrize("path", [MEDIA, SAMPLES])
async def test_upload_gets_the_documented_error_when_the_free_disk_space_is_reserved(
    make_pipeline: Any, path: str, files: FileServer
) -> None:
    pipeline: PipelineHarness = await make_pipeline(changes={"least_free_mb": 10**9})
    url = f"{files.url}/png/600000"

    rejected = [await upload(pipeline, content, path) for content in (png(b"1", 4_000_000), url)]

    for response in rejected:
        assert (response.status, await response.json()) == (
            500,
            {"status": "error", "message": "Unable to upload requested Media"},
        )
        assert "no room for files" in response.headers["Waypost-Reason"]
    assert not list((pipeline.folder / "media").glob("incoming-*"))
    await pipeline.open_window()
    sent = await pipeline.send_text("still sent")
    assert [event["type"] for event in await pipeline.events_of(sent, until="delivered")][-1] == "delivered"
