"""Claims webhook items, applies them to the state, and enqueues the callbacks they cause."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from waypost.base.clock import Clock
from waypost.base.ids import Ids, is_uuid
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.tracing import TraceStep, tracer
from waypost.domain.app import OperatorAccount
from waypost.domain.event import (
    AccountEvent,
    CategoryEvent,
    Event,
    InboundEvent,
    OtherStatusEvent,
    PaymentEvent,
    QualityEvent,
    ReviewEvent,
    StatusEvent,
    UnknownEvent,
)
from waypost.domain.message import MessageState
from waypost.events.accounts import apply_account_event, forward_template_event
from waypost.events.inbound import apply_inbound_message
from waypost.events.lookup import EventContext, EventLookup
from waypost.events.statuses import apply_payment, apply_status, apply_unknown_status
from waypost.events.templates import apply_template_event
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.operators.contract import Operator, Operators
from waypost.queue.job import Job
from waypost.queue.queue import JobQueue
from waypost.queue.worker import PreparedJobs, failing_work
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.queue.inbound_webhooks import CACHED_ITEMS, items_by_ids
from waypost.store.queue.jobs import complete_jobs


@dataclass(frozen=True, slots=True)
class _ReadItem:
    position: int
    item_id: int
    operator_account_id: str
    event: Event


class EventIngester:
    """The work of the queue `webhooks`.

    Args:
        public_url: where receivers fetch media, without a slash at its end.
        hold_ms: how long after a message was accepted its events are delayed.
    """

    def __init__(
        self,
        *,
        database: Database,
        queue: JobQueue,
        directory: Directory,
        operators: Operators,
        clock: Clock,
        ids: Ids,
        public_url: str,
        hold_ms: int,
    ) -> None:
        self._database = database
        self._queue = queue
        self._directory = directory
        self._operators = operators
        self._clock = clock
        self._ids = ids
        self._public_url = public_url
        self._hold_ms = hold_ms
        self._log = log("events")
        self.counts: Counter[str] = Counter()
        """Events that have been applied, by kind; statuses by state."""

    async def prepare(self, jobs: Sequence[Job]) -> PreparedJobs:
        """Apply a batch: at most one read, one write; nothing of it waits for an outside system.

        The jobs returned are those on which our own code failed.
        """
        ids = {int(job.subject.id) for job in jobs}
        rows = self._database.cache.pop_rows(CACHED_ITEMS, ids)
        if len(rows) < len(ids):
            rows |= await self._database.read(items_by_ids, ids - rows.keys())
        accounts = {
            account_id: await self._directory.operator_account(account_id)
            for account_id in {job.subject.account_id for job in jobs}
        }
        items: list[tuple[Job, _ReadItem]] = []
        failed: list[tuple[Job, BaseException]] = []
        for job in jobs:
            item_id = int(job.subject.id)
            try:
                event = self._adapter(accounts, job).read(rows[item_id].item)
            except Exception as error:  # noqa: BLE001  a defect belongs to its job
                failed.append((job, error))
            else:
                items.append((job, _ReadItem(job.position, item_id, job.subject.account_id, event)))
        not_completed = await self._queue.complete_all(items, self._apply)
        self._count(items, {id(job) for job, _ in not_completed})
        failed += not_completed
        return [(job, failing_work(error)) for job, error in failed]

    def _adapter(self, accounts: Mapping[str, OperatorAccount | None], job: Job) -> Operator:
        account = accounts[job.subject.account_id]
        if account is None:
            raise LookupError(f"operator account {job.subject.account_id} is not there any more")
        return self._operators.adapter(account)

    def _count(self, items: Sequence[tuple[Job, _ReadItem]], not_completed: set[int]) -> None:
        for job, item in items:
            if id(job) in not_completed:
                continue
            event = item.event
            self.counts[_event_label(event)] += 1
            if not isinstance(event, StatusEvent):
                continue
            failed = event.state is MessageState.FAILED
            if (tracer.is_enabled or failed) and is_uuid(event.message_id or ""):
                tracer.record(
                    TraceStep.STATUS,
                    event.message_id or "",
                    failed=failed,
                    position=job.position,
                    state=event.state.value,
                )

    def _apply(self, connection: Connection, items: Sequence[_ReadItem]) -> list[None]:
        """Apply events: states, trace, callbacks and completed jobs in one transaction."""
        at_ms = self._clock.now_ms()
        # First: an item that another process has applied, since it works this shard now, is not applied again.
        completed = complete_jobs(connection, [item.position for item in items])
        results = [None] * len(items)
        items = [item for item in items if item.position in completed]
        recorder = StateChangeRecorder(connection, self._ids, at_ms, hold_ms=self._hold_ms)
        lookup = EventLookup(connection, (item.event for item in items))
        context = EventContext(connection, recorder, lookup, self._ids, at_ms, self._public_url)
        for item in items:
            account_id = item.operator_account_id
            match item.event:
                case StatusEvent() as event:
                    apply_status(context, account_id, event)
                case InboundEvent() as event:
                    apply_inbound_message(context, account_id, item.item_id, event)
                case ReviewEvent() | QualityEvent() | CategoryEvent() as event:
                    find_app = partial(lookup.find_app_of_account, account_id)
                    if not apply_template_event(connection, recorder, find_app, event, at_ms):
                        forward_template_event(context, account_id, event)
                case AccountEvent() as event:
                    apply_account_event(context, account_id, event)
                case PaymentEvent() as event:
                    apply_payment(context, account_id, event)
                case OtherStatusEvent() as event:
                    apply_unknown_status(context, account_id, event)
                case UnknownEvent(description=what):
                    self._log.info("an event that names no app of ours was stored", what=what)
        recorder.write()
        return results


def _event_label(event: Event) -> str:
    """Return one of few labels for every event that an operator can send."""
    if isinstance(event, StatusEvent):
        return event.state.value
    return type(event).__name__.removesuffix("Event").lower()
