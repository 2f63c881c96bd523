"""The promises of `docs/explanation/delivery-guarantees.md`, checked on what was observed from outside.

Written from that page, not from the code, under its headings. A broken promise is a sentence in `Observed.broken`.
"""

import asyncio
import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, Final

from simulation.accounts import BUTTONS, PartnerAccount
from simulation.leftovers import find_stale_marks, subject_of
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
from simulation.stores import OpenWork, StoreQueries
from waypost.store.queue.job_subjects import QueueName

RANKS: Final = {"enqueued": 1, "sent": 2, "delivered": 4, "read": 5}
FAILED_RANK: Final = 3  # "to failed from any state before delivered"
UNCERTAIN_CODE: Final = 4002
NO_PROGRESS_S: Final = 60
DELETED_WITHIN_S: Final = 1
"""A callback that had left before a deletion or a pause was acknowledged may arrive so much later."""
CROSSES_WITHIN_S: Final = 0.03
"""A request that had left before its process ended arrives within this time."""
_LABEL: Final = re.compile(LABEL + r"[\d.]+")


class Promises:
    """The checks of one run."""

    def __init__(self, observed: Observed, partners: list[PartnerAccount], stores: StoreQueries) -> None:
        self._observed, self._stores = observed, stores
        self._apps = [app for partner in partners for app in partner.apps]
        self._due_since_s: dict[OpenWork, float] = {}
        self._sent: dict[str, int] = {}  # what the operator has accepted: our id, and in which place
        self.next_retry_ms = 0  # when the latest of the retries that wait is due, the operator's of webhooks too

    async def check_end(self) -> None:
        """Check everything that is only known at the end."""
        await self._check_stored()
        self._check_errors()
        self._check_sends()
        self._check_send_order()
        callbacks = read_callbacks(self._observed.exchanges)
        self._check_states(callbacks)
        await self._check_completeness(callbacks)
        self._check_inbound(callbacks)
        self._check_attempts(callbacks)
        self._check_terms(callbacks)
        self._check_postbacks(callbacks)
        await self._check_templates()
        self._check_order(callbacks)

    # "200 means on disk".

    def check_acknowledged(self, key: str, table: str) -> None:
        """Another connection finds what was acknowledged a moment ago."""
        if self._stores.is_on_disk and not self._stores.read_file(f"SELECT 1 FROM {table} WHERE id='{key}'")[0]:
            self._break(f"{key} was acknowledged and is not stored")

    async def _check_stored(self) -> None:
        """Nothing acknowledged is lost."""
        (found,) = await self._stores.read_service("SELECT id FROM messages UNION ALL SELECT id FROM templates")
        stored = {key for (key,) in found}
        for one in self._observed.acknowledged:
            if one.id not in stored:
                self._break(f"{one.id} was acknowledged and is lost")

    def _check_errors(self) -> None:
        """A 500 is a defect of the service, or its store is away: PostgreSQL, or a disk that fails."""
        for one in self._observed.exchanges if self._stores.is_on_disk else ():
            if one.site == "service" and any(self._observed.is_defect(run) for run in one.runs):
                self._break(f"{one.method} {one.path} got 500: {one.body[:200]!r}")

    # "Never sent twice silently".

    def _check_sends(self) -> None:
        """The operator has accepted each message once, and each request as one message."""
        query = "SELECT callback_data, position, content FROM messages WHERE is_inbound=0 ORDER BY position"
        labels = Counter[str]()
        for data, position, content in self._stores.read_operator(query)[0]:
            message_id = data.split(" ")[0]
            labels.update(_LABEL.findall(content))
            if message_id in self._sent:
                self._break(f"{message_id} was sent twice")
            self._sent[message_id] = position
        for label in [label for label, count in labels.items() if count > 1]:
            self._break(f"the request {label!r} was sent as {labels[label]} messages")

    def _check_send_order(self) -> None:
        """Each recipient's messages "are handed to the operator in order", but one that crosses the end of its process."""
        ends_s = [from_s for from_s, _ in self._observed.interruptions]
        crossed = {
            subject_of(one)
            for one in self._observed.exchanges
            if any(from_s <= one.began_s <= from_s + CROSSES_WITHIN_S for from_s in ends_s)
        }
        sent = [one for one in self._observed.acknowledged if one.id in self._sent]
        for one, other in itertools.permutations(sent, 2):
            is_later = (one.app_id, one.to) == (other.app_id, other.to) and one.ended_s < other.began_s
            if is_later and self._sent[one.id] > self._sent[other.id] and one.id not in crossed:
                self._break(f"{other.id} was sent before {one.id}, which was acknowledged before it came")

    async def has_uncertain(self) -> bool:
        """True if it is unclear of a message whether it was sent, or was: its job ends when its time is over."""
        query = f"SELECT ref FROM queue_jobs WHERE queue = {int(QueueName.UNCONFIRMED)}"
        return bool((await self._stores.read_service(query))[0])

    # "States never go backwards".

    def _check_states(self, callbacks: list[CallbackSeen]) -> None:
        """Each event of a message is further than the one before; "the only transition out of failed" is of code 4002."""
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

    # "Callbacks are delivered at least once".

    async def _check_completeness(self, callbacks: list[CallbackSeen]) -> None:
        """One callback for each state and each subscription that asked for it, and none that is invented."""
        seen = by_path_and_subject(callbacks)
        (rows,) = await self._stores.read_service("SELECT id, state, app_id FROM messages")
        statuses, _ = read_webhooks(self._observed.exchanges)
        arrived, _ = read_webhooks(self._observed.exchanges, acknowledged=False)
        for message_id, state, app_id in rows:
            if state in ("accepted", "uncertain"):
                self._break(f"{message_id} is {state} at the end")
            if state in RANKS and message_id not in self._sent:
                self._break(f"{message_id} is {state}, and the operator has never accepted it")
            required = {state} | not_overtaken(statuses[message_id], {**RANKS, "failed": FAILED_RANK})
            reported = {status.name for status in arrived[message_id]}
            for path in self._steady(app_id):
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

    def _check_inbound(self, callbacks: list[CallbackSeen]) -> None:
        """A phone's message that the service acknowledged is called back to each subscription that asked for it."""
        seen = by_path_and_subject(callbacks)
        _, inbound = read_webhooks(self._observed.exchanges)
        for wamid, number_id in inbound.items():
            app = next(app for app in self._apps if app.number_id == number_id)
            for path in self._steady(app.id):
                if "MESSAGE" in self._observed.subscriptions[path].modes and not seen[path][wamid]:
                    self._break(f"{wamid} of a phone was not called back to {path}")

    def _check_attempts(self, callbacks: list[CallbackSeen]) -> None:
        """ "Every attempt sends the same bytes with the same id and the same sequence number"; each event has one id."""
        by_id: dict[str, CallbackSeen] = {}
        by_event: dict[tuple[Any, ...], str] = {}
        for one in callbacks:
            first = by_id.setdefault(one.id, one)
            if (first.path, first.sequence, first.exchange.body) != (one.path, one.sequence, one.exchange.body):
                self._break(f"callback {one.id} was not the same at each attempt")
            event = (one.path, one.subject, one.event, one.code)
            if one.event != "template" and by_event.setdefault(event, one.id) != one.id:
                self._break(f"{one.event} of {one.subject} was called back to {one.path} by two ids")

    def _check_terms(self, callbacks: list[CallbackSeen]) -> None:
        """A subscription gets what it asked for, and nothing while it is paused, or after it was deleted."""
        for one in [each for each in callbacks if each.event != "template"]:
            terms, began_s = self._observed.subscriptions[one.path], one.exchange.began_s
            if one.event.upper() not in terms.modes:
                self._break(f"{one.path} got {one.event}, which it did not ask for")
            if any(from_s + DELETED_WITHIN_S < began_s < to_s for from_s, to_s in terms.paused):
                self._break(f"{one.path} got a callback while it was paused")
            if terms.deleted_s is not None and began_s > terms.deleted_s + DELETED_WITHIN_S:
                self._break(f"{one.path} got a callback after it was deleted")

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

    # "A webhook of the operator counts once".

    async def _check_templates(self) -> None:
        """A template has the status that the operator gave it, unless a webhook about it was lost on the way."""
        if lost_template_update(self._observed.exchanges):
            return
        query = "SELECT operator_template_id, status FROM templates WHERE operator_template_id <> ''"
        (stored,) = await self._stores.read_service(query)
        (of_operator,) = self._stores.read_operator("SELECT key, body FROM state WHERE kind = 'template'")
        statuses = {key: json.loads(body)["status"] for key, body in of_operator}
        for number, status in stored:
            if statuses.get(number, status) != status:
                self._break(f"template {number} is {status}, and {statuses[number]} at the operator")

    # "Callbacks are in order".

    def _check_order(self, callbacks: list[CallbackSeen]) -> None:
        """One at a time for each subscription and recipient: "the next one is sent when the one before was received"."""
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

    # What all of it needs: nothing stands still.

    async def check_progress(self, now_ms: int, *, is_last: bool = False) -> bool:
        """Nothing stands still while it is due; return True if no work is left."""
        jobs, callbacks = await self._stores.read_open_work()
        (rows,) = await self._stores.read_service("SELECT id, active, next_attempt_ms FROM subscriptions")
        inactive = {number for number, is_active, _ in rows if not is_active}
        paused = inactive | {number for number, _, next_attempt_ms in rows if (next_attempt_ms or 0) > now_ms}
        replays = tuple(f"replay {number} " for number in paused)
        can_go = (
            [job for job in jobs if not job.ordering_key.startswith(replays)],
            [callback for callback in callbacks if callback.source not in paused],
        )
        self._check_due([one for work in can_go for one in _first_of_each(work) if one.due_ms <= now_ms])
        self._observed.broken += find_stale_marks(self._observed, [(one.id, one.state) for one in (*jobs, *callbacks)])
        outbox, retries = self._stores.read_operator(
            "SELECT * FROM outbox", "SELECT body FROM state WHERE kind = 'retry'"
        )
        due_ms = [one.due_ms for one in (*jobs, *callbacks) if one.attempts]
        due_ms += [json.loads(body)["next_ms"] for (body,) in retries if outbox]
        # After many crashes in a row a receiver may be left alone for longer than what waits for it
        due_ms += [next_attempt_ms for _, is_active, next_attempt_ms in rows if is_active and next_attempt_ms]
        self.next_retry_ms = max(due_ms, default=0)
        # Callbacks to one that its partner has paused wait, also if it cannot resume it: it may not know its new token
        left = [*jobs, *(one for one in callbacks if one.source not in inactive)] or outbox
        self._observed.broken += [f"left: {one}" for one in left if is_last]
        return not left

    def _check_due(self, due: list[OpenWork]) -> None:
        now_s = asyncio.get_running_loop().time()
        self._due_since_s = {one: self._due_since_s.get(one, now_s) for one in due}
        for one, since_s in self._due_since_s.items():
            if now_s - since_s >= NO_PROGRESS_S:
                self._break(f"no progress for {NO_PROGRESS_S} s of {one}")

    def _steady(self, app_id: str) -> Iterable[str]:
        return [path for path, one in self._observed.subscriptions.items() if one.is_steady and one.app_id == app_id]

    def _break(self, text: str) -> None:
        if text not in self._observed.broken:
            self._observed.broken.append(text)


def _first_of_each(work: Iterable[OpenWork]) -> Iterable[OpenWork]:
    """Return the first of each queue or subscription and ordering key; the others wait for these."""
    return {(one.source, one.ordering_key): one for one in reversed([*work])}.values()
