"""CSV export of the filtered list of messages, without their content; its times are UTC."""

import csv
import io
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from waypost.console.messages.filters import MessageListFilter
from waypost.console.messages.listing import read_page_filter
from waypost.console.messages.selected import selected_ids
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import InvalidPageRequest, PageRequest
from waypost.console.web.zones import iso_time
from waypost.store.messages.lists import (
    MAX_PAGE_ROWS,
    MessageCursor,
    SearchPage,
    SearchResults,
    template_names,
    template_names_by_ids,
)
from waypost.store.messages.search import current_messages, search_messages

MAX_EXPORT_ROWS: Final = 10_000
MAX_EXPORT_PAGES: Final = 500
"""Maximum pages of a search, which limits the search for rare messages to ten million messages."""
_COLUMNS: Final = (
    "id", "operator_message_id", "source", "destination", "kind", "template", "state", "code", "reason",
    "accepted", "changed",
)  # fmt: skip
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
"""Characters that begin a formula in a spreadsheet."""


async def export_list(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream the first `MAX_EXPORT_ROWS` messages that match the filter as CSV.

    Raises:
        InvalidPageRequest: the filter is invalid.
    """
    filters = read_page_filter(tools, page_request)
    if filters.wrong:
        raise InvalidPageRequest(next(iter(filters.wrong.values())), "Correct the filters on the page.")
    names = await tools.services.database.read(template_names, page_request.partner.id, page_request.app.id)
    return _csv_response(_csv_lines(_Export(tools, page_request, filters), names))


async def export_selected(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the selected messages as CSV, newest first.

    Raises:
        InvalidPageRequest: none or too many are selected.
    """
    read, scope = tools.services.database.read, (page_request.partner.id, page_request.app.id)
    rows = await read(current_messages, *scope, await selected_ids(page_request))
    names = await read(template_names_by_ids, page_request.partner.id, [row["template_id"] for row in rows])
    newest = sorted(rows, key=lambda row: (row["accepted_on_ms"], row["id"]), reverse=True)
    return _csv_response([_csv_line(_COLUMNS), *(_csv_line(_cells(row, names)) for row in newest)])


def _csv_response(lines: AsyncGenerator[str] | Sequence[str]) -> Response:
    headers = {"Content-Disposition": 'attachment; filename="messages.csv"'}
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)


@dataclass(frozen=True, slots=True)
class _Export:
    tools: PageTools
    page_request: PageRequest
    filters: MessageListFilter

    async def page(self, before: MessageCursor | None) -> SearchResults:
        """Return one page of the search."""
        partner, app = self.page_request.partner, self.page_request.app
        return await self.tools.services.database.read(
            search_messages, partner.id, app.id, self.filters.search, SearchPage(before, MAX_PAGE_ROWS)
        )


async def _csv_lines(export: _Export, names: dict[str, str]) -> AsyncGenerator[str]:
    yield _csv_line(_COLUMNS)
    before, left = export.filters.before, MAX_EXPORT_ROWS
    for _ in range(MAX_EXPORT_PAGES):
        page = await export.page(before)
        rows = page.rows[:left]
        yield "".join(_csv_line(_cells(row, names)) for row in rows)
        left -= len(rows)
        before = page.next
        if before is None or not left:
            return


def _cells(row: dict[str, Any], names: dict[str, str]) -> list[str]:
    shown = {
        **row,
        "template": names.get(row["template_id"] or "", row["template_id"]),
        "accepted": iso_time(row["accepted_on_ms"]),
        "changed": iso_time(row["changed_on_ms"]),
    }
    return ["" if shown[name] is None else str(shown[name]) for name in _COLUMNS]


def _csv_line(cells: Sequence[str]) -> str:
    written = io.StringIO()
    escaped = [f"'{cell}" if cell.startswith(_FORMULA_STARTS) else cell for cell in cells]
    csv.writer(written).writerow(escaped)
    return written.getvalue()
