"""The callbacks and subscriptions of the jobs of one claim, read together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from waypost.base.clock import Clock
from waypost.base.encryption import SecretBox
from waypost.domain.callbacks.subscription import Subscription
from waypost.queue.job import Job
from waypost.store.callbacks.callbacks import CACHED_CALLBACKS, CallbackRow, callbacks_by_ids, first_attempt_times
from waypost.store.callbacks.subscriptions import Unseal, subscriptions_by_ids
from waypost.store.database import Database
from waypost.store.directory import Directory


@dataclass(frozen=True, slots=True)
class CallbackBatch:
    """The callbacks and subscriptions of a batch.

    Attributes:
        callbacks: by id.
        subscriptions: by id; one that was deleted is left out.
        first_tried_ms: by callback, when one that has failed was tried first.
        keys: by subscription, the keys that sign its callbacks now, the newest first.
    """

    callbacks: Mapping[str, CallbackRow]
    subscriptions: Mapping[int, Subscription]
    first_tried_ms: Mapping[str, int]
    keys: Mapping[int, tuple[bytes, ...]]


class CallbackReader:
    """Reads batches of callbacks, with the subscriptions that they go to."""

    def __init__(self, *, database: Database, directory: Directory, secret_box: SecretBox, clock: Clock) -> None:
        self._database = database
        self._unseal = directory.unseal
        self._secret_box = secret_box
        self._clock = clock

    async def read(self, jobs: Sequence[Job]) -> CallbackBatch:
        """Read the callbacks and subscriptions of jobs."""
        fresh = self._database.cache.pop_rows(CACHED_CALLBACKS, {job.subject.id for job in jobs})
        ids = {job.subject.id for job in jobs if job.subject.id not in fresh}
        tried = {job.subject.id for job in jobs if job.attempt and job.blocking_since_ms is None}
        rows, subscriptions, first_ms = await self._database.read(_read_callback_batch, fresh, ids, tried, self._unseal)
        keys = {
            subscription_id: self._signing_keys(subscription_id, subscription)
            for subscription_id, subscription in subscriptions.items()
        }
        return CallbackBatch(rows, subscriptions, first_ms, keys)

    def _signing_keys(self, subscription_id: int, subscription: Subscription) -> tuple[bytes, ...]:
        serials = subscription.serials(self._clock.now_ms())
        return tuple(self._secret_box.callback_key(str(subscription_id), serial) for serial in serials)


def _read_callback_batch(
    connection: Connection, cached: dict[str, CallbackRow], ids: set[str], tried: set[str], unseal: Unseal
) -> tuple[dict[str, CallbackRow], dict[int, Subscription], dict[str, int]]:
    rows = {**cached, **callbacks_by_ids(connection, ids)} if ids else cached
    subscription_ids = {row.subscription_id for row in rows.values()}
    return rows, subscriptions_by_ids(connection, subscription_ids, unseal), first_attempt_times(connection, tried)
