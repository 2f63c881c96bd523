"""A partner: the business that logs in and owns apps."""

from dataclasses import dataclass
from typing import Final

from waypost.domain.app import KeyStatus, credential_status

PARTNER_TOKEN_LIFE_MS: Final = 24 * 60 * 60 * 1000  # Source: spec, "Authentication", rule 1
MAX_PASSWORD_CHARS: Final = 1024


@dataclass(frozen=True, slots=True)
class Wallet:
    """The wallet balance to show: settings, because this service charges nothing. Source: facts 13."""

    currency: str = "USD"
    balance: float = 0.0
    overdraft_limit: float = 0.0


@dataclass(frozen=True, slots=True)
class Partner:
    """A partner account. The flags are only stored and shown; none changes behaviour.

    Source: spec, "Partner account (login response)".
    """

    id: int
    name: str
    email: str
    contact_name: str = ""
    phone_number: str = ""
    billing_type: str = "PREPAID"
    terms_read: bool = True
    admin: bool = True
    activation_read: bool = True
    enable_customer: bool = False
    enable_wallet: bool = False
    enable_inr_wallet: bool = False
    enable_loader_wallet: bool = False
    enable_app_onboarding: bool = False
    is_tpp: bool = False
    onboard_enabled: bool = False


@dataclass(frozen=True, slots=True)
class PartnerCredential:
    """The public properties of a credential."""

    id: str  # the beginning of its hash
    created_on_ms: int
    name: str  # of an API key or a universal token; client secrets have none
    expires_on_ms: int | None  # None: never
    revoked_on_ms: int | None  # of a universal token; None: not revoked. Others are deleted when they are revoked.

    def status(self, now_ms: int) -> KeyStatus:
        """Return the status at a time."""
        return credential_status(self.expires_on_ms, self.revoked_on_ms, now_ms)


DEFAULT_MESSAGE_QUOTA: Final = 1_000_000
DEFAULT_CALLBACK_QUOTA: Final = 4_000_000  # four for each message: enqueued, sent, delivered, read
MAX_QUOTA: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class PartnerQuotas:
    """The maximum of what may wait; 0: no limit. Source: decision 0099."""

    messages: int = DEFAULT_MESSAGE_QUOTA  # that wait for the operator
    callbacks: int = DEFAULT_CALLBACK_QUOTA  # that wait for the partner's receivers
