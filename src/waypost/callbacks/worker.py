"""Claim, deliver, settle or release."""

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
    """The work of the callbacks queue.

    Args:
        order_hold_ms: how long a callback that is refused, while others to the same address
            succeed, holds up those that follow it for the same recipient.
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
        """How many callbacks are in flight, by subscription."""
        known = self._places.addresses.items()
        return {str(one): len(address.began_ms) for one, address in known if address.began_ms}

    @property
    def pauses(self) -> int:
        """How many subscriptions this process has paused."""
        return self._pausing.pauses

    @property
    def circuits(self) -> Counter[str]:
        """How many addresses this process has met stand in each state."""
        known = self._places.addresses.values()
        return Counter(one.circuit.state.value for one in known if one.is_known)

    def circuit_of(self, subscription_id: int) -> str | None:
        """The state of an address's circuit; None where this process has not met it."""
        address = self._places.addresses.get(subscription_id)
        return None if address is None or not address.is_known else address.circuit.state.value

    def set_travelling(self, is_travelling: bool) -> None:
        """Time begins to be moved by hand, or has been: then addresses that fail may be tried again."""
        self._places.is_travelling = is_travelling
        if not is_travelling:
            for subscription_id in self._places.addresses:
                self._unhold_all(subscription_id)

    def pace(self, job: Job, now_ms: int, in_flight: int) -> NotBefore | None:
        """What is for an address that fails or is paused is held, and not tried; a slow one has few places."""
        return self._places.ask(job, now_ms, in_flight)

    async def prepare(self, jobs: Sequence[Job]) -> Prepared:
        """Fetch bodies and addresses of a batch in one read, and see how each subscription is now."""
        self._looks += 1
        look = self._looks
        try:
            batch = await self._reader.read(jobs)
        except BaseException:
            for job in jobs:
                self._places.free(job)
            raise
        for subscription_id in {subscription_in(job.concurrency_group) for job in jobs}:
            self._see(subscription_id, batch, look)
        return [(job, self._work_of(job, batch)) for job in jobs]

    def _see(self, subscription_id: int, batch: CallbackBatch, look: int) -> None:
        address = self._places.addresses[subscription_id]
        was_known = address.is_known
        address.see(batch.subscriptions.get(subscription_id), self._clock.now_ms(), look)
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
        number = subscription_in(job.concurrency_group)
        row, subscription = batch.callbacks.get(job.subject.id), batch.subscriptions.get(number)
        if row is None:  # it was too old to be kept
            await self._end(job, _Ended(job.position))
            return
        if subscription is None:  # deleted meanwhile; there is nowhere to go
            attempt = Attempt(self._clock.now_ms(), 0, None, error="the subscription was deleted")
            await self._end(job, _Ended(job.position, self._tried(job, row, attempt, False)))
            return
        if not self._queue.is_ours(job):  # others may have gone on: what is older may not come after
            self._queue.abandon(job)
            return
        address = self._places.addresses[number]
        if not address.may_be_called(job.position):
            self._queue.abandon(job)
            return
        is_probe = address.probe == job.position
        is_ours = partial(self._queue.is_ours, job)
        callback = Callback(
            id=row.id,
            subscription_id=subscription.id,
            url=subscription.url,
            headers=subscription.headers,
            sequence=row.sequence,
            body=row.body,
            keys=batch.keys[number],
        )
        attempt = await deliver(self._client, self._clock, callback, may_go=is_ours)
        if not attempt.delivered and not is_ours():  # another process tries it, and says what comes of it
            self._queue.abandon(job)
            return
        address.was_slow = attempt.duration_ms >= SLOW_MS
        if attempt.delivered:
            await self._taken(job, row, address, attempt)
        else:
            await self._not_taken(job, row, subscription, address, attempt, is_probe=is_probe)

    async def _taken(self, job: Job, row: CallbackRow, address: Address, attempt: Attempt) -> None:
        standing = None
        if address.circuit.failing_since_ms is not None:
            standing = Standing(row.subscription_id, None)
        address.circuit.takes(self._clock.now_ms())
        self.figures.tried(job, row, attempt, ended=True)
        tried = self._tried(job, row, attempt, True)
        await self._end(job, _Ended(job.position, tried, standing))

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
        asked = asked_ms(attempt.told, now_ms)
        circuit, was_failing = address.circuit, address.circuit.failing_since_ms
        was_until_ms = circuit.until_ms
        circuit.fails(now_ms, self._chance, is_probe=is_probe, asked_ms=asked)
        standing = None
        is_open = circuit.state is State.OPEN
        if asked or was_failing is None or (is_open and circuit.until_ms != was_until_ms):
            standing = Standing(
                row.subscription_id,
                circuit.failing_since_ms,
                asked_until_ms=circuit.until_ms if asked else None,
                next_attempt_ms=circuit.until_ms if is_open else None,
            )
        wait = wait_ms(job.attempt + 1, self._chance)
        ended = None if wait is not None else False
        self.figures.tried(job, row, attempt, ended=ended)
        tried = self._tried(job, row, attempt, ended)
        if await self._pausing.pause_if_due(subscription, circuit, attempt):
            address.sure_from = self._looks + 1  # a look that is under way may not know it yet
            address.circuit.step(Came.PAUSED)
        if wait is None:
            await self._end(job, _Ended(job.position, tried, standing))
        else:
            await self._database.join(_record, _Ended(0, tried, standing))
            await self._queue.retry_later(
                job,
                due_ms=self._retry_ms(circuit, now_ms, wait, asked),
                note=attempt.error or f"answered {attempt.status}",
                detach=self._has_held_long_enough(job, address),
            )

    def _retry_ms(self, circuit: Circuit, now_ms: int, wait_ms: int, asked_ms: int) -> int:
        """When a callback that was not taken is due again; on the grid of tries while time is moved by hand."""
        due_ms = now_ms + wait_ms
        if self._places.is_travelling and circuit.failing_since_ms is not None:
            grid_ms = travel_grid_ms(now_ms - circuit.failing_since_ms) or 1
            due_ms = due_ms // grid_ms * grid_ms
        return max(due_ms, now_ms + asked_ms)

    def _has_held_long_enough(self, job: Job, address: Address) -> bool:
        """Whether the followers go on without this one: only when it alone is refused."""
        now_ms = self._clock.now_ms()
        if job.held_since_ms is None:
            job.held_since_ms = now_ms
        if job.is_detached:
            return False  # they have gone on already
        others_succeed = address.circuit.taken_ms >= job.held_since_ms
        return others_succeed and now_ms - job.held_since_ms >= self._order_hold_ms

    def _tried(self, job: Job, row: CallbackRow, attempt: Attempt, ended: bool | None) -> Tried:
        """What is kept of an attempt; one that was told again in vain has been told all the same."""
        if job.is_replay and not ended:
            ended = None
        return Tried(row.id, row.subscription_id, attempt, ended, _kind_of(job))

    async def _end(self, job: Job, ended: _Ended) -> None:
        await self._queue.complete(job, _record, ended)

    def _hear(self, group: str) -> None:
        """Something was appended for a subscription, or it was changed."""
        subscription_id = subscription_in(group)
        address = self._places.addresses.get(subscription_id)
        if address is not None and not address.heard:
            address.heard = True
            self._unhold_all(subscription_id)  # a change is told of both, and heard of once

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
    record_attempts(connection, [one.tried for one in ended if one.tried is not None])
    keep_standings(connection, [one.standing for one in ended if one.standing is not None])
    complete_jobs(connection, [one.position for one in ended if one.position])
    return [None] * len(ended)
