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
    """The collaborators that every endpoint receives."""

    clock: Clock
    ids: Ids
    secret_box: SecretBox
    database: Database
    directory: Directory
    limiter: Limiter
    quotas: BacklogQuotas  # of what each partner may have waiting
    login_limits: LoginLimits  # limits of failed logins; always on, whatever the settings of rates
    rejections: RejectionBudgets  # budgets of requests that end in an error; always on, too
    passwords: Argon2Hasher
    outbound: VettedClient
    operators: Operators  # for direct calls, by the routes that may make them
    public_url: str  # where partners and receivers reach us, without a slash at its end
    wallet: Wallet  # the wallet balance to show
    files: MediaFiles  # the bytes of media
    uploads: PartnerUploads  # stores uploaded files, and fetches files that partners name by URL
    audit: AuditLog  # the audit log of what partners change in their accounts
    onboarding_step_ms: int = 0  # minimum duration of a step of an app's onboarding
    strict: bool = False  # also check requests against the operator's rules, at once
    held: bool = False  # accept no changes and make no outgoing calls; calls that only read the store work
    # the trusted proxies, which determine a client's address
    proxies: TrustedProxies = field(default_factory=TrustedProxies)
