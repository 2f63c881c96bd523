"""Claims callbacks, delivers them, and completes them or retries them later."""

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from waypost.base.clock import Clock
from waypost.callbacks.batch import CallbackBatch, CallbackReader
from waypost.callbacks.circuits import Came, Circuit, State, travel_grid_ms
from waypost.callbacks.delivery import deliver
from waypost.callbacks.metrics import Figures
from waypost.callbacks.pausing import Pausing
from waypost.callbacks.receivers import SLOW_MS, Address
from waypost.callbacks.retries import asked_ms, wait_ms
from waypost.callbacks.slots import Places
from waypost.domain.callbacks.callback import Attempt, AttemptKind, Callback
from waypost.domain.callbacks.subscription import Subscription
from waypost.outbound.vetted import VettedClient
from waypost.queue.concurrency_groups import NotBefore
from waypost.queue.job import Job
from waypost.queue.queue import JobQueue
from waypost.queue.worker import Prepared
from waypost.store.callbacks.callbacks import CallbackRow, Tried, record_attempts
from waypost.store.callbacks.receivers import Standing, keep_standings
from waypost.store.callbacks.subscriptions import live_group, replay_group, subscription_in
from waypost.store.database import Database
from waypost.store.queue.jobs import QueueName, complete_jobs


@dataclass(frozen=True, slots=True)
class _Ended:
    position: int
    tried: Tried | None = None
    standing: Standing | None = None


class Callbacks:
    """The work of the queue `callbacks`.

    Args:
        order_hold_ms: how long a callback that fails, while others to the same receiver succeed,
            blocks those that follow it for the same recipient.
    """

    def __init__(
        self,
        *,
        database: Database,
        queue: JobQueue,
        reader: CallbackReader,
        pausing: Pausing,
        client: VettedClient,
        clock: Clock,
        chance: random.Random,
        order_hold_ms: int,
    ) -> None:
        self._database = database
        self._queue = queue
        self._reader = reader
        self._pausing = pausing
        self._client = client
        self._clock = clock
        self._chance = chance
        self._order_hold_ms = order_hold_ms
        self._places = Places(clock, self._unhold)
        self._looks = 0
        self.figures = Figures()
        queue.on_wake(QueueName.CALLBACKS, self._hear)

    @property
    def in_flight(self) -> dict[str, int]:
        """Number of callbacks in flight, by subscription."""
        receivers = self._places.addresses.items()
        return {
            str(subscription_id): len(receiver.began_ms) for subscription_id, receiver in receivers if receiver.began_ms
        }

    @property
    def pauses(self) -> int:
        """Number of subscriptions that this process has paused."""
        return self._pausing.pauses

    @property
    def circuits(self) -> Counter[str]:
        """Number of receivers known to this process, by the state of their circuit."""
        receivers = self._places.addresses.values()
        return Counter(receiver.circuit.state.value for receiver in receivers if receiver.is_known)

    def circuit_of(self, subscription_id: int) -> str | None:
        """Return the state of a receiver's circuit; None where this process does not know the receiver."""
        receiver = self._places.addresses.get(subscription_id)
        return None if receiver is None or not receiver.is_known else receiver.circuit.state.value

    def set_travelling(self, is_travelling: bool) -> None:
        """Note that the clock is being moved by hand, or no longer: then receivers that fail may be tried again."""
        self._places.is_travelling = is_travelling
        if not is_travelling:
            for subscription_id in self._places.addresses:
                self._unhold_all(subscription_id)

    def pace(self, job: Job, now_ms: int, in_flight: int) -> NotBefore | None:
        """Delay callbacks to receivers that fail or are paused, without trying them; a slow receiver has few slots."""
        return self._places.ask(job, now_ms, in_flight)

    async def prepare(self, jobs: Sequence[Job]) -> Prepared:
        """Read the callbacks and subscriptions of a batch together, and update each receiver."""
        self._looks += 1
        read_number = self._looks
        try:
            batch = await self._reader.read(jobs)
        except BaseException:
            for job in jobs:
                self._places.free(job)
            raise
        for subscription_id in {subscription_in(job.concurrency_group) for job in jobs}:
            self._see(subscription_id, batch, read_number)
        return [(job, self._work_of(job, batch)) for job in jobs]

    def _see(self, subscription_id: int, batch: CallbackBatch, look: int) -> None:
        receiver = self._places.addresses[subscription_id]
        was_known = receiver.is_known
        receiver.see(batch.subscriptions.get(subscription_id), self._clock.now_ms(), look)
        if not was_known:
            self._unhold_all(subscription_id)

    def _work_of(self, job: Job, batch: CallbackBatch) -> Callable[[], Awaitable[None]]:
        if job.held_since_ms is None and not job.is_replay:
            job.held_since_ms = batch.first_tried_ms.get(job.subject.id)

        async def work() -> None:
            try:
                await self._deliver(job, batch)
            finally:
                self._places.free(job)

        return work

    async def _deliver(self, job: Job, batch: CallbackBatch) -> None:
        subscription_id = subscription_in(job.concurrency_group)
        row, subscription = batch.callbacks.get(job.subject.id), batch.subscriptions.get(subscription_id)
        if row is None:  # too old: it has been deleted
            await self._end(job, _Ended(job.position))
            return
        if subscription is None:  # deleted meanwhile; there is no URL to send to
            attempt = Attempt(self._clock.now_ms(), 0, None, error="the subscription was deleted")
            await self._end(job, _Ended(job.position, self._tried(job, row, attempt, False)))
            return
        if not self._queue.is_ours(job):  # another process may have gone on: an older callback must not come later
            self._queue.abandon(job)
            return
        receiver = self._places.addresses[subscription_id]
        if not receiver.may_be_called(job.position):
            self._queue.abandon(job)
            return
        is_probe = receiver.probe == job.position
        is_lease_held = partial(self._queue.is_ours, job)
        callback = Callback(
            id=row.id,
            subscription_id=subscription.id,
            url=subscription.url,
            headers=subscription.headers,
            sequence=row.sequence,
            body=row.body,
            keys=batch.keys[subscription_id],
        )
        attempt = await deliver(self._client, self._clock, callback, may_go=is_lease_held)
        if not attempt.delivered and not is_lease_held():  # another process tries it, and records the outcome
            self._queue.abandon(job)
            return
        receiver.was_slow = attempt.duration_ms >= SLOW_MS
        if attempt.delivered:
            await self._taken(job, row, receiver, attempt)
        else:
            await self._not_taken(job, row, subscription, receiver, attempt, is_probe=is_probe)

    async def _taken(self, job: Job, row: CallbackRow, address: Address, attempt: Attempt) -> None:
        health = None
        if address.circuit.failing_since_ms is not None:
            health = Standing(row.subscription_id, None)
        address.circuit.takes(self._clock.now_ms())
        self.figures.tried(job, row, attempt, ended=True)
        tried = self._tried(job, row, attempt, True)
        await self._end(job, _Ended(job.position, tried, health))

    async def _not_taken(
        self,
        job: Job,
        row: CallbackRow,
        subscription: Subscription,
        address: Address,
        attempt: Attempt,
        *,
        is_probe: bool,
    ) -> None:
        now_ms = self._clock.now_ms()
        retry_after_ms = asked_ms(attempt.told, now_ms)
        circuit, was_failing = address.circuit, address.circuit.failing_since_ms
        was_until_ms = circuit.until_ms
        circuit.fails(now_ms, self._chance, is_probe=is_probe, asked_ms=retry_after_ms)
        health = None
        is_open = circuit.state is State.OPEN
        if retry_after_ms or was_failing is None or (is_open and circuit.until_ms != was_until_ms):
            health = Standing(
                row.subscription_id,
                circuit.failing_since_ms,
                asked_until_ms=circuit.until_ms if retry_after_ms else None,
                next_attempt_ms=circuit.until_ms if is_open else None,
            )
        delay_ms = wait_ms(job.attempt + 1, self._chance)
        ended = None if delay_ms is not None else False
        self.figures.tried(job, row, attempt, ended=ended)
        tried = self._tried(job, row, attempt, ended)
        if await self._pausing.pause_if_due(subscription, circuit, attempt):
            address.sure_from = self._looks + 1  # a read that is running may not know it yet
            address.circuit.step(Came.PAUSED)
        if delay_ms is None:
            await self._end(job, _Ended(job.position, tried, health))
        else:
            await self._database.join(_record, _Ended(0, tried, health))
            await self._queue.retry_later(
                job,
                due_ms=self._retry_ms(circuit, now_ms, delay_ms, retry_after_ms),
                note=attempt.error or f"status {attempt.status}",
                detach=self._has_held_long_enough(job, address),
            )

    def _retry_ms(self, circuit: Circuit, now_ms: int, wait_ms: int, asked_ms: int) -> int:
        """Return when a callback that was not delivered is due again; on the grid while the clock is moved by hand."""
        due_ms = now_ms + wait_ms
        if self._places.is_travelling and circuit.failing_since_ms is not None:
            grid_ms = travel_grid_ms(now_ms - circuit.failing_since_ms) or 1
            due_ms = due_ms // grid_ms * grid_ms
        return max(due_ms, now_ms + asked_ms)

    def _has_held_long_enough(self, job: Job, address: Address) -> bool:
        """True if its followers continue without this one: only when it alone fails."""
        now_ms = self._clock.now_ms()
        if job.held_since_ms is None:
            job.held_since_ms = now_ms
        if job.is_detached:
            return False  # they have continued already
        others_succeed = address.circuit.taken_ms >= job.held_since_ms
        return others_succeed and now_ms - job.held_since_ms >= self._order_hold_ms

    def _tried(self, job: Job, row: CallbackRow, attempt: Attempt, ended: bool | None) -> Tried:
        """Return the record of an attempt; a replay that fails does not undo the earlier delivery."""
        if job.is_replay and not ended:
            ended = None
        return Tried(row.id, row.subscription_id, attempt, ended, _kind_of(job))

    async def _end(self, job: Job, ended: _Ended) -> None:
        await self._queue.complete(job, _record, ended)

    def _hear(self, group: str) -> None:
        """Note that a callback was enqueued for a subscription, or that the subscription was changed."""
        subscription_id = subscription_in(group)
        receiver = self._places.addresses.get(subscription_id)
        if receiver is not None and not receiver.heard:
            receiver.heard = True
            self._unhold_all(subscription_id)  # a change is reported for both groups, and noted once

    def _unhold_all(self, subscription_id: int) -> None:
        for group in (live_group(subscription_id), replay_group(subscription_id)):
            self._unhold(group)

    def _unhold(self, group: str) -> None:
        self._queue.end_hold(QueueName.CALLBACKS, group)


def _kind_of(job: Job) -> AttemptKind:
    if job.is_replay:
        return AttemptKind.REPLAY
    return AttemptKind.RETRY if job.attempt else AttemptKind.INITIAL


def _record(connection: Connection, ended: Sequence[_Ended]) -> list[None]:
    record_attempts(connection, [record.tried for record in ended if record.tried is not None])
    keep_standings(connection, [record.standing for record in ended if record.standing is not None])
    complete_jobs(connection, [record.position for record in ended if record.position])
    return [None] * len(ended)
