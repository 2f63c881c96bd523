"""Samples of templates: by media id, or as several of our handles."""

import io
import json
from typing import Any, Final

import aiohttp
import pytest

from tests.support.builders import APP, is_event
from tests.support.manual_clock import ServiceClock
from tests.support.media_samples import sample
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from tests.support.template_requests import edit_template, read_template
from waypost.base.clock import DAY_MS

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


@pytest.mark.both_engines
async def test_edit_before_the_sweep_keeps_a_sample_whose_upload_has_expired(make_pipeline: Any) -> None:
    clock = ServiceClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    template_id = await pipeline.approved_template(
        templateType="IMAGE",
        category="MARKETING",
        content="Look at this shoe.",
        example="Look at this shoe.",
        enableSample="true",
        mediaId=await upload(pipeline, "media"),
    )
    pipeline.waypost.media_sweep.stop()  # the next sweep would renew the upload
    clock.advance(ms=31 * DAY_MS)

    await edit_template(pipeline, template_id, content="Look at that shoe.", example="Look at that shoe.")

    async def read_later() -> tuple[str, str]:
        clock.advance(ms=500)  # the operator reviews it after a while
        template = await read_template(pipeline, template_id)
        return template["status"], json.loads(template["containerMeta"])["data"]

    await poll_until(read_later, lambda read: read == ("APPROVED", "Look at that shoe."))
