"""Ids of operations, as in the OpenAPI document; numbers of queries, and filters of requests by status."""

import re
from collections.abc import Callable
from typing import Annotated, Final

from msgspec import Meta

from waypost.domain.errors import invalid_field

QueryReader = Callable[[str], str | None]
"""Returns a parameter of the query, or None."""


def read_query_number(query: QueryReader, name: str, *, minimum: int = 0, maximum: int) -> int | None:
    """Return a whole number in the query; None where it is missing.

    Raises:
        ApiError: it is none, or out of range.
    """
    text = (query(name) or "").strip()
    if not text:
        return None
    if text.isascii() and text.isdecimal() and len(text) < 20 and minimum <= int(text) <= maximum:
        return int(text)
    raise invalid_field(name, f"a whole number from {minimum} to {maximum}")


def make_operation_id(route: str) -> str:
    """Return the id of the route with this method and path, such as `post-partner-account-login`."""
    method, _, path = route.partition(" ")
    name = re.sub(r"[^A-Za-z0-9]+", "-", path).strip("-")
    return f"{method.lower()}-{name}"


ACCEPTED_STATUSES: Final = "2xx, 3xx, 4xx, 5xx, or one status such as 404"
STATUS_PATTERN: Final = "^[2-5](xx|[0-9][0-9])$"
StatusFilter = Annotated[
    str,
    Meta(
        pattern=STATUS_PATTERN,
        description="Class of the response's status, such as 4xx, or one status, such as 404.",
        extra={"accepted": ACCEPTED_STATUSES},
    ),
]


def is_status_filter(text: str) -> bool:
    """True if a text is such a filter."""
    return re.fullmatch(STATUS_PATTERN, text) is not None


def statuses_of(status_filter: str) -> tuple[int, int]:
    """Return the lowest and the highest status that a valid filter lets through."""
    return int(status_filter.replace("x", "0")), int(status_filter.replace("x", "9"))
