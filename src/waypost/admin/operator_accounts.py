"""The admin API's operations on operator accounts and their business accounts; and calls of the operator."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Meta

from waypost.admin.operation import AdminOperations
from waypost.admin.provisioning import AdminContext, add_business_account, check_operator_account, put_operator_account
from waypost.domain.app import App, BusinessAccount, OperatorAccount
from waypost.domain.direct_calls import (
    CallNotOffered,
    GetBusinessAccount,
    ListNumbers,
    OperatorCall,
    OperatorProblem,
    Response,
    Subscribe,
)
from waypost.domain.errors import ApiError, ErrorCode, resource_not_found
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable, OutcomeUncertain
from waypost.operators.contract import Operators
from waypost.store.accounts.partners import all_apps, all_business_accounts, all_operator_accounts
from waypost.wire.responses import response


class OperatorCallFailed(Exception):
    """The operator returned an error or no response.

    Attributes:
        code: the operator's error code; None without a response.
        text: the operator's error text, or the reason for the missing response.
        problem: what the code means for the operator account; None: nothing beyond the text.
        is_offered: True if the operator has such a call.
    """

    def __init__(
        self, code: int | None, text: str, problem: OperatorProblem | None = None, *, is_offered: bool = True
    ) -> None:
        super().__init__(text)
        self.code: Final = code
        self.text: Final = text
        self.problem: Final = problem
        self.is_offered: Final = is_offered

    def api_error(self) -> ApiError:
        """Return the failure as an error of our API."""
        if self.code is not None:
            return ApiError(ErrorCode.OPERATOR_REJECTED, f"The operator returned an error: {self.text}")
        return ApiError(
            ErrorCode.OPERATOR_UNAVAILABLE, f"The operator is unavailable now: {self.text}", retry_after_s=10
        )


async def call_operator(operators: Operators, account: OperatorAccount, request: OperatorCall[Response]) -> Response:
    """Make a direct call and return its response.

    Raises:
        OperatorCallFailed: the operator returned an error or no response.
    """
    operator = operators.adapter(account)
    match await operator.call(account, request):
        case OperatorRejected(code=code, text=text, operator_code=operator_code):
            error_code = code if operator_code is None else operator_code
            raise OperatorCallFailed(error_code, text, operator.explain(error_code))
        case CallNotOffered(text=text):
            raise OperatorCallFailed(0, text, is_offered=False)
        case OperatorUnavailable(code=code, text=text):
            raise OperatorCallFailed(code or None, text, operator.explain(code))
        case OutcomeUncertain(text=text):
            raise OperatorCallFailed(None, text)
        case result:
            return result


WEBHOOK_PATH: Final = "/operator/webhook"


def callback_url(context: AdminContext, account_id: str) -> str:
    """Return the webhook URL of an operator account; it is registered at the operator, so it never changes."""
    return f"{context.public_url}{WEBHOOK_PATH}/{quote(account_id, safe='')}"


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


@dataclass(frozen=True, slots=True)
class AccountOverview:
    """An operator account with its business accounts and their apps."""

    account: OperatorAccount
    businesses: tuple[tuple[BusinessAccount, tuple[App, ...]], ...]


async def account_overviews(context: AdminContext) -> list[AccountOverview]:
    """Return every operator account with its business accounts and apps, ordered by id."""
    read = context.database.read
    accounts = await read(all_operator_accounts, context.directory.unseal)
    businesses, apps = await read(all_business_accounts), await read(all_apps)
    return [
        AccountOverview(
            account,
            tuple(
                (owner, tuple(app for app in apps if app.business_account_id == owner.id))
                for owner in businesses
                if owner.operator_account_id == account.id
            ),
        )
        for account in accounts
    ]


@operation("GET", "/admin/operator-accounts", response(operator_accounts=list[dict[str, Any]]))
async def list_accounts(context: AdminContext) -> dict[str, Any]:
    """Return every operator account with its business accounts and apps, without secrets."""
    return {"operator_accounts": [_account_view(context, overview) for overview in await account_overviews(context)]}


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


@operation("PUT", "/admin/operator-accounts/{account_id}")
async def put_account(context: AdminContext, body: dict[str, str | None], account_id: str) -> dict[str, str]:
    """Create an operator account, or change the given fields of the one with this id; its adapter defines them."""
    members = {name: value for name, value in body.items() if value is not None}
    account, generated = await build_operator_account(context, account_id, members)
    await put_operator_account(context, account)
    view = {
        "id": account.id,
        "webhook_path": f"{WEBHOOK_PATH}/{account.id}",
        "callback_url": callback_url(context, account.id),
    }
    return {**view, **generated}


async def build_operator_account(
    context: AdminContext, account_id: str, members: Mapping[str, str]
) -> tuple[OperatorAccount, Mapping[str, str]]:
    """Return the account that `put_account` would store, and store nothing.

    Args:
        context: of the admin API.
        account_id: its id.
        members: `kind`, `base_url` and fields of its adapter; absent ones stay unchanged, or get the adapter's defaults
            in a new account. Its kind is the first one then.

    Returns:
        The account, and the secrets that were generated because none were given.

    Raises:
        ApiError: a field is missing, invalid or not the adapter's.
    """
    changes = dict(members)
    new_kind, new_base_url = changes.pop("kind", None), changes.pop("base_url", None)
    existing = await context.directory.operator_account(account_id)
    kind = new_kind or (context.operators.kinds[0] if existing is None else existing.kind)
    if kind not in context.operators.kinds:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"kind must be one of {', '.join(context.operators.kinds)}.")
    if existing is not None and kind != existing.kind:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"kind must be {existing.kind}: that of an account never changes.")
    adapter_fields = context.operators.adapter_of_kind(kind).fields
    names = [adapter_field.name for adapter_field in adapter_fields]
    unknown = next((name for name in changes if name not in names), None)
    if unknown is not None:
        raise ApiError(
            ErrorCode.UNREADABLE,
            f"The body must be a JSON object of the call's fields: {unknown} is not one of {', '.join(names)}.",
        )
    if existing is not None:
        base_url = existing.base_url if new_base_url is None else new_base_url
        account = replace(existing.replace_fields(**changes), base_url=base_url)
        check_operator_account(context, account)
        return account, {}
    generated = {
        adapter_field.name: context.ids.secret()
        for adapter_field in adapter_fields
        if adapter_field.is_generated and adapter_field.name not in changes
    }
    defaults = {
        adapter_field.name: adapter_field.default
        for adapter_field in adapter_fields
        if adapter_field.default is not None
    }
    values = {**defaults, **generated, **changes}
    missing = next((name for name in names if name not in values), None)
    if new_base_url is None or missing is not None:
        name = "base_url" if new_base_url is None else missing
        raise ApiError(ErrorCode.FIELD_MISSING, f"{name} is required for a new operator account.")
    account = OperatorAccount(account_id, kind, new_base_url, values)
    check_operator_account(context, account)
    return account, generated


@operation("GET", "/admin/operator-accounts/{account_id}/numbers", response(numbers=list[dict[str, Any]]))
async def show_numbers(context: AdminContext, query: NumbersQuery, account_id: str) -> dict[str, Any]:
    """Return the numbers of a business account at the operator, to add apps for them."""
    if not query.business_account_id:
        accepted = "the operator's id of a business account"
        text = f"business_account_id is required: {accepted}."
        raise ApiError(ErrorCode.FIELD_MISSING, text, field="business_account_id", accepted=accepted)
    account = await _find_operator_account(context, account_id)
    try:
        numbers = await call_operator(context.operators, account, ListNumbers(query.business_account_id))
    except OperatorCallFailed as error:
        raise error.api_error() from error
    return {"numbers": [number.raw for number in numbers]}


@operation("POST", "/admin/business-accounts", response(id=str, namespace=str))
async def put_business_account(context: AdminContext, new_account: NewBusinessAccount) -> dict[str, Any]:
    """Store a partner's business account; without a namespace it is requested from the operator.

    Raises:
        ApiError: its id is in use, its partner or operator account does not exist, or the operator
            does not return the namespace.
    """
    namespace = new_account.namespace
    if namespace is None:
        operator_account = await _find_operator_account(context, new_account.operator_account_id)
        try:
            business = await call_operator(context.operators, operator_account, GetBusinessAccount(new_account.id))
        except OperatorCallFailed as error:
            raise error.api_error() from error
        namespace = business.namespace
        if not namespace:
            raise ApiError(
                ErrorCode.FIELD_MISSING,
                "namespace is required: the operator does not return the one of this business account.",
            )
    account = BusinessAccount(new_account.id, new_account.partner_id, namespace, new_account.operator_account_id)
    await add_business_account(context, account)
    return {"id": account.id, "namespace": namespace}


@operation("POST", "/admin/business-accounts/{account_id}/subscribe", response(id=str, callback_url=str))
async def subscribe_account(context: AdminContext, account_id: str) -> dict[str, Any]:
    """Subscribe this service, which must be running, to a business account's webhooks at the operator.

    Raises:
        ApiError: there is no such business account, or the operator does not subscribe us.

    Source: operator's facts 1, "Webhook subscription", and 7.1.
    """
    owner = await context.directory.business_account(account_id)
    if owner is None:
        raise resource_not_found("business account", "business_account_id", account_id)
    account = await _find_operator_account(context, owner.operator_account_id)
    address = callback_url(context, account.id)
    try:
        # The operator does its handshake with our webhook URL before it responds.
        await call_operator(context.operators, account, Subscribe(account_id, address))
    except OperatorCallFailed as error:
        api_error = error.api_error()
        raise ApiError(
            api_error.code,
            f"{api_error.explanation} The service must be running, and the operator must reach it at "
            f"{address}; WAYPOST_PUBLIC_URL sets the address.",
            retry_after_s=api_error.retry_after_s,
        ) from error
    return {"id": account_id, "callback_url": address}


async def _find_operator_account(context: AdminContext, account_id: str) -> OperatorAccount:
    account = await context.directory.operator_account(account_id)
    if account is None:
        raise resource_not_found("operator account", "operator_account_id", account_id)
    return account
