"""Table: every metric. What is shown to Prometheus and the reference page are made from it.

No label is anybody's name, number or address, and each has few values: a metric must cost the same with
ten thousand partners. Figures of one process are what it has counted since it started; figures of the
store are the same whichever process is asked.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from waypost import __version__
from waypost.api.asgi import Door
from waypost.base.telemetry.counters import CallCounts, Spread
from waypost.callbacks.worker import Callbacks
from waypost.dispatch.worker import Dispatch
from waypost.events.webhook_endpoint import Webhook
from waypost.events.worker import Ingest
from waypost.queue.queue import JobQueue
from waypost.queue.worker import StageWorker
from waypost.store.database import Database
from waypost.store.queue.depths import QueueDepth, QueueDepths
from waypost.store.queue.jobs import QueueName


class Kind(StrEnum):
    """Of metrics, as Prometheus has them."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class ServerCounts(Protocol):
    """What a server of this process has counted of its connections."""

    @property
    def open_count(self) -> int:
        """How many are open."""
        ...

    @property
    def refused(self) -> Mapping[int, int]:
        """How often the server itself has answered with which status."""
        ...


@dataclass(frozen=True, slots=True)
class MeasuredParts:
    """The parts of one process that are measured.

    Attributes:
        doors: gives the routes of the table, which are made last.
        stages: those that this process runs.
    """

    database: Database
    queue: JobQueue
    stages: Sequence[StageWorker]
    doors: Callable[[], Sequence[tuple[str, Door]]]
    webhook: Webhook
    dispatch: Dispatch
    ingest: Ingest
    callbacks: Callbacks


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that is looked at when somebody asks.

    Attributes:
        depths: of the store, read a few seconds ago at most; None where it does not answer.
        now_ms: by the clock that rules follow.
        ready: whether each check of readiness passes, by its name.
        servers: those of this process that answer for the service.
    """

    parts: MeasuredParts
    depths: QueueDepths | None
    now_ms: int
    ready: Mapping[str, bool]
    servers: Sequence[ServerCounts]


Samples = Iterable[tuple[tuple[str, ...], float | Spread]]
"""The values of the labels, in the order of the table, with what was measured."""


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric.

    Attributes:
        name: with `waypost_` before it, its unit and `_total` of a counter at its end.
        of: `process`, or `store` where every process of one store shows the same.
        read: gives the samples; labels whose value is 0 from the start may be left out.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    of: str
    meaning: str
    read: Callable[[Scene], Samples]


def _of_requests(scene: Scene) -> Samples:
    for route, door in scene.parts.doors():
        for status, count in sorted(door.statuses.items()):
            yield (route, str(status)), count


def _of_refusals(scene: Scene) -> Samples:
    for route, door in scene.parts.doors():
        for reason, count in sorted(door.tally.items()):
            if reason != "accepted":
                yield (route, reason), count


def _of_request_times(scene: Scene) -> Samples:
    for route, door in scene.parts.doors():
        if door.took_s.count:
            yield (route,), door.took_s


def _of_webhooks(scene: Scene) -> Samples:
    for answer in ("kept", "wrong signature", "too large"):
        yield (answer,), scene.parts.webhook.counts[answer]


def _of_jobs(scene: Scene) -> Samples:
    for queue_name, counts in scene.parts.queue.counts.items():
        for what in ("claimed", "completed", "retried_later", "abandoned", "defects", "dead_letters"):
            yield (_name(queue_name), what), getattr(counts, what)


def _of_depths(scene: Scene) -> Samples:
    for queue_name, depth in _depths(scene):
        for state, jobs in depth.jobs.items():
            yield (_name(queue_name), state.name.lower()), jobs


def _of_oldest(scene: Scene) -> Samples:
    for queue_name, depth in _depths(scene):
        due_ms = depth.oldest_due_ms
        yield (_name(queue_name),), 0 if due_ms is None else max(0, scene.now_ms - due_ms) / 1000


def _of_calls(calls: CallCounts) -> Samples:
    yield from sorted(calls.ended.items())


def _of_call_times(calls: CallCounts) -> Samples:
    for word, spread in sorted(calls.took_s.items()):
        yield (word,), spread


def _of_store_errors(scene: Scene) -> Samples:
    counts = scene.parts.database.counts
    yield ("transaction",), counts.torn
    yield ("write",), counts.failed
    yield ("read",), counts.failed_reads


def _of_server_refusals(scene: Scene) -> Samples:
    refused = Counter[int]()
    for server in scene.servers:
        refused.update(server.refused)
    for status, count in sorted(refused.items()):
        yield (str(status),), count


def _depths(scene: Scene) -> Iterable[tuple[QueueName, QueueDepth]]:
    return () if scene.depths is None else scene.depths.queues.items()


def _name(queue_name: QueueName) -> str:
    return queue_name.name.lower()


def _alone(value: float | Spread) -> Samples:
    return [((), value)]


_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM
_QUEUE: Final = ("queue",)

# fmt: off
METRICS: Final = (  # Source: decision 0046
    #         name                              kind labels               of         meaning
    # 1 accept
    MetricRow("requests_total",                 _C, ("route", "status"),  "process", "Requests answered.", _of_requests),
    MetricRow("errors_total",                 _C, ("route", "reason"),  "process", "Requests refused, by the reason in the table of refusals; `defect` is ours.", _of_refusals),
    MetricRow("request_seconds",                _H, ("route",),           "process", "From a request's headers to its answer.", _of_request_times),
    # 2 journal
    MetricRow("queue_jobs_total",             _C, ("queue", "what"),     "process", "Entries claimed, settled, released for later, let go as they were, given back for a defect of ours, set aside.", _of_jobs),
    MetricRow("queue_in_flight",                 _G, _QUEUE,                "process", "Entries being worked.",
              lambda scene: [((_name(stage.queue_name),), stage.busy) for stage in scene.parts.stages]),
    MetricRow("queue_slots",                    _G, _QUEUE,                "process", "How many may be worked at once.",
              lambda scene: [((_name(one.queue_name),), scene.parts.queue.plans[one.queue_name].in_flight) for one in scene.parts.stages]),
    MetricRow("queue_jobs_in_memory",                      _G, _QUEUE,                "process", "Entries read from the store and not ended.",
              lambda scene: [((_name(one.queue_name),), scene.parts.queue.count_claimed(one.queue_name)) for one in scene.parts.stages]),
    MetricRow("queue_claim_lag_seconds",         _H, _QUEUE,                "process", "From the moment an entry was due to the moment it was claimed; what pacing makes it wait is in it.",
              lambda scene: [((_name(queue),), counts.lag_s) for queue, counts in scene.parts.queue.counts.items()]),
    MetricRow("queue_loop_busy_seconds",             _G, _QUEUE,                "process", "How long the queue's loop has been at what it does; 0 while it waits for work. Minutes mean that it is stuck.",
              lambda scene: [((_name(stage.queue_name),), stage.at_it_for_s) for stage in scene.parts.stages]),
    MetricRow("queue_leases",                    _G, _QUEUE,                "process", "Shards of the queue that this process works, of 256.",
              lambda scene: [((_name(queue),), len(shards)) for queue, shards in scene.parts.queue.shards.held.items()]),
    MetricRow("queue_depth",                     _G, ("queue", "state"),    "store",   "Entries by state; at most 20,000 of a queue are counted.", _of_depths),
    MetricRow("queue_depth_is_capped",                 _G, _QUEUE,                "store",   "1 where the queue has more entries than are counted.",
              lambda scene: [((_name(queue),), depth.is_longer) for queue, depth in _depths(scene)]),
    MetricRow("queue_oldest_due_seconds",        _G, _QUEUE,                "store",   "For how long the entry has been due that has waited longest, of those counted.", _of_oldest),
    # 3 and 4, dispatch and operator
    MetricRow("operator_messages_total",        _C, ("outcome", "code"),  "process", "Messages handed to the operator, by outcome and by the thousand of its code.",
              lambda scene: _of_calls(scene.parts.dispatch.counts)),
    MetricRow("operator_call_seconds",          _H, ("outcome",),         "process", "How long the operator took to answer one.",
              lambda scene: _of_call_times(scene.parts.dispatch.counts)),
    # 5 events
    MetricRow("webhooks_total",                 _C, ("answer",),          "process", "Webhooks of the operator, by our answer.", _of_webhooks),
    MetricRow("webhook_items_total",            _C, (),                   "process", "Statuses, messages and changes in those that were kept.",
              lambda scene: _alone(scene.parts.webhook.counts["items"])),
    MetricRow("events_total",                   _C, ("event",),           "process", "Events applied; a status by its state.",
              lambda scene: [((word,), count) for word, count in sorted(scene.parts.ingest.counts.items())]),
    # 6 callbacks
    MetricRow("callback_attempts_total",        _C, ("status", "result"), "process", "Callbacks tried, by the class of the answer's status and by whether it was taken, is tried again, or is given up.",
              lambda scene: _of_calls(scene.parts.callbacks.figures.counts)),
    MetricRow("callback_seconds",               _H, ("status",),          "process", "How long a receiver took to answer.",
              lambda scene: _of_call_times(scene.parts.callbacks.figures.counts)),
    MetricRow("callback_addresses",             _G, ("circuit",),         "process", "Addresses of subscriptions that this process has tried lately, by their circuit.",
              lambda scene: [((word,), count) for word, count in sorted(scene.parts.callbacks.circuits.items())]),
    MetricRow("callback_pauses_total",          _C, (),                   "process", "Subscriptions paused for taking nothing.",
              lambda scene: _alone(scene.parts.callbacks.pauses)),
    MetricRow("subscriptions_paused",           _G, ("by",),              "store",   "Subscriptions that are paused, by the service for taking nothing, or by their partner; at most 20,000 are looked at.",
              lambda scene: [] if scene.depths is None else [((by,), count) for by, count in scene.depths.paused.items()]),
    # The store
    MetricRow("commit_seconds",                 _H, (),                   "process", "From the begin of a transaction to the end of its flush.",
              lambda scene: _alone(scene.parts.database.counts.took_s)),
    MetricRow("commit_items",                   _H, (),                   "process", "Pieces of work that shared a transaction.",
              lambda scene: _alone(scene.parts.database.counts.items)),
    MetricRow("commit_waiting",                 _G, (),                   "process", "Pieces of work that wait for the transaction after this one.",
              lambda scene: _alone(scene.parts.database.waiting)),
    MetricRow("store_errors_total",             _C, ("of",),              "process", "Shared transactions torn apart, writes and reads that failed.", _of_store_errors),
    # The process
    MetricRow("connections",                    _G, (),                   "process", "Connections that clients have open.",
              lambda scene: _alone(sum(server.open_count for server in scene.servers))),
    MetricRow("server_errors_total",          _C, ("status",),          "process", "Requests refused before they were read whole: too large, too slow, or malformed; and connections for which there was no room.", _of_server_refusals),
    MetricRow("ready",                          _G, ("check",),           "process", "1 where a check of readiness passes.",
              lambda scene: [((name,), passes) for name, passes in scene.ready.items()]),
    MetricRow("build",                          _G, ("version",),         "process", "1; its label is the version.",
              lambda _scene: [((__version__,), 1)]),
)
# fmt: on
