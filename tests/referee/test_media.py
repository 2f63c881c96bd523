"""The public client uploads media, looks at them, downloads and deletes them."""

# The client exports its names without saying so, and leaves parts of its own types open.
# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import base64

import pytest
from pywa_async import types
from pywa_async.errors import WhatsAppError

from tests.referee.public_client import Arena
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
async def test_medium_comes_back_byte_for_byte(shared: Arena, sample: str, mime_type: str) -> None:
    uploaded = await shared.client.upload_media(SAMPLES[sample], mime_type, filename=f"a.{sample}")

    address = await shared.client.get_media_url(uploaded.id)
    content = await shared.client.get_media_bytes(address.url)

    assert content == SAMPLES[sample]
    assert (address.id, address.mime_type) == (uploaded.id, mime_type)
    assert address.file_size == len(content)


async def test_deleted_medium_is_gone(arena: Arena) -> None:
    uploaded = await arena.client.upload_media(SAMPLES["png"], "image/png")

    deleted = await arena.client.delete_media(uploaded.id)

    assert deleted.success
    with pytest.raises(WhatsAppError) as gone:
        await arena.client.get_media_url(uploaded.id)
    assert (gone.value.code, gone.value.subcode) == (100, 33)


async def test_medium_of_a_kind_that_is_not_taken_is_refused(arena: Arena) -> None:
    with pytest.raises(WhatsAppError) as refused:
        await arena.client.upload_media(SAMPLES["csv"], "text/csv", filename="a.csv")

    assert refused.value.code == 100
    assert "text/csv" in refused.value.message


async def test_what_a_phone_sends_is_downloaded(arena: Arena) -> None:
    media = {"content": base64.b64encode(SAMPLES["jpeg"]).decode(), "mime_type": "image/jpeg"}
    await arena.phone_says(type="image", media={**media, "caption": "Me"})

    message = await arena.hears(types.Message)

    assert message.image is not None
    assert message.caption == "Me"
    assert await message.image.get_bytes() == SAMPLES["jpeg"]


async def test_medium_is_uploaded_once_and_sent_by_its_id(arena: Arena) -> None:
    await arena.phone_says(text="Hi")
    uploaded = await arena.client.upload_media(SAMPLES["png"], "image/png")

    sent = await arena.client.send_image(ANN, uploaded.id, "By id")

    message = await arena.on_phone(sent.id)
    assert message["media"]["id"] == uploaded.id
