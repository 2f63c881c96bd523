"""The gallery: every template in a phone frame, with its properties and status."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from waypost.console.bubbles.drafts import shown_of_draft
from waypost.console.page_tools import PageTools
from waypost.console.templates.samples import finder, samples_of
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Piece
from waypost.domain.templates.template import Category, TemplateStatus
from waypost.domain.templates.types import TemplateType
from waypost.store.templates.gallery import Shelf, Sought, newest_id, shelf, templates_now

PARTS: Final = "templates/gallery_parts.html"
AT_ONCE: Final = 24
MOST_PAGES: Final = 1_000
LONGEST_WORDS: Final = 200
FILTERS: Final = ("status", "category", "type", "language", "q")


async def show_gallery(desk: PageTools, visit: PageRequest) -> Response:
    """Return one page of the gallery, newest first, with the filters of the query."""
    filters = {name: visit.query(name)[:LONGEST_WORDS] for name in FILTERS}
    page = _page_of(visit)
    matches = await _found(desk, visit, filters, page)
    uploads = await samples_of(desk, visit, [template.draft for template in matches.templates])
    find = finder(visit, uploads)
    rendered = [(template, shown_of_draft(template.draft, find=find)) for template in matches.templates]
    active = {name: value for name, value in filters.items() if value}
    return await desk.page(
        visit,
        "templates/gallery.html",
        rendered=rendered,
        count=matches.count,
        first=(page - 1) * AT_ONCE + 1,
        page=page,
        pages=max(1, -(-matches.count // AT_ONCE)),
        filters=filters,
        is_filtered=bool(active),
        newer=f"?{urlencode({**active, 'page': page - 1})}",
        older=f"?{urlencode({**active, 'page': page + 1})}",
        live=f"/apps/{visit.app.id}/templates/live?{urlencode({**active, 'page': page})}",
        statuses=[status.value for status in TemplateStatus if status is not TemplateStatus.DELETED],
        categories=[category.value for category in Category],
        types=[each.value for each in TemplateType],
        languages=matches.languages,
    )


async def live_gallery(desk: PageTools, visit: PageRequest) -> Response:
    """Stream the status of the templates of the page, and whether there are newer ones."""
    filters = {name: visit.query(name)[:LONGEST_WORDS] for name in FILTERS}
    read = desk.parts.database.read
    scope = (visit.partner.id, visit.app.business_account_id)
    ids = [template.id for template in (await _found(desk, visit, filters, _page_of(visit))).templates]
    newest = await read(newest_id, *scope)

    async def render_pieces() -> Sequence[Piece]:
        part = desk.parts.pages.part
        now = {template.id: template for template in await read(templates_now, *scope, ids)}
        pieces = [Piece(f"status-{each}", part(PARTS, "status", visit, now[each])) for each in ids if each in now]
        is_newer = await read(newest_id, *scope) > newest
        return [*pieces, Piece("gallery-newer", part(PARTS, "newer", visit, visit.app, is_newer))]

    return desk.live(visit, render_pieces)


async def _found(desk: PageTools, visit: PageRequest, given: dict[str, str], page: int) -> Shelf:
    account_id = visit.app.business_account_id
    if not account_id:
        return Shelf([], 0, [])
    query = Sought(
        status=given["status"],
        category=given["category"],
        template_type=given["type"],
        language_code=given["language"],
        words=given["q"],
    )
    skipped = (page - 1) * AT_ONCE
    read: Any = partial(
        shelf, partner_id=visit.partner.id, business_account_id=account_id,
        sought=query, at_most=AT_ONCE, skipped=skipped,
    )  # fmt: skip
    return await desk.parts.database.read(read)


def _page_of(visit: PageRequest) -> int:
    text = visit.query("page", "1")
    is_number = text.isascii() and text.isdecimal() and len(text) < 5
    return min(max(1, int(text)), MOST_PAGES) if is_number else 1
