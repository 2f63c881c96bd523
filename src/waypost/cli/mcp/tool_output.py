"""The result of a tool."""

from typing import Any, NamedTuple


class ToolOutput(NamedTuple):
    """The result of a tool.

    Attributes:
        value: a JSON object.
        text: the same for people; empty: the JSON.
    """

    value: dict[str, Any]
    text: str = ""
