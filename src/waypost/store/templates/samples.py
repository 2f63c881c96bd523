"""Samples of templates: uploads that outlive their expiry, because an edit submits them again."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select, update

from waypost.domain.media import MEDIA_LIFE_MS
from waypost.domain.templates.template import TemplateStatus, sample_references
from waypost.domain.templates.types import find_types
from waypost.store.encoding import decode_template
from waypost.store.tables import media, templates

SAMPLE_RENEWAL_MS: Final = 2 * 60 * 60 * 1000
"""How long before its expiry a sample is renewed: longer than the time between two sweeps, so none expires."""

_SAMPLE_TYPES: Final = find_types(lambda row: row.medium is not None or row.has_cards)


def expiring_samples(connection: Connection, now_ms: int) -> list[str]:
    """Return the ids of uploads that have expired or are about to, and that a template of their partner uses."""
    expiring = connection.execute(
        select(media.c.id, media.c.handle, media.c.partner_id).where(
            media.c.expires_on_ms <= now_ms + SAMPLE_RENEWAL_MS
        )
    ).all()
    return uploads_in_templates(connection, expiring)


def uploads_in_templates(connection: Connection, uploads: Sequence[Any]) -> list[str]:
    """Return the ids of those uploads that a template of their partner uses; deleted templates use none.

    Args:
        connection: any.
        uploads: rows with `id`, `handle` and `partner_id`.
    """
    if not uploads:
        return []
    drafts = connection.execute(
        select(templates).where(
            templates.c.partner_id.in_({row.partner_id for row in uploads}),
            templates.c.template_type.in_(_SAMPLE_TYPES),
            templates.c.status != TemplateStatus.DELETED.value,
        )
    )
    in_use = {
        (row.partner_id, reference) for row in drafts for reference in sample_references(decode_template(row).draft)
    }
    return [
        row.id for row in uploads if not in_use.isdisjoint({(row.partner_id, row.id), (row.partner_id, row.handle)})
    ]


def renew_uploads(connection: Connection, media_ids: Sequence[str], now_ms: int) -> None:
    """Extend the life of uploads from now on."""
    if media_ids:
        statement = update(media).where(media.c.id == bindparam("named"))
        until_ms = now_ms + MEDIA_LIFE_MS
        connection.execute(statement.values(expires_on_ms=until_ms), [{"named": media_id} for media_id in media_ids])
