"""The admin API's operations on operator accounts: accounts, numbers, webhooks, the switch, and the doctor."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from waypost.admin.doctor.checks import run_account_checks, run_checks, run_partner_checks
from waypost.admin.doctor.local import CheckResult
from waypost.admin.operation import AdminOperations
from waypost.admin.operator_accounts import (
    AccountChange,
    AccountOverview,
    account_overviews,
    add_business_account,
    callback_url,
    change_operator_account,
    list_numbers,
    subscribe,
)
from waypost.admin.operator_switch import SwitchRequest, SwitchResult, switch_app
from waypost.admin.provisioning import AdminContext
from waypost.domain.errors import ApiError, ErrorCode

operation = AdminOperations()


class NumbersQuery(msgspec.Struct):
    """The business account whose numbers to list."""

    business_account_id: Annotated[
        str, Meta(description="The operator's id of a business account, which need not be added here yet; required.")
    ] = ""


class NewBusinessAccount(msgspec.Struct, forbid_unknown_fields=True):
    """A business account to add."""

    id: Annotated[str, Meta(description="The operator's id of it; wabaId on the wire.")]
    partner_id: Annotated[int, Meta(description="The partner that has it.")]
    operator_account_id: Annotated[str, Meta(description="Id of the operator account that reaches it.")]
    namespace: Annotated[
        str | None, Meta(description="Namespace of its templates. [default: read from the operator]")
    ] = None


class OperatorSwitch(msgspec.Struct, forbid_unknown_fields=True):
    """A requested switch of an app to an operator account; see `SwitchRequest`."""

    operator_account_id: Annotated[str, Meta(description="Id of its new operator account.")]
    business_account_id: Annotated[
        str | None, Meta(description="Its id at that operator. [default: its earlier id there, or the same]")
    ] = None
    phone_number_id: Annotated[
        str | None, Meta(description="The number's id there. [default: its earlier id there, or found by its digits]")
    ] = None
    submit_templates: Annotated[bool, Meta(description="Submit templates that are missing there.")] = False
    dry_run: Annotated[bool, Meta(description="True if only the effect is reported.")] = False


class DoctorQuery(msgspec.Struct):
    """The partner whose accounts to examine, or one operator account; all if both are absent."""

    partner_id: Annotated[int | None, Meta(description="Only its accounts.")] = None
    operator_account_id: Annotated[str, Meta(description="Only this account.")] = ""


class OperatorAccounts(msgspec.Struct):
    """Operator accounts with the public fields of their adapters, their business accounts, and the apps of those."""

    operator_accounts: list[dict[str, Any]]


class OperatorNumbers(msgspec.Struct):
    """Numbers as the operator lists them."""

    numbers: list[dict[str, Any]]


class AddedBusinessAccount(msgspec.Struct):
    """A business account with its namespace."""

    id: str
    namespace: str


class SubscribedAccount(msgspec.Struct):
    """A business account, and the URL at which the operator calls this service."""

    id: str
    callback_url: str


class SwitchedApp(msgspec.Struct):
    """An app of a business account."""

    id: str
    name: str
    phone_number: str
    phone_number_id: str


class MissingTemplate(msgspec.Struct):
    """A template that the operator does not have."""

    id: str
    element_name: str | None
    language_code: str
    status: str


class Switched(msgspec.Struct):
    """The result of a switch, as of `SwitchResult`."""

    operator_account_id: str
    left: str
    business_account_id: str
    namespace: str
    callback_url: str
    apps: list[SwitchedApp]
    templates_submitted: int
    templates_missing: list[MissingTemplate]


class DoctorReport(msgspec.Struct):
    """The results of checks."""

    results: list[CheckResult]


@operation("GET", "/admin/operator-accounts")
async def list_accounts(context: AdminContext) -> OperatorAccounts:
    """Return every operator account with its business accounts and apps, without secrets."""
    return OperatorAccounts([_account_view(context, overview) for overview in await account_overviews(context)])


@operation("PUT", "/admin/operator-accounts/{account_id}")
async def put_account(context: AdminContext, body: dict[str, str | None], account_id: str) -> dict[str, str]:
    """Create an operator account, or change the given fields of the one with this id; its adapter defines them."""
    fields = {name: value for name, value in body.items() if value is not None}
    change = AccountChange(fields.pop("kind", None), fields.pop("base_url", None), fields)
    account, generated = await change_operator_account(context, account_id, change)
    view = {
        "id": account.id,
        "webhook_path": f"/operator/webhook/{account.id}",
        "callback_url": callback_url(context, account.id),
    }
    return {**view, **generated}


@operation("GET", "/admin/operator-accounts/{account_id}/numbers")
async def show_numbers(context: AdminContext, query: NumbersQuery, account_id: str) -> OperatorNumbers:
    """Return the numbers of a business account at the operator, to add apps for them."""
    if not query.business_account_id:
        accepted = "the operator's id of a business account"
        text = f"business_account_id is required: {accepted}."
        raise ApiError(ErrorCode.FIELD_MISSING, text, field="business_account_id", accepted=accepted)
    return OperatorNumbers(await list_numbers(context, account_id, query.business_account_id))


@operation("POST", "/admin/business-accounts")
async def put_business_account(context: AdminContext, new_account: NewBusinessAccount) -> AddedBusinessAccount:
    """Store a partner's business account; without a namespace it is requested from the operator."""
    account = await add_business_account(
        context, new_account.id, new_account.partner_id, new_account.operator_account_id, new_account.namespace
    )
    return AddedBusinessAccount(account.id, account.namespace)


@operation("POST", "/admin/business-accounts/{account_id}/subscribe")
async def subscribe_account(context: AdminContext, account_id: str) -> SubscribedAccount:
    """Subscribe this service, which must be running, to a business account's webhooks at the operator."""
    return SubscribedAccount(account_id, await subscribe(context, account_id))


@operation("PUT", "/admin/apps/{app_id}/operator")
async def switch_operator(context: AdminContext, body: OperatorSwitch, app_id: str) -> Switched:
    """Switch an app, with its whole business account, to another operator account, or only report the effect."""
    switch_request = SwitchRequest(**msgspec.structs.asdict(body))
    result = await switch_app(context, app_id, switch_request)
    return _switch_view(result, callback_url(context, switch_request.operator_account_id))


@operation("GET", "/admin/doctor")
async def run_doctor(context: AdminContext, query: DoctorQuery) -> DoctorReport:
    """Return the results of all checks, or of those that concern one partner or one operator account."""
    if query.operator_account_id:
        results = await run_account_checks(context, query.operator_account_id)
    elif query.partner_id is None:
        results = await run_checks(context)
    else:
        results = await run_partner_checks(context, query.partner_id)
    return DoctorReport(results)


def _account_view(context: AdminContext, overview: AccountOverview) -> dict[str, Any]:
    """Return an operator account as JSON members, without secrets."""
    account = overview.account
    public_fields = [field.name for field in context.operators.adapter(account).fields if not field.is_secret]
    return {
        "id": account.id,
        "kind": account.kind,
        "base_url": account.base_url,
        **{name: account[name] for name in public_fields},
        "callback_url": callback_url(context, account.id),
        "business_accounts": [
            {
                "id": owner.id,
                "partner_id": owner.partner_id,
                "operator_account_id": owner.operator_account_id,
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
            for owner, apps in overview.businesses
        ],
    }


def _switch_view(switched: SwitchResult, address: str) -> Switched:
    return Switched(
        operator_account_id=switched.account.operator_account_id,
        left=switched.left,
        business_account_id=switched.account.id,
        namespace=switched.account.namespace,
        callback_url=address,
        apps=[SwitchedApp(app.id, app.name, app.phone_number, app.phone_number_id) for app in switched.apps],
        templates_submitted=switched.submitted,
        templates_missing=[
            MissingTemplate(each.id, each.draft.element_name, each.draft.language_code, each.status.value)
            for each in switched.missing
        ],
    )
