"""Templates of the type GIF: created with the id and the URL of their video, reviewed, sent and delivered."""

from typing import Final

import pytest

from tests.support.builders import ANN
from tests.support.media_samples import sample
from tests.support.pipeline import PipelineHarness

URL: Final = "https://shop.example/wave.mp4"
FIELDS: Final = {
    "elementName": "wave", "languageCode": "en_US", "category": "MARKETING", "templateType": "GIF", "vertical": "Hello",
    "content": "Hello", "example": "Hello", "mediaUrl": URL,
}  # fmt: skip


@pytest.mark.holds("post-templates-gif", "post-template-msg-gif")
@pytest.mark.parametrize("upload", ["upload_sample", "upload"])
async def test_gif_is_created_by_an_upload_and_sent_by_link_and_by_id(pipeline: PipelineHarness, upload: str) -> None:
    """`mediaId` is a handle id, as documented, or a media id; the operator shows the header as a GIF."""
    media_id = await getattr(pipeline, upload)(sample("mp4"), "video/mp4", name="wave.mp4")
    template_id = await pipeline.approved_template(buttons=[], mediaId=media_id, **FIELDS)
    video_id = await pipeline.upload(sample("mp4"), "video/mp4", name="wave.mp4")

    by_link, by_id = [
        await pipeline.send_template(template_id, by="partner", params=[], message={"type": "gif", "gif": gif})
        for gif in ({"link": URL}, {"id": video_id})
    ]

    for message_id in (by_link, by_id):
        await pipeline.wait_for_state(message_id, "delivered")
    shown = await pipeline.visible_message(by_link, ANN)
    assert shown["header"] == {"format": "GIF", "gif": {"link": URL}}
    assert shown["text"] == "Hello"
    assert (await pipeline.visible_message(by_id, ANN))["header"]["format"] == "GIF"
