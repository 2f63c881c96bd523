"""Ids of operations, as in the OpenAPI document and the API reference; and filters of requests by status."""

import re
from typing import Annotated, Final

from msgspec import Meta


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
