"""Media in a bucket: an upload reaches a phone and can be downloaded, also in ranges, from any process."""

import io
import json
import shutil
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
from sqlalchemy import Connection, func, select

from tests.support.builders import ANN, APP
from tests.support.media_samples import sample
from tests.support.pipeline import API_KEY, PipelineHarness
from tests.support.polling import poll_until
from tests.support.s3_server import S3Server, running_s3_server
from waypost.store import tables
from waypost.store.media import bucket

PNG = sample("png")


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    """A server with a bucket."""
    with running_s3_server() as server:
        yield server


async def test_upload_reaches_the_phone_and_the_partner_from_the_bucket(make_pipeline: Any, server: S3Server) -> None:
    pipeline: PipelineHarness = await make_pipeline(changes=server.settings)
    media_id = await pipeline.upload(PNG, "image/png")
    files = pipeline.waypost.files
    [sha256] = [path.name for path in files.path("x").parent.iterdir()]
    assert f"media/{sha256}" in server.object_names()
    shutil.rmtree(files.path("x").parent)  # as in another process, which has not received it
    await files.open(exclusive=False)

    await pipeline.open_window()
    form = {
        "channel": "whatsapp",
        "source": APP.phone_number,
        "destination": ANN,
        "src.name": APP.name,
        "message": json.dumps({"type": "image", "id": media_id}),
    }
    sent = await pipeline.send_request("POST", "/wa/api/v1/msg", form, {"apikey": API_KEY})
    assert sent.status == 200

    async def operator_media() -> list[dict[str, Any]]:
        media = (await pipeline.control("GET", "media"))["media"]
        return [medium for medium in media if not medium["is_inbound"]]

    [uploaded] = await poll_until(operator_media)
    assert uploaded["size_bytes"] == len(PNG)
    shutil.rmtree(files.path("x").parent)
    await files.open(exclusive=False)
    key = next(iter(pipeline.waypost.admin_context.secret_box.media_keys(media_id)))
    own = f"{pipeline.service_url}/partner/app/{APP.id}/media/{media_id}"
    public = f"{pipeline.service_url}/media/{media_id}-{key}"
    for url, headers, expected in (
        (own, {"token": pipeline.app_token}, (200, PNG)),
        (public, {}, (200, PNG)),
        (public, {"Range": "bytes=4-9"}, (206, PNG[4:10])),
    ):
        async with pipeline.http.get(url, headers=headers) as response:
            assert (response.status, await response.read()) == expected


async def test_upload_is_not_acknowledged_while_the_bucket_is_away(
    make_pipeline: Any, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket, "MAX_RETRIES", 0)
    pipeline: PipelineHarness = await make_pipeline(
        changes={**server.settings, "media_url": "s3://no-such-bucket/media"}
    )

    form = aiohttp.FormData({"file_type": "image/png"})
    form.add_field("file", io.BytesIO(PNG), filename="a.png", content_type="image/png")
    url = f"{pipeline.service_url}/partner/app/{APP.id}/media"
    async with pipeline.http.post(url, data=form, headers={"token": pipeline.app_token}) as response:
        body = await response.json()

    assert (response.status, body["status"]) == (503, "error")
    assert await pipeline.waypost.database.read(_count_uploads) == 0


def _count_uploads(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(tables.media)).scalar_one()
