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
    """The parts of one process that are measured."""

    database: Database
    queue: JobQueue
    stages: Sequence[StageWorker]  # those that this process runs
    # returns the endpoints of the route table, which are made last
    endpoints: Callable[[], Sequence[tuple[str, ApiEndpoint]]]
    webhook: WebhookEndpoint
    dispatch: OutboundDispatcher
    ingest: EventIngester
    callbacks: CallbackSender
    quotas: BacklogQuotas
    request_log: Mapping[str, int]  # entries of the request log: written, and left out by reason


@dataclass(frozen=True, slots=True)
class MetricsContext:
    """The values of one scrape."""

    services: MeasuredServices
    depths: QueueDepths | None  # of the store, read a few seconds ago at most; None where it does not respond
    now_ms: int  # by the clock that due times follow
    ready: Mapping[str, bool]  # whether each readiness check passes, by its name
    servers: Sequence[ServerCounts]  # those of this process that serve the service


Samples = Iterable[tuple[tuple[str, ...], float | Histogram]]
"""The values of the labels, in the order of the table, and the measured value."""


_QUEUE: Final = ("queue",)


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric."""

    name: str  # without `waypost_` before it; with its unit, and `_total` for a counter, at its end
    kind: MetricKind
    labels: tuple[str, ...]
    meaning: str
    # returns the samples; labels whose value is 0 from the start may be left out
    read: Callable[[MetricsContext], Samples]
    scope: str = "process"  # `process`, or `store` where every process of one store shows the same


def _single_metric(
    name: str, kind: MetricKind, meaning: str, measure: Callable[[MetricsContext], float | Histogram]
) -> MetricRow:
    """Return a row without labels."""
    return MetricRow(name, kind, (), meaning, lambda context: [((), measure(context))])


def _stage_metric(name: str, meaning: str, measure: Callable[[StageWorker, JobQueue], float]) -> MetricRow:
    """Return a row with a sample for the queue of each stage that this process runs."""

    def read(context: MetricsContext) -> Samples:
        for stage in context.services.stages:
            yield (_queue_label(stage.queue_name),), measure(stage, context.services.queue)

    return MetricRow(name, MetricKind.GAUGE, _QUEUE, meaning, read)


def _error_samples(context: MetricsContext) -> Samples:
    for route, endpoint in context.services.endpoints():
        for code, count in sorted(endpoint.outcomes.items()):
            if code != "accepted":
                yield (route, code), count


def _job_samples(context: MetricsContext) -> Samples:
    for queue_name, counts in context.services.queue.counts.items():
        for name in ("claimed", "completed", "retried_later", "abandoned", "defects", "dead_letters"):
            yield (_queue_label(queue_name), name), getattr(counts, name)


def _waiting_group_samples(context: MetricsContext) -> Samples:
    for queue_name in QueueName:
        reasons = Counter(wait.reason for _, wait in context.services.queue.list_waits(queue_name))
        for reason, count in sorted(reasons.items()):
            yield (_queue_label(queue_name), reason.value), count


def _oldest_due_samples(context: MetricsContext) -> Samples:
    for queue_name, depth in _queue_depths(context):
        due_ms = depth.oldest_due_ms
        yield (_queue_label(queue_name),), 0 if due_ms is None else max(0, context.now_ms - due_ms) / 1000


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


_C, _G, _H = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM

METRICS: Final = (  # Source: decision 0046
    # 1 api
    MetricRow(
        "requests_total",
        _C,
        ("route", "status"),
        "Requests, by the status of the response.",
        lambda context: [
            ((route, str(status)), count)
            for route, endpoint in context.services.endpoints()
            for status, count in sorted(endpoint.statuses.items())
        ],
    ),
    MetricRow(
        "errors_total",
        _C,
        ("route", "code"),
        "Requests that got an error, by error code; `defect` is ours.",
        _error_samples,
    ),
    MetricRow(
        "request_seconds",
        _H,
        ("route",),
        "Time from a request's headers to its response.",
        lambda context: [
            ((route,), endpoint.took_s) for route, endpoint in context.services.endpoints() if endpoint.took_s.count
        ],
    ),
    MetricRow(
        "request_log_entries_total",
        _C,
        ("result",),
        "Requests for the request log: written, or left out because the queue, the partner's part of it or "
        "the limit of requests without a credential was full, or the store could not be written.",
        lambda context: [((result,), count) for result, count in sorted(context.services.request_log.items())],
    ),
    MetricRow(
        "quota_rejections_total",
        _C,
        ("quota",),
        "Messages rejected because their partner had as many messages or callbacks waiting as its quota allows.",
        lambda context: [((name,), context.services.quotas.rejections[name]) for name in (MESSAGES, CALLBACKS)],
    ),
    MetricRow(
        "partners_at_quota",
        _G,
        ("quota",),
        "Partners of which this process has rejected messages because of a quota within the last minute.",
        lambda context: [((name,), context.services.quotas.partners_at_quota(name)) for name in (MESSAGES, CALLBACKS)],
    ),
    # 2 queue
    MetricRow(
        "queue_jobs_total",
        _C,
        ("queue", "event"),
        "Jobs claimed, completed, retried later, abandoned (returned without being begun), failed by a defect "
        "of ours, and made dead letters.",
        _job_samples,
    ),
    _stage_metric("queue_in_flight", "Jobs being worked.", lambda stage, _: stage.active_jobs),
    _stage_metric(
        "queue_slots",
        "Maximum number of jobs worked at once.",
        lambda stage, queue: queue.plans[stage.queue_name].in_flight,
    ),
    _stage_metric(
        "queue_jobs_in_memory",
        "Jobs read from the store and not ended.",
        lambda stage, queue: queue.count_jobs_in_memory(stage.queue_name),
    ),
    MetricRow(
        "queue_claim_lag_seconds",
        _H,
        _QUEUE,
        "Time from the moment a job was due to the moment it was claimed; delays by pacing are included.",
        lambda context: [
            ((_queue_label(queue),), counts.lag_s) for queue, counts in context.services.queue.counts.items()
        ],
    ),
    _stage_metric(
        "queue_loop_busy_seconds",
        "How long the queue's loop has been in its current step; 0 while it waits for jobs. Minutes mean that "
        "it is stuck.",
        lambda stage, _: stage.loop_busy_s,
    ),
    MetricRow(
        "queue_leases",
        _G,
        _QUEUE,
        "Shards of the queue that this process works, out of 256.",
        lambda context: [
            ((_queue_label(queue),), len(shards)) for queue, shards in context.services.queue.shards.held.items()
        ],
    ),
    MetricRow(
        "queue_depth",
        _G,
        ("queue", "state"),
        "Jobs by state; at most 20,000 of a queue are counted.",
        lambda context: [
            ((_queue_label(queue), state.name.lower()), jobs)
            for queue, depth in _queue_depths(context)
            for state, jobs in depth.jobs.items()
        ],
        scope="store",
    ),
    MetricRow(
        "queue_depth_is_capped",
        _G,
        _QUEUE,
        "1 where the queue has more jobs than are counted.",
        lambda context: [((_queue_label(queue),), depth.is_longer) for queue, depth in _queue_depths(context)],
        scope="store",
    ),
    MetricRow(
        "queue_oldest_due_seconds",
        _G,
        _QUEUE,
        "How long the longest waiting job has been due, among those counted.",
        _oldest_due_samples,
        scope="store",
    ),
    MetricRow(
        "queue_waiting_groups",
        _G,
        ("queue", "reason"),
        "Concurrency groups (sources, receivers) whose due jobs are not worked now, by the reason.",
        _waiting_group_samples,
    ),
    # 3 and 4, dispatch and operator
    MetricRow(
        "operator_messages_total",
        _C,
        ("outcome", "code"),
        "Messages sent to the operator, by outcome and by the thousand of its error code.",
        lambda context: sorted(context.services.dispatch.counts.outcomes.items()),
    ),
    MetricRow(
        "operator_call_seconds",
        _H,
        ("outcome",),
        "Response time of the operator for one message.",
        lambda context: _call_time_samples(context.services.dispatch.counts),
    ),
    # 5 events
    MetricRow(
        "webhooks_total",
        _C,
        ("result",),
        "Webhooks from the operator, by result.",
        lambda context: [
            ((result,), context.services.webhook.counts[result])
            for result in ("stored", "wrong signature", "too large")
        ],
    ),
    _single_metric(
        "webhook_items_total",
        _C,
        "Statuses, messages and changes in the webhooks that were stored.",
        lambda context: context.services.webhook.counts["items"],
    ),
    _single_metric(
        "unreadable_webhook_items_total",
        _C,
        "Parts of webhooks that could not be read: each became a dead letter.",
        lambda context: context.services.webhook.counts["unreadable items"],
    ),
    MetricRow(
        "events_ignored_total",
        _C,
        ("reason",),
        "Events that concern nobody here, by reason.",
        lambda context: [((reason,), context.services.ingest.ignored[reason]) for reason in IgnoredEvent],
    ),
    MetricRow(
        "events_total",
        _C,
        ("event",),
        "Events applied, by kind; a status by its state.",
        lambda context: [((event,), count) for event, count in sorted(context.services.ingest.counts.items())],
    ),
    # 6 callbacks
    MetricRow(
        "callback_attempts_total",
        _C,
        ("status", "result"),
        "Callback attempts, by the class of the response's status and by result: delivered, retried or given up.",
        lambda context: sorted(context.services.callbacks.counts.outcomes.items()),
    ),
    MetricRow(
        "callback_seconds",
        _H,
        ("status",),
        "Response time of a receiver for one attempt.",
        lambda context: _call_time_samples(context.services.callbacks.counts),
    ),
    MetricRow(
        "callback_receivers",
        _G,
        ("circuit",),
        "Receivers of subscriptions that this process has tried lately, by the state of their circuit.",
        lambda context: [
            ((state,), count) for state, count in sorted(context.services.callbacks.admission.circuits.items())
        ],
    ),
    _single_metric(
        "callback_pauses_total",
        _C,
        "Subscriptions paused because their callbacks failed.",
        lambda context: context.services.callbacks.pauses,
    ),
    MetricRow(
        "subscriptions_paused",
        _G,
        ("by",),
        "Paused subscriptions: by the service because their callbacks failed, or by their partner; at most "
        "20,000 are counted.",
        lambda context: (
            [] if context.depths is None else [((by,), count) for by, count in context.depths.paused.items()]
        ),
        scope="store",
    ),
    # The store
    _single_metric(
        "commit_seconds",
        _H,
        "Time from the begin of a transaction to the end of its flush.",
        lambda context: context.services.database.counts.took_s,
    ),
    _single_metric(
        "commit_items", _H, "Writes that shared a transaction.", lambda context: context.services.database.counts.items
    ),
    _single_metric(
        "commit_waiting",
        _G,
        "Writes that wait for the transaction after this one.",
        lambda context: context.services.database.pending_writes,
    ),
    MetricRow(
        "store_errors_total",
        _C,
        ("operation",),
        "Shared transactions that were split after an error, and writes and reads that failed.",
        _store_error_samples,
    ),
    # The process
    _single_metric(
        "connections",
        _G,
        "Connections that clients have open.",
        lambda context: sum(server.open_count for server in context.servers),
    ),
    MetricRow(
        "server_errors_total",
        _C,
        ("status",),
        "Requests rejected before they were read completely: too large, too slow, or malformed; and "
        "connections for which there was no room.",
        _server_error_samples,
    ),
    _single_metric(
        "paced_responses_total",
        _C,
        "Responses that waited: their clients have used up what the process does for requests that have no "
        "credential or end in an error.",
        lambda context: sum(server.paced_responses for server in context.servers),
    ),
    MetricRow(
        "ready",
        _G,
        ("check",),
        "1 where a readiness check passes.",
        lambda context: [((name,), passes) for name, passes in context.ready.items()],
    ),
    MetricRow("build", _G, ("version",), "1; its label is the version.", lambda _context: [((__version__,), 1)]),
)
