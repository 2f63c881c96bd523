"""Graph API calls for in-app signups. Source: the operator's page "In-app signup"."""

from typing import Any

from waypost.simulator.accounts.accounts import Account
from waypost.simulator.accounts.signups import Signup
from waypost.simulator.graph_operations import GraphOperations
from waypost.simulator.lists import page
from waypost.simulator.requests import GRAPH_SUCCESS, Call
from waypost.simulator.services import SimulatorServices

operation = GraphOperations()


@operation("signups.create", "POST", Account, "signups")
async def create_signup(services: SimulatorServices, call: Call, account: Account) -> dict[str, Any]:
    """Create a signup of an account, and return its id."""
    signup = await services.signups.create(account.waba_id, call.fields)
    return {"id": signup.signup_id}


@operation("signups.list", "GET", Account, "signups")
async def list_signups(services: SimulatorServices, call: Call, account: Account) -> dict[str, Any]:
    """Return an account's signups with all members.

    `fields` selects nothing: the public client requests `message`, and reads `signup_message`.
    """
    return page(call, services.signups.account_signups(account.waba_id), lambda signup: signup.signup_id, _signup_node)


@operation("signups.read", "GET", Signup)
async def show_signup(_services: SimulatorServices, _call: Call, signup: Signup) -> dict[str, Any]:
    """Return a signup."""
    return _signup_node(signup)


@operation("signups.change", "POST", Signup)
async def update_signup(services: SimulatorServices, call: Call, signup: Signup) -> dict[str, Any]:
    """Change a signup, and return its id; the public client reads `success`."""
    await services.signups.update(signup.signup_id, call.fields)
    return {"id": signup.signup_id, **GRAPH_SUCCESS}


def _signup_node(signup: Signup) -> dict[str, Any]:
    """Return the members of a signup; those without a value are omitted."""
    members = {
        "id": signup.signup_id,
        "waba_id": signup.waba_id,
        "status": signup.status,
        "signup_message": signup.signup_message,
        "confirmation_message": signup.confirmation_message,
        "privacy_policy_url": signup.privacy_policy_url,
        "promo_code": signup.promo_code,
        "display_name": signup.display_name,
        "website_url": signup.website_url,
    }
    return {name: value for name, value in members.items() if value}
