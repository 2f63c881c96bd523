"""`/metrics`: the table in the format of Prometheus, for permitted readers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from waypost.base.encryption import same
from waypost.base.http.hosts import is_loopback
from waypost.base.telemetry.counters import Spread
from waypost.base.telemetry.logs import log
from waypost.operations.metrics import METRICS, Kind, MetricRow, Scene
from waypost.store.database import Database
from waypost.store.queue.depths import QueueDepths, read_queue_depths

if TYPE_CHECKING:  # it loads a web server; this process needs it only at the first scrape
    from prometheus_client.core import Metric

FRESH_S: Final = 5
"""How long the queue depths read from the store are shown again, whatever the number of scrapes."""

WITHIN_S: Final = 2
"""How long reading the queue depths may take; after that their metrics are left out."""

_FORWARDED: Final = ("forwarded", "x-forwarded-for", "x-real-ip")

View = Callable[[QueueDepths | None], Awaitable[Scene]]


class Exposition:
    """The endpoint `/metrics` of one process.

    Args:
        database: for the queue depths.
        view: returns the values of a scrape, given the queue depths.
        process: names this process in the label `process` of every sample.
        tokens: each permits reading; None permits nothing.
    """

    def __init__(self, database: Database, view: View, *, process: str, tokens: Sequence[str | None]) -> None:
        self._database = database
        self._view = view
        self._process = process
        self._tokens = [token for token in tokens if token]
        self._depths: QueueDepths | None = None
        self._until_s = 0.0
        self._one_at_a_time = asyncio.Lock()
        self._of_process: Any = None
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
        scene = await self._view(await self._fresh_depths())
        text: bytes = encode(_Collected(self._families(scene)))
        return Response(text, headers={"Content-Type": content_type})

    def _may_read(self, request: Request) -> bool:
        """True if the request has a token, or comes from this machine and was not forwarded.

        A request that a proxy on this machine forwards comes from this machine too: it names another host,
        or has a forwarding header.
        """
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if given:
            return any(same(given, token) for token in self._tokens)
        is_local = request.client is not None and is_loopback(request.client.host)
        is_forwarded = any(name in request.headers for name in _FORWARDED)
        return is_local and not is_forwarded and is_loopback((request.url.hostname or "").strip("[]"))

    async def _fresh_depths(self) -> QueueDepths | None:
        async with self._one_at_a_time:
            now_s = asyncio.get_running_loop().time()
            if now_s >= self._until_s:
                self._until_s = now_s + FRESH_S
                try:
                    async with asyncio.timeout(WITHIN_S):
                        self._depths = await self._database.read(read_queue_depths)
                except Exception as error:  # noqa: BLE001  the counters of this process are shown all the same
                    self._depths = None
                    self._log.warning("the queue depths could not be read", error=type(error).__name__)
            return self._depths

    def _families(self, scene: Scene) -> Iterable["Metric"]:
        for row in METRICS:
            yield family(row, scene, self._process)
        if self._of_process is None:
            from prometheus_client import CollectorRegistry, ProcessCollector

            self._of_process = ProcessCollector(registry=CollectorRegistry())
        for metric in self._of_process.collect():
            for index, metric_sample in enumerate(metric.samples):
                metric.samples[index] = metric_sample._replace(
                    labels={**metric_sample.labels, "process": self._process}
                )
            yield metric


class _Collected:
    """The interface of a registry that an encoder needs."""

    def __init__(self, families: Iterable["Metric"]) -> None:
        self._families = families

    def collect(self) -> Iterable["Metric"]:
        return self._families


def family(row: MetricRow, scene: Scene, process: str) -> "Metric":
    """Return one row of the table with its current values."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    names = ("process", *row.labels)
    name = f"waypost_{row.name}"
    if row.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(name, row.meaning, labels=names)
        for labels, spread in row.read(scene):
            if isinstance(spread, Spread):
                histogram.add_metric((process, *labels), buckets(spread), spread.total)
        return histogram
    metric_type = CounterMetricFamily if row.kind is Kind.COUNTER else GaugeMetricFamily
    metric = metric_type(name, row.meaning, labels=names)
    for labels, value in row.read(scene):
        if not isinstance(value, Spread):
            metric.add_metric((process, *labels), float(value))
    return metric


def buckets(spread: Spread) -> list[tuple[str, float]]:
    """Return each bound with the number of values that are not above it."""
    bounds = [*(repr(float(bound)) for bound in spread.bounds), "+Inf"]
    return list(zip(bounds, map(float, accumulate(spread.counts)), strict=True))
