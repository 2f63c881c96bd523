"""Samples of templates do not expire while a template names them."""

from dataclasses import replace
from typing import Final

import pytest

from tests.support.builders import APP, AT_MS, PARTNER, draft, template
from waypost.domain.media import MEDIA_LIFE_MS, UploadedMedia
from waypost.domain.templates.buttons import Card
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.template import TemplateStatus
from waypost.store.database import Database
from waypost.store.media.media import MediaReferences, add_media, find_copies
from waypost.store.templates.gallery import SAMPLE_RENEWAL_MS, expiring_samples, renew_uploads
from waypost.store.templates.templates import record_template

END_MS: Final = AT_MS + MEDIA_LIFE_MS
SAMPLE: Final = UploadedMedia(
    id="1234567890123456",
    partner_id=PARTNER.id,
    app_id=APP.id,
    handle="4::aW1hZ2U=:ARa:e:1:2:3:ARb",
    mime_type="image/png",
    size_bytes=70,
    sha256="a" * 64,
    file_name="a.png",
    created_on_ms=AT_MS,
    expires_on_ms=END_MS,
)


@pytest.fixture
async def database(database: Database) -> Database:
    """The store with one upload."""
    assert await database.join(add_media, SAMPLE)
    return database


@pytest.mark.parametrize(
    "named_in",
    [
        draft(template_type="IMAGE", example_media=SAMPLE.handle),
        draft(template_type="VIDEO", media_id=SAMPLE.id),
        draft(template_type="CAROUSEL", cards=(Card(example_media=SAMPLE.handle),)),
    ],
    ids=["handle", "media id", "card"],
)
async def test_sample_that_a_template_names_is_renewed(database: Database, named_in: TemplateDraft) -> None:
    await database.write(record_template, template(1, named_in))
    early = await database.read(expiring_samples, END_MS - SAMPLE_RENEWAL_MS - 1)
    samples = await database.read(expiring_samples, END_MS - SAMPLE_RENEWAL_MS)

    await database.write(renew_uploads, samples, END_MS - SAMPLE_RENEWAL_MS)

    assert (early, samples) == ([], [SAMPLE.id])
    references = MediaReferences(PARTNER.id, "app 1", (SAMPLE.id,))
    [copies] = await database.read(find_copies, [references], END_MS + 1)
    assert copies.missing[SAMPLE.id].expires_on_ms == END_MS - SAMPLE_RENEWAL_MS + MEDIA_LIFE_MS


@pytest.mark.parametrize(
    "changes",
    [{"status": TemplateStatus.DELETED}, {"partner_id": PARTNER.id + 1}],
    ids=["deleted", "of another partner"],
)
async def test_deleted_or_foreign_template_renews_no_sample(database: Database, changes: dict[str, object]) -> None:
    naming = draft(template_type="IMAGE", example_media=SAMPLE.handle)
    await database.write(record_template, replace(template(1, naming), **changes))

    assert await database.read(expiring_samples, END_MS) == []
