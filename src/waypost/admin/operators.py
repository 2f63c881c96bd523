"""The admin API's operations on operators: accounts, numbers, webhooks, the switch, and the doctor."""

from typing import Any

import msgspec

from waypost.admin.doctor.checks import examine, examine_for
from waypost.admin.operator_accounts import (
    AccountChange,
    Standing,
    add_business_account,
    callback_url,
    change_operator_account,
    list_numbers,
    standings,
    subscribe,
)
from waypost.admin.operator_switch import Switched, SwitchWish, switch_app
from waypost.admin.provisioning import AdminContext
from waypost.domain.errors import ApiError, ErrorCode


class NumbersQuery(msgspec.Struct):
    """Whose numbers."""

    business_account_id: str = ""


class NewBusinessAccount(msgspec.Struct, forbid_unknown_fields=True):
    """A business account to add."""

    id: str
    partner_id: int
    operator_account_id: str
    namespace: str | None = None


class OperatorSwitch(msgspec.Struct, forbid_unknown_fields=True):
    """Which operator account is to carry an app; as `SwitchWish`."""

    operator_account_id: str
    business_account_id: str | None = None
    phone_number_id: str | None = None
    submit_templates: bool = False


class DoctorQuery(msgspec.Struct):
    """Whose accounts are examined; without a partner, all."""

    partner_id: int | None = None


async def list_accounts(context: AdminContext) -> Any:
    """Return every operator account with its business accounts and apps, without a secret."""
    return {"operator_accounts": [_standing_view(context, one) for one in await standings(context)]}


async def put_account(context: AdminContext, given: dict[str, str | None], account_id: str) -> Any:
    """Make an operator account, or change what is given of the one with this id; its fields are its adapter's."""
    fields = {name: value for name, value in given.items() if value is not None}
    change = AccountChange(fields.pop("kind", None), fields.pop("base_url", None), fields)
    account, made = await change_operator_account(context, account_id, change)
    shown = {
        "id": account.id,
        "webhook_path": f"/operator/webhook/{account.id}",
        "callback_url": callback_url(context, account.id),
    }
    return {**shown, **made}


async def show_numbers(context: AdminContext, given: NumbersQuery, account_id: str) -> Any:
    """Return the numbers that the operator has under a business account."""
    if not given.business_account_id:
        accepted = "the operator's id of a business account"
        text = f"business_account_id is needed: {accepted}."
        raise ApiError(ErrorCode.FIELD_MISSING, text, field="business_account_id", accepted=accepted)
    return {"numbers": await list_numbers(context, account_id, given.business_account_id)}


async def put_business_account(context: AdminContext, given: NewBusinessAccount) -> Any:
    """Store a business account; without a namespace the operator is asked for it."""
    account = await add_business_account(
        context, given.id, given.partner_id, given.operator_account_id, given.namespace
    )
    return {"id": account.id, "namespace": account.namespace}


async def subscribe_account(context: AdminContext, account_id: str) -> Any:
    """Have the operator send a business account's webhooks to us."""
    return {"id": account_id, "callback_url": await subscribe(context, account_id)}


async def switch(context: AdminContext, given: OperatorSwitch, app_id: str) -> Any:
    """Have another operator account carry an app."""
    wish = SwitchWish(**msgspec.structs.asdict(given))
    switched = await switch_app(context, app_id, wish)
    return _switch_view(switched, callback_url(context, wish.operator_account_id))


async def doctor(context: AdminContext, given: DoctorQuery) -> Any:
    """Return the findings about everything, or about what one partner has."""
    if given.partner_id is None:
        findings = await examine(context)
    else:
        findings = await examine_for(context, given.partner_id)
    return {"findings": [msgspec.to_builtins(one) for one in findings]}


def _standing_view(context: AdminContext, standing: Standing) -> dict[str, Any]:
    """Without a secret."""
    account = standing.account
    shown = [one.name for one in context.operators.of(account).fields if not one.is_secret]
    return {
        "id": account.id,
        "kind": account.kind,
        "base_url": account.base_url,
        **{name: account[name] for name in shown},
        "callback_url": callback_url(context, account.id),
        "business_accounts": [
            {
                "id": owner.id,
                "partner_id": owner.partner_id,
                "namespace": owner.namespace,
                "apps": [
                    {
                        "id": app.id,
                        "name": app.name,
                        "phone_number": app.phone_number,
                        "phone_number_id": app.phone_number_id,
                    }
                    for app in apps
                ],
            }
            for owner, apps in standing.businesses
        ],
    }


def _switch_view(switched: Switched, address: str) -> dict[str, Any]:
    return {
        "operator_account_id": switched.account.operator_account_id,
        "left": switched.left,
        "business_account_id": switched.account.id,
        "namespace": switched.account.namespace,
        "callback_url": address,
        "apps": [
            {"id": app.id, "name": app.name, "phone_number": app.phone_number, "phone_number_id": app.phone_number_id}
            for app in switched.apps
        ],
        "templates_submitted": switched.submitted,
        "templates_missing": [
            {
                "id": template.id,
                "element_name": template.draft.element_name,
                "language_code": template.draft.language_code,
                "status": template.status.value,
            }
            for template in switched.missing
        ],
    }
