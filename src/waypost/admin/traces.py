"""The admin API's operations on one message's trace, by our id or by the operator's."""

from typing import Any, Final

from waypost.admin.provisioning import AdminContext
from waypost.base.ids import is_uuid
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.console.trace import whole_way
from waypost.wire.redaction import Sight, shown_callback, shown_request

NOT_KEPT: Final = "no longer kept"
"""Of a request whose words retention has cleared."""


async def show_trace(context: AdminContext, message_id: str) -> Any:
    """Return request, entry, news, callbacks and every attempt."""
    return await _trace(context, message_id, text=context.show_text)


async def reveal_trace(context: AdminContext, message_id: str) -> Any:
    """Return the same with its text; one-time codes stay hidden."""
    return await _trace(context, message_id, text=True)


async def _trace(context: AdminContext, message_id: str, *, text: bool) -> Any:
    found = await context.database.read(whole_way, message_id)
    if found is None:
        words = "There is no message of this id, ours or the operator's."
        raise ApiError(ErrorCode.NOT_FOUND, words, field="message_id")
    own_id = found["id"]
    trace_id = own_id.replace("-", "") if is_uuid(own_id) else None
    came = shown_request(found["request"], Sight(text, found["holds_code"])) if found["words_kept"] else NOT_KEPT
    callbacks = [shown_callback(one, text=text) for one in found["callbacks"]]
    return {**found, "request": came, "trace_id": trace_id, "callbacks": callbacks}
