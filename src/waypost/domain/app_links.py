"""The linking of customers' apps: a partner's linking token, and the app of a customer that waits for its partner.

Source: ledger 1.11; decision 0126.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from waypost.base.clock import DAY_MS
from waypost.domain.app import App, sandbox_app

LINK_LIFE_MS: Final = 30 * DAY_MS
"""Of a request, and of an app linking token."""
DEFAULT_LINKING_DAYS: Final = 30
MAX_LINKING_DAYS: Final = 30


class LinkStatus(StrEnum):
    """The statuses of a request to link an app."""

    PENDING = "PENDING"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    EXPIRED = "EXPIRED"


class LinkAction(StrEnum):
    """The decisions about a request."""

    APPROVE = "APPROVE"
    REJECT = "REJECT"

    @property
    def status(self) -> LinkStatus:
        """The status of a request that was decided so."""
        return LinkStatus.APPROVED if self is LinkAction.APPROVE else LinkStatus.REJECTED


@dataclass(frozen=True, slots=True)
class PartnerLinkingToken:
    """The current linking token of a partner, which its customers use to request the link."""

    partner_id: int
    token_id: str  # of this token; another one replaces it
    issued_on_ms: int
    expires_on_ms: int


@dataclass(frozen=True, slots=True)
class AppLink:
    """An app of a customer until a partner has it, and how it came to the partner afterwards."""

    id: str  # of the request
    app_id: str
    app_name: str
    customer: str  # an e-mail address, or another text by which the partner knows the customer
    partner_id: int | None  # None: the partner that uses its app linking token
    requested_on_ms: int
    expires_on_ms: int
    status: LinkStatus = LinkStatus.PENDING  # as stored; it never is EXPIRED
    decided_on_ms: int | None = None
    decided_by: str = ""  # an e-mail address

    def status_at(self, now_ms: int) -> LinkStatus:
        """Return the status at a time."""
        is_over = self.status is LinkStatus.PENDING and self.expires_on_ms <= now_ms
        return LinkStatus.EXPIRED if is_over else self.status


def app_of_link(link: AppLink, partner_id: int, now_ms: int) -> App:
    """Return the app that a partner gets by a link."""
    return sandbox_app(link.app_id, partner_id, link.app_name, now_ms)
