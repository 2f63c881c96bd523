"""The service: its components, opened in pipeline order and closed in reverse order."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from starlette.routing import BaseRoute, Route

from waypost.admin.authorisation import AdminGate
from waypost.admin.provisioning import AdminContext
from waypost.admin.routes import make_admin_routes
from waypost.api.access_log import AccessLog, TrustedProxies, rate_limit_address
from waypost.api.asgi import ServiceApplication
from waypost.api.backlog_quotas import BacklogQuotas
from waypost.api.limits import Limiter, LocalLimiter, LoginLimits, RejectionBudgets, SharedLimiter
from waypost.api.onboarding import ONBOARDING_PATH
from waypost.api.passwords import Argon2Hasher
from waypost.api.public_files import PublicMediaEndpoint
from waypost.api.request_recorder import RequestRecorder
from waypost.api.requests import Receive, Scope, Send
from waypost.api.routes import ROUTES
from waypost.api.services import Services
from waypost.api.uploads import MediaQuota, PartnerUploads
from waypost.assembly.console import DEFAULT_CONSOLE_OPTIONS, ConsoleOptions, make_console
from waypost.assembly.observability import ProcessObservability
from waypost.base.clock import Clock
from waypost.base.encryption import SecretBox
from waypost.base.ids import Ids
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.throttled_logging import throttle_library
from waypost.base.time_travel import format_count
from waypost.callbacks.batch import CallbackReader
from waypost.callbacks.pausing import SubscriptionPauser
from waypost.callbacks.worker import CallbackSender
from waypost.config import Settings
from waypost.dispatch.media_copies import MediaCopies
from waypost.dispatch.message_outcomes import MessageOutcomes
from waypost.dispatch.message_sender import MessageSender
from waypost.dispatch.operator_circuits import OperatorCircuits
from waypost.dispatch.pacing import Pacer
from waypost.dispatch.retries import OutboundRetries
from waypost.dispatch.slots import OperatorSlots
from waypost.dispatch.template_actions import TemplateActions
from waypost.dispatch.template_outcomes import TemplateOutcomes
from waypost.dispatch.worker import OutboundDispatcher, UnconfirmedExpiry
from waypost.domain.partner import PartnerQuotas, Wallet
from waypost.domain.rates import change_rates
from waypost.events.media import InboundMediaFetcher, MediaSweep
from waypost.events.webhook_endpoint import WebhookEndpoint
from waypost.events.worker import EventIngester
from waypost.operations.docs import DocsPages
from waypost.operations.metrics import MeasuredServices
from waypost.operations.onboarding_page import OnboardingPage
from waypost.operations.retention_loop import RetentionLoop
from waypost.operators.cloud.adapter import CloudOperator
from waypost.operators.cloud.numbers import KIND as CLOUD
from waypost.operators.contract import Operator, Operators
from waypost.outbound.vetted_client import VettedClient
from waypost.queue.plans import make_queue_plans, queues_of_stages
from waypost.queue.queue import JobQueue
from waypost.queue.worker import StageWorker
from waypost.store.accounts.audit_log import AuditLog
from waypost.store.accounts.instance_keys import InstanceKeys
from waypost.store.callbacks.subscriptions import tags_by_ids
from waypost.store.contract import StoreEngine, WrongStore
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.media.files import MediaFiles
from waypost.store.queue.job_subjects import QueueName
from waypost.store.retention.columns import RetentionPeriods

MakeOperator = Callable[[Settings, Clock], Operator]

ADAPTERS: Final[
    Mapping[str, MakeOperator]
] = {  # kind of operator account: its adapter. Kinds are stored: never change one
    CLOUD: lambda settings, clock: CloudOperator(clock, timeout_s=settings.operator_timeout_s, held=settings.hold)
}


def make_operators(settings: Settings, clock: Clock, adapters: Mapping[str, MakeOperator]) -> Operators:
    """Return the adapters of a service, not yet open."""
    return Operators({kind: make(settings, clock) for kind, make in adapters.items()})


WEBHOOK_PATH: Final = "/operator/webhook"
MEDIA_PATH: Final = "/media"


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
        if settings.secret_key is None:
            raise ValueError("secret_key is needed")
        chance = random.Random()  # noqa: S311  spreads retries; not used for secrets
        secret_box = SecretBox(settings.secret_key, settings.old_secret_key)
        self._settings = settings
        self._log = log("assembly")
        throttle_library("uvicorn.error")  # it logs a record for each malformed request
        self.database = Database(make_engine(settings))
        self.directory = Directory(self.database, secret_box, clock)
        self.passwords = Argon2Hasher()
        holder = ids.new()
        self.instance_keys = InstanceKeys(self.database, secret_box, clock, holder=holder)
        self.queue = JobQueue(
            self.database,
            clock,
            holder=holder,
            lease_ms=int(settings.lease_s * 1000),
            plans=make_queue_plans(settings.in_flight),
            queue_names=queues_of_stages(settings.stages),
        )
        self._operators = make_operators(settings, clock, adapters)
        self._outbound = VettedClient(allowed_networks=settings.allowed_networks, held=settings.hold)
        default_quotas = PartnerQuotas(settings.message_quota, settings.callback_quota)
        quotas = BacklogQuotas(self.database, clock, default_quotas)
        self.files = make_media_files(settings)
        self._rates = change_rates(settings.rate_limits)
        self.admin_context = AdminContext(
            database=self.database,
            directory=self.directory,
            secret_box=secret_box,
            instance_keys=self.instance_keys,
            ids=ids,
            clock=clock,
            operators=self._operators,
            passwords=self.passwords,
            outbound=self._outbound,
            circuit_of=lambda subscription_id: callbacks.circuit_of(subscription_id),
            public_url=settings.address,
            per_second=settings.per_second,
            default_quotas=default_quotas,
            apply_quotas=quotas.apply_change,
            retention=retention_periods(settings),
            rates=self._rates,
            rates_on=settings.rates,
            data=settings.data,
            files=self.files,
            show_text=settings.show_text,
        )
        self.media_sweep = MediaSweep(self.database, self.files, clock)
        self.retention = RetentionLoop(self.database, clock, retention_periods(settings))
        limiter = self._limiter(clock, on=settings.rates)
        # API and console share one window of failed logins, which is on even if rates are off.
        login_limits = LoginLimits(limiter if settings.rates else self._limiter(clock, on=True))
        audit = AuditLog(self.database, clock)
        services = Services(
            clock=clock,
            ids=ids,
            secret_box=secret_box,
            database=self.database,
            directory=self.directory,
            limiter=limiter,
            quotas=quotas,
            login_limits=login_limits,
            rejections=RejectionBudgets(clock),
            passwords=self.passwords,
            outbound=self._outbound,
            operators=self._operators,
            public_url=settings.address,
            wallet=Wallet(settings.wallet_currency, settings.wallet_balance, settings.wallet_overdraft),
            files=self.files,
            uploads=PartnerUploads(
                files=self.files,
                database=self.database,
                outbound=self._outbound,
                clock=clock,
                ids=ids,
                quota=MediaQuota(self.database, clock, max_bytes=settings.media_quota_mb * 1_000_000),
            ),
            strict=settings.strict,
            audit=audit,
            held=settings.hold,
            proxies=TrustedProxies(settings.trusted_proxies),
        )
        self.recorder = (
            RequestRecorder(
                self.database,
                clock,
                ids,
                services.proxies,
                sample=settings.request_log_sample,
                max_rows=settings.request_log_rows,
                show_text=settings.show_text,
            )
            if settings.request_log_rows and "api" in settings.stages and not settings.hold
            else None
        )
        console_token = ids.secret()

        def address_of(scope: Scope) -> str:
            return rate_limit_address(services.proxies.client_address(scope))

        gate = AdminGate(
            token=settings.admin_token,
            console_token=console_token,
            hosts=(*settings.admin_hosts, *([settings.admin_host] if settings.admin_host else [])),
            limits=login_limits,
            address_of=address_of,
            audit=audit,
            directory=self.directory,
        )
        ingest = EventIngester(
            database=self.database,
            queue=self.queue,
            directory=self.directory,
            operators=self._operators,
            clock=clock,
            ids=ids,
            public_url=settings.address,
            hold_ms=settings.hold_events_s * 1000,
        )
        webhook = WebhookEndpoint(
            ingester=ingest,
            directory=self.directory,
            operators=self._operators,
            clock=clock,
            ids=ids,
            held=settings.hold,
        )
        self._media_copies = MediaCopies(
            database=self.database, files=self.files, operators=self._operators, clock=clock
        )
        pacer = Pacer(per_second=settings.per_second)
        clear_not_before = partial(self.queue.clear_not_before, QueueName.OUTBOUND)
        slots = OperatorSlots(clock, in_flight=settings.in_flight, pace=pacer, clear_not_before=clear_not_before)
        self._operator_circuits = OperatorCircuits(
            clock, chance, pace=slots.check_pace, clear_not_before=clear_not_before
        )
        messages = MessageOutcomes(
            clock, ids, uncertain_for_ms=settings.uncertain_for_s * 1000, hold_ms=settings.hold_events_s * 1000
        )
        templates = TemplateOutcomes(clock, ids)
        waiting = self._outbound_retries = OutboundRetries(
            queue=self.queue,
            clock=clock,
            chance=chance,
            pacer=pacer,
            messages=messages,
            templates=templates,
            message_ttl_ms=settings.message_ttl_s * 1000,
        )
        dispatch = OutboundDispatcher(
            database=self.database,
            queue=self.queue,
            directory=self.directory,
            sender=MessageSender(
                queue=self.queue,
                directory=self.directory,
                operators=self._operators,
                clock=clock,
                pacer=pacer,
                circuits=self._operator_circuits,
                slots=slots,
                copies=self._media_copies,
                messages=messages,
                retries=waiting,
            ),
            circuits=self._operator_circuits,
            slots=slots,
            template_actions=TemplateActions(
                database=self.database,
                queue=self.queue,
                directory=self.directory,
                operators=self._operators,
                copies=self._media_copies,
                outcomes=templates,
                retries=waiting,
                slots=slots,
            ),
            retries=waiting,
        )
        unconfirmed = UnconfirmedExpiry(
            database=self.database, queue=self.queue, directory=self.directory, messages=messages
        )
        callbacks = CallbackSender(
            database=self.database,
            queue=self.queue,
            reader=CallbackReader(database=self.database, directory=self.directory, secret_box=secret_box, clock=clock),
            pausing=SubscriptionPauser(
                database=self.database, clock=clock, ids=ids, pause_after_ms=settings.pause_callbacks_after_s * 1000
            ),
            client=self._outbound,
            clock=clock,
            chance=chance,
            order_hold_ms=settings.order_hold_s * 1000,
        )
        media_fetch = InboundMediaFetcher(
            database=self.database,
            queue=self.queue,
            directory=self.directory,
            operators=self._operators,
            files=self.files,
            clock=clock,
            chance=chance,
        )
        public_media = PublicMediaEndpoint(database=self.database, files=self.files, secret_box=secret_box, clock=clock)
        stages = (
            StageWorker(
                self.queue,
                QueueName.OUTBOUND,
                dispatch.prepare,
                pace=self._operator_circuits.check_pace,
                release=dispatch.release,
            ),
            StageWorker(self.queue, QueueName.UNCONFIRMED, unconfirmed.prepare),
            StageWorker(self.queue, QueueName.WEBHOOKS, ingest.prepare),
            StageWorker(
                self.queue, QueueName.CALLBACKS, callbacks.prepare, pace=callbacks.check_pace, release=callbacks.release
            ),
            StageWorker(self.queue, QueueName.MEDIA, media_fetch.prepare),
        )
        self._stages = tuple(stage for stage in stages if stage.queue_name in queues_of_stages(settings.stages))
        measured = MeasuredServices(
            self.database,
            self.queue,
            self._stages,
            endpoints=lambda: self.application.endpoints,
            webhook=webhook,
            dispatch=dispatch,
            ingest=ingest,
            callbacks=callbacks,
            quotas=quotas,
            request_log=self.recorder.counts if self.recorder is not None else Counter(),
        )
        self.observability = ProcessObservability(settings, clock, measured, process=process, holder=holder)
        self._callbacks = callbacks
        self._tasks: list[asyncio.Task[None]] = []
        self._recorder_task: asyncio.Task[None] | None = None

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await self.application(scope, receive, send)  # set below, with the console's route

        self.console = make_console(
            settings,
            application=application,
            database=self.database,
            directory=self.directory,
            files=self.files,
            passwords=self.passwords,
            attempts=login_limits,
            limited=limiter.limited,
            ready=self.observability.readiness.reasons,
            clock=clock,
            ids=ids,
            secret_box=secret_box,
            proxies=services.proxies,
            audit=audit,
            admin_token=console_token,
            options=console_options,
        )
        onboarding_page = OnboardingPage(directory=self.directory, secret_box=secret_box, clock=clock)
        stage_routes: dict[str, list[BaseRoute]] = {  # the first that matches is taken: the busiest come first
            "events": [*_webhook_routes(webhook)],
            "api": [
                *make_admin_routes(self.admin_context, gate),
                Route(f"{MEDIA_PATH}/{{key}}", public_media.show, methods=["GET"]),
                Route(f"{ONBOARDING_PATH}/{{code}}", onboarding_page.show, methods=["GET"]),
                *DocsPages(settings.address, rates=self._rates, rates_on=settings.rates).routes(),
            ],
        }
        self.application = ServiceApplication(
            services,
            [
                *(route for stage, routes in stage_routes.items() if stage in settings.stages for route in routes),
                *self.observability.routes,
                *([self.console.route()] if "api" in settings.stages else ()),
            ],
            rows=ROUTES if "api" in settings.stages else (),
            recorder=self.recorder,
        )
        self.logged_application: Any = (
            AccessLog(self.application, self.application.route_of, services.proxies, ids)
            if settings.access_log
            else self.application
        )

    def _limiter(self, clock: Clock, *, on: bool) -> Limiter:
        if self.database.is_exclusive:
            return LocalLimiter(clock, on=on, rates=self._rates)
        return SharedLimiter(clock, self.database, on=on, rates=self._rates)

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
        await self._operators.open()
        await self._outbound.open()

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
        return self.database.busy or self._media_copies.is_uploading or not all(stage.is_idle for stage in self._stages)

    async def describe_in_flight(self) -> list[str]:
        """Describe what keeps it busy, callbacks by the tag of their subscription."""
        counts = {stage.queue_name: stage.active_jobs for stage in self._stages if stage.active_jobs}
        texts = [
            format_count(count, JOB_NOUNS[queue_name])
            for queue_name, count in counts.items()
            if queue_name is not QueueName.CALLBACKS
        ]
        if QueueName.CALLBACKS in counts:
            receivers = self._callbacks.callbacks_in_flight
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
        self._callbacks.set_travelling(is_travelling)
        self._operator_circuits.set_travelling(is_travelling)
        self._outbound_retries.set_travelling(is_travelling)

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
        await self._media_copies.close()
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
        await self._outbound.close()
        await self._operators.close()
        await self.database.close()
        self.passwords.close()
        await self.observability.close()


JOB_NOUNS: Final = {  # name of a job of each queue, where it prevents a snapshot
    QueueName.OUTBOUND: "call to the operator",
    QueueName.UNCONFIRMED: "unconfirmed message",
    QueueName.WEBHOOKS: "inbound webhook",
    QueueName.MEDIA: "media download",
}


def retention_periods(settings: Settings) -> RetentionPeriods:
    """Return the retention periods of the settings."""
    return RetentionPeriods(
        bodies_days=settings.keep_bodies_days,
        messages_days=settings.keep_messages_days,
        dedupe_days=settings.keep_dedupe_days,
        attempts_days=settings.keep_attempts_days,
        audit_days=settings.keep_audit_days,
        request_log_days=settings.request_log_days,
    )


def make_engine(settings: Settings) -> StoreEngine:
    """Return the store's engine that the settings choose."""
    if settings.database_url is None:
        return SqliteEngine(settings.store_path, upgrade=settings.upgrade_store)
    from waypost.store.engines.postgresql import PostgresEngine

    return PostgresEngine(
        settings.database_url,
        budget=settings.connection_budget,
        processes=settings.workers,
        upgrade=settings.upgrade_store,
    )


def make_media_files(settings: Settings) -> MediaFiles:
    """Return the place of media files that the settings choose."""
    reserved_bytes = settings.least_free_mb * 1_000_000
    if settings.media_url is None:
        return MediaFiles(settings.media_folder, reserved_bytes=reserved_bytes)
    from waypost.store.media.bucket import BucketAccess, BucketMedia

    access = BucketAccess(
        settings.media_url,
        endpoint=settings.media_endpoint,
        region=settings.media_region,
        access_key_id=settings.media_access_key_id,
        secret_key=settings.media_secret_key,
    )
    return BucketMedia(access, settings.data / "media-cache", reserved_bytes=reserved_bytes)


def _webhook_routes(webhook: WebhookEndpoint) -> list[Route]:
    paths = (WEBHOOK_PATH, f"{WEBHOOK_PATH}/{{operator_account}}")
    return [
        *(Route(path, webhook.handshake, methods=["GET"]) for path in paths),
        *(Route(path, webhook.receive, methods=["POST"]) for path in paths),
    ]
