"""The extension of the scope by which an application reaches the connection of its request."""

from collections.abc import Mapping
from typing import Any, Final

CONNECTION: Final = "waypost.connection"


def mark_authenticated(scope: Mapping[str, Any]) -> None:
    """Note that a request has a valid credential: its connection keeps its place when there is no room for others.

    It is not paced unless `mark_rejected` follows.
    """
    connection = _connection_of(scope)
    if connection is not None:
        connection.is_carried_out = True
        if not connection.is_authenticated:
            connection.mark_authenticated()


def mark_rejected(scope: Mapping[str, Any]) -> None:
    """Note that a request with a valid credential ends in an error: it is paced like one without."""
    connection = _connection_of(scope)
    if connection is not None:
        connection.is_carried_out = False


def _connection_of(scope: Mapping[str, Any]) -> Any:
    """Return the connection of a request; None for a request from this process."""
    extensions = scope.get("extensions")
    return None if extensions is None else extensions.get(CONNECTION)
