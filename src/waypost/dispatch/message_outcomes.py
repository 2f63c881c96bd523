"""Records the outcome of each message."""

from collections.abc import Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple

from sqlalchemy import Connection

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.domain.app import App
from waypost.domain.lifecycle import MESSAGE_TRANSITIONS
from waypost.domain.message import MessageState
from waypost.domain.outcome import INVALID_RESPONSE_CODE, OperatorAccepted, OperatorRejected, OutcomeUncertain
from waypost.domain.phone_number import parse_group_id
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.store.directory import Directory
from waypost.store.messages.messages import MessageRow, messages_by_ids
from waypost.store.messages.recipients import (
    find_recipients,
    get_or_create_recipient,
    get_or_create_recipients,
    link_number,
)
from waypost.store.queue.job_subjects import JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import NewJob, complete_jobs, enqueue_jobs

MAY_HAVE_ARRIVED: Final = (
    "The connection to the operator broke while this message was being sent, and no status has come "
    "since. It may have arrived; it is not sent again on a guess."
)


class MessageOutcome(NamedTuple):
    """The outcome of a message; None where there was nothing left to send."""

    position: int
    message_id: str
    app: App
    outcome: OperatorAccepted | OperatorRejected | OutcomeUncertain | None


class UnconfirmedTimeout(NamedTuple):
    """A message that is still uncertain after the time to wait for a status."""

    position: int
    message_id: str
    app: App | None  # None: the message is not there any more


def _find_recipients(
    connection: Connection, outcomes: Sequence[MessageOutcome], rows: Mapping[str, MessageRow], merged: dict[int, int]
) -> dict[tuple[str, str], int]:
    """Return the recipients of accepted messages, by app and the operator's name of them, or the message's.

    The operator may give the number of a recipient that the message names by a business-scoped id, or a WhatsApp id
    that differs from the number: then both lead to one recipient.
    """
    identities: set[tuple[str, int, str]] = set()
    by_both: dict[tuple[str, str], int] = {}
    linked: dict[tuple[str, str], tuple[App, str]] = {}
    for result in outcomes:
        row = rows.get(result.message_id)
        if not isinstance(result.outcome, OperatorAccepted) or row is None or parse_group_id(row.destination):
            continue
        number = result.outcome.recipient
        if number and not row.destination.isdecimal():
            by_both[result.app.id, number] = get_or_create_recipient(
                connection, result.app, number, row.destination, merged=merged
            )
        else:
            identities.add((result.app.id, result.app.partner_id, number or row.destination))
            if number and number != row.destination and number.isdecimal():
                linked[result.app.id, row.destination] = result.app, number
    recipients = get_or_create_recipients(connection, identities) | by_both
    if linked:
        known = find_recipients(connection, linked.keys())
        for key, (app, number) in sorted(linked.items(), key=itemgetter(0)):
            recipient_id = recipients[app.id, number]
            if known.get(key) != recipient_id:
                link_number(connection, app, merged.get(recipient_id, recipient_id), key[1], merged)
    return recipients


class MessageOutcomes:
    """Writes outcomes: state, callbacks and the completed job in one transaction.

    Args:
        uncertain_for_ms: how long an uncertain message waits for a status that carries our id.
        hold_ms: how long after a message was accepted its events are delayed.
    """

    def __init__(self, clock: Clock, ids: Ids, *, uncertain_for_ms: int, hold_ms: int = 0) -> None:
        self._clock = clock
        self._ids = ids
        self._uncertain_for_ms = uncertain_for_ms
        self._hold_ms = hold_ms

    def record(self, connection: Connection, outcomes: Sequence[MessageOutcome]) -> list[None]:
        """Move messages by their outcomes.

        The stage that first learns that the operator has a message records it: where a status came before
        the response to the send, the message has moved on already and there is nothing left to emit.
        """
        at_ms = self._clock.now_ms()
        recorder = StateChangeRecorder(connection, self._ids, at_ms, hold_ms=self._hold_ms)
        rows = messages_by_ids(connection, set(map(attrgetter("message_id"), outcomes)))
        recorder.read_subscriptions(set(map(attrgetter("app.id"), outcomes)))
        recipients = _find_recipients(connection, outcomes, rows, recorder.merged_recipients)
        unconfirmed: list[NewJob] = []
        for result in outcomes:
            row = rows.get(result.message_id)
            if row is None or result.outcome is None:
                continue
            state, _ = recorder.state_of(row)
            match result.outcome:
                case OperatorAccepted(operator_id=operator_id, recipient=recipient):
                    if MessageState.ENQUEUED in MESSAGE_TRANSITIONS[state]:
                        recorder.change_message_state(
                            row,
                            result.app,
                            [MessageState.ENQUEUED],
                            recipient_id=recipients.get((result.app.id, recipient or row.destination)),
                            operator_message_id=operator_id,
                        )
                case OperatorRejected(code=code, text=text):
                    if state in (MessageState.ACCEPTED, MessageState.UNCERTAIN):
                        _fail_message(recorder, connection, row, result.app, code, text, unconfirmed=False)
                case OutcomeUncertain(text=text):
                    if MessageState.UNCERTAIN in MESSAGE_TRANSITIONS[state]:
                        recorder.change_message_state(
                            row,
                            result.app,
                            [MessageState.UNCERTAIN],
                            recipient_id=row.recipient_id,
                            operator_message_id=None,
                            reason=text,
                        )
                        subject = JobSubject(SubjectKind.UNCONFIRMED_MESSAGE, row.id)
                        due_ms = at_ms + self._uncertain_for_ms
                        unconfirmed.append(NewJob(QueueName.UNCONFIRMED, row.source, row.id, subject, due_ms))
        recorder.write()
        enqueue_jobs(connection, unconfirmed)
        complete_jobs(connection, list(map(attrgetter("position"), outcomes)))
        return [None] * len(outcomes)

    def end_unconfirmed(self, connection: Connection, unconfirmed: Sequence[UnconfirmedTimeout]) -> list[None]:
        """Fail the messages that are still uncertain; a status that comes later still moves them."""
        recorder = StateChangeRecorder(connection, self._ids, self._clock.now_ms(), hold_ms=self._hold_ms)
        rows = messages_by_ids(connection, {timeout.message_id for timeout in unconfirmed})
        for timeout in unconfirmed:
            row = rows.get(timeout.message_id)
            app = timeout.app
            if row is not None and app is not None and recorder.state_of(row)[0] is MessageState.UNCERTAIN:
                _fail_message(recorder, connection, row, app, INVALID_RESPONSE_CODE, MAY_HAVE_ARRIVED, unconfirmed=True)
        recorder.write()
        complete_jobs(connection, [timeout.position for timeout in unconfirmed])
        return [None] * len(unconfirmed)


def _fail_message(
    recorder: StateChangeRecorder,
    connection: Connection,
    row: MessageRow,
    app: App,
    code: int,
    reason: str,
    *,
    unconfirmed: bool,
) -> None:
    recipient_id = row.recipient_id
    if not recipient_id and not parse_group_id(row.destination):  # a group is not a recipient
        recipient_id = get_or_create_recipient(connection, app, row.destination)
    recorder.change_message_state(
        row,
        app,
        [MessageState.FAILED],
        recipient_id=recipient_id,
        operator_message_id=None,
        code=code,
        reason=reason,
        unconfirmed=unconfirmed,
    )


async def app_of_message(directory: Directory, row: MessageRow) -> App:
    """Return the message's app. Raises LookupError: it has none."""
    app = await directory.app(row.app_id)
    if app is None:
        raise LookupError(f"message {row.id} has no app")
    return app
