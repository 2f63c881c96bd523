"""Samples of templates: by media id, or as several handles of ours."""

import io
import json
from typing import Any, Final

import aiohttp

from tests.support.builders import APP, is_event
from tests.support.media_samples import sample
from tests.support.street import Street

PNG: Final = sample("png")


async def upload(street: Street, path: str) -> str:
    form = aiohttp.FormData()
    form.add_field("file", io.BytesIO(PNG), filename="shoe.png", content_type="image/png")
    form.add_field("file_type", "image/png")
    url = f"{street.service_url}/partner/app/{APP.id}/{path}"
    async with street.http.post(url, data=form, headers={"token": street.app_token}) as answer:
        told = await answer.json()
    return told["mediaId"] if path == "media" else told["handleId"]["message"]


async def approved(street: Street, **named: Any) -> dict[str, str]:
    """The `containerMeta` of a template that the operator has approved with these samples."""
    template = await street.create_template(
        elementName="shoe",
        templateType="IMAGE",
        category="MARKETING",
        content="Look at this shoe.",
        example="Look at this shoe.",
        enableSample="true",
        **named,
    )
    await street.wait_for_callback(is_event("template-event", id=template["id"], status="approved"))
    return json.loads(template["containerMeta"])


async def test_media_id_gets_a_handle_of_ours_that_the_operator_gets_the_bytes_of(street: Street) -> None:
    media_id = await upload(street, "media")

    shown = await approved(street, mediaId=media_id)

    assert shown["mediaId"] == media_id
    assert shown["sampleMedia"].startswith("4::")
    [held] = (await street.control("GET", "handles"))["handles"]
    assert held["size_bytes"] == len(PNG)


async def test_several_handles_of_ours_get_the_operators_a_line_each(street: Street) -> None:
    handles = [await upload(street, "upload/media") for _ in range(2)]

    await approved(street, exampleMedia="\r\n".join(handles))

    held = (await street.control("GET", "handles"))["handles"]
    assert [one["size_bytes"] for one in held] == [len(PNG)] * 2  # and it knows each line that it got
