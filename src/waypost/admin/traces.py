"""The admin API's operations on a message's trace, by our id or by the operator's."""

from typing import Any, Final

from waypost.admin.operation import AdminOperations
from waypost.admin.provisioning import AdminContext
from waypost.base.ids import is_uuid
from waypost.domain.errors import resource_not_found
from waypost.store.console.trace import full_message_trace
from waypost.wire.redaction import TextVisibility, redact_callback, redact_request

NOT_RETAINED: Final = "no longer retained"
"""The value of a request whose content was deleted at the end of its retention."""

operation = AdminOperations()


@operation("GET", "/admin/trace/{message_id:path}")
async def show_trace(context: AdminContext, message_id: str) -> Any:
    """Return a message's request, job, events, callbacks and every attempt."""
    return await _trace(context, message_id, text=context.show_text)


@operation("POST", "/admin/trace/{message_id:path}/reveal")
async def reveal_trace(context: AdminContext, message_id: str) -> Any:
    """Return the same trace with the message's text; one-time codes stay hidden."""
    return await _trace(context, message_id, text=True)


async def _trace(context: AdminContext, message_id: str, *, text: bool) -> Any:
    trace = await context.database.read(full_message_trace, message_id)
    if trace is None:
        raise resource_not_found("message", "message_id", message_id)
    own_id = trace["id"]
    trace_id = own_id.replace("-", "") if is_uuid(own_id) else None
    request = (
        redact_request(trace["request"], TextVisibility(text, trace["holds_code"]))
        if trace["content_retained"]
        else NOT_RETAINED
    )
    callbacks = [redact_callback(callback, text=text) for callback in trace["callbacks"]]
    return {**trace, "request": request, "trace_id": trace_id, "callbacks": callbacks}
