"""One message's whole way, for whoever runs the service."""

from typing import Any, Final

from starlette.requests import Request

from waypost.base.ids import is_uuid
from waypost.domain.refusals import Reason, Refused
from waypost.store.database import Database
from waypost.store.trace import whole_way
from waypost.wire.redaction import redacted

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
