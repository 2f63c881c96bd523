"""Operator accounts and their business accounts: create, change, list, subscribe; and calls of the operator."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote

from waypost.admin import provisioning
from waypost.admin.provisioning import AdminContext
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
        case response:
            return response


WEBHOOK_PATH: Final = "/operator/webhook"


def callback_url(context: AdminContext, account_id: str) -> str:
    """Return the webhook URL of an operator account; it is registered at the operator, so it never changes."""
    return f"{context.public_url}{WEBHOOK_PATH}/{quote(account_id, safe='')}"


@dataclass(frozen=True, slots=True)
class AccountChange:
    """The fields to set; absent ones stay unchanged, or get the adapter's defaults in a new account.

    Attributes:
        kind: of a new account; None: the existing account's kind, or the first kind.
        fields: the fields of the account's adapter.
    """

    kind: str | None = None
    base_url: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict[str, str])


async def change_operator_account(
    context: AdminContext, account_id: str, change: AccountChange
) -> tuple[OperatorAccount, Mapping[str, str]]:
    """Create an operator account, or change the given fields of the one with this id.

    Returns:
        The account, and the secrets that were generated because none were given.

    Raises:
        ApiError: a field is missing, invalid or not the adapter's.
    """
    account, generated = await build_operator_account(context, account_id, change)
    await provisioning.put_operator_account(context, account)
    return account, generated


async def build_operator_account(
    context: AdminContext, account_id: str, change: AccountChange
) -> tuple[OperatorAccount, Mapping[str, str]]:
    """Return what `change_operator_account` would store, and store nothing.

    Raises:
        ApiError: a field is missing, invalid or not the adapter's.
    """
    existing = await context.directory.operator_account(account_id)
    kind = change.kind or (context.operators.kinds[0] if existing is None else existing.kind)
    if kind not in context.operators.kinds:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"kind must be one of {', '.join(context.operators.kinds)}.")
    if existing is not None and kind != existing.kind:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"kind must be {existing.kind}: that of an account never changes.")
    adapter_fields = context.operators.adapter_of_kind(kind).fields
    names = [adapter_field.name for adapter_field in adapter_fields]
    unknown = next((name for name in change.fields if name not in names), None)
    if unknown is not None:
        raise ApiError(
            ErrorCode.UNREADABLE,
            f"The body must be a JSON object of the call's fields: {unknown} is not one of {', '.join(names)}.",
        )
    if existing is not None:
        base_url = existing.base_url if change.base_url is None else change.base_url
        account = replace(existing.replace_fields(**change.fields), base_url=base_url)
        provisioning.check_operator_account(context, account)
        return account, {}
    generated = {
        adapter_field.name: context.ids.secret()
        for adapter_field in adapter_fields
        if adapter_field.is_generated and adapter_field.name not in change.fields
    }
    defaults = {
        adapter_field.name: adapter_field.default
        for adapter_field in adapter_fields
        if adapter_field.default is not None
    }
    values = {**defaults, **generated, **change.fields}
    missing = next((name for name in names if name not in values), None)
    if change.base_url is None or missing is not None:
        name = "base_url" if change.base_url is None else missing
        raise ApiError(ErrorCode.FIELD_MISSING, f"{name} is required for a new operator account.")
    account = OperatorAccount(account_id, kind, change.base_url, values)
    provisioning.check_operator_account(context, account)
    return account, generated


async def add_business_account(
    context: AdminContext, account_id: str, partner_id: int, operator_account_id: str, namespace: str | None
) -> BusinessAccount:
    """Store a business account; without a namespace it is requested from the operator.

    Raises:
        ApiError: its id is in use, its partner or operator account does not exist, or the operator
            does not return the namespace.
    """
    if namespace is None:
        operator_account = await _find_operator_account(context, operator_account_id)
        try:
            namespace = (
                await call_operator(context.operators, operator_account, GetBusinessAccount(account_id))
            ).namespace
        except OperatorCallFailed as error:
            raise error.api_error() from error
        if not namespace:
            raise ApiError(
                ErrorCode.FIELD_MISSING,
                "namespace is required: the operator does not return the one of this business account.",
            )
    account = BusinessAccount(account_id, partner_id, namespace, operator_account_id)
    await provisioning.add_business_account(context, account)
    return account


async def list_numbers(
    context: AdminContext, operator_account_id: str, business_account_id: str
) -> list[dict[str, Any]]:
    """Return the numbers of a business account as the operator lists them.

    Raises:
        ApiError: there is no such operator account, or the operator does not return them.
    """
    account = await _find_operator_account(context, operator_account_id)
    try:
        return [
            number.raw for number in await call_operator(context.operators, account, ListNumbers(business_account_id))
        ]
    except OperatorCallFailed as error:
        raise error.api_error() from error


async def subscribe(context: AdminContext, business_account_id: str) -> str:
    """Subscribe us to a business account's webhooks at the operator, and return our webhook URL.

    The operator does its handshake with that URL before it responds, so the service must be running
    and reachable there.

    Raises:
        ApiError: there is no such business account, or the operator does not subscribe us.

    Source: operator's facts 1, "Webhook subscription", and 7.1.
    """
    owner = await context.directory.business_account(business_account_id)
    if owner is None:
        raise resource_not_found("business account", "business_account_id", business_account_id)
    account = await _find_operator_account(context, owner.operator_account_id)
    address = callback_url(context, account.id)
    try:
        await call_operator(context.operators, account, Subscribe(business_account_id, address))
    except OperatorCallFailed as error:
        api_error = error.api_error()
        raise ApiError(
            api_error.code,
            f"{api_error.explanation} The service must be running, and the operator must reach it at "
            f"{address}; WAYPOST_PUBLIC_URL sets the address.",
            retry_after_s=api_error.retry_after_s,
        ) from error
    return address


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


async def _find_operator_account(context: AdminContext, account_id: str) -> OperatorAccount:
    account = await context.directory.operator_account(account_id)
    if account is None:
        raise resource_not_found("operator account", "operator_account_id", account_id)
    return account
