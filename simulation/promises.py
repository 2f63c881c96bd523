"""The promises of `docs/explanation/delivery-guarantees.md`, checked on what was observed from outside.

Written from that page, not from the code. A broken promise is a sentence in `Observed.broken`.
"""

import asyncio
import contextlib
import itertools
import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from simulation.accounts import BUTTONS, PartnerAccount
from simulation.leftovers import find_stale_marks
from simulation.observed import Observed
from simulation.partners import LABEL
from simulation.received import (
    CallbackSeen,
    by_path_and_subject,
    lost_template_update,
    not_overtaken,
    read_callbacks,
    read_tap,
    read_webhooks,
)
from waypost.store.queue.job_subjects import QueueName

RANKS: Final = {"enqueued": 1, "sent": 2, "delivered": 4, "read": 5}
FAILED_RANK: Final = 3  # "to failed from any state before delivered"
UNCERTAIN_CODE: Final = 4002
NO_PROGRESS_S: Final = 60
DELETED_WITHIN_S: Final = 1
"""A callback that had left before a deletion or a pause was acknowledged may arrive so much later."""

_LABEL: Final = re.compile(LABEL + r"[\d.]+")
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
        self.next_retry_ms = 0  # when the latest of the retries that wait is due, the operator's of webhooks too

    # While it runs.

    def check_acknowledged(self, key: str, table: str) -> None:
        """200 means on disk: another connection finds what was acknowledged a moment ago."""
        if self._read is None and not self._rows(f"SELECT 1 FROM {table} WHERE id='{key}'")[0]:
            self._break(f"{key} was acknowledged and is not stored")

    async def check_progress(self, now_ms: int, *, is_last: bool = False) -> bool:
        """Nothing stands still while it is due; return True if no work is left."""
        now_s = _loop().time()
        query = f"SELECT id FROM subscriptions WHERE NOT active OR next_attempt_ms > {now_ms}"  # or it is failing
        queries = (_JOBS, _OPEN_CALLBACKS, query, "SELECT id FROM subscriptions WHERE NOT active")
        jobs, callbacks, no_callbacks, inactive = await self._store(*queries)
        paused = {number for (number,) in no_callbacks}
        replays = tuple(f"replay {number} " for number in paused)
        others = [row for row in jobs if not row[2].startswith(replays)]
        due = [
            row
            for rows in (others, [row for row in callbacks if row[1] not in paused])
            for row in {(row[1], row[2]): row for row in reversed(rows)}.values()  # the others wait for these
            if row[3] <= now_ms
        ]
        self._observed.broken += find_stale_marks(self._observed, [(row[7], row[5]) for row in (*jobs, *callbacks)])
        self._standing = {row: self._standing.get(row, now_s) for row in due}
        for row, since_s in self._standing.items():
            if now_s - since_s >= NO_PROGRESS_S:
                self._break(f"no progress for {NO_PROGRESS_S} s of {row}")
        outbox, retries = self.read_operator("SELECT * FROM outbox", "SELECT body FROM state WHERE kind = 'retry'")
        due_ms = [row[3] for row in (*jobs, *callbacks) if row[4]]
        due_ms += [json.loads(body)["next_ms"] for (body,) in retries if outbox]
        self.next_retry_ms = max(due_ms, default=0)
        # Callbacks to one that its partner has paused wait, also if it cannot resume it: it may not know its new token
        left = [*jobs, *(row for row in callbacks if (row[1],) not in inactive)] or outbox
        self._observed.broken += [f"left: {row}" for row in left if is_last]
        return not left

    async def has_uncertain(self) -> bool:
        """True if it is unclear of a message whether it was sent, or was: its job ends when its time is over."""
        return bool((await self._store(f"SELECT ref FROM queue_jobs WHERE queue = {int(QueueName.UNCONFIRMED)}"))[0])

    def note_sizes(self) -> None:
        """Note what exists before the first message."""
        self._tasks_before = _task_names()

    # At the end.

    async def check_end(self, transports: list[Any], in_flight: list[str]) -> None:
        """Check everything that is only known at the end."""
        self._check_sizes(transports, in_flight)
        self._check_errors()
        await self._check_sends()
        callbacks = read_callbacks(self._observed.exchanges)
        self._check_attempts(callbacks)
        self._check_order(callbacks)
        self._check_states(callbacks)
        await self._check_completeness(callbacks)
        self._check_postbacks(callbacks)
        await self._check_templates()

    def _check_sizes(self, transports: list[Any], in_flight: list[str]) -> None:
        """Memory and tables return to their size."""
        for text in in_flight:
            self._break(f"at the end {text} is in flight")
        for name, count in (_task_names() - self._tasks_before).items():
            self._break(f"{count} more of the task {name} at the end than before")
        if still_open := sum(not transport.is_closing() for transport in transports):
            self._break(f"{still_open} ends of connections are open although nothing happens")

    def _check_errors(self) -> None:
        """A 500 is a defect of the service, or its store is away: PostgreSQL, or a disk that fails."""
        for one in self._observed.exchanges if self._read is None else ():
            if one.site == "service" and any(self._observed.is_defect(run) for run in one.runs):
                self._break(f"{one.method} {one.path} got 500: {one.body[:200]!r}")

    async def _check_sends(self) -> None:
        """Nothing acknowledged is lost, nothing is sent twice, and each recipient's messages are in order."""
        (found,) = await self._store("SELECT id FROM messages UNION ALL SELECT id FROM templates")
        stored = {key for (key,) in found}
        positions = self._sent
        query = "SELECT callback_data, position, content FROM messages WHERE is_inbound=0 ORDER BY position"
        labels = Counter[str]()
        for data, position, content in self.read_operator(query)[0]:
            message_id = data.split(" ")[0]
            labels.update(_LABEL.findall(content))
            if message_id in positions:
                self._break(f"{message_id} was sent twice")
            positions[message_id] = position
        for label in [label for label, count in labels.items() if count > 1]:
            self._break(f"the request {label!r} was sent as {labels[label]} messages")
        sent = [one for one in self._observed.acknowledged if one.id in positions]
        for one in self._observed.acknowledged:
            if one.id not in stored:
                self._break(f"{one.id} was acknowledged and is lost")
        for one, other in itertools.permutations(sent, 2):
            is_later = (one.app_id, one.to) == (other.app_id, other.to) and one.ended_s < other.began_s
            if is_later and positions[one.id] > positions[other.id]:
                self._break(f"{other.id} was sent before {one.id}, which was acknowledged before it came")

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
            if any(from_s + DELETED_WITHIN_S < one.exchange.began_s < to_s for from_s, to_s in terms.paused):
                self._break(f"{one.path} got a callback while it was paused")
            if terms.deleted_s is not None and one.exchange.began_s > terms.deleted_s + DELETED_WITHIN_S:
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
                held_s = at_s - self._observed.first_tried_s(older[0].exchange)
                held_s += sum(max(0, jump_s) for _, jump_s in self._observed.jumps)
                if not received and held_s < min(self._observed.order_hold_s):
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
        (rows,) = await self._store("SELECT id, state, app_id FROM messages")
        states, app_of = {row[0]: row[1] for row in rows}, {row[0]: row[2] for row in rows}
        statuses, inbound = read_webhooks(self._observed.exchanges)
        arrived, _ = read_webhooks(self._observed.exchanges, acknowledged=False)
        for message_id, state in states.items():
            if state in ("accepted", "uncertain"):
                self._break(f"{message_id} is {state} at the end")
            if state in RANKS and message_id not in self._sent:
                self._break(f"{message_id} is {state}, and the operator has never accepted it")
            required = {state} | not_overtaken(statuses[message_id], {**RANKS, "failed": FAILED_RANK})
            reported = {status.name for status in arrived[message_id]}
            for path in self._steady(app_of[message_id]):
                names = {one.event for one in seen[path][message_id]}
                if state in RANKS and not any(one.code == UNCERTAIN_CODE for one in seen[path][message_id]):
                    required |= {"enqueued"}
                for name in sorted(required - names):
                    if name.upper() in self._observed.subscriptions[path].modes:
                        self._break(f"{message_id} is {state}, and {path} did not get {name}: {sorted(names)}")
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

    def _check_postbacks(self, callbacks: list[CallbackSeen]) -> None:
        """A tapped button returns the text that was given for it, not its neighbour's or another message's."""
        for one in callbacks:
            tapped = read_tap(one.exchange.body) if one.event == "message" else None
            texts = None if tapped is None else self._observed.postbacks.get(tapped.message_id)
            if tapped is None or not texts:
                continue
            expected = dict(zip(BUTTONS, texts, strict=True))[tapped.label]
            if tapped.postback != expected:
                self._break(f"the tapped button {tapped.label!r} returned {tapped.postback!r} and not {expected!r}")

    async def _check_templates(self) -> None:
        """A template has the status that the operator gave it, unless a webhook about it was lost on the way."""
        if lost_template_update(self._observed.exchanges):
            return
        stored = await self._store(
            "SELECT operator_template_id, status FROM templates WHERE operator_template_id <> ''"
        )
        of_operator = self.read_operator("SELECT key, body FROM state WHERE kind = 'template'")[0]
        statuses = {key: json.loads(body)["status"] for key, body in of_operator}
        for number, status in stored[0]:
            if statuses.get(number, status) != status:
                self._break(f"template {number} is {status}, and {statuses[number]} at the operator")

    # What was observed, read.

    def _steady(self, app_id: str) -> Iterable[str]:
        return [path for path, one in self._observed.subscriptions.items() if one.is_steady and one.app_id == app_id]

    async def _store(self, *queries: str) -> list[list[Any]]:
        """Return what each query finds in the service's store."""
        if self._read is None:
            return self._rows(*queries)
        return [[tuple(row) for row in await self._read(query)] for query in queries]

    def read_operator(self, *queries: str) -> list[list[Any]]:
        """Return what each query finds in the operator's store."""
        return [self._operator.execute(query).fetchall() for query in queries]

    @cached_property
    def _operator(self) -> sqlite3.Connection:
        return sqlite3.connect(self._folder / "simulator.db")  # its process is never killed

    def _rows(self, *queries: str) -> list[list[Any]]:
        with contextlib.closing(sqlite3.connect(self._folder / "waypost.db")) as connection:
            connection.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)  # a reader changes nothing
            return [connection.execute(query).fetchall() for query in queries]

    def _break(self, text: str) -> None:
        if text not in self._observed.broken:
            self._observed.broken.append(text)


def _task_names() -> Counter[str]:
    killed = set[Any](_loop()._crashed_tasks)
    return Counter(getattr(task.get_coro(), "__qualname__", "?") for task in asyncio.all_tasks() if task not in killed)


def _loop() -> Any:
    return asyncio.get_running_loop()
