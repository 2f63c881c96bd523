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
from waypost.api.asgi import ApiEndpoint
from waypost.api.limits.backlog_quotas import CALLBACKS, MESSAGES, BacklogQuotas
from waypost.base.telemetry.counters import CallCounters, Histogram
from waypost.callbacks.worker import CallbackSender
from waypost.dispatch.worker import OutboundDispatcher
from waypost.events.lookup import IgnoredEvent
from waypost.events.webhook_endpoint import WebhookEndpoint
from waypost.events.worker import EventIngester
from waypost.queue.queue import JobQueue
from waypost.queue.worker import StageWorker
from waypost.store.database import Database
from waypost.store.queue.depths import QueueDepth, QueueDepths
from waypost.store.queue.names import QueueName


class MetricKind(StrEnum):
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
    def errors_sent(self) -> Mapping[int, int]:
        """Number of errors that the server itself has sent, by status."""
        ...

    @property
    def paced_responses(self) -> int:
        """Number of responses that have waited because nobody pays for their requests."""
        ...


@dataclass(frozen=True, slots=True)
class MeasuredServices:
    """The parts of one process that are measured.

    Attributes:
        endpoints: returns the endpoints of the route table, which are made last.
        stages: those that this process runs.
        request_log: entries of the request log: written, and left out by reason.
    """

    database: Database
    queue: JobQueue
    stages: Sequence[StageWorker]
    endpoints: Callable[[], Sequence[tuple[str, ApiEndpoint]]]
    webhook: WebhookEndpoint
    dispatch: OutboundDispatcher
    ingest: EventIngester
    callbacks: CallbackSender
    quotas: BacklogQuotas
    request_log: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class MetricsContext:
    """The values of one scrape.

    Attributes:
        depths: of the store, read a few seconds ago at most; None where it does not respond.
        now_ms: by the clock that due times follow.
        ready: whether each readiness check passes, by its name.
        servers: those of this process that serve the service.
    """

    services: MeasuredServices
    depths: QueueDepths | None
    now_ms: int
    ready: Mapping[str, bool]
    servers: Sequence[ServerCounts]


Samples = Iterable[tuple[tuple[str, ...], float | Histogram]]
"""The values of the labels, in the order of the table, and the measured value."""


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric.

    Attributes:
        name: without `waypost_` before it; with its unit, and `_total` for a counter, at its end.
        scope: `process`, or `store` where every process of one store shows the same.
        read: returns the samples; labels whose value is 0 from the start may be left out.
    """

    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    scope: str
    meaning: str
    read: Callable[[MetricsContext], Samples]


def _request_samples(context: MetricsContext) -> Samples:
    for route, endpoint in context.services.endpoints():
        for status, count in sorted(endpoint.statuses.items()):
            yield (route, str(status)), count


def _error_samples(context: MetricsContext) -> Samples:
    for route, endpoint in context.services.endpoints():
        for code, count in sorted(endpoint.outcomes.items()):
            if code != "accepted":
                yield (route, code), count


def _request_time_samples(context: MetricsContext) -> Samples:
    for route, endpoint in context.services.endpoints():
        if endpoint.took_s.count:
            yield (route,), endpoint.took_s


def _webhook_samples(context: MetricsContext) -> Samples:
    for result in ("stored", "wrong signature", "too large"):
        yield (result,), context.services.webhook.counts[result]


def _job_samples(context: MetricsContext) -> Samples:
    for queue_name, counts in context.services.queue.counts.items():
        for name in ("claimed", "completed", "retried_later", "abandoned", "defects", "dead_letters"):
            yield (_queue_label(queue_name), name), getattr(counts, name)


def _depth_samples(context: MetricsContext) -> Samples:
    for queue_name, depth in _queue_depths(context):
        for state, jobs in depth.jobs.items():
            yield (_queue_label(queue_name), state.name.lower()), jobs


def _oldest_due_samples(context: MetricsContext) -> Samples:
    for queue_name, depth in _queue_depths(context):
        due_ms = depth.oldest_due_ms
        yield (_queue_label(queue_name),), 0 if due_ms is None else max(0, context.now_ms - due_ms) / 1000


def _call_samples(calls: CallCounters) -> Samples:
    yield from sorted(calls.outcomes.items())


def _call_time_samples(calls: CallCounters) -> Samples:
    for label, spread in sorted(calls.took_s.items()):
        yield (label,), spread


def _store_error_samples(context: MetricsContext) -> Samples:
    counts = context.services.database.counts
    yield ("transaction",), counts.split_batches
    yield ("write",), counts.failed
    yield ("read",), counts.failed_reads


def _server_error_samples(context: MetricsContext) -> Samples:
    errors = Counter[int]()
    for server in context.servers:
        errors.update(server.errors_sent)
    for status, count in sorted(errors.items()):
        yield (str(status),), count


def _queue_depths(context: MetricsContext) -> Iterable[tuple[QueueName, QueueDepth]]:
    return () if context.depths is None else context.depths.queues.items()


def _queue_label(queue_name: QueueName) -> str:
    return queue_name.name.lower()


def _single_sample(value: float | Histogram) -> Samples:
    return [((), value)]


_C, _G, _H = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM
_QUEUE: Final = ("queue",)

# fmt: off
METRICS: Final = (  # Source: decision 0046
    #         name                         kind labels               scope      meaning
    # 1 api
    MetricRow("requests_total",   _C, ("route", "status"), "process", "Requests, by the status of the response.", _request_samples),
    MetricRow("errors_total",     _C, ("route", "code"),   "process", "Requests that got an error, by error code; `defect` is ours.", _error_samples),
    MetricRow("request_seconds",  _H, ("route",),          "process", "Time from a request's headers to its response.", _request_time_samples),
    MetricRow("request_log_entries_total", _C, ("result",), "process", "Requests for the request log: written, or left out because the queue, the partner's part of it or the limit of requests without a credential was full, or the store could not be written.",
              lambda context: [((result,), count) for result, count in sorted(context.services.request_log.items())]),
    MetricRow("quota_rejections_total", _C, ("quota",),    "process", "Messages rejected because their partner had as many messages or callbacks waiting as its quota allows.",
              lambda context: [((name,), context.services.quotas.rejections[name]) for name in (MESSAGES, CALLBACKS)]),
    MetricRow("partners_at_quota", _G, ("quota",),         "process", "Partners of which this process has rejected messages because of a quota within the last minute.",
              lambda context: [((name,), context.services.quotas.partners_at_quota(name)) for name in (MESSAGES, CALLBACKS)]),
    # 2 queue
    MetricRow("queue_jobs_total", _C, ("queue", "event"),  "process", "Jobs claimed, completed, retried later, abandoned (returned without being begun), failed by a defect of ours, and made dead letters.", _job_samples),
    MetricRow("queue_in_flight",           _G, _QUEUE,               "process", "Jobs being worked.",
              lambda context: [((_queue_label(stage.queue_name),), stage.active_jobs) for stage in context.services.stages]),
    MetricRow("queue_slots",               _G, _QUEUE,               "process", "Maximum number of jobs worked at once.",
              lambda context: [((_queue_label(stage.queue_name),), context.services.queue.plans[stage.queue_name].in_flight) for stage in context.services.stages]),
    MetricRow("queue_jobs_in_memory",      _G, _QUEUE,               "process", "Jobs read from the store and not ended.",
              lambda context: [((_queue_label(stage.queue_name),), context.services.queue.count_jobs_in_memory(stage.queue_name)) for stage in context.services.stages]),
    MetricRow("queue_claim_lag_seconds",   _H, _QUEUE,               "process", "Time from the moment a job was due to the moment it was claimed; delays by pacing are included.",
              lambda context: [((_queue_label(queue),), counts.lag_s) for queue, counts in context.services.queue.counts.items()]),
    MetricRow("queue_loop_busy_seconds",   _G, _QUEUE,               "process", "How long the queue's loop has been in its current step; 0 while it waits for jobs. Minutes mean that it is stuck.",
              lambda context: [((_queue_label(stage.queue_name),), stage.loop_busy_s) for stage in context.services.stages]),
    MetricRow("queue_leases",              _G, _QUEUE,               "process", "Shards of the queue that this process works, out of 256.",
              lambda context: [((_queue_label(queue),), len(shards)) for queue, shards in context.services.queue.shards.held.items()]),
    MetricRow("queue_depth",               _G, ("queue", "state"),   "store",   "Jobs by state; at most 20,000 of a queue are counted.", _depth_samples),
    MetricRow("queue_depth_is_capped",     _G, _QUEUE,               "store",   "1 where the queue has more jobs than are counted.",
              lambda context: [((_queue_label(queue),), depth.is_longer) for queue, depth in _queue_depths(context)]),
    MetricRow("queue_oldest_due_seconds",  _G, _QUEUE,               "store",   "How long the longest waiting job has been due, among those counted.", _oldest_due_samples),
    # 3 and 4, dispatch and operator
    MetricRow("operator_messages_total",   _C, ("outcome", "code"),  "process", "Messages sent to the operator, by outcome and by the thousand of its error code.",
              lambda context: _call_samples(context.services.dispatch.counts)),
    MetricRow("operator_call_seconds",     _H, ("outcome",),         "process", "Response time of the operator for one message.",
              lambda context: _call_time_samples(context.services.dispatch.counts)),
    # 5 events
    MetricRow("webhooks_total",            _C, ("result",),          "process", "Webhooks from the operator, by result.", _webhook_samples),
    MetricRow("webhook_items_total",       _C, (),                   "process", "Statuses, messages and changes in the webhooks that were stored.",
              lambda context: _single_sample(context.services.webhook.counts["items"])),
    MetricRow("unreadable_webhook_items_total", _C, (),              "process", "Parts of webhooks that could not be read: each became a dead letter.",
              lambda context: _single_sample(context.services.webhook.counts["unreadable items"])),
    MetricRow("events_ignored_total",      _C, ("reason",),          "process", "Events that concern nobody here, by reason.",
              lambda context: [((reason,), context.services.ingest.ignored[reason]) for reason in IgnoredEvent]),
    MetricRow("events_total",              _C, ("event",),           "process", "Events applied, by kind; a status by its state.",
              lambda context: [((event,), count) for event, count in sorted(context.services.ingest.counts.items())]),
    # 6 callbacks
    MetricRow("callback_attempts_total",   _C, ("status", "result"), "process", "Callback attempts, by the class of the response's status and by result: delivered, retried or given up.",
              lambda context: _call_samples(context.services.callbacks.metrics.counts)),
    MetricRow("callback_seconds",          _H, ("status",),          "process", "Response time of a receiver for one attempt.",
              lambda context: _call_time_samples(context.services.callbacks.metrics.counts)),
    MetricRow("callback_receivers",        _G, ("circuit",),         "process", "Receivers of subscriptions that this process has tried lately, by the state of their circuit.",
              lambda context: [((state,), count) for state, count in sorted(context.services.callbacks.circuits.items())]),
    MetricRow("callback_pauses_total",     _C, (),                   "process", "Subscriptions paused because their callbacks failed.",
              lambda context: _single_sample(context.services.callbacks.pauses)),
    MetricRow("subscriptions_paused",      _G, ("by",),              "store",   "Paused subscriptions: by the service because their callbacks failed, or by their partner; at most 20,000 are counted.",
              lambda context: [] if context.depths is None else [((by,), count) for by, count in context.depths.paused.items()]),
    # The store
    MetricRow("commit_seconds",            _H, (),                   "process", "Time from the begin of a transaction to the end of its flush.",
              lambda context: _single_sample(context.services.database.counts.took_s)),
    MetricRow("commit_items",              _H, (),                   "process", "Writes that shared a transaction.",
              lambda context: _single_sample(context.services.database.counts.items)),
    MetricRow("commit_waiting",            _G, (),                   "process", "Writes that wait for the transaction after this one.",
              lambda context: _single_sample(context.services.database.pending_writes)),
    MetricRow("store_errors_total",        _C, ("operation",),       "process", "Shared transactions that were split after an error, and writes and reads that failed.", _store_error_samples),
    # The process
    MetricRow("connections",               _G, (),                   "process", "Connections that clients have open.",
              lambda context: _single_sample(sum(server.open_count for server in context.servers))),
    MetricRow("server_errors_total",       _C, ("status",),          "process", "Requests rejected before they were read completely: too large, too slow, or malformed; and connections for which there was no room.", _server_error_samples),
    MetricRow("paced_responses_total",     _C, (),                   "process", "Responses that waited: their clients have used up what the process does for requests that have no credential or end in an error.",
              lambda context: _single_sample(sum(server.paced_responses for server in context.servers))),
    MetricRow("ready",                     _G, ("check",),           "process", "1 where a readiness check passes.",
              lambda context: [((name,), passes) for name, passes in context.ready.items()]),
    MetricRow("build",                     _G, ("version",),         "process", "1; its label is the version.",
              lambda _context: [((__version__,), 1)]),
)
# fmt: on
