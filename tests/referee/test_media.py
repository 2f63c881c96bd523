"""The public client uploads, inspects, downloads and deletes media."""

# The client does not declare its exports, and leaves parts of its types unknown.
# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import base64

import pytest
from pywa_async import types
from pywa_async.errors import WhatsAppError

from tests.referee.public_client import ClientHarness
from tests.simulator.conftest import ANN
from tests.support.media_samples import SAMPLES


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("sample", "mime_type"),
    [
        ("png", "image/png"), ("jpeg", "image/jpeg"), ("webp", "image/webp"), ("mp4", "video/mp4"),
        ("3gp", "video/3gpp"), ("mp3", "audio/mpeg"), ("aac", "audio/aac"), ("amr", "audio/amr"),
        ("ogg", "audio/ogg"), ("pdf", "application/pdf"), ("text", "text/plain"),
    ],
)  # fmt: skip
async def test_medium_is_downloaded_byte_for_byte(shared_harness: ClientHarness, sample: str, mime_type: str) -> None:
    uploaded = await shared_harness.client.upload_media(SAMPLES[sample], mime_type, filename=f"a.{sample}")

    address = await shared_harness.client.get_media_url(uploaded.id)
    content = await shared_harness.client.get_media_bytes(address.url)

    assert content == SAMPLES[sample]
    assert (address.id, address.mime_type) == (uploaded.id, mime_type)
    assert address.file_size == len(content)


async def test_deleted_medium_is_not_found(harness: ClientHarness) -> None:
    uploaded = await harness.client.upload_media(SAMPLES["png"], "image/png")

    deleted = await harness.client.delete_media(uploaded.id)

    assert deleted.success
    with pytest.raises(WhatsAppError) as raised:
        await harness.client.get_media_url(uploaded.id)
    assert (raised.value.code, raised.value.subcode) == (100, 33)


async def test_medium_of_an_unsupported_type_is_rejected(harness: ClientHarness) -> None:
    with pytest.raises(WhatsAppError) as raised:
        await harness.client.upload_media(SAMPLES["csv"], "text/csv", filename="a.csv")

    assert raised.value.code == 100
    assert "text/csv" in raised.value.message


async def test_medium_sent_by_a_phone_is_downloaded(harness: ClientHarness) -> None:
    media = {"content": base64.b64encode(SAMPLES["jpeg"]).decode(), "mime_type": "image/jpeg"}
    await harness.send_from_phone(type="image", media={**media, "caption": "Me"})

    message = await harness.wait_for_update(types.Message)

    assert message.image is not None
    assert message.caption == "Me"
    assert await message.image.get_bytes() == SAMPLES["jpeg"]


async def test_medium_is_uploaded_once_and_sent_by_its_id(harness: ClientHarness) -> None:
    await harness.send_from_phone(text="Hi")
    uploaded = await harness.client.upload_media(SAMPLES["png"], "image/png")

    sent = await harness.client.send_image(ANN, uploaded.id, "By id")

    message = await harness.phone_message(sent.id)
    assert message["media"]["id"] == uploaded.id
