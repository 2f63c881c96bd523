"""What an endpoint may use."""

from dataclasses import dataclass, field

from waypost.api.http.proxies import Proxies
from waypost.api.limits.login_limits import LoginLimits
from waypost.api.limits.rate_limits import Limiter
from waypost.api.passwords import Passwords
from waypost.api.uploads.uploads import Uploads
from waypost.base.clock import Clock
from waypost.base.encryption import Seals
from waypost.base.ids import Ids
from waypost.domain.partner import Wallet
from waypost.operators.contract import Operators
from waypost.outbound.vetted import VettedClient
from waypost.store.accounts.audit_log import AuditLog
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.media.files import MediaFiles


@dataclass(frozen=True, slots=True)
class Services:
    """Handed to every endpoint.

    Attributes:
        login_limits: of failed logins; on whatever the settings say of rates.
        operators: for direct calls, by the routes that may make them.
        strict: hold requests to the operator's rules too, at once.
        held: accept nothing, and call nobody; what only reads the store works.
        proxies: whom to believe about where a request comes from.
        files: the bytes of media.
        audit: the log of what partners change about their account.
        uploads: takes files, and fetches what partners name by address.
        public_url: where partners and receivers reach us, without a slash at its end.
        wallet: what the wallet's balance is shown as.
    """

    clock: Clock
    ids: Ids
    seals: Seals
    database: Database
    directory: Directory
    limiter: Limiter
    login_limits: LoginLimits
    passwords: Passwords
    outbound: VettedClient
    operators: Operators
    public_url: str
    wallet: Wallet
    files: MediaFiles
    uploads: Uploads
    audit: AuditLog
    strict: bool = False
    held: bool = False
    proxies: Proxies = field(default_factory=Proxies)
