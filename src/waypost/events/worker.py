"""Applies webhook items to the state, and enqueues the callbacks they cause."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from sqlalchemy import Connection

from waypost.base.ids import is_uuid
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.tracing import TraceStep, tracer
from waypost.domain.app import App, OperatorAccount
from waypost.domain.event import (
    AccountEvent,
    CategoryEvent,
    Event,
    InboundEvent,
    InboundWebhook,
    OtherStatusEvent,
    PaymentEvent,
    QualityEvent,
    ReviewEvent,
    StatusEvent,
    UnknownEvent,
    WebhookItem,
    unreadable_body,
)
from waypost.domain.message import STATE_NAMES, MessageState
from waypost.events.accounts import apply_account_event, forward_template_event
from waypost.events.inbound import apply_inbound_message
from waypost.events.lookup import EventContext, EventLookup, IgnoredEvent, KnownNames, LearnedNames
from waypost.events.statuses import apply_other_status, apply_status, record_user_ids
from waypost.events.templates import apply_template_event, check_repeated_event
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.operators.contract import Operator
from waypost.queue.context import StageContext
from waypost.queue.job import Job, PermanentDefect
from waypost.queue.worker import JobWork, PreparedJobs, failing_work
from waypost.store.contract import StoreUnavailable
from waypost.store.messages.messages import MessageRow
from waypost.store.queue.inbound_webhooks import (
    CACHED_ITEMS,
    NewItem,
    busy_groups,
    items_by_ids,
    record_bodies,
    record_items,
    record_webhooks,
    take_items,
)
from waypost.store.queue.jobs import complete_jobs


class _ReadItem(NamedTuple):
    """An item with its event."""

    position: int  # of its job; 0 if it is applied in the transaction that stores it
    item_id: int  # of its row; 0 if it needs none
    operator_account_id: str
    event: Event


class _ReceivedWebhook(NamedTuple):
    """A webhook with the event of each item; None for an item that our own code cannot read."""

    webhook: InboundWebhook
    events: list[Event | None]


class _ReceivedItem(NamedTuple):
    """An item of a webhook that is being stored."""

    webhook: InboundWebhook
    item: WebhookItem
    event: Event | None
    is_queued: bool  # a job applies it later
    is_stored: bool  # it gets a row, by which a repetition is recognised and a job finds it


class EventIngester:
    """Applies the items of webhooks: in the transaction that stores them, or as the work of the queue `webhooks`.

    An item that cannot be read becomes a dead letter. One that our own code fails on becomes a job, as does one that
    follows such an item. So does every item of a webhook that cannot be applied as a whole: then each is tried alone.
    """

    def __init__(self, context: StageContext) -> None:
        self._context = context
        self._database, self._queue = context.database, context.queue
        self._known_names = KnownNames()
        self._changed_apps: set[str] = set()
        self._log = log("events")
        self.counts: Counter[str] = Counter()
        """Events that have been applied, by kind; statuses by state."""
        self.ignored: Counter[str] = Counter()
        """Events that concern nobody here, by reason; one that is applied again after a failed write counts again."""

    async def receive(self, account: OperatorAccount, webhook: InboundWebhook) -> None:
        """Store a webhook and apply its items; return once that is on disk."""
        received = _ReceivedWebhook(webhook, self._read_events(account, webhook))
        try:
            applied = await self._database.join(self._store_and_apply, received)
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  a defect belongs to an item, and the operator has done its part
            self._log.error("a webhook could not be applied; each of its items is tried alone", exc_info=error)
            await self._database.join(record_webhooks, webhook)
        else:
            for item in applied:
                self._count(item)
            self._announce_changed_apps()

    def _read_events(self, account: OperatorAccount, webhook: InboundWebhook) -> list[Event | None]:
        adapter = self._context.operators.adapter(account)
        events: list[Event | None] = []
        for item in webhook.items:
            event: Event | None = None
            try:
                if item.read_event is not None:
                    event = item.read_event()
                elif item.defect is None:
                    event = adapter.read(item.payload)
            except Exception as error:  # noqa: BLE001  a defect belongs to its job
                self._log.error("an item of a webhook could not be read", path=item.path, exc_info=error)
            events.append(event)
        return events

    def _store_and_apply(
        self, connection: Connection, received: Sequence[_ReceivedWebhook]
    ) -> list[Sequence[_ReadItem]]:
        """Store webhooks, and apply what does not have to wait for an earlier item; return what was applied of each."""
        record_bodies(connection, list(map(attrgetter("webhook"), received)))
        items = _classify_items(connection, received)
        ids_by_item: dict[int, int | None] = {}
        stored = [item for item in items if item.is_stored]
        if stored:
            ids = record_items(connection, [NewItem(item.webhook, item.item, item.is_queued) for item in stored])
            ids_by_item = dict(zip(map(id, stored), ids, strict=True))
        applied: dict[str, list[_ReadItem]] = {}
        for webhook, _ in received:
            applied[webhook.id] = []
        to_apply: list[_ReadItem] = []
        repeated: list[ReviewEvent | QualityEvent | CategoryEvent] = []
        for item in items:
            item_id = ids_by_item.get(id(item), 0)
            if item_id is None:  # the operator has sent it before
                if isinstance(item.event, ReviewEvent | QualityEvent | CategoryEvent):
                    repeated.append(item.event)
                continue
            if item.event is None or item.is_queued:
                continue
            webhook = item.webhook
            read_item = _ReadItem(0, item_id, webhook.operator_account_id, item.event)
            applied[webhook.id].append(read_item)
            to_apply.append(read_item)
        self._apply_events(connection, to_apply)
        for event in repeated:
            check_repeated_event(connection, event, self._context.clock.now_ms())
        return list(applied.values())

    async def prepare(self, jobs: Sequence[Job]) -> PreparedJobs:
        """Apply a batch: at most one read, one write; nothing of it waits for an outside system.

        The jobs returned are those on which our own code failed.
        """
        ids = {int(job.subject.id) for job in jobs}
        rows = self._database.cache.pop_rows(CACHED_ITEMS, ids)
        if len(rows) < len(ids):
            rows |= await self._database.read(items_by_ids, ids - rows.keys())
        accounts = {
            account_id: await self._context.directory.operator_account(account_id)
            for account_id in {job.subject.account_id for job in jobs}
        }
        items: list[tuple[Job, _ReadItem]] = []
        failed: list[tuple[Job, BaseException]] = []
        unreadable: list[tuple[Job, JobWork]] = []
        for job in jobs:
            item_id = int(job.subject.id)
            try:
                payload = rows[item_id].item
                body = unreadable_body(payload)
                if body is not None:
                    unreadable.append((job, partial(self._split_once_more, job, accounts, body)))
                    continue
                event = self._adapter(accounts, job).read(payload)
            except Exception as error:  # noqa: BLE001  a defect belongs to its job
                failed.append((job, error))
            else:
                items.append((job, _ReadItem(job.position, item_id, job.subject.account_id, event)))
        not_completed = await self._queue.complete_all(items, self._apply)
        lost = {id(job) for job, _ in not_completed}
        for job, item in items:
            if id(job) not in lost:
                self._count(item)
        self._announce_changed_apps()
        failed += not_completed
        return [*unreadable, *((job, failing_work(error)) for job, error in failed)]

    async def _split_once_more(self, job: Job, accounts: Mapping[str, OperatorAccount | None], body: bytes) -> None:
        """Replace an item that could not be read by the items in it, since a person has retried it.

        Raises:
            PermanentDefect: it still cannot be read.
        """
        adapter, account = self._adapter(accounts, job), accounts[job.subject.account_id]
        items = () if account is None else tuple(await asyncio.to_thread(adapter.split, account, body))
        defects = [item.defect for item in items if item.defect is not None]
        if defects:
            raise PermanentDefect(f"a part of a webhook still cannot be read: {defects[0]}")
        await self._queue.complete(job, self._replace_items, (job, items))

    def _replace_items(
        self, connection: Connection, replacements: Sequence[tuple[Job, Sequence[WebhookItem]]]
    ) -> list[None]:
        completed = complete_jobs(connection, [job.position for job, _ in replacements])
        held = [(job, items) for job, items in replacements if job.position in completed]
        webhook_ids = take_items(connection, {int(job.subject.id) for job, _ in held})
        for job, items in held:
            webhook_id, received_on_ms = webhook_ids[int(job.subject.id)]
            webhook = InboundWebhook(webhook_id, job.subject.account_id, received_on_ms, b"", tuple(items))
            record_items(connection, [NewItem(webhook, item, is_queued=True) for item in items])
        return [None] * len(replacements)

    def _adapter(self, accounts: Mapping[str, OperatorAccount | None], job: Job) -> Operator:
        account = accounts[job.subject.account_id]
        if account is None:
            raise LookupError(f"operator account {job.subject.account_id} is not there any more")
        return self._context.operators.adapter(account)

    def _announce_changed_apps(self) -> None:
        """Let every process read the apps anew that an event has changed."""
        if self._changed_apps:
            self._changed_apps.clear()
            self._context.directory.invalidate()

    def _count(self, item: _ReadItem) -> None:
        event = item.event
        if not isinstance(event, StatusEvent):
            self.counts[type(event).__name__.removesuffix("Event").lower()] += 1
            return
        self.counts[STATE_NAMES[event.state]] += 1
        failed = event.state is MessageState.FAILED
        if (tracer.is_enabled or failed) and is_uuid(event.message_id or ""):
            tracer.record(
                TraceStep.STATUS, event.message_id or "", failed=failed, position=item.position, state=event.state.value
            )

    def _apply(self, connection: Connection, items: Sequence[_ReadItem]) -> list[None]:
        """Apply events and complete their jobs."""
        # First: an item that another process has applied, since it works this shard now, is not applied again.
        completed = complete_jobs(connection, [item.position for item in items])
        self._apply_events(connection, [item for item in items if item.position in completed])
        return [None] * len(items)

    def _apply_events(self, connection: Connection, items: Sequence[_ReadItem]) -> None:
        """Apply events: states, trace and callbacks, in the caller's transaction."""
        if not items:
            return
        stage = self._context
        at_ms = stage.clock.now_ms()
        recorder = StateChangeRecorder(connection, stage.ids, at_ms, hold_ms=stage.hold_ms)
        lookup = EventLookup(connection, map(attrgetter("event"), items))
        recorder.read_subscriptions(lookup.app_ids)
        names = LearnedNames(connection, self._known_names)
        places = (stage.ids, at_ms, stage.public_url)
        context = EventContext(connection, recorder, lookup, *places, names, self.ignored, self._changed_apps)
        statuses: dict[int, tuple[StatusEvent, tuple[MessageRow, App] | None]] = {}  # with their messages
        for n, (_, _, account_id, event) in enumerate(items):
            if isinstance(event, StatusEvent):
                message = lookup.find_message_of_account(event.message_id, event.operator_message_id, account_id)
                statuses[n] = event, message
        # An event that may give a number or a user id to another person is applied in its turn, and so are all then.
        if len(statuses) == len(items) or not any(_may_move_names(item.event) for item in items):
            record_user_ids(context, statuses.values())
        for n, item in enumerate(items):
            account_id = item.operator_account_id
            match item.event:
                case StatusEvent():
                    apply_status(context, account_id, *statuses[n])
                case InboundEvent() as event:
                    apply_inbound_message(context, account_id, item.item_id, event)
                case ReviewEvent() | QualityEvent() | CategoryEvent() as event:
                    find_app = partial(lookup.find_app, operator_account_id=account_id)
                    if not apply_template_event(connection, recorder, find_app, event, at_ms):
                        forward_template_event(context, account_id, event)
                case AccountEvent() as event:
                    apply_account_event(context, account_id, event)
                case PaymentEvent() | OtherStatusEvent() as event:
                    apply_other_status(context, account_id, event)
                case UnknownEvent(description=what):
                    context.ignore(IgnoredEvent.NO_CHANGES, what=what)
        recorder.write()


def _classify_items(connection: Connection, received: Sequence[_ReceivedWebhook]) -> list[_ReceivedItem]:
    """Return the items of webhooks in order; one that follows an item with a job gets a job too."""
    items: list[tuple[InboundWebhook, WebhookItem, Event | None]] = []
    groups: set[str] = set()
    for webhook, events in received:
        for item, event in zip(webhook.items, events, strict=True):
            items.append((webhook, item, event))
            groups.add(item.concurrency_group)
    busy = busy_groups(connection, groups)
    queued_keys: set[tuple[str, str]] = set()
    classified: list[_ReceivedItem] = []
    for webhook, item, event in items:
        key = (item.concurrency_group, item.ordering_key)
        is_queued = event is None or item.concurrency_group in busy or key in queued_keys
        if is_queued and item.defect is None:
            queued_keys.add(key)
        is_stored = is_queued or not _is_idempotent(event)
        classified.append(_ReceivedItem(webhook, item, event, is_queued, is_stored))
    return classified


def _may_move_names(event: Event) -> bool:
    return isinstance(event, AccountEvent) or (isinstance(event, InboundEvent) and event.kind == "system")


def _is_idempotent(event: Event | None) -> bool:
    """Return True if applying an event twice has no effect: the message's row says that it was applied.

    Such an event needs no row of its own. A group's message has one row, and a status for each member; an AI
    provider's message has none.
    """
    return isinstance(event, StatusEvent) and not event.is_of_group and not event.is_ai_price
