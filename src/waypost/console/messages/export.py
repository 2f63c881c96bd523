"""CSV export of the filtered list of messages, without their content."""

import csv
import io
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from waypost.console.messages.filters import Filter, read_filter
from waypost.console.page_tools import PageTools
from waypost.console.web.formatting import iso
from waypost.console.web.not_found import NotMeant
from waypost.console.web.page_request import PageRequest
from waypost.store.messages.lists import MOST, Place, template_names
from waypost.store.messages.search import search_messages
from waypost.store.messages.search_pages import Found, Page

MOST_ROWS: Final = 10_000
MOST_LOOKS: Final = 500
"""Maximum pages of a search, which limits the search for rare messages to ten million messages."""
_COLUMNS: Final = (
    "id", "operator_message_id", "source", "destination", "kind", "template", "state", "code", "reason",
    "accepted", "changed",
)  # fmt: skip
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""Characters that begin a formula in a spreadsheet."""


async def export_list(desk: PageTools, visit: PageRequest) -> Response:
    """Stream the first `MAX_EXPORT_ROWS` messages that match the filter as CSV.

    Raises:
        InvalidPageRequest: the filter is invalid.
    """
    filters = read_filter(visit.request.query_params, desk.parts.clock.now_ms())
    if filters.wrong:
        raise NotMeant(next(iter(filters.wrong.values())), "Correct the filters on the page.")
    names = await desk.parts.database.read(template_names, visit.partner.id, visit.app.id)
    return StreamingResponse(
        _lines(_Export(desk, visit, filters), names),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="messages.csv"'},
    )


@dataclass(frozen=True, slots=True)
class _Export:
    desk: PageTools
    visit: PageRequest
    asked: Filter

    async def page(self, before: Place | None) -> Found:
        """Return one page of the search."""
        partner, app = self.visit.partner, self.visit.app
        return await self.desk.parts.database.read(
            search_messages, partner.id, app.id, self.asked.wanted, Page(before, MOST)
        )


async def _lines(export: _Export, names: dict[str, str]) -> AsyncGenerator[str]:
    yield _line(_COLUMNS)
    before, left = export.asked.before, MOST_ROWS
    for _ in range(MOST_LOOKS):
        page = await export.page(before)
        rows = page.rows[:left]
        yield "".join(_line(_cells(row, names)) for row in rows)
        left -= len(rows)
        before = page.next
        if before is None or not left:
            return


def _cells(row: dict[str, Any], names: dict[str, str]) -> list[str]:
    shown = {
        **row,
        "template": names.get(row["template_id"] or "", row["template_id"]),
        "accepted": iso(row["accepted_on_ms"]),
        "changed": iso(row["changed_on_ms"]),
    }
    return ["" if shown[name] is None else str(shown[name]) for name in _COLUMNS]


def _line(cells: Sequence[str]) -> str:
    written = io.StringIO()
    escaped = [f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in cells]
    csv.writer(written).writerow(escaped)
    return written.getvalue()
