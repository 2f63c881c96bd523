"""The promises of `docs/explanation/delivery-guarantees.md`, checked on what was observed from outside.

Written from that page, not from the code. A broken promise is a sentence in `Observed.broken`.
"""

import asyncio
import contextlib
import itertools
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Final

from simulation.accounts import PartnerAccount
from simulation.observed import Exchange, Observed
from simulation.received import CallbackSeen, by_path_and_subject, not_overtaken, read_callbacks, read_webhooks

RANKS: Final = {"enqueued": 1, "sent": 2, "delivered": 4, "read": 5}
FAILED_RANK: Final = 3  # "to failed from any state before delivered"
UNCERTAIN_CODE: Final = 4002
ORDER_HOLD_S: Final = 900
NO_PROGRESS_S: Final = 60
NEIGHBOUR_S: Final = 5
"""Longest way of a status from the operator to a healthy receiver. Nothing on it waits for anybody else: two commits and
one request of a few milliseconds; the only pause that is allowed is that of slots, which is 1 s."""
GRACE_S: Final = 0.5
"""A request that left before a response came may arrive so much later."""

_JOBS: Final = (
    "SELECT position, queue, ordering_key, due_ms, attempt, state, note, ref FROM queue_jobs ORDER BY position"
)
_OPEN_CALLBACKS: Final = (
    "SELECT position, subscription_id, subject, due_ms, attempt, state, note, id FROM callbacks "
    "WHERE ended_on_ms IS NULL ORDER BY subscription_id, subject, sequence"
)


class Promises:
    """The checks of one run.

    Args:
        folder: of the stores of both sides.
        read: returns what a query finds, if the store is not in the folder.
    """

    def __init__(
        self,
        observed: Observed,
        partners: list[PartnerAccount],
        folder: Path,
        read: Callable[[str], Awaitable[list[Any]]] | None,
    ) -> None:
        self._observed, self._folder, self._read = observed, folder, read
        self._apps = [app for partner in partners for app in partner.apps]
        self._standing: dict[Any, float] = {}
        self._sent: dict[str, int] = {}  # what the operator has accepted: our id, and in which place
        self._tasks_before: Counter[str] = Counter()
        self.next_retry_ms = 0  # when the latest of the retries that wait is due

    # While it runs.

    def check_acknowledged(self, key: str, table: str) -> None:
        """200 means on disk: another connection finds what was acknowledged a moment ago."""
        if self._read is None and not self._rows("waypost", f"SELECT 1 FROM {table} WHERE id='{key}'"):
            self._break(f"{key} was acknowledged and is not stored")

    async def check_progress(self, now_ms: int, *, is_last: bool = False) -> bool:
        """Nothing stands still while it is due; return True if no work is left."""
        now_s = _loop().time()
        jobs, callbacks = await self._store(_JOBS), await self._store(_OPEN_CALLBACKS)
        query = f"SELECT id FROM subscriptions WHERE NOT active OR next_attempt_ms > {now_ms}"  # or it is failing
        paused = {number for (number,) in await self._store(query)}
        due = [
            row
            for rows in (jobs, [row for row in callbacks if row[1] not in paused])
            for row in {(row[1], row[2]): row for row in reversed(rows)}.values()  # the others wait for these
            if row[3] <= now_ms
        ]
        self._standing = {row: self._standing.get(row, now_s) for row in due}
        for row, since_s in self._standing.items():
            if now_s - since_s >= NO_PROGRESS_S:
                self._break(f"no progress for {NO_PROGRESS_S} s of {row}")
        self.next_retry_ms = max((row[3] for row in (*jobs, *callbacks) if row[4]), default=0)
        left = [*jobs, *callbacks, *self._rows("simulator", "SELECT * FROM outbox")]
        self._observed.broken += [f"left: {row}" for row in left if is_last]
        return not left

    def note_sizes(self) -> None:
        """Note what exists before the first message."""
        self._tasks_before = _task_names()

    # At the end.

    async def check_end(self, transports: list[Any], in_flight: list[str]) -> None:
        """Check everything that is only known at the end."""
        self._check_sizes(transports, in_flight)
        self._check_errors()
        await self._check_sends()
        self._check_pauses()
        callbacks = read_callbacks(self._observed.exchanges)
        self._check_attempts(callbacks)
        self._check_order(callbacks)
        self._check_states(callbacks)
        await self._check_completeness(callbacks)
        self._check_neighbours(callbacks)

    def _check_sizes(self, transports: list[Any], in_flight: list[str]) -> None:
        """Memory and tables return to their size."""
        for text in in_flight:
            self._break(f"at the end {text} is in flight")
        for name, count in (_task_names() - self._tasks_before).items():
            self._break(f"{count} more of the task {name} at the end than before")
        if still_open := sum(not transport.is_closing() for transport in transports):
            self._break(f"{still_open} ends of connections are open although nothing happens")

    def _check_errors(self) -> None:
        """A 500 is a defect of the service, or its store is away, which happens on PostgreSQL only."""
        for one in self._observed.exchanges if self._read is None else ():
            if one.site == "service" and any(run.status == 500 for run in one.runs):
                self._break(f"{one.method} {one.path} got 500: {one.body[:200]!r}")

    async def _check_sends(self) -> None:
        """Nothing acknowledged is lost, nothing is sent twice, and each recipient's messages are in order."""
        stored = {key for table in ("messages", "templates") for (key,) in await self._store(f"SELECT id FROM {table}")}
        positions = self._sent
        query = "SELECT callback_data, position FROM messages WHERE is_inbound=0 ORDER BY position"
        for data, position in self._rows("simulator", query):
            message_id = data.split(" ")[0]
            if message_id in positions:
                self._break(f"{message_id} was sent twice")
            positions[message_id] = position
        sent = [one for one in self._observed.acknowledged if one.id in positions]
        for one in self._observed.acknowledged:
            if one.id not in stored:
                self._break(f"{one.id} was acknowledged and is lost")
        for one, other in itertools.permutations(sent, 2):
            is_later = (one.app_id, one.to) == (other.app_id, other.to) and one.ended_s < other.began_s
            if is_later and positions[one.id] > positions[other.id]:
                self._break(f"{other.id} was sent before {one.id}, which was acknowledged before it came")

    def _check_pauses(self) -> None:
        """Nobody is called during a pause that he asked for, and no number sends faster than it may."""
        sends = defaultdict[str, list[Exchange]](list)
        for one in self._observed.exchanges:
            if one.site == "operator" and one.method == "POST" and one.path.endswith("/messages"):
                sends[one.path.split("/")[-2]].append(one)
            elif "waypost-sequence" in one.headers:
                sends[one.path].append(one)
        for name, calls in sends.items():
            for one in calls:
                if one.status != 429 or one.retry_after_s is None or one.ended_s is None:
                    continue
                until_s = one.ended_s + one.retry_after_s - GRACE_S
                early = [other.began_s for other in calls if one.ended_s + GRACE_S < other.began_s < until_s]
                if early and not self._was_disturbed(one.ended_s, until_s):
                    self._break(
                        f"{name} asked at {one.ended_s:.1f} s for {one.retry_after_s} s, and was called at {early}"
                    )
        for app in self._apps:
            times_s = [one.began_s for one in sends[app.number_id]]
            for began_s, ended_s in zip(times_s, times_s[app.per_second + 1 :], strict=False):
                if ended_s - began_s < 1 - 0.05 and not self._was_disturbed(began_s, ended_s):
                    self._break(f"{app.name} sent {app.per_second + 2} messages from {began_s:.2f} to {ended_s:.2f} s")

    def _check_attempts(self, callbacks: list[CallbackSeen]) -> None:
        """Each attempt has the same bytes, id and sequence number; each event has one id; nobody gets what he did not ask."""
        by_id: dict[str, CallbackSeen] = {}
        by_event: dict[tuple[Any, ...], str] = {}
        for one in callbacks:
            first = by_id.setdefault(one.id, one)
            if (first.path, first.sequence, first.exchange.body) != (one.path, one.sequence, one.exchange.body):
                self._break(f"callback {one.id} was not the same at each attempt")
            if one.event == "template":
                continue
            if by_event.setdefault((one.path, one.subject, one.event, one.code), one.id) != one.id:
                self._break(f"{one.event} of {one.subject} was called back to {one.path} by two ids")
            terms = self._observed.subscriptions[one.path]
            if one.event.upper() not in terms.modes:
                self._break(f"{one.path} got {one.event}, which it did not ask for")
            if terms.deleted_s is not None and one.exchange.began_s > terms.deleted_s + 2 * GRACE_S:
                self._break(f"{one.path} got a callback after it was deleted")

    def _check_order(self, callbacks: list[CallbackSeen]) -> None:
        """One at a time, in order, for each subscription and recipient: the one before was received."""
        chains = defaultdict[tuple[str, str], dict[str, list[CallbackSeen]]](lambda: defaultdict(list))
        for one in callbacks:
            chains[one.path, one.recipient][one.id].append(one)
        for (path, recipient), attempts in chains.items():
            in_order = sorted(attempts.values(), key=lambda tries: tries[0].sequence)
            for older, newer in itertools.pairwise(in_order):
                at_s = newer[0].exchange.began_s
                if older[0].sequence == newer[0].sequence:
                    self._break(f"{older[0].id} and {newer[0].id} have one sequence number")
                tries = [one.exchange for one in older]
                received = any((one.status or 500) < 300 and (one.ended_s or 0) <= at_s for one in tries)
                held_s = at_s - older[0].exchange.began_s
                held_s += sum(max(0, jump_s) for _, jump_s in self._observed.jumps)
                if not received and held_s < ORDER_HOLD_S:
                    self._break(
                        f"{path} got {newer[0].event} of {newer[0].subject} for {recipient} at {at_s:.2f} s "
                        f"before it had received {older[0].event} of {older[0].subject}"
                    )

    def _check_states(self, callbacks: list[CallbackSeen]) -> None:
        """States never go backwards."""
        for path, by_subject in by_path_and_subject(callbacks).items():
            for subject, events in by_subject.items():
                rank, failed_code = 0, None
                for one in [each for each in events if each.event != "message"]:
                    if one.event == "failed":
                        is_backwards = rank > FAILED_RANK or failed_code not in (None, UNCERTAIN_CODE)
                        failed_code = one.code
                    else:
                        is_backwards = RANKS[one.event] <= rank or failed_code not in (None, UNCERTAIN_CODE)
                        rank = RANKS[one.event]
                    if is_backwards:
                        names = [each.event for each in events]
                        self._break(f"{subject} went backwards for {path}: {names}")

    async def _check_completeness(self, callbacks: list[CallbackSeen]) -> None:
        """One callback for each state and each subscription that asked for it, and none that is invented."""
        seen = by_path_and_subject(callbacks)
        states = dict(await self._store("SELECT id, state FROM messages"))
        app_of = dict(await self._store("SELECT id, app_id FROM messages"))
        statuses, inbound = read_webhooks(self._observed.exchanges)
        for message_id, state in states.items():
            if state in ("accepted", "uncertain"):
                self._break(f"{message_id} is {state} at the end")
            required = {state} | not_overtaken(statuses[message_id], {**RANKS, "failed": FAILED_RANK})
            reported = {status.name for status in statuses[message_id]}
            for path in self._steady(app_of[message_id]):
                names = {one.event for one in seen[path][message_id]}
                if state in RANKS and not any(one.code == UNCERTAIN_CODE for one in seen[path][message_id]):
                    required |= {"enqueued"}
                for name in sorted(required - names):
                    if name.upper() in self._observed.subscriptions[path].modes:
                        self._break(
                            f"{message_id} is {state}, and {name} was not called back to {path}: {sorted(names)}"
                        )
                if invented := names - reported - {"enqueued", "failed"}:
                    self._break(f"{path} got {invented} of {message_id}, which never happened")
                codes = {one.code for one in seen[path][message_id] if one.event == "failed"}
                if message_id in self._sent and codes - {UNCERTAIN_CODE} and "failed" not in reported:
                    self._break(
                        f"{path} was told that {message_id} failed with {codes}, and the operator had accepted it"
                    )
        for wamid, number_id in inbound.items():
            app = next(app for app in self._apps if app.number_id == number_id)
            for path in self._steady(app.id):
                if "MESSAGE" in self._observed.subscriptions[path].modes and not seen[path][wamid]:
                    self._break(f"{wamid} of a phone was not called back to {path}")

    def _check_neighbours(self, callbacks: list[CallbackSeen]) -> None:
        """A receiver without any fault waits for no other: each status is there a moment after it came."""
        healthy = [one for one in callbacks if one.exchange.site in self._observed.healthy_sites]
        statuses, _ = read_webhooks(self._observed.exchanges)
        for path, by_subject in by_path_and_subject(healthy).items():
            for subject, events in by_subject.items():
                for one in events:
                    came_s = min((s.ended_s for s in statuses[subject] if s.name == one.event), default=None)
                    late_s = 0 if came_s is None else one.exchange.began_s - came_s
                    if late_s > NEIGHBOUR_S and not self._was_disturbed(came_s or 0, one.exchange.began_s):
                        self._break(f"{path} waited {late_s:.1f} s for {one.event} of {subject}")

    # What was observed, read.

    def _steady(self, app_id: str) -> Iterable[str]:
        return [path for path, one in self._observed.subscriptions.items() if one.is_steady and one.app_id == app_id]

    def _was_disturbed(self, from_s: float, to_s: float) -> bool:
        """True if in this time the clock jumped, a receiver was to be retried at once, or the service was away."""
        times_s = [*self._observed.retries, *(at_s for at_s, _ in self._observed.jumps)]
        return any(from_s - NO_PROGRESS_S <= at_s <= to_s for at_s in times_s) or any(
            began_s <= to_s and ended_s >= from_s for began_s, ended_s in self._observed.interruptions
        )

    async def _store(self, query: str) -> list[Any]:
        """Return what a query finds in the service's store."""
        if self._read is None:
            return self._rows("waypost", query)
        return [tuple(row) for row in await self._read(query)]

    def _rows(self, store: str, query: str) -> list[Any]:
        with contextlib.closing(sqlite3.connect(self._folder / f"{store}.db")) as connection:
            connection.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)  # a reader changes nothing
            return connection.execute(query).fetchall()

    def _break(self, text: str) -> None:
        if text not in self._observed.broken:
            self._observed.broken.append(text)


def _task_names() -> Counter[str]:
    killed = set[Any](_loop()._crashed_tasks)
    return Counter(getattr(task.get_coro(), "__qualname__", "?") for task in asyncio.all_tasks() if task not in killed)


def _loop() -> Any:
    return asyncio.get_running_loop()
