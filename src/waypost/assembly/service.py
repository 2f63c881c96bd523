"""The service: its parts, opened in street order and closed the other way round."""

import asyncio
import random
from collections.abc import Mapping
from typing import Final

from starlette.routing import BaseRoute, Route

from waypost.admin.authorisation import AdminGate
from waypost.admin.provisioning import AdminContext
from waypost.admin.routes import admin_routes
from waypost.api.asgi import Service
from waypost.api.http.proxies import Proxies, counted_as
from waypost.api.http.requests import Receive, Scope, Send
from waypost.api.limits.login_limits import LoginLimits
from waypost.api.limits.rate_limits import Limiter, LocalLimiter, SharedLimiter
from waypost.api.media.public_files import MediaDoor
from waypost.api.passwords import Passwords
from waypost.api.routes import ROUTES
from waypost.api.services import Services
from waypost.api.uploads.quota import MediaQuota
from waypost.api.uploads.uploads import Uploads
from waypost.assembly.console import AS_SET, ConsoleStand, make_console
from waypost.assembly.observability import Outside
from waypost.assembly.operators import ADAPTERS, MakeOperator, make_operators
from waypost.base.clock import Clock
from waypost.base.encryption import Seals
from waypost.base.ids import Ids
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.throttled_logging import throttle_library
from waypost.base.time_travel import counted
from waypost.callbacks.batch import CallbackReader
from waypost.callbacks.pausing import Pausing
from waypost.callbacks.worker import Callbacks
from waypost.config import Settings
from waypost.dispatch.media_copies import Copies
from waypost.dispatch.message_outcomes import MessageOutcomes
from waypost.dispatch.message_sender import MessageSender
from waypost.dispatch.pacing import Pacer
from waypost.dispatch.retries import Waiting
from waypost.dispatch.template_actions import TemplateActs
from waypost.dispatch.template_outcomes import TemplateOutcomes
from waypost.dispatch.worker import Dispatch, UnconfirmedMessages
from waypost.domain.partner import Wallet
from waypost.events.media_fetch import MediaFetch
from waypost.events.media_sweep import MediaSweep
from waypost.events.webhook_endpoint import Webhook
from waypost.events.worker import Ingest
from waypost.operations.docs import Docs
from waypost.operations.metrics import MeasuredParts
from waypost.operations.retention_loop import Retention
from waypost.outbound.vetted import VettedClient
from waypost.queue.plans import plans_with, queues_of_stages
from waypost.queue.queue import JobQueue
from waypost.queue.worker import StageWorker
from waypost.store.accounts.audit_log import AuditLog
from waypost.store.callbacks.subscriptions import tags_of
from waypost.store.contract import Engine
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.media.files import MediaFiles
from waypost.store.queue.jobs import QueueName
from waypost.store.retention.rules import Keep

WEBHOOK_PATH: Final = "/operator/webhook"
MEDIA_PATH: Final = "/media"


class Waypost:
    """One process of the service.

    Args:
        settings: with a `secret_key`.
        clock: what rules follow.
        ids: for everything new.
        process: names this process in what is seen of it: its number, where there are several.
        stand: what the console has beside it: phones, and whom one click enters as.
        adapters: by operator kind.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        ids: Ids,
        *,
        process: str = "0",
        stand: ConsoleStand = AS_SET,
        adapters: Mapping[str, MakeOperator] = ADAPTERS,
    ) -> None:
        if settings.secret_key is None:
            raise ValueError("secret_key is needed")
        chance = random.Random()  # noqa: S311  spreads retries; no secret
        seals = Seals(settings.secret_key)
        self._settings = settings
        self._log = log("assembly")
        throttle_library("uvicorn.error")  # it has a record for each request that it cannot read
        self.database = Database(engine_of(settings))
        self.directory = Directory(self.database, seals, clock)
        self.passwords = Passwords()
        holder = ids.new()
        self.queue = JobQueue(
            self.database,
            clock,
            holder=holder,
            lease_ms=int(settings.lease_s * 1000),
            plans=plans_with(settings.in_flight),
            queue_names=queues_of_stages(settings.stages),
        )
        self._operators = make_operators(settings, clock, adapters)
        self._outbound = VettedClient(allowed_networks=settings.allowed_networks, held=settings.hold)
        self.office = AdminContext(
            database=self.database,
            directory=self.directory,
            seals=seals,
            ids=ids,
            clock=clock,
            operators=self._operators,
            passwords=self.passwords,
            outbound=self._outbound,
            circuit_of=lambda subscription_id: callbacks.circuit_of(subscription_id),
            public_url=settings.address,
            per_second=settings.per_second,
            data=settings.data,
            show_text=settings.show_text,
        )
        self.files = MediaFiles(settings.media_folder, reserved_bytes=settings.least_free_mb * 1_000_000)
        self.sweep = MediaSweep(self.database, self.files, clock)
        self.retention = Retention(self.database, clock, keep_of(settings))
        limiter = self._limiter(clock, on=settings.rates)
        # One window of failures for API and console, on also where rates are off.
        login_limits = LoginLimits(limiter if settings.rates else self._limiter(clock, on=True))
        audit = AuditLog(self.database, clock)
        services = Services(
            clock=clock,
            ids=ids,
            seals=seals,
            database=self.database,
            directory=self.directory,
            limiter=limiter,
            login_limits=login_limits,
            passwords=self.passwords,
            outbound=self._outbound,
            operators=self._operators,
            public_url=settings.address,
            wallet=Wallet(settings.wallet_currency, settings.wallet_balance, settings.wallet_overdraft),
            files=self.files,
            uploads=Uploads(
                files=self.files,
                database=self.database,
                outbound=self._outbound,
                clock=clock,
                ids=ids,
                quota=MediaQuota(self.database, clock, most_bytes=settings.media_quota_mb * 1_000_000),
            ),
            strict=settings.strict,
            audit=audit,
            held=settings.hold,
            proxies=Proxies(settings.trusted_proxies),
        )
        consoles_token = ids.secret()

        def address_of(scope: Scope) -> str:
            return counted_as(services.proxies.client_address(scope))

        gate = AdminGate(
            token=settings.admin_token,
            console_token=consoles_token,
            hosts=(*settings.admin_hosts, *([settings.admin_host] if settings.admin_host else [])),
            limits=login_limits,
            address_of=address_of,
            audit=audit,
            directory=self.directory,
        )
        webhook = Webhook(
            database=self.database,
            directory=self.directory,
            operators=self._operators,
            clock=clock,
            ids=ids,
            held=settings.hold,
        )
        self._copies = Copies(database=self.database, files=self.files, operators=self._operators, clock=clock)
        pacer = Pacer(per_second=settings.per_second)
        messages = MessageOutcomes(
            clock, ids, uncertain_for_ms=settings.uncertain_for_s * 1000, hold_ms=settings.hold_events_s * 1000
        )
        templates = TemplateOutcomes(clock, ids)
        waiting = Waiting(
            queue=self.queue,
            clock=clock,
            chance=chance,
            pacer=pacer,
            messages=messages,
            templates=templates,
            message_ttl_ms=settings.message_ttl_s * 1000,
        )
        dispatch = Dispatch(
            database=self.database,
            queue=self.queue,
            sender=MessageSender(
                queue=self.queue,
                directory=self.directory,
                operators=self._operators,
                clock=clock,
                pacer=pacer,
                copies=self._copies,
                messages=messages,
                waiting=waiting,
            ),
            template_acts=TemplateActs(
                database=self.database,
                queue=self.queue,
                directory=self.directory,
                operators=self._operators,
                copies=self._copies,
                outcomes=templates,
                waiting=waiting,
            ),
            waiting=waiting,
        )
        unconfirmed = UnconfirmedMessages(
            database=self.database, queue=self.queue, directory=self.directory, messages=messages
        )
        ingest = Ingest(
            database=self.database,
            queue=self.queue,
            directory=self.directory,
            operators=self._operators,
            clock=clock,
            ids=ids,
            public_url=settings.address,
            hold_ms=settings.hold_events_s * 1000,
        )
        callbacks = Callbacks(
            database=self.database,
            queue=self.queue,
            reader=CallbackReader(database=self.database, directory=self.directory, seals=seals, clock=clock),
            pausing=Pausing(
                database=self.database, clock=clock, ids=ids, pause_after_ms=settings.pause_callbacks_after_s * 1000
            ),
            client=self._outbound,
            clock=clock,
            chance=chance,
            order_hold_ms=settings.order_hold_s * 1000,
        )
        self._callbacks = callbacks
        media_fetch = MediaFetch(
            database=self.database,
            queue=self.queue,
            directory=self.directory,
            operators=self._operators,
            files=self.files,
            clock=clock,
            chance=chance,
        )
        media_door = MediaDoor(database=self.database, files=self.files, seals=seals, clock=clock)
        stages = (
            StageWorker(self.queue, QueueName.OUTBOUND, dispatch.prepare, pace=pacer),
            StageWorker(self.queue, QueueName.UNCONFIRMED, unconfirmed.prepare),
            StageWorker(self.queue, QueueName.WEBHOOKS, ingest.prepare),
            StageWorker(self.queue, QueueName.CALLBACKS, callbacks.prepare, pace=callbacks.pace),
            StageWorker(self.queue, QueueName.MEDIA, media_fetch.prepare),
        )
        self._stages = tuple(stage for stage in stages if stage.queue_name in queues_of_stages(settings.stages))
        measured = MeasuredParts(
            self.database,
            self.queue,
            self._stages,
            doors=lambda: self.application.doors,
            webhook=webhook,
            dispatch=dispatch,
            ingest=ingest,
            callbacks=callbacks,
        )
        self.outside = Outside(settings, clock, measured, process=process, holder=holder)
        self._callbacks = callbacks
        self._running: list[asyncio.Task[None]] = []

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await self.application(scope, receive, send)  # which is made with the console's route

        self.console = make_console(
            settings,
            application=application,
            database=self.database,
            directory=self.directory,
            files=self.files,
            passwords=self.passwords,
            attempts=login_limits,
            ready=self.outside.readiness.reasons,
            clock=clock,
            ids=ids,
            seals=seals,
            proxies=services.proxies,
            audit=audit,
            admin_token=consoles_token,
            stand=stand,
        )
        doors_of: dict[str, list[BaseRoute]] = {
            "api": [
                *admin_routes(self.office, gate),
                Route(f"{MEDIA_PATH}/{{key}}", media_door.show, methods=["GET"]),
                *Docs(settings.address).routes(),
            ],
            "events": [*_webhook_routes(webhook)],
        }
        self.application = Service(
            services,
            [
                *(door for stage in settings.stages for door in doors_of.get(stage, ())),
                *self.outside.routes,
                *([self.console.route()] if "api" in settings.stages else ()),
            ],
            rows=ROUTES if "api" in settings.stages else (),
        )

    def _limiter(self, clock: Clock, *, on: bool) -> Limiter:
        if self.database.sole:
            return LocalLimiter(clock, on=on)
        return SharedLimiter(clock, self.database, on=on)

    async def open(self) -> None:
        """Open the store and the clients.

        Raises:
            StoreInUse: another process has the store open.
            WrongStore: the store is of another revision.
        """
        await self.database.open()
        await self.files.open(sole=self.database.sole)
        await self.queue.open()
        await self._operators.open()
        await self._outbound.open()

    def start(self) -> None:
        """Begin to work the queues, and to delete what is old; held, do neither.

        Raises:
            NoTracing: spans are asked for, and OpenTelemetry is not installed.
        """
        if self._settings.hold:
            return
        self.queue.start()
        stages = [asyncio.create_task(stage.run()) for stage in self._stages]
        loops = {"retention": asyncio.create_task(self.retention.run())}
        if "events" in self._settings.stages:  # one stage's: once is enough
            loops["the sweep of media"] = asyncio.create_task(self.sweep.run())
        self._running = [*stages, *loops.values()]
        self.outside.started(stages, loops)

    # A side that lives by the clock: see `base.travel`.
    name = "the service"

    @property
    def busy(self) -> bool:
        """Whether anything is claimed, being written, or on its way."""
        return self.database.busy or self._copies.busy or not all(stage.is_idle for stage in self._stages)

    async def in_flight(self) -> list[str]:
        """Name what keeps it busy, callbacks by the tag of their subscription."""
        counts = {stage.queue_name: stage.busy for stage in self._stages if stage.busy}
        named = [
            counted(count, IN_FLIGHT[queue_name])
            for queue_name, count in counts.items()
            if queue_name is not QueueName.CALLBACKS
        ]
        if QueueName.CALLBACKS in counts:
            receivers = self._callbacks.in_flight
            tags = await self.database.read(tags_of, [int(one) for one in receivers])
            named += [counted(count, "callback", f" to {tags.get(int(one), one)}") for one, count in receivers.items()]
        return named

    @property
    def moves(self) -> int:
        """How much it has begun to write."""
        return self.database.moves

    async def next_due_ms(self) -> int | None:
        """When the next entry of any queue is due."""
        dues = (stage.next_due_ms for stage in self._stages)
        return min((due for due in dues if due is not None), default=None)

    def set_travelling(self, is_travelling: bool) -> None:
        """Time begins to be moved by hand, or has been."""
        self._callbacks.set_travelling(is_travelling)

    async def drain(self, *, within_s: float | None = None) -> None:
        """Claim nothing more; let what is being worked end, or cut it off.

        Args:
            within_s: how long to wait for it; None: `stop_within_s`.
        """
        self.outside.stopping()
        within_s = self._settings.stop_within_s if within_s is None else within_s
        self.sweep.stop()
        self.retention.stop()
        await asyncio.gather(*(stage.stop(within_s=within_s) for stage in self._stages))
        await self._copies.close()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def close(self) -> None:
        """Hand back the leases, close clients and store."""
        await self.queue.close()
        await self._outbound.close()
        await self._operators.close()
        await self.database.close()
        self.passwords.close()
        await self.outside.close()


IN_FLIGHT: Final = {  # what an entry of each queue is called where it keeps a snapshot from being made
    QueueName.OUTBOUND: "call to the operator",
    QueueName.UNCONFIRMED: "unconfirmed message",
    QueueName.WEBHOOKS: "inbound webhook",
    QueueName.MEDIA: "media download",
}


def keep_of(settings: Settings) -> Keep:
    """For how many days what is kept."""
    return Keep(
        bodies_days=settings.keep_bodies_days,
        messages_days=settings.keep_messages_days,
        dedupe_days=settings.keep_dedupe_days,
        attempts_days=settings.keep_attempts_days,
        audit_days=settings.keep_audit_days,
    )


def engine_of(settings: Settings) -> Engine:
    """The store's engine as the settings choose it."""
    if settings.database_url is None:
        return SqliteEngine(settings.store_path, upgrade=settings.upgrade_store)
    from waypost.store.engines.postgresql import PostgresEngine

    return PostgresEngine(settings.database_url, upgrade=settings.upgrade_store)


def _webhook_routes(webhook: Webhook) -> list[Route]:
    paths = (WEBHOOK_PATH, f"{WEBHOOK_PATH}/{{operator_account}}")
    return [
        *(Route(path, webhook.handshake, methods=["GET"]) for path in paths),
        *(Route(path, webhook.receive, methods=["POST"]) for path in paths),
    ]
