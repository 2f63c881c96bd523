"""The list as CSV: what is filtered, without what the messages say."""

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
"""Pages of a search: what is rare may be looked for through ten million messages, and no more."""
_COLUMNS: Final = (
    "id", "operator_message_id", "source", "destination", "kind", "template", "state", "code", "reason",
    "accepted", "changed",
)  # fmt: skip
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


async def export_list(desk: PageTools, visit: PageRequest) -> Response:
    """The first `MOST_ROWS` of what is filtered, as they are found.

    Raises:
        NotMeant: the filter has a mistake.
    """
    asked = read_filter(visit.request.query_params, desk.parts.clock.now_ms())
    if asked.wrong:
        raise NotMeant(next(iter(asked.wrong.values())), "Correct the filter on the page.")
    names = await desk.parts.database.read(template_names, visit.partner.id, visit.app.id)
    return StreamingResponse(
        _lines(_Export(desk, visit, asked), names),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="messages.csv"'},
    )


@dataclass(frozen=True, slots=True)
class _Export:
    desk: PageTools
    visit: PageRequest
    asked: Filter

    async def page(self, before: Place | None) -> Found:
        """A page of it."""
        partner, app = self.visit.partner, self.visit.app
        return await self.desk.parts.database.read(
            search_messages, partner.id, app.id, self.asked.wanted, Page(before, MOST)
        )


async def _lines(export: _Export, names: dict[str, str]) -> AsyncGenerator[str]:
    yield _line(_COLUMNS)
    before, left = export.asked.before, MOST_ROWS
    for _ in range(MOST_LOOKS):
        found = await export.page(before)
        rows = found.rows[:left]
        yield "".join(_line(_cells(row, names)) for row in rows)
        left -= len(rows)
        before = found.next
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
    harmless = [f"'{one}" if one.startswith(_FORMULA) else one for one in cells]
    csv.writer(written).writerow(harmless)
    return written.getvalue()
