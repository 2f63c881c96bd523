"""The gallery of the templates of the app's business account, and the lookup of one."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from waypost.base.ids import is_uuid
from waypost.console.bubbles.previews import draft_message
from waypost.console.page_request import PageRequest
from waypost.console.templates.draft_text import find_samples, sample_finder
from waypost.console.web.errors import NotFound
from waypost.console.web.forms import parse_number
from waypost.console.web.streams import PageElement
from waypost.domain.templates.template import Category, Template, TemplateStatus
from waypost.domain.templates.types import TemplateType
from waypost.store.templates.gallery import (
    GalleryFilter,
    GalleryPage,
    current_templates,
    gallery_page,
    newest_template_id,
    template_of_account,
)


async def get_template(request: PageRequest, template_id: str) -> Template:
    """Return a template, including deleted ones; NotFound if there is none, or it is another partner's."""
    template = None
    if is_uuid(template_id) and request.app.business_account_id:
        template = await request.read(
            template_of_account, request.partner.id, request.app.business_account_id, template_id
        )
    if template is None:
        raise NotFound("There is no such template.")
    return template


GALLERY_MACROS: Final = "templates/gallery_parts.html"
TEMPLATES_PER_PAGE: Final = 24
MAX_PAGES: Final = 1_000
MAX_FILTER_CHARS: Final = 200
GALLERY_FILTERS: Final = ("status", "category", "type", "language", "q")
"""Names in the query, in the order of the members of `GalleryFilter`."""


async def show_gallery(request: PageRequest) -> Response:
    """Return one page of the gallery, newest first, with the filters of the query."""
    filters, number, matches = await _read_page(request)
    uploads = await find_samples(request, [template.draft for template in matches.templates])
    find = sample_finder(request, uploads)
    active = {name: value for name, value in filters.items() if value}
    newer, here, older = (f"?{urlencode({**active, 'page': number + step})}" for step in (-1, 0, 1))
    return await request.page(
        "templates/gallery.html",
        rendered=[(template, draft_message(template.draft, find=find)) for template in matches.templates],
        count=matches.count, first=(number - 1) * TEMPLATES_PER_PAGE + 1, page=number,
        pages=max(1, -(-matches.count // TEMPLATES_PER_PAGE)), filters=filters, is_filtered=bool(active),
        newer=newer, older=older, live=f"/apps/{request.app.id}/templates/live{here}",
        statuses=[status.value for status in TemplateStatus if status is not TemplateStatus.DELETED],
        categories=[category.value for category in Category], types=[each.value for each in TemplateType],
        languages=matches.languages,
    )  # fmt: skip


async def live_gallery(request: PageRequest) -> Response:
    """Stream the status of the templates of the page, and whether there are newer ones."""
    read, part = request.read, request.macro
    scope = (request.partner.id, request.app.business_account_id)
    ids = [template.id for template in (await _read_page(request))[2].templates]
    newest = await read(newest_template_id, *scope)

    async def render_pieces() -> Sequence[PageElement]:
        now = {template.id: template for template in await read(current_templates, *scope, ids)}
        is_newer = await read(newest_template_id, *scope) > newest
        return [
            *(PageElement(f"status-{each}", part(GALLERY_MACROS, "status", now[each])) for each in ids if each in now),
            PageElement("gallery-newer", part(GALLERY_MACROS, "newer", request.app, is_newer)),
        ]

    return request.live(render_pieces)


async def _read_page(request: PageRequest) -> tuple[dict[str, str], int, GalleryPage]:
    """Return the filters of the query, the number of the page, and the page."""
    filters = {name: request.query(name)[:MAX_FILTER_CHARS] for name in GALLERY_FILTERS}
    number = min(max(1, parse_number(request.query("page"), max_digits=4) or 1), MAX_PAGES)
    account_id = request.app.business_account_id
    if not account_id:
        return filters, number, GalleryPage([], 0, [])
    query = GalleryFilter(*filters.values())
    read: Any = partial(gallery_page, at_most=TEMPLATES_PER_PAGE, skipped=(number - 1) * TEMPLATES_PER_PAGE)
    return filters, number, await request.read(read, request.partner.id, account_id, query)
