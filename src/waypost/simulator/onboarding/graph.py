"""Graph API calls of a partner about the businesses that have given it access: tokens, credit, users, migration.

Source: facts 14.4.
"""

import hashlib
import hmac
from collections.abc import Sequence
from typing import Annotated, Any, Final

from msgspec import Struct

from waypost.base.json_values import list_or_none
from waypost.base.object_ids import describe_other_kind, make_id
from waypost.simulator.apis.errors import GraphApiError, bad_parameter, coded_error
from waypost.simulator.apis.parameters import check_boolean, check_id, is_missing, one_of, read_parameters, read_text
from waypost.simulator.apis.requests import GRAPH_SUCCESS, Call
from waypost.simulator.onboarding.exchange import issue_token
from waypost.simulator.onboarding.model import (
    ALLOCATIONS,
    ASSIGNED_USERS,
    MIGRATION_INTENTS,
    PARTNERS,
    PERSONS,
    SIGNUP_CODES,
    AppPartner,
    AssignedUser,
    CreditAllocation,
    MigrationIntent,
)
from waypost.simulator.state.accounts import ACCOUNTS, APP_ACCESSES, Account, Business, owner_id, partner_id
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.nodes import NodeKind, page
from waypost.simulator.state.records import FUNDING
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.state.tokens import TOKENS

operation = GraphOperations()

CURRENCIES: Final = ("AUD", "EUR", "GBP", "IDR", "INR", "USD")  # Source: facts 14.4
TASKS: Final = (  # those of the operator's business settings
    "MANAGE",
    "DEVELOP",
    "MANAGE_TEMPLATES",
    "MANAGE_PHONE",
    "VIEW_COST",
    "MANAGE_EXTENSIONS",
    "VIEW_PHONE_ASSETS",
    "MANAGE_PHONE_ASSETS",
    "VIEW_TEMPLATES",
    "MESSAGING",
    "FULL_CONTROL",
)


class CreditShareParameters(Struct, frozen=True):
    """The account that gets a part of the credit line, and its currency."""

    waba_id: Annotated[str, check_id]
    waba_currency: Annotated[str, one_of(*CURRENCIES)]


class SystemTokenParameters(Struct, frozen=True):
    """The system user whose token is requested; with `fetch_only` one that exists."""

    system_user_id: Annotated[str, check_id]
    appsecret_proof: Annotated[str, check_id]
    fetch_only: Annotated[bool, check_boolean] = False


def _read_tasks(name: str, value: Any) -> tuple[str, ...]:
    tasks = list_or_none(value)
    if tasks is None:
        raise is_missing(name)
    other = next((task for task in tasks if task not in TASKS), None)
    if other is not None or not tasks:
        raise bad_parameter(f"Param {name} must be an array with one or more of {{{', '.join(TASKS)}}}.")
    return tuple(dict.fromkeys(str(task) for task in tasks))


class AssignedUserParameters(Struct, frozen=True):
    """A user, and the tasks in the account."""

    user: Annotated[str, check_id]
    tasks: Annotated[tuple[str, ...], _read_tasks]


class RemovedUserParameters(Struct, frozen=True):
    """A user who loses the tasks in the account."""

    user: Annotated[str, check_id]


class MigrationIntentParameters(Struct, frozen=True):
    """The app of a tech provider, or the joint solution, that the account is to go to."""

    app_id: Annotated[str, read_text] = ""
    solution_id: Annotated[str, read_text] = ""


# Tokens


@operation("businesses.system_user_tokens", "POST", Business, "system_user_access_tokens", permission=None)
async def get_system_token(state: SimulatorState, call: Call, business: Business) -> dict[str, Any]:
    """Return the token of a system user of a business: with `fetch_only` the last one that is valid, else a new one.

    Raises:
        GraphApiError: 100, the proof is not that of the call's token, or the system user is none of this business for
            the app, or has no valid token; 200, the app has no access any more.
    """
    requested = read_parameters(SystemTokenParameters, call.fields)
    app = state.accounts.apps.get(call.app_id)
    secret = app.app_secret if app is not None else ""
    expected = hmac.new(secret.encode(), call.token.encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(requested.appsecret_proof.encode(), expected.encode()):
        raise GraphApiError(
            400,
            {
                "message": "Invalid appsecret_proof provided in the API argument",
                "type": "GraphMethodException",
                "code": 100,
            },
        )
    return await state.transact(lambda transaction: _find_system_token(transaction, call.app_id, business, requested))


def _find_system_token(
    transaction: Transaction, app_id: str, business: Business, requested: SystemTokenParameters
) -> dict[str, Any]:
    user_id = requested.system_user_id
    accesses = [transaction.find(APP_ACCESSES, app_id, account.waba_id) for account in business.owned]
    if all(access is None or access.system_user_id != user_id for access in accesses):
        raise bad_parameter(
            _describe_wrong_id(
                "system_user_id", user_id, "is no system user of the business for this app", "system user"
            )
        )
    now_ms = transaction.state.clock.now_ms()
    if requested.fetch_only:
        tokens = [token for token in transaction.values(TOKENS).values() if token.user_id == user_id]
        valid = [token for token in tokens if token.is_valid(now_ms) and token.app_id == app_id]
        if not valid:
            raise bad_parameter("Param fetch_only: the system user has no valid access token.")
        return {"access_token": valid[-1].token}
    codes = [code for code in transaction.values(SIGNUP_CODES).values() if code.system_user_id == user_id]
    if not codes:
        raise coded_error(200)
    token = issue_token(transaction, codes[-1])
    transaction.save(TOKENS, token, token.token)
    return {"access_token": token.token}


# Credit


def _show_line(partner: AppPartner) -> dict[str, Any]:
    return {"id": partner.credit_line_id, "legal_entity_name": f"Partner {partner.app_id}"}


@operation("credit_lines.list", "GET", Business, "extendedcredits", permission=None)
async def list_credit_lines(state: SimulatorState, call: Call, business: Business) -> dict[str, Any]:
    """Return the credit line of a solution partner; none for others."""
    partner = state.values(PARTNERS).get(call.app_id)
    is_own = business.business_id == partner_id(call.app_id)
    lines = [partner] if partner is not None and partner.credit_line_id and is_own else []
    return page(call, lines, lambda line: line.credit_line_id, _show_line)


@operation("credit_lines.share", "POST", AppPartner, "whatsapp_credit_sharing_and_attach")
def share_credit(transaction: Transaction, call: Call, partner: AppPartner) -> dict[str, Any]:
    """Attach a partner's credit line to an account that it has access to.

    Raises:
        GraphApiError: 100, the account is unknown to the app, has a credit line, or the currency is not possible.
    """
    shared = read_parameters(CreditShareParameters, call.fields)
    waba_id = shared.waba_id
    account = transaction.find(ACCOUNTS, waba_id)
    if account is None or transaction.find(APP_ACCESSES, partner.app_id, waba_id) is None:
        raise bad_parameter(
            _describe_wrong_id("waba_id", waba_id, "is no account that was shared with the app", "account")
        )
    if transaction.record(waba_id, FUNDING).get("credential_id"):
        raise bad_parameter("Param waba_id: the account has a credit line already.")
    allocation_id = make_id(transaction.state.ids, "credit allocation")
    allocation = CreditAllocation(allocation_id, waba_id, partner.app_id, partner.credential_id, shared.waba_currency)
    transaction.save(ALLOCATIONS, allocation, allocation_id)
    funding = {"credential_id": partner.credential_id, "currency": shared.waba_currency}
    transaction.save_record(waba_id, FUNDING, funding)
    return {"allocation_config_id": allocation_id, "waba_id": waba_id}


_ALLOCATION_NODE: Final = NodeKind[CreditAllocation](
    "ExtendedCreditAllocationConfig",
    ("id",),
    {
        "id": lambda allocation: allocation.allocation_id,
        "receiving_credential": lambda allocation: {"id": allocation.credential_id},
        "currency": lambda allocation: allocation.currency,
    },
)


@operation("credit_allocations.read", "GET", CreditAllocation)
async def show_allocation(_state: SimulatorState, call: Call, allocation: CreditAllocation) -> dict[str, Any]:
    """Return a part of a credit line, whose receiving credential is the account's `primary_funding_id`."""
    return _ALLOCATION_NODE.show(allocation, call.query.get("fields"))


@operation("credit_allocations.delete", "DELETE", CreditAllocation)
def revoke_allocation(transaction: Transaction, _call: Call, allocation: CreditAllocation) -> dict[str, Any]:
    """Take the credit line from an account."""
    transaction.delete(ALLOCATIONS, allocation.allocation_id)
    transaction.save_record(allocation.waba_id, FUNDING, {})
    return GRAPH_SUCCESS


# Users of an account


@operation("assigned_users.create", "POST", Account, "assigned_users")
def assign_user(transaction: Transaction, call: Call, account: Account) -> dict[str, Any]:
    """Give a person or system user tasks in an account, in place of earlier ones."""
    assigned = read_parameters(AssignedUserParameters, call.fields)
    _check_user(transaction, account, assigned.user)
    transaction.save(ASSIGNED_USERS, AssignedUser(assigned.user, assigned.tasks), assigned.user, account.waba_id)
    return GRAPH_SUCCESS


@operation("assigned_users.delete", "DELETE", Account, "assigned_users")
def remove_user(transaction: Transaction, call: Call, account: Account) -> dict[str, Any]:
    """Take all tasks in an account from a user."""
    user = read_parameters(RemovedUserParameters, call.fields).user
    _check_user(transaction, account, user)
    transaction.delete(ASSIGNED_USERS, user, account.waba_id)
    return GRAPH_SUCCESS


@operation("assigned_users.list", "GET", Account, "assigned_users")
async def list_users(state: SimulatorState, call: Call, account: Account) -> dict[str, Any]:
    """Return the users with tasks in an account; `business` must be one that owns it or that it is shared with."""
    business = call.query.get("business", "")
    if not business:
        raise is_missing("business")
    if business != owner_id(account) and not state.accounts.is_shared_with(account, business):
        raise bad_parameter(_describe_wrong_id("business", business, "is no business of the account", "business"))
    users = list(state.values(ASSIGNED_USERS, account.waba_id).values())
    return page(call, users, lambda user: user.user_id, lambda user: _show_user(state, user))


def _show_user(state: SimulatorState, user: AssignedUser) -> dict[str, Any]:
    person = state.values(PERSONS).get(user.user_id)
    name = person.name if person is not None else f"System user {user.user_id[-4:]}"
    return {"id": user.user_id, "name": name, "tasks": list(user.tasks)}


def _check_user(transaction: Transaction, account: Account, user_id: str) -> None:
    accesses: Sequence[Any] = list(transaction.values(APP_ACCESSES, account.waba_id).values())
    is_system_user = any(access.system_user_id == user_id for access in accesses)
    if not is_system_user and transaction.find(PERSONS, user_id) is None:
        raise bad_parameter(
            _describe_wrong_id(
                "user", user_id, "is no person and no system user of the account", "person", "system user"
            )
        )


# Migration


@operation("accounts.set_migration_intent", "POST", Account, "set_solution_migration_intent")
def set_migration_intent(transaction: Transaction, call: Call, account: Account) -> dict[str, Any]:
    """Record that an account is to leave its joint solution; its owner does it by signing up with the other app.

    Raises:
        GraphApiError: 100, the account is in no joint solution, or neither an app nor a solution is named.
    """
    intended = read_parameters(MigrationIntentParameters, call.fields)
    if bool(intended.app_id) == bool(intended.solution_id):
        raise bad_parameter("Exactly one of the parameters app_id and solution_id is required.")
    if intended.app_id and intended.app_id not in transaction.state.accounts.apps:
        raise bad_parameter(_describe_wrong_id("app_id", intended.app_id, "is no app", "app"))
    accesses = transaction.values(APP_ACCESSES, account.waba_id).values()
    if not any(access.solution_id for access in accesses):
        raise bad_parameter("The account is in no joint solution that it could leave.")
    known = transaction.find(MIGRATION_INTENTS, account.waba_id)
    intent_id = known.intent_id if known is not None else make_id(transaction.state.ids, "migration intent")
    intent = MigrationIntent(intent_id, account.waba_id, intended.app_id, intended.solution_id)
    transaction.save(MIGRATION_INTENTS, intent, account.waba_id)
    return {"id": intent_id}


def _describe_wrong_id(name: str, value: str, rule: str, *kinds: str) -> str:
    other = describe_other_kind(value, *kinds)
    return f"Param {name} {rule}{f': {other}' if other else ''}."
