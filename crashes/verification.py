"""Verifies the outcome of a load, counted from outside: phones, receiver, and the store at the end."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from crashes.cluster import ClusterUnderTest
from crashes.load import Load

MAX_IN_FLIGHT: Final = 64
"""The maximum of POSTs in flight in one process. Source: decision 0006."""

EVENTS: Final = ("enqueued", "sent", "delivered", "read")
EVENTS_AFTER_TIMEOUT: Final = ("failed", *EVENTS[1:])
"""Events of a message whose status arrived after its uncertainty had timed out: the one edge out of `failed`."""
INVALID_RESPONSE_CODE: Final = 4002


@dataclass(frozen=True, slots=True)
class ReceivedCallback:
    """One callback as the receiver stored it.

    Attributes:
        key: the ordering key: the recipient, or another subject.
        message_id: our id, for a message event.
    """

    callback_id: str
    sequence: int
    body: dict[str, Any]
    key: str
    event: str
    message_id: str | None


@dataclass
class Callbacks:
    """The callbacks of the receiver's file, in the order of arrival."""

    received: list[ReceivedCallback]
    unique: list[ReceivedCallback] = field(default_factory=list[ReceivedCallback])
    violations: list[str] = field(default_factory=list[str])
    out_of_order: int = 0
    set_back: int = 0

    def __post_init__(self) -> None:
        self._check_repeats()
        self._check_order()
        self._check_states()

    @property
    def duplicated(self) -> int:
        """Number of repeated callbacks."""
        return len(self.received) - len(self.unique)

    def events_by_message(self) -> dict[str, tuple[str, ...]]:
        """Return the events of each message in the order of arrival, without repeats."""
        events: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
        for callback in self.unique:
            if callback.message_id is not None:
                events[callback.message_id] += (callback.event,)
        return events

    def count_others(self) -> int:
        """Return the number of callbacks that are not message events: inbound messages and reviews."""
        return sum(callback.message_id is None for callback in self.unique)

    def _check_repeats(self) -> None:
        known: dict[str, ReceivedCallback] = {}
        for callback in self.received:
            first = known.setdefault(callback.callback_id, callback)
            if first is callback:
                self.unique.append(callback)
            elif (first.sequence, first.body) != (callback.sequence, callback.body):
                self.violations.append(f"callback {callback.callback_id} was repeated with different content")

    def _check_order(self) -> None:
        """Check that sequences count up from 1 without a gap, and that a repeat is the newest of its key."""
        last: defaultdict[str, int] = defaultdict(int)
        known: set[str] = set()
        for callback in self.received:
            expected = last[callback.key] + (callback.callback_id not in known)
            known.add(callback.callback_id)
            if callback.sequence != expected:
                self.out_of_order += 1
                self.violations.append(
                    f"{callback.key}: {callback.event} has sequence {callback.sequence} instead of {expected}"
                )
            last[callback.key] = max(last[callback.key], callback.sequence)

    def _check_states(self) -> None:
        latest: dict[str, int] = {}
        for callback in self.unique:
            if callback.message_id is None or callback.event not in EVENTS:
                continue
            index = EVENTS.index(callback.event)
            if index <= latest.get(callback.message_id, -1):
                self.set_back += 1
                self.violations.append(f"message {callback.message_id} went back to {callback.event}")
            latest[callback.message_id] = index


@dataclass(frozen=True, slots=True)
class Verification:
    """The verification of one load.

    Attributes:
        faults: a text for every violated guarantee.
    """

    counts: Mapping[str, object]
    violations: Sequence[str]

    def table(self) -> str:
        """Return the counts as text, one a line."""
        width = max(map(len, self.counts))
        return "\n".join(f"{name:<{width}}  {count}" for name, count in self.counts.items()) + "\n"


async def verify_load(
    cluster: ClusterUnderTest,
    load: Load,
    in_flight: Sequence[frozenset[str]] | None,
    *,
    inbound_count: int,
    excluded_phones: frozenset[str] = frozenset(),
    max_uncertain: int | None = None,
    may_log: bool = False,
) -> Verification:
    """Count and check everything, once all queues are empty.

    Args:
        cluster: an idle cluster whose service is running.
        load: the finished load.
        in_flight: for each kill, the messages in flight; None if no kill ended a sender.
        inbound_count: number of inbound messages from phones.
        excluded_phones: phones to which another client sends directly, without the service.
        max_uncertain: the bound on messages that were ever uncertain.
        may_log: true if the service may log errors, because the fault is one that it has to log.
    """
    at_phones = Counter(
        delivery["callback_data"] for delivery in await cluster.deliveries() if delivery["to"] not in excluded_phones
    )
    callbacks = Callbacks(read_callbacks(cluster.callbacks_file))
    states = cluster.store.states()
    ever_uncertain = cluster.store.ever_uncertain()
    at_end = {message_id for message_id, (state, _) in states.items() if state == "uncertain"}
    uncertain = at_end | {
        message_id for message_id, outcome in states.items() if outcome == ("failed", INVALID_RESPONSE_CODE)
    }
    acknowledged = set(load.acknowledged)
    lost = acknowledged - at_phones.keys() - uncertain
    duplicated = {message_id for message_id, count in at_phones.items() if count > 1}
    events = callbacks.events_by_message()
    expected = {
        message_id: EVENTS_AFTER_TIMEOUT if message_id in ever_uncertain and "failed" in events[message_id] else EVENTS
        for message_id in at_phones
    }
    expected |= {
        message_id: ("failed",) for message_id in states.keys() - at_phones if states[message_id][0] == "failed"
    }
    missing = {
        (message_id, event)
        for message_id in expected
        for event in expected[message_id]
        if event not in events[message_id]
    }
    expected_others = inbound_count + 1  # the review of the template
    unexplained: set[str] = set()
    if in_flight is not None:
        unexplained = ever_uncertain - frozenset[str]().union(*in_flight)
    violations = [
        *_describe("was acknowledged, but is at no phone and not uncertain", lost),
        *_describe("was delivered twice", duplicated),
        *_describe("was delivered, but never accepted", at_phones.keys() - states.keys()),
        *_describe("was delivered, but is still uncertain", uncertain & at_phones.keys()),
        *_describe("became uncertain, but was not in flight at a kill", unexplained),
        *(
            f"{message_id} has the events {events[message_id]} instead of {expected.get(message_id, ())}"
            for message_id in expected.keys() | events.keys()
            if events[message_id] != expected.get(message_id, ())
        ),
        *callbacks.violations,
        *(
            f"{len(ids)} were in flight at one kill"
            for ids in in_flight or ()
            if len(ids) > MAX_IN_FLIGHT * cluster.processes
        ),
        *([] if may_log else _logged_errors(cluster)),
    ]
    if max_uncertain is not None and len(ever_uncertain) > max_uncertain:
        violations.append(f"{len(ever_uncertain)} became uncertain, more than the bound of {max_uncertain}")
    if load.repeated_ids:
        violations.append(f"{load.repeated_ids} message ids were returned twice")
    if callbacks.count_others() != expected_others:
        violations.append(f"{callbacks.count_others()} other callbacks arrived instead of {expected_others}")
    if (integrity := cluster.store.check_integrity()) != "ok":
        violations.append(f"the store's file is damaged: {integrity}")
    counts: dict[str, object] = {
        "submitted": len(acknowledged) + load.broken + load.server_errors,
        "acknowledged": len(acknowledged),
        "connection broken, resubmitted": load.broken,
        "status 500, resubmitted": load.server_errors,
        "connection refused, retried": load.not_connected,
        "on disk": len(states),
        "at phones": len(at_phones),
        "inbound messages": inbound_count,
        "lost": len(lost),
        "duplicated": len(duplicated),
        "in flight at each kill": _join(len(ids) for ids in in_flight or ()),
        "uncertain ever": len(ever_uncertain),
        "uncertain at the end": len(at_end),
        "of these delivered": len(at_end & at_phones.keys()),
        "failed in the end, with code 4002": len(uncertain - at_end),
        "reported as failed, delivered later": list(expected.values()).count(EVENTS_AFTER_TIMEOUT),
        "callbacks expected": sum(map(len, expected.values())) + expected_others,
        "callbacks arrived": len(callbacks.unique),
        "callbacks missing": len(missing),
        "callbacks duplicated": callbacks.duplicated,
        "out of order": callbacks.out_of_order,
        "states set back": callbacks.set_back,
        "integrity check": integrity,
    }
    return Verification(counts, violations)


def read_callback_times_ms(path: Path) -> list[int]:
    """Return the time at which the receiver stored each callback."""
    return [json.loads(line)["at_ms"] for line in path.read_text(encoding="utf-8").splitlines()]


def read_callbacks(path: Path) -> list[ReceivedCallback]:
    """Return all callbacks of the receiver's file, except the validation request of its URL."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [_parse_callback(record) for record in records if record["callback_id"] is not None]


def _parse_callback(record: dict[str, Any]) -> ReceivedCallback:
    body = record["body"]
    payload = body["payload"]
    message_id: str | None = None
    key: str
    match body["type"]:
        case "message-event":
            key, message_id = payload["destination"], payload.get("gsId") or payload["id"]
        case "message":
            key = payload["source"]
        case _:
            key = f"{body['type']} {payload['id']}"
    return ReceivedCallback(record["callback_id"], record["sequence"], body, key, payload["type"], message_id)


def _describe(description: str, items: Iterable[object]) -> list[str]:
    return [f"{item} {description}" for item in items]


def _join(values: Iterable[object]) -> str:
    return ", ".join(map(str, values)) or "none"


def _logged_errors(cluster: ClusterUnderTest) -> list[str]:
    """Return the errors that the processes logged: each points to a defect that the counts do not show."""
    return [
        f"{child.name} logged: {line}"
        for child in cluster.children
        for line in child.lines()
        if "[error" in line or "Traceback" in line or line.startswith(("ERROR", "CRITICAL"))
    ]
