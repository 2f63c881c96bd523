"""Queries of the overview: the state of the app, and counts of messages by minute."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from sqlalchemy import Connection

from waypost.base.clock import DAY_MS, HOUR_MS, MINUTE_MS
from waypost.base.telemetry.counters import LimitedRate
from waypost.console.messages.list_rows import kind_label
from waypost.console.page_request import PageRequest
from waypost.domain.app import App
from waypost.domain.partner import PartnerCredential
from waypost.store.accounts.credentials import CredentialKind, list_credentials
from waypost.store.console.overview import (
    AppQueueDepth,
    OnboardingProgress,
    OperatorActivity,
    StoredMinuteCounts,
    app_queue_depths,
    counts_by_minute,
    dead_letters_of_app,
    onboarding_progress,
    operator_activity,
    receivers_of_app,
    templates_with_problems,
)
from waypost.store.database import Database
from waypost.store.messages.lists import messages_of_app, template_names_by_ids
from waypost.store.queue.depths import DeadLetter

MAX_NEWEST_READ: Final = 12_000
"""Maximum messages of the newest minutes read per update."""
MAX_REMAINING_READ: Final = 12_000
"""Maximum messages of the rest of the day read per update, until all has been counted once."""
MAX_RECOUNT_READ: Final = 3_000
"""Maximum messages of older minutes recounted per update."""
NEWEST_MINUTES: Final = 2
"""Number of newest minutes that each update recounts, because they change most."""
LONGEST_DAY_MS: Final = 25 * HOUR_MS
"""The day on which summer time ends."""
MAX_CACHED_APPS: Final = 200
COUNTS_CACHE_S: Final = 1.0
"""For this time all viewers of an app share one update."""

MessageCounter = Callable[[int, int, int], Awaitable[StoredMinuteCounts]]
"""Counts messages from a time to before a time, reading a limited number of messages."""

StateAndCode = tuple[str, int | None]
"""A state and an error code."""


@dataclass(slots=True)
class MinuteCounts:
    """The counts of one app, as far back as they go: of each minute, the messages by state and error code."""

    minutes: dict[int, Counter[StateAndCode]] = field(default_factory=dict[int, Counter[StateAndCode]])
    reasons: dict[int | None, str] = field(default_factory=dict[int | None, str])  # one reason text per error code
    counted_from_ms: int = 0  # start of the counted time
    updated_ms: int = -1
    recount_before_ms: int = 0
    updated_s: float = float("-inf")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def count_between(self, from_ms: int, before_ms: int) -> Counter[StateAndCode]:
        """Return the counts of messages accepted in a span of whole minutes."""
        total: Counter[StateAndCode] = Counter()
        for minute, counts in self.minutes.items():
            if from_ms <= minute * MINUTE_MS < before_ms:
                total.update(counts)
        return total

    async def update(self, count: MessageCounter, now_ms: int) -> None:
        """Update the counts, unless that was done less than `COUNTS_CACHE_S` ago."""
        loop = asyncio.get_running_loop()
        async with self.lock:
            if loop.time() < self.updated_s + COUNTS_CACHE_S:
                return
            await self._count(count, now_ms)
            self.updated_s = loop.time()

    async def _count(self, count: MessageCounter, now_ms: int) -> None:
        begin_ms, until_ms = count_start_ms(now_ms), now_ms + 1
        if now_ms < self.updated_ms:
            self._clear()
        is_first = self.updated_ms < 0
        last_ms = self.updated_ms // MINUTE_MS * MINUTE_MS
        newest_ms = begin_ms if is_first else max(begin_ms, last_ms - (NEWEST_MINUTES - 1) * MINUTE_MS)
        newest = await count(newest_ms, until_ms, MAX_NEWEST_READ)
        if is_first or newest.from_ms > max(last_ms + MINUTE_MS, begin_ms):
            self._clear()  # more messages came since the last update than one update reads
            self.counted_from_ms = newest.from_ms
        self._replace(newest, newest.from_ms, until_ms)
        if self.counted_from_ms > begin_ms and not is_first:
            await self._count_back(count, begin_ms)
        elif not is_first:
            await self._count_again(count, begin_ms, newest_ms)
        self.updated_ms = now_ms
        for minute in [minute for minute in self.minutes if minute * MINUTE_MS < begin_ms]:
            del self.minutes[minute]

    async def _count_back(self, count: MessageCounter, begin_ms: int) -> None:
        """Continue the first count where it stopped."""
        before_ms = self.counted_from_ms
        older = await count(begin_ms, before_ms, MAX_REMAINING_READ)
        self._replace(older, older.from_ms, before_ms)
        self.counted_from_ms = min(older.from_ms, before_ms)

    async def _count_again(self, count: MessageCounter, begin_ms: int, newest_ms: int) -> None:
        """Recount the next older minutes in turn."""
        before_ms = self.recount_before_ms
        if not begin_ms < before_ms <= newest_ms:
            before_ms = newest_ms
        if before_ms > begin_ms:
            older = await count(begin_ms, before_ms, MAX_RECOUNT_READ)
            self._replace(older, older.from_ms, before_ms)
            self.recount_before_ms = older.from_ms

    def _replace(self, new_counts: StoredMinuteCounts, from_ms: int, before_ms: int) -> None:
        """Replace the counts of a span."""
        for minute in [minute for minute in self.minutes if from_ms <= minute * MINUTE_MS < before_ms]:
            del self.minutes[minute]
        for row in new_counts.rows:
            counts = self.minutes.setdefault(row.minute, Counter())
            counts[row.state, row.code] += row.messages
            if row.reason is not None:
                self.reasons[row.code] = row.reason

    def _clear(self) -> None:
        self.minutes.clear()
        self.reasons.clear()
        self.recount_before_ms = 0
        self.updated_ms = -1


_counts_by_database: Final[WeakKeyDictionary[Database, OrderedDict[str, MinuteCounts]]] = WeakKeyDictionary()


def _counts_of(database: Database, app_id: str) -> MinuteCounts:
    """Return an app's counts, created on first use; only those of the apps viewed last are kept."""
    by_app = _counts_by_database.setdefault(database, OrderedDict())
    counts = by_app.setdefault(app_id, MinuteCounts())
    by_app.move_to_end(app_id)
    while len(by_app) > MAX_CACHED_APPS:
        by_app.popitem(last=False)
    return counts


def count_start_ms(now_ms: int) -> int:
    """Return the start of the counts: today has not begun earlier in any time zone, and so in no reader's."""
    return (now_ms - LONGEST_DAY_MS) // MINUTE_MS * MINUTE_MS


def count_in_states(counted: Counter[StateAndCode], states: Iterable[str]) -> int:
    """Return the number of messages in any of these states."""
    selected = set(states)
    return sum(count for (state, _), count in counted.items() if state in selected)


REJECTED_TEMPLATE_MS: Final = 7 * DAY_MS
"""For this time a rejected template is listed under "Needs attention"."""
NEWEST_MESSAGES: Final = 8


@dataclass(frozen=True, slots=True)
class AppOverview:
    """Current data of one app."""

    app: App
    now_ms: int
    counts: MinuteCounts
    not_ready: Mapping[str, str]  # failed readiness checks with their reasons
    limited: Sequence[LimitedRate]  # the rates that have limited requests of the app in the last minutes
    is_demo: bool  # true in `waypost dev`
    newest: list[dict[str, Any]]  # messages, each with the name of its template or its kind as `what`
    receivers: list[dict[str, Any]]
    queues: list[AppQueueDepth]
    dead_letters: list[DeadLetter]
    problem_templates: list[Any]
    operator: OperatorActivity
    progress: OnboardingProgress
    secrets: list[PartnerCredential]


async def read_overview(request: PageRequest) -> AppOverview:
    """Read the overview's data."""
    services, app, partner_id = request.services, request.app, request.partner.id
    now_ms = request.now_ms()

    async def count(from_ms: int, before_ms: int, at_most: int) -> StoredMinuteCounts:
        return await request.read_own(counts_by_minute, from_ms, before_ms, at_most)

    counts = _counts_of(services.database, app.id)
    await counts.update(count, now_ms)
    data = await request.read(partial(_read_data, app=app, partner_id=partner_id, now_ms=now_ms))
    return AppOverview(
        app=app,
        now_ms=now_ms,
        counts=counts,
        not_ready={name: reason for name, reason in (await services.ready()).items() if reason},
        limited=tuple(services.limited.limited_rates(app.id)),
        is_demo=services.demo_partner_id is not None,
        **data,
    )


def _read_data(connection: Connection, *, app: App, partner_id: int, now_ms: int) -> dict[str, Any]:
    receivers = receivers_of_app(connection, partner_id, app.id)
    ids = [receiver["id"] for receiver in receivers]
    newest = messages_of_app(connection, partner_id, app.id, at_most=NEWEST_MESSAGES)
    names = template_names_by_ids(connection, partner_id, (message["template_id"] for message in newest))
    problems_from_ms = now_ms - REJECTED_TEMPLATE_MS
    return {
        "newest": [
            {**row, "what": names.get(row["template_id"]) or kind_label(row["kind"], row["content"])} for row in newest
        ],
        "receivers": receivers,
        "queues": app_queue_depths(connection, app, ids),
        "dead_letters": dead_letters_of_app(connection, app, ids),
        "problem_templates": templates_with_problems(connection, partner_id, app.business_account_id, problems_from_ms),
        "operator": operator_activity(connection, partner_id, app.id),
        "progress": onboarding_progress(connection, partner_id, app, ids),
        "secrets": list_credentials(connection, CredentialKind.CLIENT_SECRET, partner_id),
    }
