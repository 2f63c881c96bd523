"""A request as it came, without what people write in it: for traces."""

import json
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import parse_qsl

SHOWN: Final = frozenset({  # members of a request that say where it goes and what it is, and never what it says
    "channel", "source", "destination", "src.name", "sandbox", "disablePreview", "encode", "type", "id",
    "messaging_product", "recipient_type", "to",
})  # fmt: skip


def redacted(request: str) -> Any:
    """A request with the shape it had, and in place of what people write how long it was.

    Args:
        request: a form or a JSON object as it came; what is neither is a number of characters.
    """
    if request.lstrip().startswith("{"):
        return _shape(_json(request))
    try:
        fields = parse_qsl(request, keep_blank_values=True, strict_parsing=True, max_num_fields=200)
    except ValueError:
        return _length(request)
    return {name: _shape(_json(value), name) for name, value in fields}


def _json(text: str) -> Any:
    try:
        return json.loads(text) if text[:1] in ("{", "[") else text
    except (ValueError, RecursionError):
        return text


def _shape(value: Any, name: str = "") -> Any:
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        return {inner: _shape(one, inner) for inner, one in members.items()}
    if isinstance(value, list):
        return [_shape(one) for one in cast("list[Any]", value)]
    return value if name in SHOWN or not isinstance(value, str) else _length(value)


def _length(text: str) -> str:
    return f"({len(text)} characters)"
