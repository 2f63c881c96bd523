"""Search of templates by people: pages of a business account's templates, by properties, name or texts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, func, select, update

from waypost.domain.media import MEDIA_LIFE_MS
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.rendering import flatten_template
from waypost.domain.templates.template import Category, Template, TemplateStatus, sample_references
from waypost.domain.templates.types import find_types
from waypost.store.encoding import decode_template
from waypost.store.sql import read_all, read_one
from waypost.store.tables import media, templates

_BATCH: Final = 500
_JSON_ESCAPED: Final = ('"', "\\", "\n", "\t")
"""Characters that JSON escapes; other control characters are not typed into a search."""


@dataclass(frozen=True, slots=True)
class GalleryFilter:
    """Filter of templates; empty fields match all."""

    status: str = ""
    category: str = ""
    template_type: str = ""
    language_code: str = ""
    text: str = ""  # in the name or in any text, in any case


@dataclass(frozen=True, slots=True)
class GalleryPage:
    """One page."""

    templates: list[Template]
    count: int  # of all matches
    languages: list[str]  # of the whole business account, for a selection


def gallery_page(
    connection: Connection,
    partner_id: int,
    business_account_id: str,
    query: GalleryFilter,
    *,
    at_most: int,
    skipped: int = 0,
) -> GalleryPage:
    """Return a page of a business account's templates, newest first, without deleted ones.

    Texts are rendered from the draft, so they are compared here and not by the store; an account has at most
    some thousands of templates.
    """
    is_visible = _is_visible(partner_id, business_account_id)
    language_query = select(templates.c.language_code).where(is_visible).distinct()
    languages = sorted(connection.execute(language_query).scalars())
    names = ("status", "category", "template_type", "language_code")
    conditions = [is_visible, *(templates.c[name] == value for name in names if (value := getattr(query, name)))]
    newest = select(templates).where(*conditions).order_by(templates.c.id.desc())
    if query.text:
        matches = list(_search_texts(connection, newest, query.text))
        return GalleryPage(matches[skipped : skipped + at_most], len(matches), languages)
    page = read_all(connection, newest.limit(at_most).offset(skipped or None), decode_template)
    return GalleryPage(page, connection.execute(select(func.count()).where(*conditions)).scalar_one(), languages)


def account_template_names(
    connection: Connection, partner_id: int, business_account_id: str, at_most: int
) -> list[tuple[str, str, str]]:
    """Return `(id, name, language)` of a business account's templates, newest first, without deleted ones."""
    query = select(templates.c.id, templates.c.element_name, templates.c.language_code)
    newest = query.where(_is_visible(partner_id, business_account_id)).order_by(templates.c.id.desc()).limit(at_most)
    return [(row.id, row.element_name, row.language_code) for row in connection.execute(newest)]


def template_of_account(
    connection: Connection, partner_id: int, business_account_id: str, template_id: str
) -> Template | None:
    """Return one template of a partner's business account, even a deleted one."""
    query = select(templates).where(templates.c.id == template_id, _is_own(partner_id, business_account_id))
    return read_one(connection, query, decode_template)


def current_templates(
    connection: Connection, partner_id: int, business_account_id: str, ids: list[str]
) -> list[Template]:
    """Return the current rows of templates of a partner's business account, by id."""
    query = select(templates).where(templates.c.id.in_(ids), _is_own(partner_id, business_account_id))
    return read_all(connection, query, decode_template)


def newest_template_id(connection: Connection, partner_id: int, business_account_id: str) -> str:
    """Return the id of the newest template that is not deleted; empty if there is none."""
    newest = select(func.max(templates.c.id)).where(_is_visible(partner_id, business_account_id))
    return connection.execute(newest).scalar_one() or ""


def _is_own(partner_id: int, business_account_id: str) -> ColumnElement[bool]:
    return and_(templates.c.business_account_id == business_account_id, templates.c.partner_id == partner_id)


def _is_visible(partner_id: int, business_account_id: str) -> ColumnElement[bool]:
    return and_(_is_own(partner_id, business_account_id), templates.c.status != TemplateStatus.DELETED.value)


def _search_texts(connection: Connection, statement: Select[Any], text: str) -> Iterator[Template]:
    """Yield templates whose name or texts contain the text; most others are excluded by the stored bytes alone."""
    needle = text.casefold()
    is_escaped = any(char in needle for char in _JSON_ESCAPED)
    offset = 0
    while True:
        rows = connection.execute(statement.limit(_BATCH).offset(offset or None)).all()
        for row in rows:
            # Texts of codes are the operator's, and not in the draft
            is_unknown = is_escaped or row.category == Category.AUTHENTICATION
            if is_unknown or needle in row.draft.decode().casefold():
                template = decode_template(row)
                if needle in f"{row.element_name}\n{_texts(template.draft)}".casefold():
                    yield template
        if len(rows) < _BATCH:
            return
        offset += _BATCH


def _texts(draft: TemplateDraft) -> str:
    cards = [card.body or "" for card in draft.cards or ()]
    labels = [button.text for card in draft.cards or () for button in card.buttons]
    return "\n".join([flatten_template(draft), *cards, *labels])


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
