"""The context of the admin API's operations, and steps and checks that several of them share."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from waypost.base.clock import Clock
from waypost.base.encryption import SecretBox
from waypost.base.ids import Ids
from waypost.domain.app import BusinessAccount, OperatorAccount
from waypost.domain.errors import ApiError, ErrorCode, invalid_field, resource_not_found
from waypost.domain.partner import Partner, PartnerQuotas
from waypost.domain.rates import Rate
from waypost.operators.contract import Operators
from waypost.outbound.vetted_client import VettedClient
from waypost.queue.queue import JobQueue
from waypost.store.accounts import partners as stored
from waypost.store.accounts.instance_keys import InstanceKeys
from waypost.store.accounts.partners import app_by_id
from waypost.store.callbacks.receivers import SubscriptionFilter, list_receivers
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.media.files import MediaFiles
from waypost.store.retention.columns import RetentionPeriods

_ACCOUNT_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class PasswordHasher(Protocol):
    """Hashes a password."""

    async def hash(self, password: str) -> str:
        """Return its argon2id hash."""
        ...


@dataclass(frozen=True, slots=True)
class AdminContext:
    """The collaborators and settings that every operation receives."""

    database: Database
    directory: Directory
    secret_box: SecretBox
    instance_keys: InstanceKeys
    ids: Ids
    clock: Clock
    operators: Operators
    passwords: PasswordHasher
    outbound: VettedClient  # posts to URLs that partners chose
    queue: JobQueue  # explains why jobs wait that this process works
    # returns the state of a subscription's circuit; None if this process does not work it
    circuit_of: Callable[[int], str | None]
    public_url: str  # where the operator reaches the webhook, without a slash at its end
    per_second: int  # throughput of a source without a setting of its own
    default_quotas: PartnerQuotas  # quotas of a partner without its own
    apply_quotas: Callable[[int], None]  # lets every process apply a change of a partner's quotas
    retention: RetentionPeriods  # periods of a partner without its own
    rates: Mapping[str, Rate]  # the rows of the table of rates, with those that a setting changes
    rates_on: bool  # False if the service limits no requests
    data: Path  # the folder of the store, the instance key and the media
    files: MediaFiles  # of the media
    show_text: bool = False  # True if the text of messages is shown without a reveal


async def put_operator_account(context: AdminContext, account: OperatorAccount) -> None:
    """Store a checked operator account, or change the one with this id."""
    await context.database.write(stored.put_operator_account, account, context.directory.seal)
    context.directory.invalidate()


async def add_business_account(context: AdminContext, account: BusinessAccount) -> None:
    """Store a business account.

    Raises:
        ApiError: its id is in use, or its partner or operator account does not exist.
    """
    await partner_of(context, account.partner_id)
    if not account.id:
        raise invalid_field("id", "the operator's id of the business account")
    operator_account = await context.directory.operator_account(account.operator_account_id)
    if operator_account is None:
        raise resource_not_found("operator account", "operator_account_id", account.operator_account_id)
    if not await context.database.write(stored.add_business_account, account):
        raise ApiError(ErrorCode.ALREADY_EXISTS, "id is taken by another business account.")


def check_operator_account(context: AdminContext, account: OperatorAccount) -> None:
    """Check the id, the kind, the URL and the adapter's fields.

    Raises:
        ApiError: one is invalid.
    """
    if not _ACCOUNT_ID.fullmatch(account.id):
        raise ApiError(
            ErrorCode.FIELD_BROKEN, "The account's id must be 1 to 64 letters, digits, dots, hyphens or underscores."
        )
    if account.kind not in context.operators.kinds:
        raise invalid_field("kind", f"one of {', '.join(context.operators.kinds)}")
    base_url = account.base_url
    if not base_url.startswith(("http://", "https://")) or base_url.endswith("/"):
        raise invalid_field("base_url", "an http or https address without a slash at its end")
    for field in context.operators.adapter(account).fields:
        if not field.accepts(account[field.name]):
            raise invalid_field(field.name, field.accepted)


async def partner_with_email(context: AdminContext, email: str) -> Partner:
    """Return the partner with an e-mail address.

    Raises:
        ApiError: there is no such partner.
    """
    partner = await context.database.read(stored.partner_by_email, email)
    if partner is None:
        raise resource_not_found("partner", "email", email)
    return partner


async def partner_of(context: AdminContext, partner_id: int) -> Partner:
    """Return one partner.

    Raises:
        ApiError: there is no such partner.
    """
    partner = await context.database.read(stored.partner_by_id, partner_id)
    if partner is None:
        raise resource_not_found("partner", "partner_id", partner_id)
    return partner


ABSENT: Final = (None, 0)
"""A number 0 counts as absent."""


async def check_filters(
    context: AdminContext,
    *,
    app_id: str | None = None,
    partner_id: int | None = None,
    subscription_id: int | None = None,
) -> None:
    """Raise an error if one of these does not exist.

    Lists call it when nothing matches: entries of what has been deleted since are still found.
    """
    if partner_id not in ABSENT:
        await partner_of(context, partner_id)
    if app_id is not None and await context.database.read(app_by_id, app_id) is None:
        raise resource_not_found("app", "app_id", app_id)
    if subscription_id not in ABSENT and not await context.database.read(
        list_receivers, SubscriptionFilter(id=subscription_id)
    ):
        raise resource_not_found("subscription", "subscription_id", subscription_id)
