"""Table: every metric. The samples for Prometheus and the reference page are made from it.

No label is anyone's name, number or address, and each has few values: a metric must cost the same with
ten thousand partners. Metrics of one process are what it has counted since it started; metrics of
the store are the same whichever process is scraped.
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
    """The kinds of metrics that Prometheus has."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class ServerCounts(Protocol):
    """The connection counters of one server of this process."""

    @property
    def open_count(self) -> int:
        """Number of open connections."""
        ...

    @property
    def refused(self) -> Mapping[int, int]:
        """Number of errors that the server itself has sent, by status."""
        ...


@dataclass(frozen=True, slots=True)
class MeasuredParts:
    """The parts of one process that are measured.

    Attributes:
        doors: returns the endpoints of the route table, which are made last.
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
    """The values of one scrape.

    Attributes:
        depths: of the store, read a few seconds ago at most; None where it does not respond.
        now_ms: by the clock that due times follow.
        ready: whether each readiness check passes, by its name.
        servers: those of this process that serve the service.
    """

    parts: MeasuredParts
    depths: QueueDepths | None
    now_ms: int
    ready: Mapping[str, bool]
    servers: Sequence[ServerCounts]


Samples = Iterable[tuple[tuple[str, ...], float | Spread]]
"""The values of the labels, in the order of the table, and the measured value."""


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric.

    Attributes:
        name: without `waypost_` before it; with its unit, and `_total` for a counter, at its end.
        of: `process`, or `store` where every process of one store shows the same.
        read: returns the samples; labels whose value is 0 from the start may be left out.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    of: str
    meaning: str
    read: Callable[[Scene], Samples]


def _of_requests(scene: Scene) -> Samples:
    for route, endpoint in scene.parts.doors():
        for status, count in sorted(endpoint.statuses.items()):
            yield (route, str(status)), count


def _of_refusals(scene: Scene) -> Samples:
    for route, endpoint in scene.parts.doors():
        for code, count in sorted(endpoint.tally.items()):
            if code != "accepted":
                yield (route, code), count


def _of_request_times(scene: Scene) -> Samples:
    for route, endpoint in scene.parts.doors():
        if endpoint.took_s.count:
            yield (route,), endpoint.took_s


def _of_webhooks(scene: Scene) -> Samples:
    for result in ("stored", "wrong signature", "too large"):
        yield (result,), scene.parts.webhook.counts[result]


def _of_jobs(scene: Scene) -> Samples:
    for queue_name, counts in scene.parts.queue.counts.items():
        for name in ("claimed", "completed", "retried_later", "abandoned", "defects", "dead_letters"):
            yield (_name(queue_name), name), getattr(counts, name)


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
    for label, spread in sorted(calls.took_s.items()):
        yield (label,), spread


def _of_store_errors(scene: Scene) -> Samples:
    counts = scene.parts.database.counts
    yield ("transaction",), counts.torn
    yield ("write",), counts.failed
    yield ("read",), counts.failed_reads


def _of_server_refusals(scene: Scene) -> Samples:
    errors = Counter[int]()
    for server in scene.servers:
        errors.update(server.refused)
    for status, count in sorted(errors.items()):
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
    #         name                         kind labels               scope      meaning
    # 1 api
    MetricRow("requests_total",            _C, ("route", "status"),  "process", "Requests, by the status of the response.", _of_requests),
    MetricRow("errors_total",              _C, ("route", "code"),    "process", "Requests that got an error, by error code; `defect` is ours.", _of_refusals),
    MetricRow("request_seconds",           _H, ("route",),           "process", "Time from a request's headers to its response.", _of_request_times),
    # 2 queue
    MetricRow("queue_jobs_total",          _C, ("queue", "event"),   "process", "Jobs claimed, completed, retried later, abandoned (returned without being begun), failed by a defect of ours, and made dead letters.", _of_jobs),
    MetricRow("queue_in_flight",           _G, _QUEUE,               "process", "Jobs being worked.",
              lambda scene: [((_name(stage.queue_name),), stage.busy) for stage in scene.parts.stages]),
    MetricRow("queue_slots",               _G, _QUEUE,               "process", "Maximum number of jobs worked at once.",
              lambda scene: [((_name(stage.queue_name),), scene.parts.queue.plans[stage.queue_name].in_flight) for stage in scene.parts.stages]),
    MetricRow("queue_jobs_in_memory",      _G, _QUEUE,               "process", "Jobs read from the store and not ended.",
              lambda scene: [((_name(stage.queue_name),), scene.parts.queue.count_claimed(stage.queue_name)) for stage in scene.parts.stages]),
    MetricRow("queue_claim_lag_seconds",   _H, _QUEUE,               "process", "Time from the moment a job was due to the moment it was claimed; delays by pacing are included.",
              lambda scene: [((_name(queue),), counts.lag_s) for queue, counts in scene.parts.queue.counts.items()]),
    MetricRow("queue_loop_busy_seconds",   _G, _QUEUE,               "process", "How long the queue's loop has been in its current step; 0 while it waits for jobs. Minutes mean that it is stuck.",
              lambda scene: [((_name(stage.queue_name),), stage.at_it_for_s) for stage in scene.parts.stages]),
    MetricRow("queue_leases",              _G, _QUEUE,               "process", "Shards of the queue that this process works, out of 256.",
              lambda scene: [((_name(queue),), len(shards)) for queue, shards in scene.parts.queue.shards.held.items()]),
    MetricRow("queue_depth",               _G, ("queue", "state"),   "store",   "Jobs by state; at most 20,000 of a queue are counted.", _of_depths),
    MetricRow("queue_depth_is_capped",     _G, _QUEUE,               "store",   "1 where the queue has more jobs than are counted.",
              lambda scene: [((_name(queue),), depth.is_longer) for queue, depth in _depths(scene)]),
    MetricRow("queue_oldest_due_seconds",  _G, _QUEUE,               "store",   "How long the longest waiting job has been due, among those counted.", _of_oldest),
    # 3 and 4, dispatch and operator
    MetricRow("operator_messages_total",   _C, ("outcome", "code"),  "process", "Messages sent to the operator, by outcome and by the thousand of its error code.",
              lambda scene: _of_calls(scene.parts.dispatch.counts)),
    MetricRow("operator_call_seconds",     _H, ("outcome",),         "process", "Response time of the operator for one message.",
              lambda scene: _of_call_times(scene.parts.dispatch.counts)),
    # 5 events
    MetricRow("webhooks_total",            _C, ("result",),          "process", "Webhooks from the operator, by result.", _of_webhooks),
    MetricRow("webhook_items_total",       _C, (),                   "process", "Statuses, messages and changes in the webhooks that were stored.",
              lambda scene: _alone(scene.parts.webhook.counts["items"])),
    MetricRow("events_total",              _C, ("event",),           "process", "Events applied, by kind; a status by its state.",
              lambda scene: [((event,), count) for event, count in sorted(scene.parts.ingest.counts.items())]),
    # 6 callbacks
    MetricRow("callback_attempts_total",   _C, ("status", "result"), "process", "Callback attempts, by the class of the response's status and by result: delivered, retried or given up.",
              lambda scene: _of_calls(scene.parts.callbacks.figures.counts)),
    MetricRow("callback_seconds",          _H, ("status",),          "process", "Response time of a receiver for one attempt.",
              lambda scene: _of_call_times(scene.parts.callbacks.figures.counts)),
    MetricRow("callback_addresses",        _G, ("circuit",),         "process", "Receivers of subscriptions that this process has tried lately, by the state of their circuit.",
              lambda scene: [((state,), count) for state, count in sorted(scene.parts.callbacks.circuits.items())]),
    MetricRow("callback_pauses_total",     _C, (),                   "process", "Subscriptions paused because their callbacks failed.",
              lambda scene: _alone(scene.parts.callbacks.pauses)),
    MetricRow("subscriptions_paused",      _G, ("by",),              "store",   "Paused subscriptions: by the service because their callbacks failed, or by their partner; at most 20,000 are counted.",
              lambda scene: [] if scene.depths is None else [((by,), count) for by, count in scene.depths.paused.items()]),
    # The store
    MetricRow("commit_seconds",            _H, (),                   "process", "Time from the begin of a transaction to the end of its flush.",
              lambda scene: _alone(scene.parts.database.counts.took_s)),
    MetricRow("commit_items",              _H, (),                   "process", "Writes that shared a transaction.",
              lambda scene: _alone(scene.parts.database.counts.items)),
    MetricRow("commit_waiting",            _G, (),                   "process", "Writes that wait for the transaction after this one.",
              lambda scene: _alone(scene.parts.database.waiting)),
    MetricRow("store_errors_total",        _C, ("operation",),       "process", "Shared transactions that were split after an error, and writes and reads that failed.", _of_store_errors),
    # The process
    MetricRow("connections",               _G, (),                   "process", "Connections that clients have open.",
              lambda scene: _alone(sum(server.open_count for server in scene.servers))),
    MetricRow("server_errors_total",       _C, ("status",),          "process", "Requests rejected before they were read completely: too large, too slow, or malformed; and connections for which there was no room.", _of_server_refusals),
    MetricRow("ready",                     _G, ("check",),           "process", "1 where a readiness check passes.",
              lambda scene: [((name,), passes) for name, passes in scene.ready.items()]),
    MetricRow("build",                     _G, ("version",),         "process", "1; its label is the version.",
              lambda _scene: [((__version__,), 1)]),
)
# fmt: on
