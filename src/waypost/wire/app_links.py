"""Requests to link a customer's app in responses. Source: ledger 1.11."""

from typing import Final, Literal

from msgspec import Struct

from waypost.base.encryption import hash_secret
from waypost.domain.app_links import AppLink, LinkStatus

_CUSTOMER_ID_CHARS: Final = 16


class LinkRequest(Struct, rename="camel"):
    """A request to link an app of a customer."""

    id: str
    app_id: str
    app_name: str
    customer_id: str
    customer_identifier: str
    partner_id: int
    status: Literal[LinkStatus.PENDING, LinkStatus.APPROVED, LinkStatus.REJECTED, LinkStatus.EXPIRED]
    requested_at: int
    expires_at: int
    decided_at: int | None
    decided_by_email: str | None


def customer_id(customer: str) -> str:
    """Return the id of a customer, the same for the same customer."""
    return hash_secret(customer)[:_CUSTOMER_ID_CHARS]


def link_request(link: AppLink, now_ms: int) -> LinkRequest:
    """Return a link as the partner of it sees it."""
    return LinkRequest(
        id=link.id,
        app_id=link.app_id,
        app_name=link.app_name,
        customer_id=customer_id(link.customer),
        customer_identifier=link.customer,
        partner_id=link.partner_id or 0,
        status=link.status_at(now_ms),
        requested_at=link.requested_on_ms,
        expires_at=link.expires_on_ms,
        decided_at=link.decided_on_ms,
        decided_by_email=link.decided_by or None,
    )
