"""`/openapi.json` and `/docs`: the API reference, made at the first request; nothing comes from the network."""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from waypost import __version__
from waypost.api.response_schemas import RESPONSE_SCHEMAS
from waypost.api.route import IdempotencyMode, RouteRow
from waypost.api.routes import ROUTES
from waypost.base.telemetry.logs import log
from waypost.domain.rates import RATES, Rate, describe_limit
from waypost.operations import openapi
from waypost.operations.page_templates import PAGE_HEADERS, page_templates
from waypost.operations.samples import LANGUAGES, make_sample_request
from waypost.operations.schema_samples import make_sample
from waypost.operations.try_form import make_try_form

_HEADERS: Final = PAGE_HEADERS | {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
}
"""Scripts of our own only, which can send requests to this service only."""
_FILES: Final = {"style.css": "text/css", "try.js": "text/javascript"}
"""Files of the pages, and their media types."""
MAX_SIMILAR: Final = 5
_log = log("docs")


class DocsPages:
    """The pages. Jinja2 and the document are loaded at the first request, not at the start.

    Args:
        server: base URL of the service, for the samples.
        rates: the rates of the service.
        rates_on: False if the service limits no requests.
    """

    def __init__(self, server: str, *, rates: Mapping[str, Rate] = RATES, rates_on: bool = True) -> None:
        self._server = server
        self._rates = rates
        self._rates_on = rates_on
        self._document: openapi.Document | None = None

    def routes(self) -> list[Route]:
        """Return all routes."""
        return [
            Route("/openapi.json", self._openapi),
            Route("/docs", self._index),
            *(Route(f"/docs/{name}", self._file) for name in _FILES),
            Route("/docs/{operation:path}", self._operation),
        ]

    async def _openapi(self, _request: Request) -> Response:
        """Return the whole document."""
        if self._document is None:
            self._document = openapi.make_document(self._server, rates=self._rates, rates_on=self._rates_on)
        return JSONResponse(self._document)

    async def _index(self, _request: Request) -> Response:
        """Return the list of routes, by section."""
        return self._page("index.html", path="")

    async def _operation(self, request: Request) -> Response:
        """Return the page of one route."""
        operation = request.path_params["operation"]
        row = next((row for row in ROUTES if openapi.operation_id(row) == operation), None)
        if row is None:
            return self._page("missing.html", 404, path="", similar=_similar_operations(operation))
        limit = describe_limit(row.rate, self._rates, on=self._rates_on)
        try:
            return self._page("operation.html", path=operation, limit=limit, **_operation_values(row, self._server))
        except Exception:  # noqa: BLE001  a page says what to do next, as every error does
            _log.exception("defect", operation=operation)
            return self._page("failed.html", 500, path=operation)

    async def _file(self, request: Request) -> Response:
        """Return the style sheet or the script of the pages."""
        name = request.url.path.rpartition("/")[2]
        templates: Any = page_templates()
        source, _, _ = templates.loader.get_source(templates, name)
        return PlainTextResponse(source, media_type=_FILES[name], headers=_HEADERS)

    def _page(self, name: str, status: int = 200, **values: Any) -> Response:
        text = (
            page_templates()
            .get_template(name)
            .render(version=__version__, sections=_sections(), operation_id=openapi.operation_id, **values)
        )
        return HTMLResponse(text, status, _HEADERS)


def _sections() -> list[dict[str, Any]]:
    sections: dict[str, list[dict[str, str]]] = {}
    for row in ROUTES:
        sections.setdefault(openapi.section_of(row), []).append(
            {
                "id": openapi.operation_id(row),
                "method": row.method,
                "path": row.path,
                "summary": openapi.endpoint_texts(row)[0],
            }
        )
    return [{"name": name, "rows": rows} for name, rows in sections.items()]


def _similar_operations(operation: str) -> list[RouteRow]:
    """Return routes whose ids are like one that does not exist, the most similar first."""
    rows = {openapi.operation_id(row): row for row in ROUTES}
    return [rows[name] for name in get_close_matches(operation, rows, n=MAX_SIMILAR, cutoff=0.5)]


def _operation_values(row: RouteRow, server: str) -> dict[str, Any]:
    """Return the values of one page's template."""
    summary, description = openapi.endpoint_texts(row)
    schema = RESPONSE_SCHEMAS.get(row.response_schema)
    is_file = schema is not None and openapi.is_file(schema)
    request = make_sample_request(row, server)
    return {
        "row": row,
        "summary": summary,
        "paragraphs": [" ".join(paragraph.split()) for paragraph in description.split("\n\n") if paragraph],
        "headers": _credential_headers(row),
        "key": None if row.idempotency is IdempotencyMode.NO_KEY else openapi.IDEMPOTENCY_HEADER,
        "parts": [(name, *openapi.PATH_PARTS[name]) for name in openapi.path_parts(row)],
        "query": _field_rows(row.query),
        "fields": _field_rows(row.fields),
        "sample": None if schema is None or is_file else _format_json(make_sample(schema)),
        "is_file": is_file,
        "errors": openapi.errors_of(row),
        "samples": [(language, render(request)) for language, render in LANGUAGES],
        "variable": request.credential[1] if request.credential else "",
        "try_it": make_try_form(row),
    }


def _credential_headers(row: RouteRow) -> list[tuple[str, str]]:
    names = [name for choice in openapi.SECURITY[row.credential] for name in choice]
    return [openapi.SCHEMES[name] for name in names]


def _field_rows(names: tuple[str, ...]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, field in openapi.fields_of(names).items():
        schema = openapi.json_schema(field)
        rows.append(
            {
                "name": name,
                "type": field.type.value,
                "required": field.required,
                "meaning": field.meaning,
                "example": field.example,
                "schema": _format_json(schema) if schema else "",
            }
        )
    return rows


def _format_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
