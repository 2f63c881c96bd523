"""`/openapi.json` and `/docs`: the API reference, made at the first request; nothing comes from the network."""

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from waypost import __version__
from waypost.api.request_fields import FieldType, RequestField
from waypost.api.response_schemas import RESPONSE_SCHEMAS
from waypost.api.route import BodyFormat, IdempotencyMode, RouteRow
from waypost.api.routes import ROUTES
from waypost.domain.rates import RATES, Rate, describe_limit
from waypost.operations import openapi
from waypost.operations.page_templates import PAGE_HEADERS, page_templates
from waypost.operations.schema_samples import make_sample

_HEADERS: Final = PAGE_HEADERS | {"Cache-Control": "no-cache"}

_SAMPLE_FIELDS: Final = {  # fields that a sample request shows although they may be left out
    "password", "enableSample", "buttons", "channel", "source", "src.name", "message", "postbackTexts", "version",
    "messaging_product", "recipient_type", "to", "type", "text", "file_type", "active", "name", "categories",
    "typing_indicator", "vertical", "desc", "profileEmail", "prompts",
}  # fmt: skip


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
            Route("/docs/style.css", self._style),
            Route("/docs/{operation}", self._operation),
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
            return self._page("missing.html", 404, path="")
        limit = describe_limit(row.rate, self._rates, on=self._rates_on)
        return self._page("operation.html", path=operation, limit=limit, **_operation_values(row, self._server))

    async def _style(self, _request: Request) -> Response:
        """Return the pages' one style sheet."""
        templates: Any = page_templates()
        source, _, _ = templates.loader.get_source(templates, "style.css")
        return PlainTextResponse(source, media_type="text/css", headers=_HEADERS)

    def _page(self, name: str, status: int = 200, **values: Any) -> Response:
        text = page_templates().get_template(name).render(version=__version__, sections=_sections(), **values)
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


def _operation_values(row: RouteRow, server: str) -> dict[str, Any]:
    """Return the values of one page's template."""
    summary, description = openapi.endpoint_texts(row)
    schema = RESPONSE_SCHEMAS.get(row.response_schema)
    is_file = schema is not None and openapi.is_file(schema)
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
        "curl": _curl(row, server),
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


def _curl(row: RouteRow, server: str) -> str:
    """Return a command that makes such a request, with sample values."""
    path = row.path
    for name in openapi.path_parts(row):
        path = path.replace(f"{{{name}}}", openapi.PATH_PARTS[name][1])
    lines = [f"curl -X {row.method} '{server}{path}'"]
    for header, _ in _credential_headers(row)[:1]:
        lines.append(f"-H '{header}: <{row.credential}>'")
    if row.body_format is BodyFormat.JSON:
        body = {
            name: _json_sample(field)
            for name, field in openapi.fields_of(row.fields).items()
            if field.example and (field.required or name in _SAMPLE_FIELDS)
        }
        lines += ["-H 'Content-Type: application/json'", f"-d {_shell_quote(json.dumps(body))}"]
    else:
        for name, field in openapi.fields_of(row.fields).items():
            if field.example and (field.required or name in _SAMPLE_FIELDS):
                flag = "-F" if row.body_format is BodyFormat.MULTIPART else "--data-urlencode"
                lines.append(f"{flag} {_shell_quote(f'{name}={field.example}')}")
    return " \\\n  ".join(lines)


def _json_sample(field: RequestField) -> Any:
    if field.type in (FieldType.OBJECT, FieldType.JSON) and field.example:
        return json.loads(field.example)
    return field.example


def _shell_quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _format_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
