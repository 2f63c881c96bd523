"""Lookup of one template of the app's business account."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from waypost.base.ids import is_uuid
from waypost.console.bubbles.previews import draft_message
from waypost.console.page_tools import PageTools
from waypost.console.templates.draft_text import find_samples, sample_finder
from waypost.console.web.page_request import NotFound, PageRequest
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


async def get_template(tools: PageTools, page_request: PageRequest, template_id: str) -> Template:
    """Return a template, including deleted ones.

    Raises:
        NotFound: there is no template with this id, or it is another partner's.
    """
    template = None
    if is_uuid(template_id) and page_request.app.business_account_id:
        template = await tools.services.database.read(
            template_of_account, page_request.partner.id, page_request.app.business_account_id, template_id
        )
    if template is None:
        raise NotFound("There is no such template.")
    return template


GALLERY_MACROS: Final = "templates/gallery_parts.html"
TEMPLATES_PER_PAGE: Final = 24
MAX_PAGES: Final = 1_000
MAX_FILTER_CHARS: Final = 200
GALLERY_FILTERS: Final = ("status", "category", "type", "language", "q")


async def show_gallery(tools: PageTools, page_request: PageRequest) -> Response:
    """Return one page of the gallery, newest first, with the filters of the query."""
    filters = {name: page_request.query(name)[:MAX_FILTER_CHARS] for name in GALLERY_FILTERS}
    page = _page_number(page_request)
    matches = await _query_templates(tools, page_request, filters, page)
    uploads = await find_samples(tools, page_request, [template.draft for template in matches.templates])
    find = sample_finder(page_request, uploads)
    rendered = [(template, draft_message(template.draft, find=find)) for template in matches.templates]
    active = {name: value for name, value in filters.items() if value}
    return await tools.page(
        page_request,
        "templates/gallery.html",
        rendered=rendered,
        count=matches.count,
        first=(page - 1) * TEMPLATES_PER_PAGE + 1,
        page=page,
        pages=max(1, -(-matches.count // TEMPLATES_PER_PAGE)),
        filters=filters,
        is_filtered=bool(active),
        newer=f"?{urlencode({**active, 'page': page - 1})}",
        older=f"?{urlencode({**active, 'page': page + 1})}",
        live=f"/apps/{page_request.app.id}/templates/live?{urlencode({**active, 'page': page})}",
        statuses=[status.value for status in TemplateStatus if status is not TemplateStatus.DELETED],
        categories=[category.value for category in Category],
        types=[each.value for each in TemplateType],
        languages=matches.languages,
    )


async def live_gallery(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream the status of the templates of the page, and whether there are newer ones."""
    filters = {name: page_request.query(name)[:MAX_FILTER_CHARS] for name in GALLERY_FILTERS}
    read = tools.services.database.read
    scope = (page_request.partner.id, page_request.app.business_account_id)
    ids = [
        template.id
        for template in (await _query_templates(tools, page_request, filters, _page_number(page_request))).templates
    ]
    newest = await read(newest_template_id, *scope)

    async def render_pieces() -> Sequence[PageElement]:
        part = tools.services.pages.render_macro
        now = {template.id: template for template in await read(current_templates, *scope, ids)}
        pieces = [
            PageElement(f"status-{each}", part(GALLERY_MACROS, "status", page_request, now[each]))
            for each in ids
            if each in now
        ]
        is_newer = await read(newest_template_id, *scope) > newest
        return [
            *pieces,
            PageElement("gallery-newer", part(GALLERY_MACROS, "newer", page_request, page_request.app, is_newer)),
        ]

    return tools.live(page_request, render_pieces)


async def _query_templates(
    tools: PageTools, page_request: PageRequest, filters: dict[str, str], page: int
) -> GalleryPage:
    account_id = page_request.app.business_account_id
    if not account_id:
        return GalleryPage([], 0, [])
    query = GalleryFilter(
        status=filters["status"],
        category=filters["category"],
        template_type=filters["type"],
        language_code=filters["language"],
        text=filters["q"],
    )
    skipped = (page - 1) * TEMPLATES_PER_PAGE
    read: Any = partial(
        gallery_page, partner_id=page_request.partner.id, business_account_id=account_id,
        query=query, at_most=TEMPLATES_PER_PAGE, skipped=skipped,
    )  # fmt: skip
    return await tools.services.database.read(read)


def _page_number(page_request: PageRequest) -> int:
    text = page_request.query("page", "1")
    is_number = text.isascii() and text.isdecimal() and len(text) < 5
    return min(max(1, int(text)), MAX_PAGES) if is_number else 1
