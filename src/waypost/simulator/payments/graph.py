"""Graph API calls for payments."""

from html import escape
from typing import Any, Final

from msgspec import Struct

from waypost.simulator.accounts.accounts import Account, Number
from waypost.simulator.errors import no_such_object
from waypost.simulator.graph_operations import GraphOperations
from waypost.simulator.links import is_valid_link, signed_link
from waypost.simulator.parameters import read_parameters
from waypost.simulator.payments import model, orders
from waypost.simulator.requests import GRAPH_SUCCESS, Call, Download
from waypost.simulator.simulator_state import SimulatorState

operation = GraphOperations()

PAYMENT_SETUP: Final = "payment_setup"
"""The first path segment of the links that connect a payment configuration; they need no token."""


class RemovalParameters(Struct):
    """A configuration to remove."""

    configuration_name: str


class LinkParameters(RemovalParameters):
    """A new link of a configuration."""

    redirect_url: str


@operation("payment_configurations.list", "GET", Account, "payment_configurations")
async def list_configurations(state: SimulatorState, _call: Call, account: Account) -> dict[str, Any]:
    """Return an account's payment configurations, oldest first."""
    configurations = [item.view() for item in state.values(model.CONFIGURATIONS, account.waba_id).values()]
    return {"data": [{"payment_configurations": configurations}]}


@operation("payment_configurations.read", "GET", Account, "payment_configuration/{}")
async def show_configuration(state: SimulatorState, call: Call, account: Account) -> dict[str, Any]:
    """Return one payment configuration."""
    return {"data": [model.find_configuration(state, account.waba_id, call.names[0]).view()]}


@operation("payment_configurations.create", "POST", Account, "payment_configuration")
async def create_configuration(state: SimulatorState, call: Call, account: Account) -> dict[str, Any]:
    """Create a payment configuration, and return the link that connects it."""
    new = read_parameters(model.ConfigurationParameters, call.fields)
    await model.create_configuration(state, account.waba_id, new)
    return {**_link_members(state, call, account, new.configuration_name), **GRAPH_SUCCESS}


@operation("payment_configurations.renew_link", "POST", Account, "generate_payment_configuration_oauth_link")
async def regenerate_link(state: SimulatorState, call: Call, account: Account) -> dict[str, Any]:
    """Return a new link for a payment configuration."""
    new = read_parameters(LinkParameters, call.fields)
    await model.set_redirect_url(state, account.waba_id, new.configuration_name, new.redirect_url)
    return _link_members(state, call, account, new.configuration_name)


@operation("payment_configurations.delete", "DELETE", Account, "payment_configuration")
async def remove_configuration(state: SimulatorState, call: Call, account: Account) -> dict[str, Any]:
    """Remove a payment configuration."""
    name = read_parameters(RemovalParameters, call.fields).configuration_name
    await model.remove_configuration(state, account.waba_id, name)
    return GRAPH_SUCCESS


@operation("payment_setup.read", "GET", "payment_setup", is_open=True)
async def open_setup_link(state: SimulatorState, call: Call) -> Download:
    """Connect a payment configuration, as its merchant does at the gateway; the page leads to the redirect URL."""
    account = state.accounts.by_id.get(call.edge)
    name = call.query.get("mid", "")
    if account is None or not is_valid_link(call.query, account.token, name, state.clock.now_ms()):
        raise no_such_object(call.method, call.edge)
    url = (await model.set_status(state, account.waba_id, name, model.ACTIVE)).redirect_url
    back = f'<p><a href="{escape(url)}">Continue</a></p>' if url.startswith(("https://", "http://")) else ""
    page = f"<!doctype html><title>Connected</title><p>{escape(name)} is connected.</p>{back}".encode()
    return Download("text/html; charset=utf-8", len(page), content=page)


@operation("payments.read", "GET", Number, "payments/{}/{}")
async def find_payment(state: SimulatorState, call: Call, number: Number) -> dict[str, Any]:
    """Return the payment of an order."""
    return {"payments": [await orders.find_payment(state, number, *call.names)]}


@operation("payments.refund", "POST", Number, "payments_refund")
async def refund_payment(state: SimulatorState, call: Call, number: Number) -> dict[str, Any]:
    """Refund a payment."""
    new = read_parameters(orders.RefundParameters, call.fields)
    refund_id = await orders.refund_order(state, number, new)
    return {"id": refund_id, "status": "pending", "speed_processed": new.speed}


def _link_members(state: SimulatorState, call: Call, account: Account, name: str) -> dict[str, Any]:
    until_ms = state.clock.now_ms() + model.LINK_LIFETIME_MS
    url = signed_link(call.origin, f"/{PAYMENT_SETUP}/{account.waba_id}", account.token, name, until_ms)
    return {"oauth_url": url, "expiration": until_ms // 1000}
