"""The extension of the scope by which an application reaches the connection of its request."""

from collections.abc import Mapping
from typing import Any, Final

CONNECTION: Final = "waypost.connection"
_NONE: Final[Mapping[str, Any]] = {}


def mark_authenticated(scope: Mapping[str, Any]) -> None:
    """Note that a request has a valid credential: its connection keeps its place when there is no room for others.

    It is not paced unless `mark_rejected` follows.
    """
    connection: Any = (scope.get("extensions") or _NONE).get(CONNECTION)  # None: a request from this process
    if connection is not None:
        connection.is_carried_out = True
        if not connection.is_authenticated:
            connection.mark_authenticated()


def mark_rejected(scope: Mapping[str, Any]) -> None:
    """Note that a request with a valid credential ends in an error: it is paced like one without."""
    connection: Any = (scope.get("extensions") or _NONE).get(CONNECTION)
    if connection is not None:
        connection.is_carried_out = False
