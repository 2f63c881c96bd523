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
from waypost.api.backlog_quotas import CALLBACKS, MESSAGES, BacklogQuotas
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
from waypost.store.queue.job_subjects import QueueName


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

METRICS: Final = (  # Source: decision 0046
    # name, kind labels, scope, meaning
    # 1 api
    MetricRow(
        "requests_total",
        kind=_C,
        labels=("route", "status"),
        scope="process",
        meaning="Requests, by the status of the response.",
        read=_request_samples,
    ),
    MetricRow(
        "errors_total",
        kind=_C,
        labels=("route", "code"),
        scope="process",
        meaning="Requests that got an error, by error code; `defect` is ours.",
        read=_error_samples,
    ),
    MetricRow(
        "request_seconds",
        kind=_H,
        labels=("route",),
        scope="process",
        meaning="Time from a request's headers to its response.",
        read=_request_time_samples,
    ),
    MetricRow(
        "request_log_entries_total",
        kind=_C,
        labels=("result",),
        scope="process",
        meaning=(
            "Requests for the request log: written, or left out because the queue, the partner's part of it or "
            "the limit of requests without a credential was full, or the store could not be written."
        ),
        read=lambda context: [((result,), count) for result, count in sorted(context.services.request_log.items())],
    ),
    MetricRow(
        "quota_rejections_total",
        kind=_C,
        labels=("quota",),
        scope="process",
        meaning=(
            "Messages rejected because their partner had as many messages or callbacks waiting as its quota allows."
        ),
        read=lambda context: [((name,), context.services.quotas.rejections[name]) for name in (MESSAGES, CALLBACKS)],
    ),
    MetricRow(
        "partners_at_quota",
        kind=_G,
        labels=("quota",),
        scope="process",
        meaning="Partners of which this process has rejected messages because of a quota within the last minute.",
        read=lambda context: [
            ((name,), context.services.quotas.partners_at_quota(name)) for name in (MESSAGES, CALLBACKS)
        ],
    ),
    # 2 queue
    MetricRow(
        "queue_jobs_total",
        kind=_C,
        labels=("queue", "event"),
        scope="process",
        meaning=(
            "Jobs claimed, completed, retried later, abandoned (returned without being begun), failed by a defect "
            "of ours, and made dead letters."
        ),
        read=_job_samples,
    ),
    MetricRow(
        "queue_in_flight",
        kind=_G,
        labels=_QUEUE,
        scope="process",
        meaning="Jobs being worked.",
        read=lambda context: [
            ((_queue_label(stage.queue_name),), stage.active_jobs) for stage in context.services.stages
        ],
    ),
    MetricRow(
        "queue_slots",
        kind=_G,
        labels=_QUEUE,
        scope="process",
        meaning="Maximum number of jobs worked at once.",
        read=lambda context: [
            ((_queue_label(stage.queue_name),), context.services.queue.plans[stage.queue_name].in_flight)
            for stage in context.services.stages
        ],
    ),
    MetricRow(
        "queue_jobs_in_memory",
        kind=_G,
        labels=_QUEUE,
        scope="process",
        meaning="Jobs read from the store and not ended.",
        read=lambda context: [
            ((_queue_label(stage.queue_name),), context.services.queue.count_jobs_in_memory(stage.queue_name))
            for stage in context.services.stages
        ],
    ),
    MetricRow(
        "queue_claim_lag_seconds",
        kind=_H,
        labels=_QUEUE,
        scope="process",
        meaning="Time from the moment a job was due to the moment it was claimed; delays by pacing are included.",
        read=lambda context: [
            ((_queue_label(queue),), counts.lag_s) for queue, counts in context.services.queue.counts.items()
        ],
    ),
    MetricRow(
        "queue_loop_busy_seconds",
        kind=_G,
        labels=_QUEUE,
        scope="process",
        meaning=(
            "How long the queue's loop has been in its current step; 0 while it waits for jobs. Minutes mean that "
            "it is stuck."
        ),
        read=lambda context: [
            ((_queue_label(stage.queue_name),), stage.loop_busy_s) for stage in context.services.stages
        ],
    ),
    MetricRow(
        "queue_leases",
        kind=_G,
        labels=_QUEUE,
        scope="process",
        meaning="Shards of the queue that this process works, out of 256.",
        read=lambda context: [
            ((_queue_label(queue),), len(shards)) for queue, shards in context.services.queue.shards.held.items()
        ],
    ),
    MetricRow(
        "queue_depth",
        kind=_G,
        labels=("queue", "state"),
        scope="store",
        meaning="Jobs by state; at most 20,000 of a queue are counted.",
        read=_depth_samples,
    ),
    MetricRow(
        "queue_depth_is_capped",
        kind=_G,
        labels=_QUEUE,
        scope="store",
        meaning="1 where the queue has more jobs than are counted.",
        read=lambda context: [((_queue_label(queue),), depth.is_longer) for queue, depth in _queue_depths(context)],
    ),
    MetricRow(
        "queue_oldest_due_seconds",
        kind=_G,
        labels=_QUEUE,
        scope="store",
        meaning="How long the longest waiting job has been due, among those counted.",
        read=_oldest_due_samples,
    ),
    # 3 and 4, dispatch and operator
    MetricRow(
        "operator_messages_total",
        kind=_C,
        labels=("outcome", "code"),
        scope="process",
        meaning="Messages sent to the operator, by outcome and by the thousand of its error code.",
        read=lambda context: _call_samples(context.services.dispatch.counts),
    ),
    MetricRow(
        "operator_call_seconds",
        kind=_H,
        labels=("outcome",),
        scope="process",
        meaning="Response time of the operator for one message.",
        read=lambda context: _call_time_samples(context.services.dispatch.counts),
    ),
    # 5 events
    MetricRow("webhooks_total", _C, ("result",), "process", "Webhooks from the operator, by result.", _webhook_samples),
    MetricRow(
        "webhook_items_total",
        kind=_C,
        labels=(),
        scope="process",
        meaning="Statuses, messages and changes in the webhooks that were stored.",
        read=lambda context: _single_sample(context.services.webhook.counts["items"]),
    ),
    MetricRow(
        "unreadable_webhook_items_total",
        kind=_C,
        labels=(),
        scope="process",
        meaning="Parts of webhooks that could not be read: each became a dead letter.",
        read=lambda context: _single_sample(context.services.webhook.counts["unreadable items"]),
    ),
    MetricRow(
        "events_ignored_total",
        kind=_C,
        labels=("reason",),
        scope="process",
        meaning="Events that concern nobody here, by reason.",
        read=lambda context: [((reason,), context.services.ingest.ignored[reason]) for reason in IgnoredEvent],
    ),
    MetricRow(
        "events_total",
        kind=_C,
        labels=("event",),
        scope="process",
        meaning="Events applied, by kind; a status by its state.",
        read=lambda context: [((event,), count) for event, count in sorted(context.services.ingest.counts.items())],
    ),
    # 6 callbacks
    MetricRow(
        "callback_attempts_total",
        kind=_C,
        labels=("status", "result"),
        scope="process",
        meaning=(
            "Callback attempts, by the class of the response's status and by result: delivered, retried or given up."
        ),
        read=lambda context: _call_samples(context.services.callbacks.metrics.counts),
    ),
    MetricRow(
        "callback_seconds",
        kind=_H,
        labels=("status",),
        scope="process",
        meaning="Response time of a receiver for one attempt.",
        read=lambda context: _call_time_samples(context.services.callbacks.metrics.counts),
    ),
    MetricRow(
        "callback_receivers",
        kind=_G,
        labels=("circuit",),
        scope="process",
        meaning="Receivers of subscriptions that this process has tried lately, by the state of their circuit.",
        read=lambda context: [
            ((state,), count) for state, count in sorted(context.services.callbacks.circuits.items())
        ],
    ),
    MetricRow(
        "callback_pauses_total",
        kind=_C,
        labels=(),
        scope="process",
        meaning="Subscriptions paused because their callbacks failed.",
        read=lambda context: _single_sample(context.services.callbacks.pauses),
    ),
    MetricRow(
        "subscriptions_paused",
        kind=_G,
        labels=("by",),
        scope="store",
        meaning=(
            "Paused subscriptions: by the service because their callbacks failed, or by their partner; at most "
            "20,000 are counted."
        ),
        read=lambda context: (
            [] if context.depths is None else [((by,), count) for by, count in context.depths.paused.items()]
        ),
    ),
    # The store
    MetricRow(
        "commit_seconds",
        kind=_H,
        labels=(),
        scope="process",
        meaning="Time from the begin of a transaction to the end of its flush.",
        read=lambda context: _single_sample(context.services.database.counts.took_s),
    ),
    MetricRow(
        "commit_items",
        kind=_H,
        labels=(),
        scope="process",
        meaning="Writes that shared a transaction.",
        read=lambda context: _single_sample(context.services.database.counts.items),
    ),
    MetricRow(
        "commit_waiting",
        kind=_G,
        labels=(),
        scope="process",
        meaning="Writes that wait for the transaction after this one.",
        read=lambda context: _single_sample(context.services.database.pending_writes),
    ),
    MetricRow(
        "store_errors_total",
        kind=_C,
        labels=("operation",),
        scope="process",
        meaning="Shared transactions that were split after an error, and writes and reads that failed.",
        read=_store_error_samples,
    ),
    # The process
    MetricRow(
        "connections",
        kind=_G,
        labels=(),
        scope="process",
        meaning="Connections that clients have open.",
        read=lambda context: _single_sample(sum(server.open_count for server in context.servers)),
    ),
    MetricRow(
        "server_errors_total",
        kind=_C,
        labels=("status",),
        scope="process",
        meaning=(
            "Requests rejected before they were read completely: too large, too slow, or malformed; and "
            "connections for which there was no room."
        ),
        read=_server_error_samples,
    ),
    MetricRow(
        "paced_responses_total",
        kind=_C,
        labels=(),
        scope="process",
        meaning=(
            "Responses that waited: their clients have used up what the process does for requests that have no "
            "credential or end in an error."
        ),
        read=lambda context: _single_sample(sum(server.paced_responses for server in context.servers)),
    ),
    MetricRow(
        "ready",
        kind=_G,
        labels=("check",),
        scope="process",
        meaning="1 where a readiness check passes.",
        read=lambda context: [((name,), passes) for name, passes in context.ready.items()],
    ),
    MetricRow(
        "build",
        kind=_G,
        labels=("version",),
        scope="process",
        meaning="1; its label is the version.",
        read=lambda _context: [((__version__,), 1)],
    ),
)
