"""Operator accounts and the business accounts behind them: made, changed, shown, subscribed."""

from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote

from waypost.admin import actions
from waypost.admin.actions import Office
from waypost.admin.asking import NotTold, ask
from waypost.domain.app import App, BusinessAccount, OperatorAccount
from waypost.domain.direct_calls import GetBusinessAccount, ListNumbers, Subscribe
from waypost.domain.refusals import Reason, Refused
from waypost.store.partners import all_apps, all_business_accounts, all_operator_accounts

WEBHOOK_PATH: Final = "/operator/webhook"
VERSION: Final = "v25.0"
"""Of the operator's interface, where an account names none. Source: operator's facts 1."""


def callback_url(office: Office, account_id: str) -> str:
    """Where the operator calls us for this account; registered there, so it never changes."""
    return f"{office.public_url}{WEBHOOK_PATH}/{quote(account_id, safe='')}"


@dataclass(frozen=True, slots=True)
class AccountChange:
    """What is to be set; None leaves it as it is, and is no choice for what a new account needs."""

    base_url: str | None = None
    version: str | None = None
    token: str | None = None
    app_id: str | None = None
    app_secret: str | None = None
    verify_token: str | None = None


async def change_operator_account(
    office: Office, account_id: str, change: AccountChange
) -> tuple[OperatorAccount, bool]:
    """Make an operator account, or change what is given of the one with this id.

    A new account without a verify token gets one that nobody can guess.

    Returns:
        The account, and whether its verify token was made now.

    Raises:
        Refused: a field is missing or broken.
    """
    held = await office.directory.operator_account(account_id)
    makes_token = change.verify_token is None and held is None
    wish = {name: value for name, value in _fields(change).items() if value is not None}
    if makes_token:
        wish["verify_token"] = office.ids.secret()
    if held is None:
        missing = [name for name in ("base_url", "token", "app_id", "app_secret") if name not in wish]
        if missing:
            raise Refused(
                Reason.FIELD_MISSING, f"{missing[0]} is needed for an operator account that is not there yet."
            )
        account = OperatorAccount(id=account_id, **{"version": VERSION, **wish})
    else:
        account = replace(held, **wish)
    await actions.put_operator_account(office, account)
    return account, makes_token


async def add_business_account(
    office: Office, account_id: str, partner_id: int, operator_account_id: str, namespace: str | None
) -> BusinessAccount:
    """Keep a business account; without a namespace the operator is asked for it.

    Raises:
        Refused: its id is taken, its partner or operator account does not exist, or the operator
            does not tell the namespace.
    """
    if namespace is None:
        operator_account = await _known(office, operator_account_id)
        try:
            namespace = (await ask(office.operator, operator_account, GetBusinessAccount(account_id))).namespace
        except NotTold as error:
            raise error.refusal() from error
        if not namespace:
            raise Refused(
                Reason.FIELD_MISSING,
                "namespace is needed: the operator does not tell the one of this business account.",
            )
    account = BusinessAccount(account_id, partner_id, namespace, operator_account_id)
    await actions.add_business_account(office, account)
    return account


async def list_numbers(office: Office, operator_account_id: str, business_account_id: str) -> list[dict[str, Any]]:
    """The numbers that the operator has under a business account, as it shows them.

    Raises:
        Refused: there is no such operator account, or the operator does not tell.
    """
    account = await _known(office, operator_account_id)
    try:
        return [one.raw for one in await ask(office.operator, account, ListNumbers(business_account_id))]
    except NotTold as error:
        raise error.refusal() from error


async def subscribe(office: Office, business_account_id: str) -> str:
    """Have the operator send a business account's webhooks to us, and give the address.

    The operator shakes hands with that address before it answers, so the service must be running
    and reachable there.

    Raises:
        Refused: there is no such business account, or the operator does not subscribe us.

    Source: operator's facts 1, "Webhook subscription", and 7.1.
    """
    owner = await office.directory.business_account(business_account_id)
    if owner is None:
        raise Refused(Reason.NOT_FOUND, "There is no such business account.")
    account = await _known(office, owner.operator_account_id)
    address = callback_url(office, account.id)
    try:
        await ask(office.operator, account, Subscribe(business_account_id, address))
    except NotTold as error:
        refusal = error.refusal()
        raise Refused(
            refusal.reason,
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


async def standings(office: Office) -> list[Standing]:
    """Every operator account, in the order of their ids."""
    read = office.database.read
    accounts = await read(all_operator_accounts, office.directory.unseal)
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


async def _known(office: Office, account_id: str) -> OperatorAccount:
    account = await office.directory.operator_account(account_id)
    if account is None:
        raise Refused(Reason.NOT_FOUND, "operator_account_id must name an operator account.")
    return account


def _fields(change: AccountChange) -> dict[str, str | None]:
    return {
        "base_url": change.base_url,
        "version": change.version,
        "token": change.token,
        "app_id": change.app_id,
        "app_secret": change.app_secret,
        "verify_token": change.verify_token,
    }
