"""The service: its components, opened in pipeline order and closed in reverse order."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from waypost.api.access_log import AccessLog
from waypost.api.asgi import ServiceApplication
from waypost.api.limits import LoginLimits
from waypost.api.requests import Receive, Scope, Send
from waypost.api.routes import ROUTES
from waypost.assembly.components import (
    ADAPTERS,
    MakeOperator,
    lay_foundation,
    make_admin_context,
    make_callbacks,
    make_dispatch,
    make_limiter,
    make_recorder,
    make_routes,
    make_services,
    make_workers,
    retention_periods,
)
from waypost.assembly.console import DEFAULT_CONSOLE_OPTIONS, ConsoleOptions, make_console
from waypost.assembly.observability import ProcessObservability
from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.throttled_logging import throttle_library
from waypost.base.time_travel import format_count
from waypost.config import Settings
from waypost.events.media import MediaSweep
from waypost.events.webhook_endpoint import WebhookEndpoint
from waypost.events.worker import EventIngester
from waypost.operations.metrics import MeasuredServices
from waypost.operations.retention_loop import RetentionLoop
from waypost.store.callbacks.subscriptions import tags_by_ids
from waypost.store.contract import WrongStore
from waypost.store.queue.job_subjects import QueueName


class Waypost:
    """One process of the service.

    Args:
        process: name of this process in metrics and spans: its number, if there are several.
        console_options: options of the console.
        adapters: by kind of operator.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        ids: Ids,
        *,
        process: str = "0",
        console_options: ConsoleOptions = DEFAULT_CONSOLE_OPTIONS,
        adapters: Mapping[str, MakeOperator] = ADAPTERS,
    ) -> None:
        throttle_library("uvicorn.error")  # it logs a record for each malformed request
        base = lay_foundation(settings, clock, ids, adapters)
        self._settings, self._context = settings, base.stages
        self._log = log("assembly")
        self.database, self.directory, self.queue = base.stages.database, base.stages.directory, base.stages.queue
        self.files, self.instance_keys, self.passwords = base.stages.files, base.instance_keys, base.passwords
        self.media_sweep = MediaSweep(self.database, self.files, clock)
        self.retention = RetentionLoop(self.database, clock, retention_periods(settings))
        self._dispatch = dispatch = make_dispatch(base)
        self._callbacks = callbacks = make_callbacks(base)
        ingest = EventIngester(base.stages)
        webhook = WebhookEndpoint(base.stages, ingest)
        self._stages = make_workers(base, dispatch, ingest, callbacks)
        self._tasks: list[asyncio.Task[None]] = []
        self._recorder_task: asyncio.Task[None] | None = None

        limiter = make_limiter(base, on=settings.rates)
        # API and console share one window of failed logins, which is on even if rates are off.
        login_limits = LoginLimits(limiter if settings.rates else make_limiter(base, on=True))
        services = make_services(base, limiter, login_limits)
        self.recorder = make_recorder(base, services.proxies)
        measured = MeasuredServices(
            self.database,
            self.queue,
            self._stages,
            endpoints=lambda: self.application.endpoints,
            webhook=webhook,
            dispatch=dispatch,
            ingest=ingest,
            callbacks=callbacks,
            quotas=base.quotas,
            request_log=self.recorder.counts if self.recorder is not None else Counter(),
        )
        self.observability = ProcessObservability(settings, clock, measured, process=process, holder=base.holder)

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await self.application(scope, receive, send)  # set below, with the console's route

        console_token = ids.secret()
        self.console = make_console(
            base,
            services,
            application=application,
            limiter=limiter,
            ready=self.observability.readiness.reasons,
            admin_token=console_token,
            options=console_options,
        )
        self.admin_context = make_admin_context(base, callbacks)
        has_api = "api" in settings.stages
        routes = [*make_routes(base, services, self.admin_context, webhook, console_token), *self.observability.routes]
        self.application = ServiceApplication(
            services,
            [*routes, *([self.console.route()] if has_api else ())],
            rows=ROUTES if has_api else (),
            recorder=self.recorder,
        )
        self.logged_application: Any = (
            AccessLog(self.application, self.application.route_of, services.proxies, ids)
            if settings.access_log
            else self.application
        )

    async def open(self) -> None:
        """Open the store and the clients.

        Raises:
            StoreInUse: another process has the store open.
            WrongStore: the store is of another revision.
        """
        await self.database.open()
        try:
            await self.instance_keys.open()
        except WrongStore:
            await self.database.close()
            raise
        self.instance_keys.loop.start()
        await self.files.open(exclusive=self.database.is_exclusive)
        await self.queue.open()
        await self._context.operators.open()
        await self._context.outbound.open()

    def start(self) -> None:
        """Start the queues' workers and the deletion of old data; with the setting `hold`, start neither.

        Raises:
            TracingUnavailable: spans are enabled, and OpenTelemetry is not installed.
        """
        if self._settings.hold:
            return
        if self.recorder is not None:
            self._recorder_task = asyncio.create_task(self.recorder.run())
        self.queue.start()
        stages = [asyncio.create_task(stage.run()) for stage in self._stages]
        loops = {"retention": asyncio.create_task(self.retention.run())}
        if "events" in self._settings.stages:  # in one stage only: once is enough
            loops["media sweep"] = asyncio.create_task(self.media_sweep.run())
        self._tasks = [*stages, *loops.values()]
        self.observability.watch_tasks(stages, loops)

    # The members of a `ClockFollower`: see `base/time_travel.py`.
    name = "the service"

    @property
    def busy(self) -> bool:
        """True while any job is claimed, any write is pending, or any call is in flight."""
        return self.database.busy or self._dispatch.is_uploading or not all(stage.is_idle for stage in self._stages)

    async def describe_in_flight(self) -> list[str]:
        """Describe what keeps it busy, callbacks by the tag of their subscription."""
        counts = {stage.queue_name: stage.active_jobs for stage in self._stages if stage.active_jobs}
        texts = [
            format_count(count, JOB_NOUNS[queue_name])
            for queue_name, count in counts.items()
            if queue_name is not QueueName.CALLBACKS
        ]
        if QueueName.CALLBACKS in counts:
            receivers = self._callbacks.admission.callbacks_in_flight
            tags = await self.database.read(tags_by_ids, [int(receiver) for receiver in receivers])
            texts += [
                format_count(count, "callback", f" to {tags.get(int(key), key)}") for key, count in receivers.items()
            ]
        return texts

    @property
    def moves(self) -> int:
        """Number of writes it has begun."""
        return self.database.writes_begun

    async def next_due_ms(self) -> int | None:
        """Return the time at which the next job of any queue is due; None if there is none."""
        due_times = (stage.next_due_ms for stage in self._stages)
        return min((due_ms for due_ms in due_times if due_ms is not None), default=None)

    def set_travelling(self, is_travelling: bool) -> None:
        """Record that the clock begins or ends to be advanced by hand."""
        self._callbacks.admission.set_travelling(is_travelling)
        self._dispatch.set_travelling(is_travelling)

    async def drain(self, *, within_s: float | None = None) -> None:
        """Claim nothing more; wait for jobs in flight, and cancel them after the timeout.

        Args:
            within_s: the timeout; None: `stop_within_s`.
        """
        self.observability.mark_stopping()
        within_s = self._settings.stop_within_s if within_s is None else within_s
        self.media_sweep.stop()
        self.retention.stop()
        await asyncio.gather(*(stage.stop(timeout_s=within_s) for stage in self._stages))
        await self._dispatch.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        """Write the rest of the request log, release the leases, close clients and store."""
        if self.recorder is not None and self._recorder_task is not None:
            self.recorder.stop()
            await self._recorder_task
        await self.instance_keys.close()
        await self.queue.close()
        await self._context.outbound.close()
        await self._context.operators.close()
        await self.database.close()
        self.passwords.close()
        await self.observability.close()


JOB_NOUNS: Final = {  # name of a job of each queue, where it prevents a snapshot
    QueueName.OUTBOUND: "call to the operator",
    QueueName.UNCONFIRMED: "unconfirmed message",
    QueueName.WEBHOOKS: "inbound webhook",
    QueueName.MEDIA: "media download",
}
