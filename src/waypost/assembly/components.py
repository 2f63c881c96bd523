"""The components of the service, each made by one function from the same foundation, in pipeline order."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from starlette.routing import BaseRoute, Route

from waypost.admin.authorisation import AdminGate
from waypost.admin.provisioning import AdminContext
from waypost.admin.routes import make_admin_routes
from waypost.api.access_log import TrustedProxies, rate_limit_address
from waypost.api.backlog_quotas import BacklogQuotas
from waypost.api.limits import Limiter, LoginLimits, RejectionBudgets
from waypost.api.passwords import Argon2Hasher
from waypost.api.public_files import PublicMediaEndpoint
from waypost.api.request_recorder import RequestRecorder
from waypost.api.services import Services
from waypost.api.uploads import PartnerUploads
from waypost.base.clock import Clock
from waypost.base.encryption import SecretBox
from waypost.base.ids import Ids
from waypost.callbacks.worker import CallbackSender
from waypost.config import Settings
from waypost.dispatch.worker import OutboundDispatcher
from waypost.domain.app import CONTACT_PATH, ONBOARDING_PATH
from waypost.domain.partner import PartnerQuotas, Wallet
from waypost.domain.rates import Rate, change_rates
from waypost.events.media import InboundMediaFetcher
from waypost.events.webhook_endpoint import WebhookEndpoint
from waypost.events.worker import EventIngester
from waypost.operations.docs import DocsPages
from waypost.operations.onboarding_page import SIGNED_UP, ContactPage, OnboardingPage
from waypost.operators.cloud.adapter import CloudOperator
from waypost.operators.cloud.numbers import KIND as CLOUD
from waypost.operators.contract import Operator, Operators
from waypost.outbound.vetted_client import VettedClient
from waypost.queue.context import StageContext
from waypost.queue.plans import make_queue_plans, queues_of_stages
from waypost.queue.queue import JobQueue
from waypost.queue.worker import StageWorker
from waypost.store.accounts.audit_log import AuditLog
from waypost.store.accounts.instance_keys import InstanceKeys
from waypost.store.contract import StoreEngine
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


WEBHOOK_PATH: Final = "/operator/webhook"
MEDIA_PATH: Final = "/media"


@dataclass(frozen=True, slots=True)
class Foundation:
    """The foundation of every part of a service: the context of its stages, and what only the APIs and loops need."""

    settings: Settings
    stages: StageContext
    holder: str
    secret_box: SecretBox
    instance_keys: InstanceKeys
    passwords: Argon2Hasher
    quotas: BacklogQuotas
    rates: Mapping[str, Rate]
    audit: AuditLog


def lay_foundation(settings: Settings, clock: Clock, ids: Ids, adapters: Mapping[str, MakeOperator]) -> Foundation:
    """Return what the parts share; nothing is open yet. Raises ValueError: the settings have no `secret_key`."""
    if settings.secret_key is None:
        raise ValueError("secret_key is needed")
    secret_box = SecretBox(settings.secret_key, settings.old_secret_key)
    database, holder = Database(make_engine(settings)), ids.new()
    queue = JobQueue(
        database,
        clock,
        holder=holder,
        lease_ms=int(settings.lease_s * 1000),
        plans=make_queue_plans(settings.in_flight),
        queue_names=queues_of_stages(settings.stages),
    )
    return Foundation(
        settings=settings,
        stages=StageContext(
            database=database,
            directory=Directory(database, secret_box, clock),
            queue=queue,
            operators=Operators({kind: make(settings, clock) for kind, make in adapters.items()}),
            outbound=VettedClient(allowed_networks=settings.allowed_networks, held=settings.hold),
            files=make_media_files(settings),
            clock=clock,
            ids=ids,
            chance=random.Random(ids.secret()),  # noqa: S311  spreads retries; with seeded ids it repeats
            public_url=settings.address,
            hold_ms=settings.hold_events_s * 1000,
            is_held=settings.hold,
        ),
        holder=holder,
        secret_box=secret_box,
        instance_keys=InstanceKeys(database, secret_box, clock, holder=holder),
        passwords=Argon2Hasher(),
        quotas=BacklogQuotas(database, clock, PartnerQuotas(settings.message_quota, settings.callback_quota)),
        rates=change_rates(settings.rate_limits),
        audit=AuditLog(database, clock),
    )


def make_admin_context(base: Foundation, callbacks: CallbackSender) -> AdminContext:
    """Return what the operations of the admin API need."""
    settings, stages = base.settings, base.stages
    return AdminContext(
        database=stages.database,
        directory=stages.directory,
        secret_box=base.secret_box,
        instance_keys=base.instance_keys,
        ids=stages.ids,
        clock=stages.clock,
        operators=stages.operators,
        passwords=base.passwords,
        outbound=stages.outbound,
        queue=stages.queue,
        circuit_of=callbacks.admission.circuit_of,
        public_url=settings.address,
        per_second=settings.per_second,
        default_quotas=PartnerQuotas(settings.message_quota, settings.callback_quota),
        apply_quotas=base.quotas.apply_change,
        retention=retention_periods(settings),
        rates=base.rates,
        rates_on=settings.rates,
        data=settings.data,
        files=stages.files,
        show_text=bool(settings.show_text),
    )


def make_services(base: Foundation, limiter: Limiter, login_limits: LoginLimits) -> Services:
    """Return what the endpoints of the partner API need."""
    settings, stages = base.settings, base.stages
    return Services(
        clock=stages.clock,
        ids=stages.ids,
        secret_box=base.secret_box,
        database=stages.database,
        directory=stages.directory,
        limiter=limiter,
        quotas=base.quotas,
        login_limits=login_limits,
        rejections=RejectionBudgets(stages.clock),
        passwords=base.passwords,
        outbound=stages.outbound,
        operators=stages.operators,
        public_url=settings.address,
        wallet=Wallet(settings.wallet_currency, settings.wallet_balance, settings.wallet_overdraft),
        files=stages.files,
        uploads=PartnerUploads(
            files=stages.files,
            database=stages.database,
            outbound=stages.outbound,
            clock=stages.clock,
            ids=stages.ids,
            quota_bytes=settings.media_quota_mb * 1_000_000,
        ),
        onboarding_step_ms=(settings.onboarding_step_s or 0) * 1000,
        strict=settings.strict,
        audit=base.audit,
        held=settings.hold,
        proxies=TrustedProxies(settings.trusted_proxies),
    )


def make_dispatch(base: Foundation) -> OutboundDispatcher:
    """Return the stage that sends to the operator."""
    settings = base.settings
    return OutboundDispatcher(
        base.stages,
        base.secret_box,
        in_flight=settings.in_flight,
        per_second=settings.per_second,
        message_ttl_ms=settings.message_ttl_s * 1000,
        uncertain_for_ms=settings.uncertain_for_s * 1000,
        webhook_url=f"{base.stages.public_url}{WEBHOOK_PATH}",
        onboarding_step_ms=(settings.onboarding_step_s or 0) * 1000,
    )


def make_callbacks(base: Foundation) -> CallbackSender:
    """Return the stage that delivers callbacks."""
    settings = base.settings
    return CallbackSender(
        base.stages,
        base.secret_box,
        pause_after_ms=settings.pause_callbacks_after_s * 1000,
        order_hold_ms=settings.order_hold_s * 1000,
    )


def make_workers(
    base: Foundation, dispatch: OutboundDispatcher, ingester: EventIngester, callbacks: CallbackSender
) -> tuple[StageWorker, ...]:
    """Return the workers of the stages that this process runs."""
    queue = base.stages.queue
    workers = (
        StageWorker(
            queue, QueueName.OUTBOUND, dispatch.prepare, may_start=dispatch.may_start, release=dispatch.release
        ),
        StageWorker(queue, QueueName.UNCONFIRMED, dispatch.prepare_unconfirmed),
        StageWorker(queue, QueueName.WEBHOOKS, ingester.prepare),
        StageWorker(
            queue,
            QueueName.CALLBACKS,
            callbacks.prepare,
            may_start=callbacks.admission.may_start,
            release=callbacks.admission.release,
        ),
        StageWorker(queue, QueueName.MEDIA, InboundMediaFetcher(base.stages).prepare),
    )
    return tuple(worker for worker in workers if worker.queue_name in queues_of_stages(base.settings.stages))


def make_limiter(base: Foundation, *, on: bool) -> Limiter:
    """Return the rate limits of this process, or those that it shares with others."""
    stages = base.stages
    return Limiter(stages.clock, None if stages.database.is_exclusive else stages.database, on=on, rates=base.rates)


def make_recorder(base: Foundation, proxies: TrustedProxies) -> RequestRecorder | None:
    """Return the recorder of the request log; None where there is no log."""
    settings = base.settings
    if not settings.request_log_rows or "api" not in settings.stages or settings.hold:
        return None
    return RequestRecorder(
        base.stages.database,
        base.stages.clock,
        base.stages.ids,
        proxies,
        sample=settings.sampled_one_in,
        max_rows=settings.request_log_rows,
        show_text=bool(settings.show_text),
    )


def make_routes(
    base: Foundation, services: Services, admin_context: AdminContext, webhook: WebhookEndpoint, console_token: str
) -> list[BaseRoute]:
    """Return the routes of the stages that this process runs, except the partner API's; the busiest come first."""
    settings, stages, media = base.settings, base.stages, f"{MEDIA_PATH}/{{key}}"
    webhook_paths = (WEBHOOK_PATH, f"{WEBHOOK_PATH}/{{operator_account}}")
    routes: list[BaseRoute] = []
    if "events" in settings.stages:
        routes += [Route(path, webhook.handshake, methods=["GET"]) for path in webhook_paths]
        routes += [Route(path, webhook.receive, methods=["POST"]) for path in webhook_paths]
    if "api" in settings.stages:
        gate = AdminGate(
            token=settings.admin_token,
            console_token=console_token,
            hosts=(*settings.admin_hosts, *([settings.admin_host] if settings.admin_host else [])),
            limits=services.login_limits,
            address_of=lambda scope: rate_limit_address(services.proxies.client_address(scope)),
            audit=base.audit,
            directory=stages.directory,
        )
        public_media = PublicMediaEndpoint(
            database=stages.database, files=stages.files, secret_box=base.secret_box, clock=stages.clock
        )
        onboarding = OnboardingPage(admin_context, is_held=settings.hold)
        contact = ContactPage(
            database=stages.database,
            directory=stages.directory,
            secret_box=base.secret_box,
            clock=stages.clock,
            is_held=settings.hold,
        )
        routes += make_admin_routes(admin_context, gate)
        routes.append(Route(media, public_media.show, methods=["GET"]))
        routes.append(Route(f"{ONBOARDING_PATH}/{{code}}", onboarding.show, methods=["GET"]))
        routes.append(Route(f"{ONBOARDING_PATH}/{{code}}{SIGNED_UP}", onboarding.finish, methods=["GET"]))
        routes.append(Route(f"{CONTACT_PATH}/{{code}}", contact.show, methods=["GET"]))
        routes.append(Route(f"{CONTACT_PATH}/{{code}}", contact.verify, methods=["POST"]))
        routes += DocsPages(settings.address, rates=base.rates, rates_on=settings.rates).routes()
    return routes


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
