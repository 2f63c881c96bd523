"""The callbacks and subscriptions of the jobs of one claim, read together."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from waypost.base.encryption import SecretBox
from waypost.domain.callbacks import Subscription
from waypost.queue.context import StageContext
from waypost.queue.job import Job
from waypost.store.callbacks.callbacks import CACHED_CALLBACKS, CallbackRow, callbacks_by_ids, first_attempt_ends
from waypost.store.callbacks.receivers import last_delivery_ms
from waypost.store.callbacks.subscriptions import Unseal, subscriptions_by_ids
from waypost.store.queue.jobs import ended_callbacks, group_subscription_id

MAX_CACHED_KEYS: Final = 10_000
SUBSCRIPTION_CACHE_MS: Final = 2_000
"""How long a subscription is used that was read before; a change that is reported drops it at once."""


@dataclass(frozen=True, slots=True)
class CallbackBatch:
    """The callbacks and subscriptions of a batch."""

    callbacks: Mapping[str, CallbackRow]  # by id; one that was deleted, or has ended, is left out
    subscriptions: Mapping[int, Subscription]  # by id; one that was deleted is left out
    first_failed_ms: Mapping[str, int]  # by callback, when its first attempt failed
    delivered_ms: Mapping[int, int]  # by the subscription of these, when a callback was last delivered to it
    keys: Mapping[int, tuple[bytes, ...]]  # by subscription, the keys that sign its callbacks now, the newest first
    read_ids: Set[int]  # of the subscriptions that were read for this batch, deleted ones too; others were cached


class CallbackReader:
    """Reads batches of callbacks, with the subscriptions that they go to.

    A batch of new callbacks to a receiver that is known needs no query: the rows are cached as they are
    written, and the subscription has just been used.
    """

    def __init__(self, context: StageContext, secret_box: SecretBox) -> None:
        self._database, self._clock, self._unseal = context.database, context.clock, context.directory.unseal
        self._secret_box = secret_box
        self._cached: dict[int, tuple[int, Subscription]] = {}  # with the real time of its read
        self._changes = 0
        self._keys: dict[tuple[int, int], list[bytes]] = {}  # by subscription and serial
        self._key_roots = secret_box.roots

    def drop_subscription(self, subscription_id: int) -> None:
        """Read a subscription again when it is used next: it may have changed."""
        self._changes += 1
        self._cached.pop(subscription_id, None)

    async def read(self, jobs: Sequence[Job], subscription_ids: Set[int], fresh_ids: Set[int]) -> CallbackBatch:
        """Read the callbacks and subscriptions of jobs.

        Args:
            jobs: of the queue `callbacks`.
            subscription_ids: of the jobs.
            fresh_ids: subscriptions that are read even if they are cached.
        """
        ids, retried = set[str](), set[str]()
        tried: dict[str, int] = {}  # with the subscription
        for job in jobs:
            ids.add(job.subject.id)
            if job.attempt and not job.is_replay:
                retried.add(job.subject.id)
            if job.attempt and job.blocking_since_ms is None:  # by another process, or before a restart
                tried[job.subject.id] = group_subscription_id(job.concurrency_group)
        rows = self._database.cache.pop_rows(CACHED_CALLBACKS, ids)
        row_ids = ids - rows.keys()
        real_ms = self._clock.real_ms()
        subscriptions: dict[int, Subscription] = {}
        for subscription_id in subscription_ids - fresh_ids:
            cached = self._cached.get(subscription_id)
            if cached is not None and real_ms - cached[0] < SUBSCRIPTION_CACHE_MS:
                subscriptions[subscription_id] = cached[1]
        read_ids = subscription_ids - subscriptions.keys()
        first_ms: dict[str, int] = {}
        delivered_ms: dict[int, int] = {}
        if row_ids or tried or read_ids:
            changes = self._changes
            read_rows, read, first_ms, delivered_ms = await self._database.read(
                _read_callback_batch, row_ids, retried, tried, read_ids, self._unseal
            )
            rows |= read_rows
            subscriptions |= read
            if changes == self._changes:  # otherwise a row may be older than the change
                self._cached |= {subscription_id: (real_ms, row) for subscription_id, row in read.items()}
            for subscription_id in read_ids - read.keys():
                self._cached.pop(subscription_id, None)
        now_ms = self._clock.now_ms()
        keys: dict[int, tuple[bytes, ...]] = {}
        for subscription_id, subscription in subscriptions.items():
            keys[subscription_id] = ()
            for serial in subscription.serials(now_ms):
                keys[subscription_id] += tuple(self._keys_of(subscription_id, serial))
        return CallbackBatch(rows, subscriptions, first_ms, delivered_ms, keys, read_ids)

    def _keys_of(self, subscription_id: int, serial: int) -> list[bytes]:
        """Return the keys with a serial: one, and after a replacement of the instance key for a while two."""
        roots = self._secret_box.roots
        if roots is not self._key_roots:
            self._key_roots = roots
            self._keys.clear()
        keys = self._keys.get((subscription_id, serial))
        if keys is None:
            if len(self._keys) >= MAX_CACHED_KEYS:
                self._keys.clear()
            keys = self._secret_box.callback_keys(str(subscription_id), serial)
            self._keys[subscription_id, serial] = keys
        return keys


def _read_callback_batch(
    connection: Connection,
    row_ids: set[str],
    retried: set[str],
    tried: dict[str, int],
    subscription_ids: set[int],
    unseal: Unseal,
) -> tuple[dict[str, CallbackRow], dict[int, Subscription], dict[str, int], dict[int, int]]:
    # What another process had begun may have been received there: it may record that long after its lease has expired
    return (
        callbacks_by_ids(connection, row_ids - ended_callbacks(connection, retried)),
        subscriptions_by_ids(connection, subscription_ids, unseal) if subscription_ids else {},
        first_attempt_ends(connection, tried.keys()),
        {number: last_delivery_ms(connection, number, None) or 0 for number in sorted({*tried.values()})},
    )
