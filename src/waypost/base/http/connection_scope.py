"""The extension of the scope by which an application reaches the connection of its request."""

from collections.abc import Mapping
from typing import Any, Final

CONNECTION: Final = "waypost.connection"


def mark_authenticated(scope: Mapping[str, Any]) -> None:
    """Note that a request has a valid credential: its connection keeps its place when there is no room for others."""
    extensions = scope.get("extensions")
    connection = None if extensions is None else extensions.get(CONNECTION)  # none for a request from this process
    if connection is not None and not connection.is_authenticated:
        connection.mark_authenticated()
