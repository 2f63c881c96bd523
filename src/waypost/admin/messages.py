"""The admin API's operations on messages and their traces, on queues and on dead letters."""

from typing import Any, Final

import msgspec

from waypost.admin.operation import AdminOperations
from waypost.admin.provisioning import AdminContext
from waypost.admin.waits import Wait, add_waits
from waypost.base.ids import is_uuid
from waypost.domain.errors import resource_not_found
from waypost.store.console.trace import full_message_trace, message_counts, message_trace
from waypost.store.queue.depths import read_dead_letters, remove_dead_letter, reopen_dead_letter
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import count_jobs_by_state
from waypost.wire.redaction import TextVisibility, redact_callback, redact_request
from waypost.wire.responses import response

NOT_RETAINED: Final = "no longer retained"
"""The value of a request whose content was deleted at the end of its retention."""

operation = AdminOperations()


class DeliveryAttempt(msgspec.Struct):
    """An attempt to deliver a callback."""

    id: int
    callback_id: str
    at_ms: int
    duration_ms: int
    status: int | None
    response_body: str
    error: str | None
    subscription_id: int | None
    request_headers: dict[str, str]
    response_headers: dict[str, str]
    kind: str


class WaitingJob(msgspec.Struct):
    """An unfinished job: its attempts, when it is due, why it was retried later, and why it is not worked now."""

    queue: str
    position: int
    attempt: int
    defects: int
    due_ms: int
    state: str
    note: str | None
    failing_since_ms: int | msgspec.UnsetType | None = msgspec.UNSET
    next_attempt_ms: int | msgspec.UnsetType | None = msgspec.UNSET
    wait: Wait | msgspec.UnsetType | None = msgspec.UNSET


class TracedCallback(msgspec.Struct, kw_only=True):
    """A callback with every attempt; in a trace with its job, alone with the failure of its receiver."""

    id: str
    partner_id: int
    app_id: str
    subscription_id: int
    subject: str
    sequence: int
    message_id: str | None
    event: str
    body: str
    created_on_ms: int
    ended_on_ms: int | None
    delivered: bool | None
    holds_code: bool
    attempts: list[DeliveryAttempt]
    failing_since_ms: int | msgspec.UnsetType | None = msgspec.UNSET
    next_attempt_ms: int | msgspec.UnsetType | None = msgspec.UNSET
    waiting: WaitingJob | msgspec.UnsetType | None = msgspec.UNSET
    wait: Wait | msgspec.UnsetType | None = msgspec.UNSET
    size_bytes: int | msgspec.UnsetType = msgspec.UNSET
    is_exact: bool | msgspec.UnsetType = msgspec.UNSET


class TraceEvent(msgspec.Struct):
    """An event of a message."""

    id: int | str
    message_id: str
    event: str
    at_ms: int
    applied: bool
    detail: str


class TracedMessage(msgspec.Struct, kw_only=True):
    """A message with its events and its callbacks with every attempt."""

    id: str
    partner_id: int
    app_id: str
    source: str
    destination: str
    recipient_id: int | None
    kind: str
    template_id: str | None
    sandbox: bool
    state: str
    unconfirmed: bool
    operator_message_id: str | None
    code: int | None
    reason: str | None
    accepted_on_ms: int
    changed_on_ms: int
    request_id: str | None
    content_retained: bool
    holds_code: bool
    events: list[TraceEvent]
    waiting: WaitingJob | None
    callbacks: list[TracedCallback]
    request: Any = msgspec.UNSET
    trace_id: str | msgspec.UnsetType | None = msgspec.UNSET


@operation("GET", "/admin/trace/{message_id:path}")
async def show_trace(context: AdminContext, message_id: str) -> TracedMessage:
    """Return a message's request, job, events, callbacks and every attempt."""
    return await _trace(context, message_id, text=context.show_text)


@operation("POST", "/admin/trace/{message_id:path}/reveal")
async def reveal_trace(context: AdminContext, message_id: str) -> TracedMessage:
    """Return the same trace with the message's text; one-time codes stay hidden."""
    return await _trace(context, message_id, text=True)


async def _trace(context: AdminContext, message_id: str, *, text: bool) -> TracedMessage:
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
    add_waits(context, trace)
    callbacks = [redact_callback(callback, text=text) for callback in trace["callbacks"]]
    trace.update(request=request, trace_id=trace_id, callbacks=callbacks)
    return TracedMessage(**trace)


class ListedDeadLetter(msgspec.Struct):
    """A job that failed by defects of ours."""

    position: int
    queue: str
    ref: str
    defects: int
    note: str | None


@operation("GET", "/admin/queues")
async def list_queues(context: AdminContext) -> dict[str, dict[str, int]]:
    """Return the number of jobs in each queue by state."""
    read = context.database.read
    depths = {queue_name: await read(count_jobs_by_state, queue_name) for queue_name in QueueName}
    return {
        queue_name.name.lower(): {state.name.lower(): count for state, count in depth.items()}
        for queue_name, depth in depths.items()
    }


@operation("GET", "/admin/dead-letters", response(dead_letters=list[ListedDeadLetter]))
async def list_dead_letters(context: AdminContext) -> dict[str, Any]:
    """Return the dead letters."""
    rows = await context.database.read(read_dead_letters)
    dead_letters = [
        ListedDeadLetter(row.position, QueueName(row.queue).name.lower(), row.ref, row.defects, row.note)
        for row in rows
    ]
    return {"dead_letters": dead_letters}


@operation("POST", "/admin/dead-letters/{position}/retry", response(retried=int))
async def retry_dead_letter(context: AdminContext, position: int) -> dict[str, Any]:
    """Put a dead letter back into its queue, to be retried."""
    if not await context.database.write(reopen_dead_letter, position, context.clock.now_ms()):
        raise resource_not_found("dead letter", "position", position)
    return {"retried": position}


@operation("DELETE", "/admin/dead-letters/{position}", response(deleted=int))
async def delete_dead_letter(context: AdminContext, position: int) -> dict[str, Any]:
    """Delete a dead letter; its work is not done."""
    if not await context.database.write(remove_dead_letter, position, context.clock.now_ms()):
        raise resource_not_found("dead letter", "position", position)
    return {"deleted": position}


@operation("GET", "/admin/messages", response(messages=dict[str, int]))
async def count_messages(context: AdminContext) -> dict[str, Any]:
    """Return the number of messages by state."""
    return {"messages": await context.database.read(message_counts)}


@operation("GET", "/admin/messages/{message_id}")
async def show_message(context: AdminContext, message_id: str) -> TracedMessage:
    """Return one message's states, callbacks and attempts, without its text."""
    trace = await context.database.read(message_trace, message_id)
    if trace is None:
        raise resource_not_found("message", "message_id", message_id)
    add_waits(context, trace)
    return TracedMessage(**trace)
