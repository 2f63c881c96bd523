"""Creation of the console."""

from dataclasses import dataclass
from typing import Final

from waypost.api.access_log import TrustedProxies, rate_limit_address
from waypost.api.requests import Scope
from waypost.api.routes import operation_titles
from waypost.base.clock import Clock
from waypost.base.encryption import SecretBox, secrets_equal
from waypost.base.ids import Ids
from waypost.base.telemetry.counters import LimitedRequests
from waypost.client.api_client import Application, HttpTransport, Transport
from waypost.config import Settings
from waypost.console.api_clients import ApiClients
from waypost.console.app import Console
from waypost.console.rendering import PageRenderer
from waypost.console.services import ConsoleServices, PasswordVerifier, ReadinessChecks, SignInLimiter
from waypost.console.web.assets import Assets
from waypost.console.web.sessions import Sessions
from waypost.console.web.streams import ChangeSignal
from waypost.store.accounts.audit_log import AuditLog
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.media.files import MediaFiles


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """Options of the console.

    Attributes:
        control: transport to the simulator's control API; None: as the settings say.
        demo_partner_id: the partner that one click logs in as; None under `serve`.
    """

    control: Transport | None = None
    demo_partner_id: int | None = None


DEFAULT_CONSOLE_OPTIONS: Final = ConsoleOptions()


def make_console(
    settings: Settings,
    *,
    application: Application,
    database: Database,
    directory: Directory,
    files: MediaFiles,
    passwords: PasswordVerifier,
    attempts: SignInLimiter,
    limited: LimitedRequests,
    ready: ReadinessChecks,
    clock: Clock,
    ids: Ids,
    secret_box: SecretBox,
    proxies: TrustedProxies,
    audit: AuditLog,
    admin_token: str,
    options: ConsoleOptions,
) -> Console:
    """Return the console of one process of the service; the service opens its components."""
    control = options.control
    if control is None and settings.simulator_url is not None:
        control = HttpTransport(settings.simulator_url, timeout_s=70)  # a request may wait a minute for a phone
    assets = Assets()

    def address_of(scope: Scope) -> str:
        return rate_limit_address(proxies.client_address(scope))

    return Console(
        ConsoleServices(
            database=database,
            directory=directory,
            files=files,
            secret_box=secret_box,
            clock=clock,
            ids=ids,
            passwords=passwords,
            sign_in_limiter=attempts,
            client_address=address_of,
            limited=limited,
            ready=ready,
            apis=ApiClients(
                application,
                database=database,
                secret_box=secret_box,
                ids=ids,
                clock=clock,
                admin_token=admin_token,
                control=control,
                control_token=settings.simulator_token,
            ),
            pages=PageRenderer(assets, clock),
            assets=assets,
            change_signal=ChangeSignal(database),
            sessions=Sessions(database, ids),
            audit=audit,
            is_admin_token=lambda token: (
                settings.admin_token is not None and secrets_equal(token, settings.admin_token)
            ),
            has_admin_token=settings.admin_token is not None,
            public_url=settings.address,
            operation_titles=operation_titles,
            simulator_url=settings.simulator_url,
            demo_partner_id=options.demo_partner_id,
            hosts=settings.admin_hosts,
            show_text=bool(settings.show_text),
            request_log_sample=settings.sampled_one_in,
        )
    )
