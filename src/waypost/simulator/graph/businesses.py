"""Graph API calls for a business portfolio: lists of its accounts.

Source: the operator's page "Manage accounts".
"""

from collections.abc import Iterable
from typing import Any

from waypost.simulator.accounts.accounts import Account
from waypost.simulator.accounts.businesses import Business
from waypost.simulator.errors import bad_parameter
from waypost.simulator.graph.node_tables import AccountView, account_node
from waypost.simulator.graph_operations import GraphOperations
from waypost.simulator.lists import page
from waypost.simulator.messages.marketing import find_marketing_status
from waypost.simulator.requests import Call
from waypost.simulator.services import SimulatorServices

operation = GraphOperations()


def view_account(services: SimulatorServices, account: Account) -> AccountView:
    """Return an account with the data of its fields."""
    subscriptions = services.accounts.subscriptions_of(account.waba_id)
    return AccountView(account, subscriptions, find_marketing_status(services, account.waba_id))


@operation("accounts.list_shared", "GET", Business, "client_whatsapp_business_accounts")
async def list_shared_accounts(services: SimulatorServices, call: Call, business: Business) -> dict[str, Any]:
    """Return the accounts that their owners share with a business, as far as the token is for them."""
    return _list_accounts(services, call, business.shared)


@operation("accounts.list_owned", "GET", Business, "owned_whatsapp_business_accounts")
async def list_owned_accounts(services: SimulatorServices, call: Call, business: Business) -> dict[str, Any]:
    """Return the accounts that a business owns, as far as the token is for them."""
    return _list_accounts(services, call, business.owned)


def _list_accounts(services: SimulatorServices, call: Call, accounts: Iterable[Account]) -> dict[str, Any]:
    for name in ("filtering", "sort"):
        if name in call.query:
            raise bad_parameter(f"Param {name}: simulated accounts have no creation time to filter or sort by.")
    token = services.tokens.check(call.token)
    return page(
        call,
        [account for account in accounts if account.waba_id in token.waba_ids],
        lambda account: account.waba_id,
        lambda account: account_node(view_account(services, account), call.query.get("fields")),
    )
