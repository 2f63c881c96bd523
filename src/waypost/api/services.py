"""The services that endpoints use."""

from dataclasses import dataclass, field

from waypost.api.access_log import TrustedProxies
from waypost.api.backlog_quotas import BacklogQuotas
from waypost.api.limits import Limiter, LoginLimits, RejectionBudgets
from waypost.api.passwords import Argon2Hasher
from waypost.api.uploads import PartnerUploads
from waypost.base.clock import Clock
from waypost.base.encryption import SecretBox
from waypost.base.ids import Ids
from waypost.domain.partner import Wallet
from waypost.operators.contract import Operators
from waypost.outbound.vetted_client import VettedClient
from waypost.store.accounts.audit_log import AuditLog
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.media.files import MediaFiles


@dataclass(frozen=True, slots=True)
class Services:
    """The collaborators that every endpoint receives.

    Attributes:
        quotas: of what each partner may have waiting.
        rejections: budgets of requests that end in an error; always on, too.
        login_limits: limits of failed logins; always on, whatever the settings of rates.
        operators: for direct calls, by the routes that may make them.
        strict: also check requests against the operator's rules, at once.
        held: accept no changes and make no outgoing calls; calls that only read the store work.
        proxies: the trusted proxies, which determine a client's address.
        files: the bytes of media.
        audit: the audit log of what partners change in their accounts.
        uploads: stores uploaded files, and fetches files that partners name by URL.
        public_url: where partners and receivers reach us, without a slash at its end.
        wallet: the wallet balance to show.
    """

    clock: Clock
    ids: Ids
    secret_box: SecretBox
    database: Database
    directory: Directory
    limiter: Limiter
    quotas: BacklogQuotas
    login_limits: LoginLimits
    rejections: RejectionBudgets
    passwords: Argon2Hasher
    outbound: VettedClient
    operators: Operators
    public_url: str
    wallet: Wallet
    files: MediaFiles
    uploads: PartnerUploads
    audit: AuditLog
    strict: bool = False
    held: bool = False
    proxies: TrustedProxies = field(default_factory=TrustedProxies)
