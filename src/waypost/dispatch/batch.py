"""The subjects of the jobs of one claim, read together."""

from dataclasses import dataclass, field

from sqlalchemy import Connection

from waypost.base.ids import is_uuid
from waypost.dispatch.uploads import UploadFailure
from waypost.domain.app import AppRoute
from waypost.domain.message import MessageState, reply_target_id
from waypost.domain.outcome import OperatorUnavailable
from waypost.domain.templates.template import Template
from waypost.store.encoding import decode_content
from waypost.store.media.media import KnownMediaCopies
from waypost.store.messages.messages import MessageRow, messages_by_ids
from waypost.store.templates.templates import templates_by_ids


@dataclass(frozen=True, slots=True)
class OutboundBatch:
    """The subjects of the jobs of one claim."""

    messages: dict[str, MessageRow]
    templates: dict[str, Template]
    replied_to: dict[tuple[int, str], str]  # the operator's id by partner and our id of the message
    routes: dict[str, AppRoute] = field(default_factory=dict[str, AppRoute])  # by app
    media: dict[int, KnownMediaCopies] = field(default_factory=dict[int, KnownMediaCopies])  # by position
    failures: dict[int, UploadFailure] = field(default_factory=dict[int, UploadFailure])
    """By position, the failure of the uploads that the job has waited for, where they failed."""
    account_pauses: dict[int, OperatorUnavailable] = field(default_factory=dict[int, OperatorUnavailable])
    """By position, jobs whose account is paused, with the operator's outcome that caused it."""
    lost_positions: set[int] = field(default_factory=set[int])
    """Positions of jobs that another process works by now."""


def is_unsent(row: MessageRow | None) -> bool:
    """True if a message's row exists and nothing has been done with it yet."""
    return row is not None and row.state == MessageState.ACCEPTED


def read_outbound_batch(connection: Connection, ids: set[str], known: dict[str, MessageRow]) -> OutboundBatch:
    """Read the subjects of jobs.

    Args:
        connection: any.
        ids: of messages and templates, as the jobs name them.
        known: rows of messages that need not be read.
    """
    messages = {**known, **messages_by_ids(connection, ids - known.keys())}
    contents = {row.id: decode_content(row.kind, row.content) for row in messages.values() if row.content}
    replied_to = {
        reply_to for content in contents.values() if (reply_to := reply_target_id(content)) and is_uuid(reply_to)
    }
    templates = {row.template_id for row in messages.values() if row.template_id}
    return OutboundBatch(
        messages,
        templates_by_ids(connection, templates | (ids - messages.keys())),
        {
            (row.partner_id, row.id): row.operator_message_id
            for row in messages_by_ids(connection, replied_to).values()
            if row.operator_message_id
        },
    )
