"""Claims callbacks, delivers them, and completes them or retries them later."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from sqlalchemy import Connection

from waypost.admission.circuits import Circuit, CircuitEvent, CircuitState
from waypost.admission.receivers import CallbackReceiver, ReceiverAdmission
from waypost.admission.schedules import MAX_INTERRUPTED_PAUSE_MS, callback_retry_ms, parse_retry_after_ms
from waypost.admission.slots import SLOW_RESPONSE_MS
from waypost.base.backoff import travel_grid_ms
from waypost.base.encryption import SecretBox
from waypost.base.telemetry.counters import CallCounters
from waypost.callbacks.batch import CallbackBatch, CallbackReader
from waypost.callbacks.delivery import InFlightMarks, make_attempt, make_headers, record_attempt
from waypost.callbacks.pausing import pause_if_due
from waypost.domain.callbacks import AttemptKind, CallbackAttempt, Subscription
from waypost.queue.context import StageContext
from waypost.queue.job import Job
from waypost.queue.worker import JobWork, PreparedJobs
from waypost.store.callbacks.callbacks import AttemptRecord, CallbackRow, record_attempts
from waypost.store.callbacks.receivers import (
    ReceiverStatus,
    make_retries_due,
    newest_attempts,
    record_receiver_statuses,
    request_retry,
)
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import (
    ShardFence,
    complete_jobs,
    group_subscription_id,
    live_group,
    replay_group,
    valid_fences,
)

INTERRUPTED_ERROR: Final = "the attempt was cut short: the service stopped, or could not reach its store"
"""Of an attempt whose outcome is not known, because its process ended."""


_FencedStatus = tuple[ShardFence, ReceiverStatus]
"""The health of a receiver is the lease holder's: recorded later, it would undo what the next holder knows by now."""


class _CallbackProgress(NamedTuple):
    """Changes that an attempt causes."""

    attempt_record: AttemptRecord | None
    health: _FencedStatus | None
    replay_position: int | None  # of the replay's job, if this ends one; a callback that ends is its own job


class CallbackSender:
    """The work of the queue `callbacks`.

    Args:
        pause_after_ms: after so long of nothing but failures a subscription is paused; 0: never.
        order_hold_ms: how long a callback that fails, while others to the same receiver succeed, blocks those that
            follow it for the same recipient.

    Attributes:
        counts: attempts by the class of the response's status, and by the result for the callback.
        pauses: how many subscriptions this process has paused.
        admission: decides when a callback may start, and says why not yet.
    """

    def __init__(
        self, context: StageContext, secret_box: SecretBox, *, pause_after_ms: int, order_hold_ms: int
    ) -> None:
        self._context = context
        self._queue, self._clock, self._chance = context.queue, context.clock, context.chance
        self._reader = CallbackReader(context, secret_box)
        self._pause_after_ms = pause_after_ms
        self._order_hold_ms = order_hold_ms
        self.admission = ReceiverAdmission(
            context.clock,
            in_flight=context.queue.plans[QueueName.CALLBACKS].in_flight,
            clear_not_before=partial(context.queue.clear_not_before, QueueName.CALLBACKS),
            lease_number=partial(context.queue.lease_number, QueueName.CALLBACKS),
        )
        self._marks = InFlightMarks(context.queue)
        self._reads = 0
        self.counts, self.pauses = CallCounters(), 0
        context.queue.add_wake_listener(QueueName.CALLBACKS, self._receive_wake_up)

    async def prepare(self, jobs: Sequence[Job]) -> PreparedJobs:
        """Read the callbacks and subscriptions of a batch together, and update each receiver."""
        self._reads += 1
        read_number = self._reads
        receivers: dict[int, CallbackReceiver] = {}
        fresh_ids: set[int] = set()
        for job in jobs:
            subscription_id = group_subscription_id(job.concurrency_group)
            if subscription_id not in receivers:
                receiver = receivers[subscription_id] = self.admission.receivers[subscription_id]
                # Only where callbacks flow is a cached subscription good enough.
                if not receiver.is_known or receiver.circuit.state is not CircuitState.CLOSED:
                    fresh_ids.add(subscription_id)
        batch = await self._reader.read(jobs, receivers.keys(), fresh_ids)
        for subscription_id in batch.read_ids:
            receiver = receivers[subscription_id]
            was_known = receiver.is_known
            receiver.update(batch.subscriptions.get(subscription_id), self._clock.now_ms(), read_number)
            if not was_known:
                self.admission.wake(subscription_id)
        for subscription_id, delivered_ms in batch.delivered_ms.items():  # by another process, or before a restart
            circuit = receivers[subscription_id].circuit
            circuit.succeeded_ms = max(circuit.succeeded_ms, delivered_ms)
        prepared: list[tuple[Job, JobWork]] = []
        for job in jobs:
            if job.blocking_since_ms is None and not job.is_replay:
                job.blocking_since_ms = batch.first_failed_ms.get(job.subject.id)
            prepared.append((job, partial(self._run_job, job, batch)))
        return prepared

    async def _run_job(self, job: Job, batch: CallbackBatch) -> None:
        subscription_id = group_subscription_id(job.concurrency_group)
        row, subscription = batch.callbacks.get(job.subject.id), batch.subscriptions.get(subscription_id)
        if row is None or subscription is None:
            # It was too old and is deleted, another process has ended it, or its subscription is deleted.
            attempt = CallbackAttempt(self._clock.now_ms(), 0, None, error="the subscription was deleted")
            await self._queue.complete(job, _record, _make_progress(job, row, attempt, False))
            return
        receiver = self.admission.receivers[subscription_id]
        if job.was_in_flight:  # count the attempt that was cut short, and do not call the receiver for a while
            now_ms = self._clock.now_ms()
            failing_ms = now_ms - (receiver.circuit.failing_since_ms or now_ms)
            delay_ms = callback_retry_ms(job.attempt + 1, self._chance) or 0
            # It may be the cause. Each further attempt that ends so doubles the time since it last succeeded.
            pause_ms = max(delay_ms, min(failing_ms, MAX_INTERRUPTED_PAUSE_MS))
            attempt = CallbackAttempt(now_ms, 0, None, error=INTERRUPTED_ERROR)
            await self._record_failed(job, row, subscription, attempt, retry_after_ms=pause_ms)
            return
        circuit = receiver.circuit
        if circuit.state is not CircuitState.CLOSED and not receiver.may_be_called(job.position):
            self._queue.abandon(job)
            return
        if receiver.has_responded and circuit.probe_position != job.position:
            self._marks.begin(job)
        elif not await self._queue.mark_in_flight([job]):
            self._queue.abandon(job)
            return
        # Another process may have gone on: an older callback must not come after a newer one.
        checks: list[bool] = []

        def is_lease_held() -> bool:  # at each check: if it was lost before sending, nothing was sent
            checks.append(self._queue.is_lease_held(job))
            return all(checks)

        may_send = None if self._context.database.is_exclusive else is_lease_held  # no other process is there
        try:
            at_ms, headers = self._clock.now_ms(), make_headers(row, subscription, batch.keys[subscription_id])
            response = await self._context.outbound.post(subscription.url, row.body, headers, may_send=may_send)
        finally:
            marking = self._marks.end(job)
            if marking is not None:
                await asyncio.wait([marking])
        attempt = make_attempt(at_ms, headers, subscription, response)
        is_delivered = attempt.delivered
        if not is_delivered and not is_lease_held():  # another process tries it, and records the outcome
            self._queue.abandon(job)
            return
        receiver.has_responded = receiver.has_responded or attempt.status is not None
        receiver.was_slow = attempt.duration_ms >= SLOW_RESPONSE_MS
        now_ms = self._clock.now_ms()
        if not is_delivered:
            retry_after_ms = parse_retry_after_ms(attempt.response_headers, now_ms)
            await self._record_failed(job, row, subscription, attempt, retry_after_ms=retry_after_ms)
            return
        health = None
        if circuit.failing_since_ms is not None:
            pause_end_ms = circuit.until_ms if circuit.is_pausing(now_ms) else None
            status = ReceiverStatus(subscription_id, None, retry_after_ms=pause_end_ms, next_attempt_ms=pause_end_ms)
            health = self._queue.fence_of(job), status
        was_away = circuit.state is CircuitState.HALF_OPEN
        circuit.record_success(now_ms)
        # One that failed alone would use up its schedule if its receiver is often away, and be given up early
        if was_away:  # what failed meanwhile does not wait for its own schedule
            self._queue.make_retries_due(QueueName.CALLBACKS, live_group(subscription_id), with_detached=False)
        record_attempt(self.counts, job, row, attempt, ended=True)
        was_held = await self._queue.complete(job, _record, _make_progress(job, row, attempt, True, health))
        if not was_held and health is None:
            await self._queue.write_until_reached(_record_late, (subscription_id, row.id))

    async def _record_failed(
        self, job: Job, row: CallbackRow, subscription: Subscription, attempt: CallbackAttempt, *, retry_after_ms: int
    ) -> None:
        receiver = self.admission.receivers[row.subscription_id]
        now_ms, circuit = self._clock.now_ms(), receiver.circuit
        was_failing, was_until_ms = circuit.failing_since_ms, circuit.until_ms
        made_due = self._queue.times_made_due(job)
        circuit.record_failure(job.position, now_ms, self._chance, retry_after_ms=retry_after_ms)
        health = None
        is_open = circuit.state is CircuitState.OPEN
        if retry_after_ms or was_failing is None or (is_open and circuit.until_ms != was_until_ms):
            status = ReceiverStatus(
                row.subscription_id,
                circuit.failing_since_ms,
                retry_after_ms=circuit.until_ms if circuit.is_pausing(now_ms) else None,
                next_attempt_ms=circuit.until_ms if is_open else None,
            )
            health = self._queue.fence_of(job), status
        delay_ms = callback_retry_ms(job.attempt + 1, self._chance)
        ended = None if delay_ms is not None else False
        record_attempt(self.counts, job, row, attempt, ended=ended)
        progress = _make_progress(job, row, attempt, ended, health)
        paused = await pause_if_due(self._context, subscription, circuit, attempt, pause_after_ms=self._pause_after_ms)
        if paused is not None:
            self.pauses += paused
            self._reader.drop_subscription(row.subscription_id)
            receiver.pause_known_from = self._reads + 1  # a read that is running may not know it yet
            circuit.apply(CircuitEvent.PAUSED)
        if delay_ms is None:
            await self._queue.complete(job, _record, progress)
        else:
            # Not abandoned if the store is away: as an interrupted attempt it would count against its receiver again
            await self._queue.write_until_reached(_record, progress)
            await self._queue.retry_later(
                job,
                due_ms=self._retry_due_ms(circuit, now_ms, delay_ms, retry_after_ms),
                note=attempt.error or f"status {attempt.status}",
                detach=self._has_blocked_long_enough(job, receiver),
                made_due=made_due,
            )

    def _retry_due_ms(self, circuit: Circuit, now_ms: int, delay_ms: int, retry_after_ms: int) -> int:
        """Return when a callback that was not delivered is due again; on the grid while the clock is being advanced."""
        due_ms = now_ms + delay_ms
        if self.admission.is_travelling and circuit.failing_since_ms is not None:
            grid_ms = travel_grid_ms(now_ms - circuit.failing_since_ms) or 1
            due_ms = due_ms // grid_ms * grid_ms
        return max(due_ms, now_ms + retry_after_ms)

    def _has_blocked_long_enough(self, job: Job, receiver: CallbackReceiver) -> bool:
        """True if its followers continue without this one: only when it alone fails."""
        now_ms = self._clock.now_ms()
        if job.blocking_since_ms is None:
            job.blocking_since_ms = now_ms
        if job.is_detached:
            return False  # they have continued already
        others_succeed = receiver.circuit.succeeded_ms >= job.blocking_since_ms
        return others_succeed and now_ms - job.blocking_since_ms >= self._order_hold_ms

    def _receive_wake_up(self, group: str) -> None:
        """Note that a callback was enqueued for a subscription, or that the subscription was changed.

        Only a change is reported for the group of its replays too, or the replays themselves are.
        """
        subscription_id = group_subscription_id(group)
        receiver = self.admission.receivers.get(subscription_id)
        if group == replay_group(subscription_id):
            self._reader.drop_subscription(subscription_id)
            if receiver is not None:
                receiver.checked_ms, receiver.may_have_changed = 0, False
        if receiver is not None and not receiver.may_have_changed:
            receiver.may_have_changed = True
            self.admission.wake(subscription_id)


def _make_progress(
    job: Job, row: CallbackRow | None, attempt: CallbackAttempt, ended: bool | None, health: _FencedStatus | None = None
) -> _CallbackProgress:
    """Return what an attempt changes; without a row it is not recorded.

    Args:
        ended: True when it was delivered, False when it is given up, None when it is retried.
    """
    kind = AttemptKind.RETRY if job.attempt else AttemptKind.INITIAL
    replay_position = None
    if job.is_replay:
        kind = AttemptKind.REPLAY
        replay_position = None if ended is None else job.position
        ended = ended or None  # a replay that fails does not undo the earlier delivery
    record = None if row is None else AttemptRecord(row.id, row.subscription_id, attempt, ended, kind)
    return _CallbackProgress(record, health, replay_position)


def _record(connection: Connection, records: Sequence[_CallbackProgress]) -> list[None]:
    made: list[AttemptRecord] = []
    statuses: list[_FencedStatus] = []
    replays: list[int] = []
    for attempt_record, health, replay_position in records:
        if attempt_record is not None:
            made.append(attempt_record)
        if health is not None:
            statuses.append(health)
        if replay_position is not None:
            replays.append(replay_position)
    record_attempts(connection, made)
    if statuses:
        valid = valid_fences(connection, {fence for fence, _ in statuses})
        record_receiver_statuses(connection, [status for fence, status in statuses if fence in valid])
        for record, health, _ in records:
            if record is not None and record.delivered and health is not None and health[0] not in valid:
                _record_late(connection, [(record.subscription_id, record.callback_id)])
    if replays:
        complete_jobs(connection, replays)
    return [None] * len(records)


def _record_late(connection: Connection, received: Sequence[tuple[int, str]]) -> list[None]:
    """Let the process that has the lease by now know of callbacks that were received before it had it.

    If it has counted the attempt as cut short, it leaves the receiver alone; and what follows a callback waits for the
    next attempt, as it has read it.

    Args:
        received: subscription and callback.
    """
    for subscription_id, callback_id in received:
        newest = newest_attempts(connection, subscription_id, 1)
        if any(attempt.callback_id == callback_id and attempt.error == INTERRUPTED_ERROR for attempt in newest):
            request_retry(connection, subscription_id, newest[0].at_ms)
        else:  # what the receiver has asked for since stays
            make_retries_due(connection, subscription_id)
    return [None] * len(received)
