"""The console's parts, put together."""

from dataclasses import dataclass
from typing import Final

from waypost.api.http.proxies import Proxies, counted_as
from waypost.api.http.requests import Scope
from waypost.base.clock import Clock
from waypost.base.encryption import Seals, same
from waypost.base.ids import Ids
from waypost.client.api_client import Application, OverHttp, Transport
from waypost.config import Settings
from waypost.console.api_clients import ApiClients
from waypost.console.app import Console
from waypost.console.rendering import Pages
from waypost.console.services import Attempts, Parts, Passwords, Ready
from waypost.console.web.assets import Assets
from waypost.console.web.change_signal import Pulse
from waypost.console.web.sessions import Sessions
from waypost.store.accounts.audit_log import AuditLog
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.media.files import MediaFiles


@dataclass(frozen=True, slots=True)
class ConsoleStand:
    """What stands beside the console.

    Attributes:
        control: carries requests to the simulator's control door; None: where the settings say.
        demo_partner_id: whom one click enters as; None under `serve`.
    """

    control: Transport | None = None
    demo_partner_id: int | None = None


AS_SET: Final = ConsoleStand()


def make_console(
    settings: Settings,
    *,
    application: Application,
    database: Database,
    directory: Directory,
    files: MediaFiles,
    passwords: Passwords,
    attempts: Attempts,
    ready: Ready,
    clock: Clock,
    ids: Ids,
    seals: Seals,
    proxies: Proxies,
    audit: AuditLog,
    admin_token: str,
    stand: ConsoleStand,
) -> Console:
    """The console of one process of the service; its parts are opened with the service's."""
    control = stand.control
    if control is None and settings.simulator_url is not None:
        control = OverHttp(settings.simulator_url, timeout_s=70)  # it may wait a minute for a phone
    assets = Assets()

    def address_of(scope: Scope) -> str:
        return counted_as(proxies.client_address(scope))

    return Console(
        Parts(
            database=database,
            directory=directory,
            files=files,
            seals=seals,
            clock=clock,
            ids=ids,
            passwords=passwords,
            attempts=attempts,
            address_of=address_of,
            ready=ready,
            apis=ApiClients(
                application,
                database=database,
                seals=seals,
                ids=ids,
                clock=clock,
                admin_token=admin_token,
                control=control,
                control_token=settings.simulator_token,
            ),
            pages=Pages(assets, clock),
            assets=assets,
            pulse=Pulse(database),
            sessions=Sessions(database, ids),
            audit=audit,
            is_admin_token=lambda given: settings.admin_token is not None and same(given, settings.admin_token),
            has_admin_token=settings.admin_token is not None,
            public_url=settings.address,
            demo_partner_id=stand.demo_partner_id,
            hosts=settings.admin_hosts,
            show_text=settings.show_text,
        )
    )
