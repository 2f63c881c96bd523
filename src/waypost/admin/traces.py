"""One message's whole way, for whoever runs the service."""

import json
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import parse_qsl

from starlette.requests import Request

from waypost.base.ids import is_uuid
from waypost.domain.refusals import Reason, Refused
from waypost.store.database import Database
from waypost.store.trace import whole_way

SHOWN: Final = frozenset({  # members of a request that say where it goes and what it is, and never what it says
    "channel", "source", "destination", "src.name", "sandbox", "disablePreview", "encode", "type", "id",
    "messaging_product", "recipient_type", "to",
})  # fmt: skip

NOT_KEPT: Final = "no longer kept"
"""Of a request whose words retention has cleared."""


class Traces:
    """The call `GET /admin/trace/{message_id}`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def show(self, request: Request) -> Any:
        """A message by our id or by the operator's: request, entry, news, callbacks and every attempt."""
        asked = str(request.path_params["message_id"])
        found = await self._database.read(whole_way, asked)
        if found is None:
            raise Refused(
                Reason.NOT_FOUND, "There is no message of this id, ours or the operator's."
            )
        message_id = found["id"]
        trace_id = message_id.replace("-", "") if is_uuid(message_id) else None
        came = redacted(found["request"]) if found["words_kept"] else NOT_KEPT
        return {**found, "request": came, "trace_id": trace_id}


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
