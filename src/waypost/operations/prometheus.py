"""`/metrics`: the table in the format of Prometheus, for permitted readers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from waypost.base.encryption import secrets_equal
from waypost.base.http.hosts import is_loopback
from waypost.base.telemetry.counters import Histogram
from waypost.base.telemetry.logs import log
from waypost.operations.metrics import METRICS, MetricKind, MetricRow, MetricsContext
from waypost.store.database import Database
from waypost.store.queue.depths import QueueDepths, read_queue_depths

if TYPE_CHECKING:  # it loads a web server; this process needs it only at the first scrape
    from prometheus_client.core import Metric

DEPTHS_CACHE_S: Final = 5
"""How long the queue depths read from the store are shown again, whatever the number of scrapes."""

DEPTHS_TIMEOUT_S: Final = 2
"""How long reading the queue depths may take; after that their metrics are left out."""

_FORWARDING_HEADERS: Final = ("forwarded", "x-forwarded-for", "x-real-ip")

MakeMetricsContext = Callable[[QueueDepths | None], Awaitable[MetricsContext]]


class MetricsEndpoint:
    """The endpoint `/metrics` of one process.

    Args:
        make_context: returns the values of a scrape, given the queue depths.
        process: names this process in the label `process` of every sample.
        tokens: each permits reading; None permits nothing.
    """

    def __init__(
        self, database: Database, make_context: MakeMetricsContext, *, process: str, tokens: Sequence[str | None]
    ) -> None:
        self._database = database
        self._make_context = make_context
        self._process = process
        self._tokens = [token for token in tokens if token]
        self._depths: QueueDepths | None = None
        self._depths_until_s = 0.0
        self._depths_lock = asyncio.Lock()
        self._process_collector: Any = None
        self._log = log("operations")

    def routes(self) -> list[Route]:
        """Return the one route."""
        return [Route("/metrics", self._metrics, methods=["GET"])]

    async def _metrics(self, request: Request) -> Response:
        if not self._may_read(request):
            return PlainTextResponse(
                "metrics are for this machine, or for Authorization: Bearer and the metrics_token",
                401,
                {"WWW-Authenticate": "Bearer"},
            )
        from prometheus_client.exposition import choose_encoder

        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        context = await self._make_context(await self._fresh_depths())
        text: bytes = encode(_CollectedMetrics(self._metric_families(context)))
        return Response(text, headers={"Content-Type": content_type})

    def _may_read(self, request: Request) -> bool:
        """True if the request has a token, or comes from this machine and was not forwarded.

        A request that a proxy on this machine forwards comes from this machine too: it names another host,
        or has a forwarding header.
        """
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if given:
            return any(secrets_equal(given, token) for token in self._tokens)
        is_local = request.client is not None and is_loopback(request.client.host)
        is_forwarded = any(name in request.headers for name in _FORWARDING_HEADERS)
        return is_local and not is_forwarded and is_loopback((request.url.hostname or "").strip("[]"))

    async def _fresh_depths(self) -> QueueDepths | None:
        async with self._depths_lock:
            now_s = asyncio.get_running_loop().time()
            if now_s >= self._depths_until_s:
                self._depths_until_s = now_s + DEPTHS_CACHE_S
                try:
                    async with asyncio.timeout(DEPTHS_TIMEOUT_S):
                        self._depths = await self._database.read(read_queue_depths)
                except Exception as error:  # noqa: BLE001  the counters of this process are shown all the same
                    self._depths = None
                    self._log.warning("the queue depths could not be read", error=type(error).__name__)
            return self._depths

    def _metric_families(self, context: MetricsContext) -> Iterable["Metric"]:
        for row in METRICS:
            yield make_metric_family(row, context, self._process)
        if self._process_collector is None:
            from prometheus_client import CollectorRegistry, ProcessCollector

            self._process_collector = ProcessCollector(registry=CollectorRegistry())
        for metric in self._process_collector.collect():
            for index, metric_sample in enumerate(metric.samples):
                metric.samples[index] = metric_sample._replace(
                    labels={**metric_sample.labels, "process": self._process}
                )
            yield metric


class _CollectedMetrics:
    """The interface of a registry that an encoder needs."""

    def __init__(self, families: Iterable["Metric"]) -> None:
        self._metric_families = families

    def collect(self) -> Iterable["Metric"]:
        return self._metric_families


def make_metric_family(row: MetricRow, context: MetricsContext, process: str) -> "Metric":
    """Return one row of the table with its current values."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    names = ("process", *row.labels)
    name = f"waypost_{row.name}"
    if row.kind is MetricKind.HISTOGRAM:
        histogram = HistogramMetricFamily(name, row.meaning, labels=names)
        for labels, spread in row.read(context):
            if isinstance(spread, Histogram):
                histogram.add_metric((process, *labels), cumulative_buckets(spread), spread.total)
        return histogram
    metric_type = CounterMetricFamily if row.kind is MetricKind.COUNTER else GaugeMetricFamily
    metric = metric_type(name, row.meaning, labels=names)
    for labels, value in row.read(context):
        if not isinstance(value, Histogram):
            metric.add_metric((process, *labels), float(value))
    return metric


def cumulative_buckets(spread: Histogram) -> list[tuple[str, float]]:
    """Return each bound with the number of values that are not above it."""
    bounds = [*(repr(float(bound)) for bound in spread.bounds), "+Inf"]
    return list(zip(bounds, map(float, accumulate(spread.counts)), strict=True))
