"""One message's whole way, for whoever runs the service."""

from typing import Any, Final

from starlette.requests import Request

from waypost.admin.actions import Office
from waypost.admin.reading import Nothing, read_body
from waypost.base.ids import is_uuid
from waypost.domain.refusals import Reason, Refused
from waypost.store.trace import whole_way
from waypost.wire.redaction import Sight, shown_callback, shown_request

NOT_KEPT: Final = "no longer kept"
"""Of a request whose words retention has cleared."""


class Traces:
    """The calls `GET /admin/trace/{message_id}` and `POST /admin/trace/{message_id}/reveal`."""

    def __init__(self, office: Office) -> None:
        self._office = office

    async def show(self, request: Request) -> Any:
        """A message by our id or by the operator's: request, entry, news, callbacks and every attempt."""
        return await self._shown(request, text=self._office.show_text)

    async def reveal(self, request: Request) -> Any:
        """The same with its text; one-time codes stay hidden."""
        await read_body(request, Nothing)
        return await self._shown(request, text=True)

    async def _shown(self, request: Request, *, text: bool) -> Any:
        asked = str(request.path_params["message_id"])
        found = await self._office.database.read(whole_way, asked)
        if found is None:
            raise Refused(Reason.NOT_FOUND, "There is no message of this id, ours or the operator's.")
        message_id = found["id"]
        trace_id = message_id.replace("-", "") if is_uuid(message_id) else None
        sight = Sight(text, found["holds_code"])
        came = shown_request(found["request"], sight) if found["words_kept"] else NOT_KEPT
        callbacks = [shown_callback(one, text=text) for one in found["callbacks"]]
        return {**found, "request": came, "trace_id": trace_id, "callbacks": callbacks}
