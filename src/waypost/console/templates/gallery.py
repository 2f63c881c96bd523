"""The gallery: every template in a phone, with what it is and where it stands."""

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
    """One page of it, newest first, as the query asks."""
    given = {name: visit.query(name)[:LONGEST_WORDS] for name in FILTERS}
    page = _page_of(visit)
    found = await _found(desk, visit, given, page)
    uploads = await samples_of(desk, visit, [one.draft for one in found.templates])
    find = finder(visit, uploads)
    drawn = [(one, shown_of_draft(one.draft, find=find)) for one in found.templates]
    asked = {name: value for name, value in given.items() if value}
    return await desk.page(
        visit,
        "templates/gallery.html",
        drawn=drawn,
        count=found.count,
        first=(page - 1) * AT_ONCE + 1,
        page=page,
        pages=max(1, -(-found.count // AT_ONCE)),
        given=given,
        asked=asked,
        newer=f"?{urlencode({**asked, 'page': page - 1})}",
        older=f"?{urlencode({**asked, 'page': page + 1})}",
        live=f"/apps/{visit.app.id}/templates/live?{urlencode({**asked, 'page': page})}",
        statuses=[one.value for one in TemplateStatus if one is not TemplateStatus.DELETED],
        categories=[one.value for one in Category],
        types=[one.value for one in TemplateType],
        languages=found.languages,
    )


async def live_gallery(desk: PageTools, visit: PageRequest) -> Response:
    """Where the templates of the page stand from now on, and whether there are newer ones."""
    given = {name: visit.query(name)[:LONGEST_WORDS] for name in FILTERS}
    read = desk.parts.database.read
    whose = (visit.partner.id, visit.app.business_account_id)
    ids = [one.id for one in (await _found(desk, visit, given, _page_of(visit))).templates]
    newest = await read(newest_id, *whose)

    async def look() -> Sequence[Piece]:
        part = desk.parts.pages.part
        now = {one.id: one for one in await read(templates_now, *whose, ids)}
        pieces = [Piece(f"standing-{one}", part(PARTS, "standing", visit, now[one])) for one in ids if one in now]
        is_newer = await read(newest_id, *whose) > newest
        return [*pieces, Piece("gallery-newer", part(PARTS, "newer", visit, visit.app, is_newer))]

    return desk.live(visit, look)


async def _found(desk: PageTools, visit: PageRequest, given: dict[str, str], page: int) -> Shelf:
    account_id = visit.app.business_account_id
    if not account_id:
        return Shelf([], 0, [])
    sought = Sought(
        status=given["status"],
        category=given["category"],
        template_type=given["type"],
        language_code=given["language"],
        words=given["q"],
    )
    skipped = (page - 1) * AT_ONCE
    read: Any = partial(
        shelf, partner_id=visit.partner.id, business_account_id=account_id,
        sought=sought, at_most=AT_ONCE, skipped=skipped,
    )  # fmt: skip
    return await desk.parts.database.read(read)


def _page_of(visit: PageRequest) -> int:
    asked = visit.query("page", "1")
    is_number = asked.isascii() and asked.isdecimal() and len(asked) < 5
    return min(max(1, int(asked)), MOST_PAGES) if is_number else 1
