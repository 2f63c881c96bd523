"""Samples of templates: by media id, or as several handles of ours."""

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
    async with pipeline.http.post(url, data=form, headers={"token": pipeline.app_token}) as answer:
        told = await answer.json()
    return told["mediaId"] if path == "media" else told["handleId"]["message"]


async def approved(pipeline: PipelineHarness, **named: Any) -> dict[str, str]:
    """The `containerMeta` of a template that the operator has approved with these samples."""
    template = await pipeline.create_template(
        elementName="shoe",
        templateType="IMAGE",
        category="MARKETING",
        content="Look at this shoe.",
        example="Look at this shoe.",
        enableSample="true",
        **named,
    )
    await pipeline.wait_for_callback(is_event("template-event", id=template["id"], status="approved"))
    return json.loads(template["containerMeta"])


async def test_media_id_gets_a_handle_of_ours_that_the_operator_gets_the_bytes_of(pipeline: PipelineHarness) -> None:
    media_id = await upload(pipeline, "media")

    shown = await approved(pipeline, mediaId=media_id)

    assert shown["mediaId"] == media_id
    assert shown["sampleMedia"].startswith("4::")
    [held] = (await pipeline.control("GET", "handles"))["handles"]
    assert held["size_bytes"] == len(PNG)


@pytest.mark.both_engines
async def test_several_handles_of_ours_get_the_operators_a_line_each(pipeline: PipelineHarness) -> None:
    handles = [await upload(pipeline, "upload/media") for _ in range(2)]

    await approved(pipeline, exampleMedia="\r\n".join(handles))

    held = (await pipeline.control("GET", "handles"))["handles"]
    assert [one["size_bytes"] for one in held] == [len(PNG)] * 2  # and it knows each line that it got
