"""The admin API's operations on queues, dead letters and messages."""

import msgspec

from waypost.admin.operation import AdminOperations
from waypost.admin.provisioning import AdminContext
from waypost.admin.traces import TracedMessage
from waypost.domain.errors import resource_not_found
from waypost.store.console.trace import message_counts, message_trace
from waypost.store.queue.depths import read_dead_letters, remove_dead_letter, reopen_dead_letter
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import count_jobs_by_state

operation = AdminOperations()


class ListedDeadLetter(msgspec.Struct):
    """A job that failed by defects of ours."""

    position: int
    queue: str
    ref: str
    defects: int
    note: str | None


class DeadLetters(msgspec.Struct):
    """All dead letters."""

    dead_letters: list[ListedDeadLetter]


class RetriedDeadLetter(msgspec.Struct):
    """The position of the dead letter."""

    retried: int


class DeletedDeadLetter(msgspec.Struct):
    """The position of the dead letter."""

    deleted: int


class MessageCounts(msgspec.Struct):
    """The number of messages by state."""

    messages: dict[str, int]


@operation("GET", "/admin/queues")
async def list_queues(context: AdminContext) -> dict[str, dict[str, int]]:
    """Return the number of jobs in each queue by state."""
    read = context.database.read
    depths = {queue_name: await read(count_jobs_by_state, queue_name) for queue_name in QueueName}
    return {
        queue_name.name.lower(): {state.name.lower(): count for state, count in depth.items()}
        for queue_name, depth in depths.items()
    }


@operation("GET", "/admin/dead-letters")
async def list_dead_letters(context: AdminContext) -> DeadLetters:
    """Return the dead letters."""
    rows = await context.database.read(read_dead_letters)
    return DeadLetters(
        [
            ListedDeadLetter(row.position, QueueName(row.queue).name.lower(), row.ref, row.defects, row.note)
            for row in rows
        ]
    )


@operation("POST", "/admin/dead-letters/{position}/retry")
async def retry_dead_letter(context: AdminContext, position: int) -> RetriedDeadLetter:
    """Put a dead letter back into its queue, to be retried."""
    if not await context.database.write(reopen_dead_letter, position, context.clock.now_ms()):
        raise resource_not_found("dead letter", "position", position)
    return RetriedDeadLetter(position)


@operation("DELETE", "/admin/dead-letters/{position}")
async def delete_dead_letter(context: AdminContext, position: int) -> DeletedDeadLetter:
    """Delete a dead letter; its work is not done."""
    if not await context.database.write(remove_dead_letter, position, context.clock.now_ms()):
        raise resource_not_found("dead letter", "position", position)
    return DeletedDeadLetter(position)


@operation("GET", "/admin/messages")
async def count_messages(context: AdminContext) -> MessageCounts:
    """Return the number of messages by state."""
    return MessageCounts(await context.database.read(message_counts))


@operation("GET", "/admin/messages/{message_id}")
async def show_message(context: AdminContext, message_id: str) -> TracedMessage:
    """Return one message's states, callbacks and attempts, without its text."""
    trace = await context.database.read(message_trace, message_id)
    if trace is None:
        raise resource_not_found("message", "message_id", message_id)
    return TracedMessage(**trace)
