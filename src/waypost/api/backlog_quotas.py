"""Quotas of what a partner may have waiting, checked before a message is stored. Source: decision 0099.

A process counts in the store from time to time, and adds what it has accepted since. So a message costs no
query, and one process never exceeds a quota; several may, by what the others have accepted since their counts.
"""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from waypost.base.clock import Clock
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.throttled_logging import ThrottledLog
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.partner import PartnerQuotas
from waypost.store.contract import StoreUnavailable
from waypost.store.database import NOTIFICATIONS_MISSED, Database
from waypost.store.queue.depths import PartnerBacklog, count_backlog

RECOUNT_MS: Final = 5_000
MAX_RECOUNT_MS: Final = 30_000
RECOUNT_TIMES: Final = 20
"""A count is used for 5 s, or 20 times as long as it took, but at most 30 s."""

RECOUNT_FULL_MS: Final = 100
RECOUNT_FULL_TIMES: Final = 10
"""The same for a partner that has reached a quota: it may send again as soon as there is room."""

ALLOWANCE_SHARE: Final = 8
ALLOWANCE_QUOTA_SHARE: Final = 64
MIN_ALLOWANCE: Final = 100
"""With one count, a process accepts an eighth of the room, but at least a 64th of the quota, or 100 messages."""

QUOTAS_CHANGED: Final = "quotas_changed"
"""Notification between processes: the quotas of a partner, whose id it contains, were changed."""

QUOTA_RETRY_S: Final = 5
LOG_INTERVAL_MS: Final = 60_000
AT_QUOTA_MS: Final = 60_000

MESSAGES: Final = "messages"
CALLBACKS: Final = "callbacks"
_COUNT_UP_TO_QUOTAS: Final = partial(count_backlog, up_to_quotas=True)


@dataclass(slots=True)
class PartnerCount:
    """The last count of a partner, and what was accepted here since it was begun."""

    backlog: PartnerBacklog | None = None
    begun_ms: int = 0  # when the count was begun, by the steady clock
    took_ms: int = 0  # how long it took
    accepted: int = 0  # messages; those that were being stored when the count was begun are among them
    usable_until_ms: int = 0  # until when nothing but `accepted` has to be looked at, by the steady clock
    usable_accepted: float = 0  # below this number of accepted messages; 0: there is no usable count
    storing: int = 0  # of these, messages that may not be on disk yet
    task: asyncio.Task[None] | None = None  # a count in progress
    changes: int = 0  # how often the partner's quotas were changed, as far as this process knows
    rejected_ms: dict[str, int] = field(default_factory=dict[str, int])  # the time of the last rejection, by quota
    logged_ms: dict[str, int] = field(default_factory=dict[str, int])  # the time of the last log record, by quota
    unlogged: Counter[str] = field(default_factory=Counter[str])  # rejections since then

    def note_limits(self) -> None:
        """Note until when messages are accepted without another look at the count."""
        quotas = None if self.backlog is None else self.backlog.quotas
        if self.backlog is None or quotas is None or (quotas.callbacks and self.backlog.callbacks >= quotas.callbacks):
            self.usable_accepted = 0
            return
        room = quotas.messages - self.backlog.messages if quotas.messages else float("inf")
        self.usable_accepted = min(_allowance(self.backlog) / 2, room)
        self.usable_until_ms = self.begun_ms + _lifetime_ms(self)


class BacklogQuotas:
    """The quotas of every partner, as one process checks them.

    Args:
        database: the store.
        clock: its steady clock says how old a count is.
        default: quotas of the partners that have none of their own.

    Attributes:
        rejections: number of requests that were rejected, by quota: `messages`, `callbacks`.
    """

    def __init__(self, database: Database, clock: Clock, default: PartnerQuotas) -> None:
        self._database = database
        self._clock = clock
        self._default = default
        self._counts: dict[int, PartnerCount] = {}
        self.rejections: Counter[str] = Counter()
        self._log = log("api")
        self._throttled_log = ThrottledLog(self._log)
        database.add_notification_listener(self._receive_notification)

    async def admit_message(self, partner_id: int) -> PartnerCount:
        """Count one message that is about to be stored.

        Returns:
            The count; the caller takes one from its `storing` once the message is on disk, or will never be.

        Raises:
            ApiError: 429, the partner has as much waiting as a quota allows. Nothing has been stored.
        """
        count = self._counts.get(partner_id)
        if count is None:
            count = self._counts[partner_id] = PartnerCount()
        now_ms = self._clock.real_ms()
        if count.accepted >= count.usable_accepted or now_ms >= count.usable_until_ms:
            if _must_recount(count, now_ms):
                await asyncio.shield(self._recount(partner_id, count))
            elif _may_recount(count, now_ms):
                self._recount(partner_id, count)
            reached = _reached_quota(count)
            if reached is not None:
                raise self._reject(partner_id, count, *reached)
        count.accepted += 1
        count.storing += 1
        return count

    def apply_change(self, partner_id: int) -> None:
        """Read a partner's quotas again before its next message, here and in every other process.

        Call it once the change is on disk.
        """
        self._discard_count(partner_id)
        self._database.notify(QUOTAS_CHANGED, str(partner_id))

    def partners_at_quota(self, name: str) -> int:
        """Return how many partners were rejected here within the last minute because of a quota."""
        since_ms = self._clock.real_ms() - AT_QUOTA_MS
        return sum(count.rejected_ms.get(name, since_ms) > since_ms for count in self._counts.values())

    def _receive_notification(self, subject: str, content: str) -> None:
        if subject == QUOTAS_CHANGED:
            self._discard_count(int(content))
        elif subject == NOTIFICATIONS_MISSED:
            for partner_id in self._counts:
                self._discard_count(partner_id)

    def _discard_count(self, partner_id: int) -> None:
        count = self._counts.get(partner_id)
        if count is not None:
            count.backlog = None
            count.changes += 1
            count.note_limits()

    def _reject(self, partner_id: int, count: PartnerCount, name: str, quota: int) -> ApiError:
        now_ms = self._clock.real_ms()
        self.rejections[name] += 1
        count.rejected_ms[name] = now_ms
        count.unlogged[name] += 1
        logged_ms = count.logged_ms.get(name)
        if logged_ms is None or now_ms - logged_ms >= LOG_INTERVAL_MS:
            count.logged_ms[name] = now_ms
            self._log.warning(
                "a partner is at its quota", partner_id=partner_id, waiting=name, quota=quota,
                rejected=count.unlogged.pop(name),
            )  # fmt: skip
        receiver = "the operator" if name == MESSAGES else "your receivers"
        return ApiError(
            ErrorCode.TOO_MANY_REQUESTS,
            f"At most {quota} {name} may wait for {receiver}, and so many do; try again in {QUOTA_RETRY_S} s.",
            retry_after_s=QUOTA_RETRY_S,
        )

    def _recount(self, partner_id: int, count: PartnerCount) -> asyncio.Task[None]:
        """Begin to count what a partner has waiting, unless it is being counted."""
        if count.task is None:
            count.task = asyncio.create_task(self._count(partner_id, count))
            count.task.add_done_callback(_retrieve_error)
        return count.task

    async def _count(self, partner_id: int, count: PartnerCount) -> None:
        try:
            while True:
                begun_ms, begun_s, changes = self._clock.real_ms(), time.perf_counter(), count.changes
                # What is being stored now may or may not be counted; what has been stored will be.
                certain = count.accepted - count.storing
                backlog = await self._read_backlog(partner_id)
                count.begun_ms, count.took_ms = begun_ms, int((time.perf_counter() - begun_s) * 1000)
                if backlog is not None:
                    count.accepted -= certain
                    count.backlog = backlog
                elif count.backlog is None:
                    count.backlog = PartnerBacklog(0, 0, self._default)
                count.note_limits()
                if count.changes == changes:  # otherwise it may have the quotas of before
                    return
        finally:
            count.task = None

    async def _read_backlog(self, partner_id: int) -> PartnerBacklog | None:
        """Count in the store; None if that fails: the last count is used, for a quota must not cause an outage."""
        try:
            return await self._database.read(_COUNT_UP_TO_QUOTAS, partner_id, self._default)
        except StoreUnavailable:
            self._throttled_log.warning("the backlog of a partner could not be counted", partner_id=partner_id)
            return None


def _reached_quota(count: PartnerCount) -> tuple[str, int] | None:
    """Return the name and the value of the quota that a partner has reached."""
    backlog = count.backlog
    if backlog is None:
        return None
    quotas = backlog.quotas
    if quotas.messages and backlog.messages + count.accepted >= quotas.messages:
        return MESSAGES, quotas.messages
    if quotas.callbacks and backlog.callbacks >= quotas.callbacks:
        return CALLBACKS, quotas.callbacks
    return None


def _must_recount(count: PartnerCount, now_ms: int) -> bool:
    """True if the last count cannot be used: a message then waits for the next one."""
    if count.backlog is None:
        return True
    age_ms = now_ms - count.begun_ms
    if _reached_quota(count) is not None:
        return age_ms >= max(RECOUNT_FULL_MS, RECOUNT_FULL_TIMES * count.took_ms)
    return age_ms >= 2 * _lifetime_ms(count) or count.accepted >= _allowance(count.backlog)


def _may_recount(count: PartnerCount, now_ms: int) -> bool:
    """True if the last count should be replaced soon: messages do not wait for the next one."""
    backlog = count.backlog
    if backlog is None or _reached_quota(count) is not None:
        return False
    return now_ms - count.begun_ms >= _lifetime_ms(count) or 2 * count.accepted >= _allowance(backlog)


def _lifetime_ms(count: PartnerCount) -> int:
    return min(max(RECOUNT_MS, RECOUNT_TIMES * count.took_ms), MAX_RECOUNT_MS)


def _allowance(backlog: PartnerBacklog) -> float:
    """Return how many messages a process accepts before it counts again."""
    quota = backlog.quotas.messages
    if not quota:
        return float("inf")
    return max((quota - backlog.messages) // ALLOWANCE_SHARE, quota // ALLOWANCE_QUOTA_SHARE, MIN_ALLOWANCE)


def _retrieve_error(task: asyncio.Task[None]) -> None:
    """Mark the error of a count as seen: the requests that wait for the count get it too."""
    if not task.cancelled():
        task.exception()
