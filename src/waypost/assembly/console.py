"""Creation of the console."""

from dataclasses import dataclass
from typing import Final

from waypost.api.access_log import rate_limit_address
from waypost.api.limits import Limiter
from waypost.api.routes import operation_titles
from waypost.api.services import Services
from waypost.assembly.components import Foundation
from waypost.base.encryption import secrets_equal
from waypost.client.api_client import Application, HttpTransport, Transport
from waypost.console.api_clients import ApiClients
from waypost.console.app import Console
from waypost.console.rendering import PageRenderer
from waypost.console.services import ConsoleServices, ReadinessChecks
from waypost.console.web.assets import Assets
from waypost.console.web.sessions import Sessions
from waypost.console.web.streams import ChangeSignal


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """Options of the console."""

    control: Transport | None = None  # transport to the simulator's control API; None: as the settings say
    demo_partner_id: int | None = None  # the partner that one click logs in as; None under `serve`


DEFAULT_CONSOLE_OPTIONS: Final = ConsoleOptions()


def make_console(
    base: Foundation,
    services: Services,
    *,
    application: Application,
    limiter: Limiter,
    ready: ReadinessChecks,
    admin_token: str,
    options: ConsoleOptions,
) -> Console:
    """Return the console of one process of the service; the service opens its components."""
    settings, stages, assets = base.settings, base.stages, Assets()
    control = options.control
    if control is None and settings.simulator_url is not None:
        control = HttpTransport(settings.simulator_url, timeout_s=70)  # a request may wait a minute for a phone
    return Console(
        ConsoleServices(
            database=stages.database,
            directory=stages.directory,
            files=stages.files,
            secret_box=base.secret_box,
            clock=stages.clock,
            ids=stages.ids,
            passwords=base.passwords,
            sign_in_limiter=services.login_limits,
            client_address=lambda scope: rate_limit_address(services.proxies.client_address(scope)),
            limited=limiter.limited,
            ready=ready,
            apis=ApiClients(
                application,
                database=stages.database,
                secret_box=base.secret_box,
                ids=stages.ids,
                clock=stages.clock,
                admin_token=admin_token,
                control=control,
                control_token=settings.simulator_token,
            ),
            pages=PageRenderer(assets, stages.clock),
            assets=assets,
            change_signal=ChangeSignal(stages.database),
            sessions=Sessions(stages.database, stages.ids),
            audit=base.audit,
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
