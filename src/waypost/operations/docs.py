"""`/openapi.json` and `/docs`: the API reference, made at the first request; nothing comes from the network."""

import asyncio
import gzip
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from waypost import __version__
from waypost.api.fields import RequestField
from waypost.api.route import IdempotencyMode, RouteRow
from waypost.api.routes import ROUTES, operation_titles
from waypost.base.telemetry.logs import log
from waypost.domain.rates import RATES, Rate, describe_limit
from waypost.operations import openapi
from waypost.operations.onboarding_page import PAGE_HEADERS, page_templates
from waypost.operations.openapi import make_sample
from waypost.operations.samples import LANGUAGES, format_curl, make_sample_request
from waypost.operations.try_form import make_try_form

SLICE_BYTES: Final = 32 * 1024
"""A response is written in slices: one that nobody reads keeps no more of a connection's memory."""


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A page as it is sent."""

    plain: tuple[bytes, ...]  # its slices; every response refers to the same ones
    compressed: tuple[bytes, ...]  # the same with gzip
    tag: str  # of both, without quotes
    headers: Mapping[str, str]

    def respond(self, request: Request) -> Response:
        """Return the response to a request: 304 to a client that has the page."""
        is_compressed = _accepts_gzip(request.headers.get("accept-encoding", ""))
        tag = f'"{self.tag}-gzip"' if is_compressed else f'"{self.tag}"'
        headers = {**self.headers, "Cache-Control": "no-cache", "ETag": tag, "Vary": "Accept-Encoding"}
        known = {each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")}
        if tag in known or "*" in known:
            return Response(None, 304, headers)
        if is_compressed:
            headers["Content-Encoding"] = "gzip"
        return _SlicedResponse(self.compressed if is_compressed else self.plain, headers)


class _SlicedResponse(Response):
    """A response that waits between its slices until the client has read."""

    def __init__(self, slices: tuple[bytes, ...], headers: Mapping[str, str]) -> None:
        super().__init__(None, headers={**headers, "Content-Length": str(sum(map(len, slices)))})
        self._slices = slices

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        *others, last = self._slices
        for each in others:
            await send({"type": "http.response.body", "body": each, "more_body": True})
        await send({"type": "http.response.body", "body": last})


class KeptPages:
    """The pages that were requested, by name; each is made once, on a thread."""

    def __init__(self) -> None:
        self._pages: dict[str, asyncio.Task[KeptPage]] = {}

    async def respond(
        self, name: str, make: Callable[[], bytes], headers: Mapping[str, str], request: Request
    ) -> Response:
        """Return the response with a page.

        Args:
            name: of the page; there are only so many.
            headers: with the media type.

        Raises:
            whatever `make` raises; the next request makes the page again.
        """
        task = self._pages.get(name)
        if task is None:
            task = self._pages[name] = asyncio.create_task(asyncio.to_thread(_keep, make, headers))
        try:
            page = await asyncio.shield(task)
        except Exception:
            self._pages.pop(name, None)
            raise
        return page.respond(request)


def _keep(make: Callable[[], bytes], headers: Mapping[str, str]) -> KeptPage:
    content = make()
    tag = hashlib.sha256(content).hexdigest()[:32]
    return KeptPage(_slices(content), _slices(gzip.compress(content, mtime=0)), tag, headers)


def _slices(content: bytes) -> tuple[bytes, ...]:
    return tuple(content[start : start + SLICE_BYTES] for start in range(0, len(content), SLICE_BYTES)) or (b"",)


def _accepts_gzip(accepted: str) -> bool:
    """True if a header `Accept-Encoding` names gzip, or everything, and not with a weight of 0."""
    for each in accepted.lower().split(","):
        coding, _, weight = each.partition(";")
        if coding.strip() in ("gzip", "*"):
            return weight.strip().removeprefix("q=").strip("0. ") != "" or not weight
    return False


_HEADERS: Final = PAGE_HEADERS | {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
}
"""Scripts of our own only, which can send requests to this service only."""
_FILES: Final = {"style.css": "text/css", "find.js": "text/javascript", "try.js": "text/javascript"}
"""Files of the pages, and their media types."""
_PAGE_HEADERS: Final = _HEADERS | {"Content-Type": "text/html; charset=utf-8"}
_JSON_HEADERS: Final = {"Content-Type": "application/json", "X-Content-Type-Options": "nosniff"}
_FIRST_STEPS: Final = {  # operations that the first page shows, by their names there
    "login": "POST /partner/account/login",
    "token": "GET /partner/app/{app_id}/token",
    "send": "POST /partner/app/{app_id}/template/msg",
    "session": "POST /partner/app/{app_id}/msg",
    "subscribe": "POST /partner/app/{app_id}/subscription",
}
MAX_SIMILAR: Final = 5
MIN_LIKENESS: Final = 0.25
"""Share of the words of two ids that both have."""
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
        self._pages = KeptPages()

    def routes(self) -> list[Route]:
        """Return all routes."""
        return [
            Route("/openapi.json", self._openapi),
            Route("/docs", self._index),
            *(Route(f"/docs/{name}", self._file) for name in _FILES),
            Route("/docs/{operation:path}", self._operation),
        ]

    async def _openapi(self, request: Request) -> Response:
        """Return the whole document."""
        return await self._pages.respond("/openapi.json", self._make_document, _JSON_HEADERS, request)

    def _make_document(self) -> bytes:
        document = openapi.make_document(self._server, rates=self._rates, rates_on=self._rates_on)
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()

    async def _index(self, request: Request) -> Response:
        """Return the list of routes, by section."""
        return await self._pages.respond("/docs", self._make_index, _PAGE_HEADERS, request)

    def _make_index(self) -> bytes:
        rows = {row.name: row for row in ROUTES}
        start = {
            step: {
                "id": openapi.operation_id(rows[name]),
                "curl": format_curl(make_sample_request(rows[name], self._server)),
            }
            for step, name in _FIRST_STEPS.items()
        }
        return _render("index.html", path="", start=start)

    async def _operation(self, request: Request) -> Response:
        """Return the page of one route."""
        operation = request.path_params["operation"]
        row = next((row for row in ROUTES if openapi.operation_id(row) == operation), None)
        if row is None:
            similar = _similar_operations(operation)
            return HTMLResponse(_render("missing.html", [], path="", similar=similar), 404, _HEADERS)
        try:
            limit = describe_limit(row.rate, self._rates, on=self._rates_on)
            make = partial(_make_operation, row, self._server, limit)
            return await self._pages.respond(operation, make, _PAGE_HEADERS, request)
        except Exception:  # noqa: BLE001  a page says what to do next, as every error does
            _log.exception("defect", operation=operation)
            return HTMLResponse(_render("failed.html", path=operation), 500, _HEADERS)

    async def _file(self, request: Request) -> Response:
        """Return the style sheet or a script of the pages."""
        name = request.url.path.rpartition("/")[2]
        headers = _HEADERS | {"Content-Type": f"{_FILES[name]}; charset=utf-8"}
        return await self._pages.respond(request.url.path, lambda: _read_file(name), headers, request)


def _read_file(name: str) -> bytes:
    templates: Any = page_templates()
    source, _, _ = templates.loader.get_source(templates, name)
    return source.encode()


def _render(name: str, sections: list[dict[str, Any]] | None = None, **values: Any) -> bytes:
    """Return a page; with the list of all routes, which is most of its cost, unless another list is given."""
    sections = _sections() if sections is None else sections
    template = page_templates().get_template(name)
    return template.render(version=__version__, sections=sections, operation_id=openapi.operation_id, **values).encode()


def _sections() -> list[dict[str, Any]]:
    titles = operation_titles()
    sections: dict[str, list[dict[str, str]]] = {}
    for row in ROUTES:
        sections.setdefault(row.section, []).append(
            {
                "id": openapi.operation_id(row),
                "method": row.method,
                "path": row.path,
                "title": titles[row.name],
                "summary": openapi.endpoint_texts(row)[0],
            }
        )
    return [{"name": name, "rows": rows} for name, rows in sections.items()]


def _similar_operations(operation: str) -> list[RouteRow]:
    """Return routes whose ids have most words in common with one that does not exist, the most similar first."""
    words = set(operation.lower().split("-"))
    found = [(len(words & own) / len(words | own), row) for own, row in _words_of_operations()]
    found.sort(key=lambda each: -each[0])
    return [row for likeness, row in found[:MAX_SIMILAR] if likeness >= MIN_LIKENESS]


@cache
def _words_of_operations() -> list[tuple[set[str], RouteRow]]:
    return [(set(openapi.operation_id(row).split("-")), row) for row in ROUTES]


def _make_operation(row: RouteRow, server: str, limit: str) -> bytes:
    summary, description = openapi.endpoint_texts(row)
    schema = row.response_schema
    is_file = schema is not None and openapi.is_file(schema)
    request = make_sample_request(row, server)
    values: dict[str, Any] = {
        "row": row,
        "path": openapi.operation_id(row),
        "limit": limit,
        "title": operation_titles()[row.name],
        "summary": summary,
        "paragraphs": [" ".join(paragraph.split()) for paragraph in description.split("\n\n") if paragraph],
        "headers": [openapi.SCHEMES[name] for choice in openapi.SECURITY[row.credential] for name in choice],
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
    return _render("operation.html", **values)


def _field_rows(fields: tuple[RequestField, ...]) -> list[dict[str, Any]]:
    return [
        {
            "name": field.name,
            "type": field.type.value,
            "required": field.required,
            "meaning": field.meaning,
            "example": field.example,
            "schema": _format_json(schema) if (schema := openapi.json_schema(field)) else "",
        }
        for field in fields
    ]


def _format_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
