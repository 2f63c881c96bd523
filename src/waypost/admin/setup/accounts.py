"""Steps for operator accounts, and for business accounts and their webhooks."""

from collections.abc import Collection, Mapping
from typing import Any

from waypost.admin.operator_accounts import (
    AccountChange,
    add_business_account,
    build_operator_account,
    callback_url,
    change_operator_account,
    subscribe,
)
from waypost.admin.operator_requests import OperatorCallFailed, call_operator
from waypost.admin.provisioning import AdminContext, partner_with_email
from waypost.admin.setup.document import BusinessAccountSetup
from waypost.admin.setup.steps import Step, change_or_keep, create
from waypost.domain.app import BusinessAccount
from waypost.domain.direct_calls import GetSubscription
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.accounts.partners import business_account_by_id, partner_by_email

OPERATOR_ACCOUNT = "operator account"
BUSINESS_ACCOUNT = "business account"
WEBHOOK = "webhook subscription"


async def plan_operator_account(context: AdminContext, account_id: str, members: Mapping[str, str]) -> Step:
    """Return the step for an operator account; its secrets are compared too.

    Raises:
        ApiError: a field is missing, invalid or not the adapter's.
    """
    fields = dict(members)
    change = AccountChange(fields.pop("kind", None), fields.pop("base_url", None), fields)
    existing = await context.directory.operator_account(account_id)
    account, _ = await build_operator_account(context, account_id, change)

    async def run() -> Mapping[str, Any]:
        changed, generated = await change_operator_account(context, account_id, change)
        return {"callback_url": callback_url(context, changed.id), **generated}

    if existing is None:
        return create(OPERATOR_ACCOUNT, account_id, run)
    wanted = {"base_url": account.base_url, **{name: account[name] for name in fields}}
    current = {"base_url": existing.base_url, **{name: existing[name] for name in fields}}
    return change_or_keep(OPERATOR_ACCOUNT, account_id, current, wanted, run)


async def plan_business_account(
    context: AdminContext, email: str, wanted: BusinessAccountSetup, new_operator_accounts: Collection[str]
) -> list[Step]:
    """Return the steps for a business account, and for its webhooks if the document says so.

    Args:
        context: of the admin API.
        email: of its partner, who may be new.
        wanted: the account.
        new_operator_accounts: ids of operator accounts that earlier steps create.

    Raises:
        ApiError: it is another partner's or at another operator account, or has another namespace; there is no such
            operator account; the operator does not return its webhook subscriptions.
    """
    operator_account = await context.directory.operator_account(wanted.operator_account)
    if operator_account is None and wanted.operator_account not in new_operator_accounts:
        text = f"operator_account of the business account {wanted.id} must name an operator account."
        raise ApiError(ErrorCode.NOT_FOUND, text, field="operator_account")
    existing = await context.database.read(business_account_by_id, wanted.id)

    async def add() -> Mapping[str, Any]:
        partner_id = (await partner_with_email(context, email)).id
        account = await add_business_account(context, wanted.id, partner_id, wanted.operator_account, wanted.namespace)
        return {"namespace": account.namespace}

    if existing is None:
        steps = [create(BUSINESS_ACCOUNT, wanted.id, add)]
    else:
        await _check_same(context, email, wanted, existing)
        steps = [Step(BUSINESS_ACCOUNT, wanted.id, "keep")]
    if wanted.subscribe:
        steps.append(await _plan_webhook(context, wanted.id, existing))
    return steps


async def _check_same(
    context: AdminContext, email: str, wanted: BusinessAccountSetup, existing: BusinessAccount
) -> None:
    """Check that an existing account is what the document says; neither owner nor namespace of one can change."""
    partner = await context.database.read(partner_by_email, email)
    if partner is None or existing.partner_id != partner.id:
        text = f"id {wanted.id} is taken by a business account of another partner."
        raise ApiError(ErrorCode.ALREADY_EXISTS, text, field="id")
    if existing.operator_account_id != wanted.operator_account:
        raise ApiError(
            ErrorCode.FIELD_BROKEN,
            f"operator_account of the business account {wanted.id} is {existing.operator_account_id}; "
            "`waypost app operator` moves its apps, with their templates, to another one.",
            field="operator_account",
            accepted=existing.operator_account_id,
        )
    if wanted.namespace not in (None, existing.namespace):
        text = f"namespace of the business account {wanted.id} is {existing.namespace} and cannot be changed."
        raise ApiError(ErrorCode.FIELD_BROKEN, text, field="namespace", accepted=existing.namespace)


async def _plan_webhook(context: AdminContext, account_id: str, existing: BusinessAccount | None) -> Step:
    async def run() -> Mapping[str, Any]:
        return {"callback_url": await subscribe(context, account_id)}

    if existing is not None and await _is_subscribed(context, existing):
        return Step(WEBHOOK, account_id, "keep")
    return create(WEBHOOK, account_id, run)


async def _is_subscribed(context: AdminContext, account: BusinessAccount) -> bool:
    operator_account = await context.directory.operator_account(account.operator_account_id)
    if operator_account is None:
        return False
    try:
        found = await call_operator(context.operators, operator_account, GetSubscription(account.id))
    except OperatorCallFailed as error:
        raise error.api_error() from error
    expected = callback_url(context, operator_account.id)
    return found.is_subscribed and all(url == expected for url in found.urls.values())
