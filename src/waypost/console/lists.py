"""Lists of the console, each declared once: its filter, where its rows come from, and its columns.

From a declaration follow the page, its live rows, older rows on demand, and the export of the list and of selected
rows. Its look is in its template: the macros `row` and `nothing`, and what the list has beside its rows.
"""

import csv
import io
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from starlette.responses import RedirectResponse, Response, StreamingResponse

from waypost.console.list_filters import FILTER_TIMES, HIDDEN_TEXT_HINT, FilterContext, FilterForm, ListFilter
from waypost.console.page_request import PageRequest
from waypost.console.route import PageRoute, action_row, live_row, page_row, part_row
from waypost.console.web.errors import InvalidPageRequest
from waypost.console.web.formatting import format_number
from waypost.console.web.streams import PageElement, elements_response
from waypost.store.messages.lists import MAX_PAGE_ROWS

ROWS_PER_PAGE: Final = 50
MAX_SELECTED: Final = 200
"""Rows of one action; the admin API replays the callbacks of as many."""
LIST_REST_S: Final = 0.5
"""Minimum time between two updates, so that the list stays readable."""
LIVE_SCAN_LIMIT: Final = 2_000
"""Maximum rows that one update of a stream scans: new ones are among the newest."""
MAX_EXPORT_ROWS: Final = 10_000
MAX_EXPORT_PAGES: Final = 500
"""Maximum pages of an export, which limits the search for rare rows to ten million."""
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
"""Characters that begin a formula in a spreadsheet."""


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The page of a list to be read, and its limits."""

    before: str = ""  # cursor at which the page begins; empty: the newest
    at_most: int = ROWS_PER_PAGE  # how many rows
    scan_limit: int | None = None  # how many rows are scanned at most; None: the store's limit


@dataclass(frozen=True, slots=True)
class ListRows:
    """One page of rows."""

    rows: Sequence[Any] = ()  # newest first: of the store, with what the list adds
    older: str = ""  # cursor of the next page; empty if there is none
    searched_to_ms: int | None = None  # how far back the search went, if a limit ended the page


ReadRows = Callable[[PageRequest, ListFilter, ListQuery], Awaitable[ListRows]]
FindRows = Callable[[PageRequest, Sequence[str]], Awaitable[Sequence[Any]]]
ChangedRows = Callable[[], Awaitable[Sequence[Any]]]
"""Returns the rows that are new or may have changed since its last call, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    """One list."""

    name: str  # of its saved filters, and of the file of an export
    path: str  # of the page
    title: str  # of the page, and of the list for screen readers
    noun: str  # what its rows are, as in "Older messages"
    macros: str  # template with the macros `row` and `nothing`, and what else the page has
    columns: tuple[str, ...]  # headers
    form: FilterForm  # fields of the filter
    read: ReadRows  # reads a page of rows
    find: FindRows  # reads rows by the ids that their checkboxes have
    element_id: Callable[[Any], str]  # of a row
    cursor: Callable[[Any], str]  # of a row: the page after it begins there
    # columns of the export, each with its value of a row; without texts of messages
    export: Mapping[str, Callable[[Any], object]]
    page: str = "list.html"  # template of the page
    sheets: tuple[str, ...] = ()  # its style sheets
    # further values for the template; `options`: those of selects that depend on the partner, by field
    values: Callable[[PageRequest, ListFilter], Awaitable[Mapping[str, Any]]] | None = None
    # path of the page to which a search for one id leads; empty: the list is shown
    page_of_one: Callable[[PageRequest, ListFilter, ListRows], Awaitable[str]] | None = None
    # returns what reads changed rows for a stream; None: the first page is read each time
    watch: Callable[[PageRequest, ListFilter], ChangedRows] | None = None
    beside: Callable[[PageRequest], Awaitable[Sequence[PageElement]]] | None = None  # further elements of the stream
    # whether a row that no longer matches stays on an open page
    keeps: Callable[[ListFilter], bool] = lambda _filters: True

    def routes(self, name: str, tab: str, nav: str = "") -> tuple[PageRoute, ...]:
        """Return its rows; they stand before those with a parameter in place of `live`, `more`, `export` or `selected`.

        Args:
            name: in the palette.
        """
        return (
            page_row(self.path, self.show, name, tab=tab, nav=nav),
            live_row(f"{self.path}/live", self.live, "stream new and changed rows"),
            part_row(f"{self.path}/more", self.show_more, "load older rows"),
            part_row(f"{self.path}/export", self.export_all, "export the list as CSV"),
            action_row(f"{self.path}/selected/export", self.export_selected, "export the selected rows"),
        )

    def path_of(self, request: PageRequest) -> str:
        """Return the path of the page, for the app in the URL if it has one."""
        return self.path if request.named_app is None else self.path.format(app_id=request.app.id)

    def read_filter(self, request: PageRequest) -> ListFilter:
        """Return the filter of a request; a search in hidden texts is noted for the audit log."""
        context = FilterContext(request.now_ms(), request.zone, request.services.show_text)
        filters = self.form.read(request.http.query_params, context)
        request.searches_hidden_text = getattr(filters.search, "whole_words", False)
        return filters

    async def show(self, request: PageRequest) -> Response:
        """Show the page, or go to the one row whose id is searched for."""
        filters = self.read_filter(request)
        found = await self._find(request, filters)
        if self.page_of_one is not None and not filters.wrong:
            path = await self.page_of_one(request, filters, found)
            if path:
                return RedirectResponse(path, 303)
        show_text = request.services.show_text
        return await request.page(self.page, list=self, filters=filters, found=found, path=self.path_of(request),
            times=[(value, label) for value, (label, _) in FILTER_TIMES.items()], show_text=show_text,
            text_hint="" if show_text else HIDDEN_TEXT_HINT, most=MAX_SELECTED,
            values=await self.values(request, filters) if self.values else {},
        )  # fmt: skip

    async def show_more(self, request: PageRequest) -> Response:
        """Return older rows as page elements, with the link to further ones."""
        filters = self.read_filter(request)
        found = await self._find(request, filters)
        path = self.path_of(request)
        foot = request.macro("list_parts.html", "foot", path, filters, found, self.noun)
        return elements_response([*self.elements(request, found.rows, "rows", "end"), PageElement("foot", foot)])

    async def live(self, request: PageRequest) -> Response:
        """Stream new rows, and changes of those that are shown."""
        filters = self.read_filter(request)
        previous: dict[str, tuple[Any, PageElement]] = {}

        async def newest() -> Sequence[Any]:
            return (await self.read(request, filters, ListQuery(scan_limit=LIVE_SCAN_LIMIT))).rows

        changed = newest if self.watch is None else self.watch(request, filters)

        async def render() -> Sequence[PageElement]:
            nonlocal previous
            rows = [] if filters.wrong else [(self.element_id(row), row) for row in await changed()]
            current: dict[str, tuple[Any, PageElement]] = {}
            for element_id, row in reversed(rows):  # each is put at the start, so the newest comes last
                if element_id in previous and previous[element_id][0] == row:
                    current[element_id] = previous[element_id]
                else:
                    current[element_id] = row, self.elements(request, [row], "fresh", "start")[0]
            previous = current
            beside = await self.beside(request) if self.beside else ()
            return [*beside, *(element for _, element in current.values())]

        return request.live(render, rest_s=LIST_REST_S, at_least_s=2.0)

    async def export_all(self, request: PageRequest) -> Response:
        """Stream the first `MAX_EXPORT_ROWS` rows that match the filter as CSV."""
        filters = self.read_filter(request)
        if filters.wrong:
            raise InvalidPageRequest(next(iter(filters.wrong.values())), "Correct the filters on the page.")
        return self._csv_response(self._csv_lines(request, filters))

    async def export_selected(self, request: PageRequest) -> Response:
        """Return the selected rows as CSV, newest first."""
        rows = await self.find(request, await selected_ids(request))
        return self._csv_response([_csv_line(self.export), *(_csv_line(self._cells(row)) for row in rows)])

    def elements(self, request: PageRequest, rows: Sequence[Any], into: str = "", at: str = "end") -> list[PageElement]:
        """Return rows as page elements."""
        keys = [(row, self.element_id(row), self.cursor(row)) for row in rows]
        return [
            PageElement(id, request.macro(self.macros, "row", request, row, id, cursor), into, at)
            for row, id, cursor in keys  # noqa: A001
        ]

    async def _find(self, request: PageRequest, filters: ListFilter) -> ListRows:
        if filters.wrong:
            return ListRows()
        return await self.read(request, filters, ListQuery(filters.before))

    async def _csv_lines(self, request: PageRequest, filters: ListFilter) -> AsyncGenerator[str]:
        yield _csv_line(self.export)
        before, left = filters.before, MAX_EXPORT_ROWS
        for _ in range(MAX_EXPORT_PAGES):
            found = await self.read(request, filters, ListQuery(before, MAX_PAGE_ROWS))
            yield "".join(_csv_line(self._cells(row)) for row in found.rows[:left])
            left -= len(found.rows)
            before = found.older
            if not before or left <= 0:
                return

    def _cells(self, row: Any) -> list[str]:
        values = [value_of(row) for value_of in self.export.values()]
        return ["" if value is None else str(value) for value in values]

    def _csv_response(self, lines: AsyncGenerator[str] | Sequence[str]) -> Response:
        headers = {"Content-Disposition": f'attachment; filename="{self.name}.csv"'}
        return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)


async def selected_ids(request: PageRequest) -> list[str]:
    """Return the ids of the checked rows in the form, each once; InvalidPageRequest if there are none, or too many."""
    values = (await request.form()).getlist("id")
    ids = list(dict.fromkeys(value for value in values if isinstance(value, str) and value))
    if not ids:
        raise InvalidPageRequest("No row is selected.", "Select rows in the list first.")
    if len(ids) > MAX_SELECTED:
        text = f"{format_number(len(ids))} rows are selected."
        raise InvalidPageRequest(text, f"Select at most {MAX_SELECTED} at once.")
    return ids


def members(*names: str) -> dict[str, Callable[[Any], object]]:
    """Return columns of an export that are members of a row."""
    return {name: itemgetter(name) for name in names}


def _csv_line(cells: Iterable[str]) -> str:
    written = io.StringIO()
    escaped = [f"'{cell}" if cell.startswith(_FORMULA_STARTS) else cell for cell in cells]
    csv.writer(written).writerow(escaped)
    return written.getvalue()
