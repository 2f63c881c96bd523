"""How one process of the service is seen from outside: probes, metrics, spans."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import JSONResponse
from starlette.routing import Route, Router

from waypost.base.clock import Clock
from waypost.config import Settings
from waypost.operations.metrics import MeasuredParts, Scene, ServerCounts
from waypost.operations.probes import Probes
from waypost.operations.prometheus import Exposition
from waypost.operations.readiness import Parts, Readiness
from waypost.operations.tracing import Tracing, open_tracing
from waypost.store.queue.depths import QueueDepths


class Outside:
    """What probes, scrapes and traces of one process are made from.

    Args:
        settings: who may read, where spans go, how much room there must be.
        clock: that rules follow.
        parts: what is measured.
        process: its number, or another short name, in every sample and span.
        holder: its name among all processes of its store.

    Attributes:
        servers: those that answer for this process, once there are any.
    """

    def __init__(self, settings: Settings, clock: Clock, parts: MeasuredParts, *, process: str, holder: str) -> None:
        self._settings = settings
        self._clock = clock
        self._parts = parts
        self._process = process
        self._tracing: Tracing | None = None
        self.servers: list[ServerCounts] = []
        self.readiness = Readiness(
            Parts(
                database=parts.database,
                queue=parts.queue,
                name=holder,
                folder=settings.data,
                least_free_mb=settings.least_free_mb,
                held=settings.hold,
                stuck_s=max(120, 2 * settings.operator_timeout_s),
                stages={stage.queue_name.name.lower(): (stage, None) for stage in parts.stages},
            )
        )
        exposition = Exposition(
            parts.database, self._scene, process=process, tokens=(settings.metrics_token, settings.admin_token)
        )
        self.routes: list[Route] = [*Probes(self.readiness).routes(), *exposition.routes()]

    def on_its_own(self) -> Any:
        """The same doors as an application, for a port of this process's own."""
        return Router(routes=list(self.routes), redirect_slashes=False, default=_nothing_here)

    def started(self, tasks: Sequence[asyncio.Task[None]], loops: Mapping[str, asyncio.Task[None]]) -> None:
        """The stages are run by these tasks, in their order; begin to make spans where they are asked for.

        Args:
            tasks: of the stages.
            loops: what else runs, by name.

        Raises:
            NoTracing: spans are asked for, and the extra is not installed.
        """
        self.readiness.parts.stages = {
            stage.queue_name.name.lower(): (stage, task) for stage, task in zip(self._parts.stages, tasks, strict=True)
        }
        self.readiness.parts.loops = loops
        endpoint = self._settings.otel_endpoint
        if endpoint is not None:
            share = self._settings.otel_share
            self._tracing = open_tracing(endpoint, share=share, process=self._process)

    def stopping(self) -> None:
        """Say from now on that this process is not ready."""
        self.readiness.parts.stopping = True

    async def close(self) -> None:
        """Hand on what spans there are."""
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.close)

    async def _scene(self, depths: QueueDepths | None) -> Scene:
        said = await self.readiness.reasons()
        ready = {name: not why for name, why in said.items()}
        return Scene(self._parts, depths, self._clock.now_ms(), ready, self.servers)


async def _nothing_here(scope: Any, receive: Any, send: Any) -> None:
    body = {"status": "error", "message": "There is nothing at this path."}
    await JSONResponse(body, 404)(scope, receive, send)
