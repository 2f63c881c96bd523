"""Forms that are drawn from the control API's declarations, parsing of their fields, and calls of the control API."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.page_request import PageRequest
from waypost.console.route import Endpoint, RouteKind
from waypost.console.web.errors import InvalidPageRequest, NotFound

_MAX_DIGITS: Final = 18


def parse_seconds_ms(text: str, name: str) -> int | None:
    """Return seconds, with or without a fraction, in ms; None for an empty field.

    Raises:
        InvalidPageRequest: the text is not a number.
    """
    if not text.strip():
        return None
    seconds = parse_fraction(text)
    if isinstance(seconds, str):
        raise InvalidPageRequest(f"{seconds[:40]!r} is not a number of seconds.", f"Enter a number for {name}.")
    return round(seconds * 1000)


def parse_whole(text: str) -> int | str:
    """Return a whole number; other text unchanged, so that the control API rejects and explains it."""
    text = text.strip()
    is_whole = text.lstrip("-").isascii() and text.removeprefix("-").isdecimal()
    return int(text) if is_whole and len(text) <= _MAX_DIGITS else text


def parse_fraction(text: str) -> float | str:
    """Return a number with a fraction; other text unchanged, as `parse_whole` does."""
    text = text.strip().replace(",", ".")
    head, point, tail = text.partition(".")
    is_number = text.isascii() and (head or "0").isdecimal() and (not point or tail.isdecimal())
    return float(text) if is_number and text and len(text) <= _MAX_DIGITS else text


Declaration = Mapping[str, Any]
"""A field of `GET /control/declarations`: `name`, `title`, `accepted`, `is_required`, and its JSON Schema."""


def field_kind(field: Declaration) -> str:
    """Return how a field is drawn: flag, choice, words (one per line), seconds, whole or text."""
    types = {option.get("type") for option in field.get("anyOf", [field])}
    if "enum" in field:
        return "choice"
    if "integer" in types and "string" not in types:
        return "seconds" if field["name"].endswith("_ms") else "whole"
    return {"boolean": "flag", "array": "words"}.get(field.get("type", ""), "text")


def format_fields(fields: Sequence[Declaration], values: Mapping[str, Any]) -> dict[str, str]:
    """Return values of the control API as texts of a form."""
    formats: dict[str, Callable[[Any], str]] = {
        "seconds": lambda value: f"{value / 1000:g}",
        "flag": lambda value: "on" if value else "",
        "words": "\n".join,
    }
    known = [(field["name"], formats.get(field_kind(field), str), values[field["name"]]) for field in fields]
    return {name: "" if value is None else text_of(value) for name, text_of, value in known}


def parse_fields(fields: Sequence[Declaration], typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a form as the control API accepts them; it rejects and explains invalid ones."""
    values: dict[str, Any] = {}
    for field in fields:
        text, kind = typed.get(field["name"], "").strip(), field_kind(field)
        match kind:
            case "flag":
                values[field["name"]] = text == "on"
            case "words":
                values[field["name"]] = [line.strip() for line in text.splitlines() if line.strip()]
            case _ if not text and not field["is_required"]:
                values[field["name"]] = None
            case "seconds":
                seconds = parse_fraction(text)
                values[field["name"]] = seconds if isinstance(seconds, str) else round(seconds * 1000)
            case _:
                values[field["name"]] = text if kind == "text" else parse_whole(text)
    return values


def explain_field(error: ApiResponseError) -> str:
    """Return an error of the control API, as it is shown at its field."""
    unit = " ms" if error.top_field.endswith("_ms") else ""
    return f"{error.rule[:1].upper()}{error.rule[1:]}. Accepted: {error.accepted}{unit}."


def require_simulator(kind: RouteKind, endpoint: Endpoint) -> Endpoint:
    """Return an endpoint that responds with 404 if there is no simulator; pages explain why."""

    async def check_simulator(request: PageRequest) -> Response:
        if request.services.apis.control is not None:
            return await endpoint(request)
        if kind is RouteKind.PAGE:
            return await request.page("simulator/none.html", 404)
        raise NotFound("This service has no simulator.")

    return check_simulator


async def simulator_now_ms(request: PageRequest) -> int:
    """Return the simulator's time; the service's if the simulator's clock cannot be advanced."""
    try:
        return (await request.control.get("/control/clock"))["now_ms"]
    except ApiResponseError as error:
        if error.status != 404:
            raise
        return request.now_ms()


async def render_tab(request: PageRequest, name: str, status: int = 200, **values: Any) -> Response:
    """Return one of the simulator pages."""
    return await request.page(f"simulator/{name}.html", status,
        is_dev=request.services.demo_partner_id is not None, **values,
    )  # fmt: skip
