"""Probes, metrics and spans of one process of the service."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import JSONResponse
from starlette.routing import Route, Router

from waypost.base.clock import Clock
from waypost.config import Settings
from waypost.operations.metrics import MeasuredServices, MetricsContext, ServerCounts
from waypost.operations.prometheus import MetricsEndpoint
from waypost.operations.readiness import CheckedServices, Readiness
from waypost.operations.tracing import SpanTracing, open_tracing
from waypost.store.queue.depths import QueueDepths


class ProcessObservability:
    """The probes, metrics and spans of one process.

    Args:
        settings: tokens, the endpoint for spans, the free space required.
        services: the components that are measured.
        process: its number, or another short name, in every sample and span.
        holder: its name among all processes of its store.

    Attributes:
        servers: the servers of this process, once they run.
    """

    def __init__(
        self, settings: Settings, clock: Clock, services: MeasuredServices, *, process: str, holder: str
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._services = services
        self._process = process
        self._tracing: SpanTracing | None = None
        self.servers: list[ServerCounts] = []
        self.readiness = Readiness(
            CheckedServices(
                database=services.database,
                queue=services.queue,
                name=holder,
                folder=settings.data,
                least_free_mb=settings.least_free_mb,
                held=settings.hold,
                stuck_s=max(120, 2 * settings.operator_timeout_s),
                stages={stage.queue_name.name.lower(): (stage, None) for stage in services.stages},
            )
        )
        exposition = MetricsEndpoint(
            services.database,
            self._metrics_context,
            process=process,
            tokens=(settings.metrics_token, settings.admin_token),
        )
        self.routes: list[Route] = [*self.readiness.routes(), *exposition.routes()]

    def standalone_application(self) -> Any:
        """Return the same routes as an application, for a separate port."""
        return Router(routes=list(self.routes), redirect_slashes=False, default=_respond_not_found)

    def watch_tasks(self, tasks: Sequence[asyncio.Task[None]], loops: Mapping[str, asyncio.Task[None]]) -> None:
        """Watch the tasks that run the stages, in the same order; start tracing if the settings enable it.

        Args:
            loops: other tasks, by name.

        Raises:
            TracingUnavailable: spans are enabled, and the extra is not installed.
        """
        self.readiness.services.stages = {
            stage.queue_name.name.lower(): (stage, task)
            for stage, task in zip(self._services.stages, tasks, strict=True)
        }
        self.readiness.services.loops = loops
        endpoint = self._settings.otel_endpoint
        if endpoint is not None:
            ratio = self._settings.otel_sample_ratio
            self._tracing = open_tracing(endpoint, sample_ratio=ratio, process=self._process)

    def mark_stopping(self) -> None:
        """Report from now on that this process is not ready."""
        self.readiness.services.stopping = True

    async def close(self) -> None:
        """Export the remaining spans."""
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.close)

    async def _metrics_context(self, depths: QueueDepths | None) -> MetricsContext:
        reasons = await self.readiness.reasons()
        ready = {name: not reason for name, reason in reasons.items()}
        return MetricsContext(self._services, depths, self._clock.now_ms(), ready, self.servers)


async def _respond_not_found(scope: Any, receive: Any, send: Any) -> None:
    body = {"status": "error", "message": "There is nothing at this path."}
    await JSONResponse(body, 404)(scope, receive, send)
