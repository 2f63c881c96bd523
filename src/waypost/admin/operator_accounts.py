"""Operator accounts and the business accounts behind them: made, changed, shown, subscribed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote

from waypost.admin import provisioning
from waypost.admin.operator_requests import NotTold, ask
from waypost.admin.provisioning import AdminContext
from waypost.domain.app import App, BusinessAccount, OperatorAccount
from waypost.domain.direct_calls import GetBusinessAccount, ListNumbers, Subscribe
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.accounts.partners import all_apps, all_business_accounts, all_operator_accounts

WEBHOOK_PATH: Final = "/operator/webhook"


def callback_url(context: AdminContext, account_id: str) -> str:
    """Where the operator calls us for this account; registered there, so it never changes."""
    return f"{context.public_url}{WEBHOOK_PATH}/{quote(account_id, safe='')}"


@dataclass(frozen=True, slots=True)
class AccountChange:
    """What is to be set; what is not named stays as it is, and a new account takes the adapter's defaults.

    Attributes:
        kind: of a new account; None: that of the account, or the first kind.
        fields: of the account's adapter.
    """

    kind: str | None = None
    base_url: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict[str, str])


async def change_operator_account(
    context: AdminContext, account_id: str, change: AccountChange
) -> tuple[OperatorAccount, Mapping[str, str]]:
    """Make an operator account, or change what is given of the one with this id.

    Returns:
        The account, and the secrets that were made now because none were given.

    Raises:
        Refused: a field is missing, broken or not the adapter's.
    """
    held = await context.directory.operator_account(account_id)
    kind = change.kind or (context.operators.kinds[0] if held is None else held.kind)
    if kind not in context.operators.kinds:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"kind must be one of {', '.join(context.operators.kinds)}.")
    if held is not None and kind != held.kind:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"kind must be {held.kind}: that of an account never changes.")
    wanted = context.operators.of_kind(kind).fields
    names = [one.name for one in wanted]
    unknown = next((name for name in change.fields if name not in names), None)
    if unknown is not None:
        raise ApiError(
            ErrorCode.UNREADABLE,
            f"The body must be a JSON object of the call's fields: Object contains unknown field `{unknown}`.",
        )
    if held is not None:
        base_url = held.base_url if change.base_url is None else change.base_url
        account = replace(held.with_fields(**change.fields), base_url=base_url)
        await provisioning.put_operator_account(context, account)
        return account, {}
    made = {one.name: context.ids.secret() for one in wanted if one.is_made and one.name not in change.fields}
    defaults = {one.name: one.default for one in wanted if one.default is not None}
    given = {**defaults, **made, **change.fields}
    missing = next((name for name in names if name not in given), None)
    if change.base_url is None or missing is not None:
        name = "base_url" if change.base_url is None else missing
        raise ApiError(ErrorCode.FIELD_MISSING, f"{name} is needed for an operator account that is not there yet.")
    account = OperatorAccount(account_id, kind, change.base_url, given)
    await provisioning.put_operator_account(context, account)
    return account, made


async def add_business_account(
    context: AdminContext, account_id: str, partner_id: int, operator_account_id: str, namespace: str | None
) -> BusinessAccount:
    """Keep a business account; without a namespace the operator is asked for it.

    Raises:
        Refused: its id is taken, its partner or operator account does not exist, or the operator
            does not tell the namespace.
    """
    if namespace is None:
        operator_account = await _known(context, operator_account_id)
        try:
            namespace = (await ask(context.operators, operator_account, GetBusinessAccount(account_id))).namespace
        except NotTold as error:
            raise error.refusal() from error
        if not namespace:
            raise ApiError(
                ErrorCode.FIELD_MISSING,
                "namespace is needed: the operator does not tell the one of this business account.",
            )
    account = BusinessAccount(account_id, partner_id, namespace, operator_account_id)
    await provisioning.add_business_account(context, account)
    return account


async def list_numbers(
    context: AdminContext, operator_account_id: str, business_account_id: str
) -> list[dict[str, Any]]:
    """The numbers that the operator has under a business account, as it shows them.

    Raises:
        Refused: there is no such operator account, or the operator does not tell.
    """
    account = await _known(context, operator_account_id)
    try:
        return [one.raw for one in await ask(context.operators, account, ListNumbers(business_account_id))]
    except NotTold as error:
        raise error.refusal() from error


async def subscribe(context: AdminContext, business_account_id: str) -> str:
    """Have the operator send a business account's webhooks to us, and give the address.

    The operator shakes hands with that address before it answers, so the service must be running
    and reachable there.

    Raises:
        Refused: there is no such business account, or the operator does not subscribe us.

    Source: operator's facts 1, "Webhook subscription", and 7.1.
    """
    owner = await context.directory.business_account(business_account_id)
    if owner is None:
        raise ApiError(ErrorCode.NOT_FOUND, "There is no such business account.")
    account = await _known(context, owner.operator_account_id)
    address = callback_url(context, account.id)
    try:
        await ask(context.operators, account, Subscribe(business_account_id, address))
    except NotTold as error:
        refusal = error.refusal()
        raise ApiError(
            refusal.code,
            f"{refusal.explanation} The service must be running, and the operator must reach it at "
            f"{address}; WAYPOST_PUBLIC_URL sets the address.",
            retry_after_s=refusal.retry_after_s,
        ) from error
    return address


@dataclass(frozen=True, slots=True)
class Standing:
    """An operator account with the business accounts that it carries, and their apps."""

    account: OperatorAccount
    businesses: tuple[tuple[BusinessAccount, tuple[App, ...]], ...]


async def standings(context: AdminContext) -> list[Standing]:
    """Every operator account, in the order of their ids."""
    read = context.database.read
    accounts = await read(all_operator_accounts, context.directory.unseal)
    businesses, apps = await read(all_business_accounts), await read(all_apps)
    return [
        Standing(
            account,
            tuple(
                (owner, tuple(app for app in apps if app.business_account_id == owner.id))
                for owner in businesses
                if owner.operator_account_id == account.id
            ),
        )
        for account in accounts
    ]


async def _known(context: AdminContext, account_id: str) -> OperatorAccount:
    account = await context.directory.operator_account(account_id)
    if account is None:
        raise ApiError(ErrorCode.NOT_FOUND, "operator_account_id must name an operator account.")
    return account
