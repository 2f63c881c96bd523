"""Services that the console's endpoints use."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Protocol

from waypost.base.clock import Clock
from waypost.base.encryption import SecretBox
from waypost.base.ids import Ids
from waypost.base.telemetry.counters import LimitedRequests
from waypost.console.api_clients import ApiClients
from waypost.console.rendering import PageRenderer
from waypost.console.web.assets import Assets
from waypost.console.web.sessions import Sessions
from waypost.console.web.streams import ChangeSignal
from waypost.store.accounts.audit_log import AuditLog
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.media.files import MediaFiles


class PasswordVerifier(Protocol):
    """Checks argon2id hashes in worker threads."""

    async def matches(self, stored: str | None, password: str) -> bool:
        """True if the password matches the hash; takes the same time without a hash."""
        ...


class SignInAttempt(Protocol):
    """One attempt to sign in, counted as a failure until it is refunded."""

    async def refund(self) -> None:
        """Do not count the attempt, because it succeeded."""


class SignInLimiter(Protocol):
    """Limits failed sign-in attempts; too many raise an ApiError."""

    async def spend(self, email: str, address: str) -> SignInAttempt:
        """Count one attempt."""
        ...

    async def check_admin_attempts(self, address: str) -> None:
        """Return if an admin token from this address may be checked."""

    async def count_wrong_admin_token(self, address: str) -> SignInAttempt:
        """Count a wrong admin token."""
        ...


ReadinessChecks = Callable[[], Awaitable[dict[str, str]]]
"""Returns the failure reason of each readiness check; empty if the check passes."""


@dataclass(frozen=True, slots=True)
class ConsoleServices:
    """Services for every endpoint."""

    database: Database
    directory: Directory
    files: MediaFiles
    secret_box: SecretBox
    clock: Clock  # the service's clock; under `dev` users can move it
    ids: Ids
    passwords: PasswordVerifier
    sign_in_limiter: SignInLimiter  # limits failed sign-ins; active even if rate limits are disabled
    client_address: Callable[[MutableMapping[str, Any]], str]  # of a scope, by which attempts are counted
    limited: LimitedRequests
    ready: ReadinessChecks
    apis: ApiClients
    pages: PageRenderer
    assets: Assets
    change_signal: ChangeSignal
    sessions: Sessions
    audit: AuditLog  # log of actions in the console
    is_admin_token: Callable[[str], bool]  # checks a text against the service's admin token
    has_admin_token: bool  # True if the service has an admin token
    public_url: str  # URL at which partners and receivers reach the service, without a trailing slash
    operation_titles: Callable[[], Mapping[str, str]]  # of each operation of the API, by method and path
    simulator_url: str | None = None  # URL of the simulator that is the operator of new partners; None without one
    demo_partner_id: int | None = None  # partner that a demo signs in as; None under `serve`
    hosts: tuple[str, ...] = ()  # allowed host names of a demo, besides loopback
    show_text: bool = False  # True if message texts are shown without a click
    request_log_sample: int = 0  # one of how many successful requests is logged; 0: none

    @property
    def session_cookie(self) -> str:
        """Name of the session cookie: over HTTPS one that no other host of the site can set."""
        return "__Host-waypost" if self.is_secure else "waypost_session"

    @property
    def is_secure(self) -> bool:
        """True if browsers reach the service over HTTPS, so that cookies can be `Secure`."""
        return self.public_url.startswith("https://")
