"""How one process of the service is seen from outside: probes, metrics, spans."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.responses import JSONResponse
from starlette.routing import Route, Router

from waypost.accept.app import Door
from waypost.base.clock import Clock
from waypost.callbacks.worker import Callbacks
from waypost.config import Settings
from waypost.dispatch.worker import Dispatch
from waypost.events.ingest import Ingest
from waypost.events.webhook import Webhook
from waypost.journal.in_store import Journal
from waypost.journal.stage import Stage
from waypost.operations.exposition import Exposition
from waypost.operations.metrics import Scene, ServerCounts
from waypost.operations.probes import Probes
from waypost.operations.readiness import Parts, Readiness
from waypost.operations.tracing import Tracing, open_tracing
from waypost.store.database import Database
from waypost.store.depths import Depths


class Outside:
    """What probes, scrapes and traces of one process are made from.

    Args:
        settings: who may read, where spans go, how much room there must be.
        doors: gives the routes of the table; they are made after this.
        stages: those that this process runs.
        process: its number, or another short name, in every sample and span.
        holder: its name among all processes of its store.

    Attributes:
        servers: those that answer for this process, once there are any.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        *,
        database: Database,
        journal: Journal,
        doors: Callable[[], Sequence[tuple[str, Door]]],
        webhook: Webhook,
        dispatch: Dispatch,
        ingest: Ingest,
        callbacks: Callbacks,
        stages: Sequence[Stage],
        process: str,
        holder: str,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._database = database
        self._journal = journal
        self._doors = doors
        self._webhook = webhook
        self._dispatch = dispatch
        self._ingest = ingest
        self._callbacks = callbacks
        self._stages = tuple(stages)
        self._process = process
        self._tracing: Tracing | None = None
        self.servers: list[ServerCounts] = []
        self.readiness = Readiness(
            Parts(
                database=database,
                journal=journal,
                name=holder,
                folder=settings.data,
                least_free_mb=settings.least_free_mb,
                held=settings.hold,
                stuck_s=max(120, 2 * settings.operator_timeout_s),
                stages={stage.lane.name.lower(): (stage, None) for stage in self._stages},
            )
        )
        exposition = Exposition(
            database, self._scene, process=process, tokens=(settings.metrics_token, settings.admin_token)
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
            stage.lane.name.lower(): (stage, task) for stage, task in zip(self._stages, tasks, strict=True)
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

    async def _scene(self, depths: Depths | None) -> Scene:
        said = await self.readiness.reasons()
        return Scene(
            doors=self._doors(),
            webhook=self._webhook,
            database=self._database,
            journal=self._journal,
            stages={stage.lane: stage for stage in self._stages},
            dispatch=self._dispatch,
            ingest=self._ingest,
            callbacks=self._callbacks.figures.counts,
            circuits=self._callbacks.circuits,
            pauses=self._callbacks.pauses,
            depths=depths,
            now_ms=self._clock.now_ms(),
            ready={name: not why for name, why in said.items()},
            servers=self.servers,
        )


async def _nothing_here(scope: Any, receive: Any, send: Any) -> None:
    body = {"status": "error", "message": "There is nothing at this path."}
    await JSONResponse(body, 404)(scope, receive, send)
