"""What the console's endpoints may use."""

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Protocol

from waypost.base.clock import Clock
from waypost.base.encryption import Seals
from waypost.base.ids import Ids
from waypost.console.api_clients import ApiClients
from waypost.console.rendering import Pages
from waypost.console.web.assets import Assets
from waypost.console.web.change_signal import Pulse
from waypost.console.web.sessions import Sessions
from waypost.store.accounts.audit_log import AuditLog
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.media.files import MediaFiles


class Passwords(Protocol):
    """Makes and checks argon2id hashes, in threads of their own."""

    async def hash(self, password: str) -> str:
        """The hash of a password."""
        ...

    async def matches(self, stored: str | None, password: str) -> bool:
        """Whether the password is the one behind the hash; costs the same when there is none."""
        ...


class Attempt(Protocol):
    """One attempt to sign in, which counts as a failure."""

    async def give_back(self) -> None:
        """It was none."""
        ...


class Attempts(Protocol):
    """Limits failed attempts to sign in."""

    async def spend(self, email: str, address: str) -> Attempt:
        """Count one attempt.

        Raises:
            Refused: there were too many failures.
        """
        ...

    async def check_admin(self, address: str) -> None:
        """Return when an admin token from this address may be looked at.

        Raises:
            Refused: there were too many wrong ones.
        """
        ...

    async def spend_admin(self, address: str) -> Attempt:
        """Count a wrong admin token.

        Raises:
            Refused: there were too many.
        """
        ...


Ready = Callable[[], Awaitable[dict[str, str]]]
"""Gives of each check of readiness why it fails; an empty text where it passes."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Handed to every endpoint.

    Attributes:
        clock: what rules follow; under `dev` a person moves it.
        attempts: of signing in; on whatever the settings say of rates.
        address_of: what a request's client is counted by.
        audit: the log of what is done in the console.
        is_admin_token: whether a text is the service's admin token.
        has_admin_token: whether it has one.
        public_url: where partners and receivers reach the service, without a slash at its end.
        demo_partner_id: whom one click enters as; None under `serve`.
        hosts: host names beside loopback under which a demonstration may be entered.
        show_text: whether the text of messages is shown without a reveal.
    """

    database: Database
    directory: Directory
    files: MediaFiles
    seals: Seals
    clock: Clock
    ids: Ids
    passwords: Passwords
    attempts: Attempts
    address_of: Callable[[MutableMapping[str, Any]], str]
    ready: Ready
    apis: ApiClients
    pages: Pages
    assets: Assets
    pulse: Pulse
    sessions: Sessions
    audit: AuditLog
    is_admin_token: Callable[[str], bool]
    has_admin_token: bool
    public_url: str
    demo_partner_id: int | None = None
    hosts: tuple[str, ...] = ()
    show_text: bool = False

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach the service by https, so that cookies may insist on it."""
        return self.public_url.startswith("https://")
