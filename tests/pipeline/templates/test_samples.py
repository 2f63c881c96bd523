"""Samples of templates: by media id, or as several of our handles."""

import io
import json
from typing import Any, Final

import aiohttp
import pytest

from tests.support.builders import APP, is_event
from tests.support.media_samples import sample
from tests.support.pipeline import PipelineHarness

pytestmark = pytest.mark.content_only

PNG: Final = sample("png")


async def upload(pipeline: PipelineHarness, path: str) -> str:
    form = aiohttp.FormData()
    form.add_field("file", io.BytesIO(PNG), filename="shoe.png", content_type="image/png")
    form.add_field("file_type", "image/png")
    url = f"{pipeline.service_url}/partner/app/{APP.id}/{path}"
    async with pipeline.http.post(url, data=form, headers={"token": pipeline.app_token}) as response:
        body = await response.json()
    return body["mediaId"] if path == "media" else body["handleId"]["message"]


async def create_approved(pipeline: PipelineHarness, **samples: Any) -> dict[str, str]:
    """Have a template with these samples approved; return its `containerMeta`."""
    template = await pipeline.create_template(
        elementName="shoe",
        templateType="IMAGE",
        category="MARKETING",
        content="Look at this shoe.",
        example="Look at this shoe.",
        enableSample="true",
        **samples,
    )
    await pipeline.wait_for_callback(is_event("template-event", id=template["id"], status="approved"))
    return json.loads(template["containerMeta"])


async def test_media_id_gets_a_handle_with_the_content_that_is_uploaded_to_the_operator(
    pipeline: PipelineHarness,
) -> None:
    media_id = await upload(pipeline, "media")

    meta = await create_approved(pipeline, mediaId=media_id)

    assert meta["mediaId"] == media_id
    assert meta["sampleMedia"].startswith("4::")
    [operator_handle] = (await pipeline.control("GET", "handles"))["handles"]
    assert operator_handle["size_bytes"] == len(PNG)


@pytest.mark.both_engines
async def test_each_of_several_handles_of_ours_is_replaced_by_a_handle_of_the_operator(
    pipeline: PipelineHarness,
) -> None:
    handles = [await upload(pipeline, "upload/media") for _ in range(2)]

    await create_approved(pipeline, exampleMedia="\r\n".join(handles))

    operator_handles = (await pipeline.control("GET", "handles"))["handles"]
    assert [handle["size_bytes"] for handle in operator_handles] == [len(PNG)] * 2  # it checks each line
