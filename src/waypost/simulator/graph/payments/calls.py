"""Functions of the Graph API calls for payments."""

from html import escape
from typing import Any, Final

from waypost.simulator.accounts.accounts import Account, Number
from waypost.simulator.errors import no_such_object
from waypost.simulator.links import is_valid_link, signed_link
from waypost.simulator.payments.configurations import ACTIVE, LINK_LIFETIME_MS, PaymentConfiguration
from waypost.simulator.requests import GRAPH_SUCCESS, Call, Download
from waypost.simulator.services import SimulatorServices

PAYMENT_SETUP: Final = "payment_setup"
"""The first path segment of the links that connect a payment configuration; they need no token."""
PAYMENT_LOOKUP: Final = "payments/{}/{}"
PAYMENT_CONFIGURATION: Final = "payment_configuration/{}"
"""The edges that are followed by names."""


async def list_configurations(services: SimulatorServices, _call: Call, account: Account) -> dict[str, Any]:
    """Return an account's payment configurations."""
    configurations = [item.view() for item in services.payment_configurations.list_all(account.waba_id)]
    return {"data": [{"payment_configurations": configurations}]}


async def show_configuration(services: SimulatorServices, call: Call, account: Account) -> dict[str, Any]:
    """Return one payment configuration."""
    return {"data": [services.payment_configurations.find(account.waba_id, call.names[0]).view()]}


async def create_configuration(services: SimulatorServices, call: Call, account: Account) -> dict[str, Any]:
    """Create a payment configuration, and return the link that connects it."""
    configuration = await services.payment_configurations.create(account.waba_id, call.fields)
    return {**_link_members(services, call, account, configuration), **GRAPH_SUCCESS}


async def regenerate_link(services: SimulatorServices, call: Call, account: Account) -> dict[str, Any]:
    """Return a new link for a payment configuration."""
    configuration = await services.payment_configurations.set_redirect_url(account.waba_id, call.fields)
    return _link_members(services, call, account, configuration)


async def remove_configuration(services: SimulatorServices, call: Call, account: Account) -> dict[str, Any]:
    """Remove a payment configuration."""
    await services.payment_configurations.remove(account.waba_id, call.fields)
    return GRAPH_SUCCESS


async def open_setup_link(services: SimulatorServices, call: Call) -> Download:
    """Connect a payment configuration, as its merchant does at the gateway; the page leads to the redirect URL."""
    account = services.accounts.by_id.get(call.edge)
    name = call.query.get("mid", "")
    if account is None or not is_valid_link(call.query, account.token, name, services.clock.now_ms()):
        raise no_such_object(call.method, call.edge)
    configuration = await services.payment_configurations.set_status(account.waba_id, name, ACTIVE)
    url = configuration.redirect_url
    is_web_url = url.startswith(("https://", "http://"))
    back = f'<p><a href="{escape(url)}">Continue</a></p>' if is_web_url else ""
    page = f"<!doctype html><title>Connected</title><p>{escape(name)} is connected.</p>{back}".encode()
    return Download("text/html; charset=utf-8", len(page), content=page)


async def find_payment(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Return the payment of an order."""
    configuration, reference_id = call.names
    return {"payments": [await services.refunds.find_payment(number, configuration, reference_id)]}


async def refund_payment(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Refund a payment."""
    return await services.refunds.refund(number, call.fields)


def _link_members(
    services: SimulatorServices, call: Call, account: Account, configuration: PaymentConfiguration
) -> dict[str, Any]:
    until_ms = services.clock.now_ms() + LINK_LIFETIME_MS
    path = f"/{PAYMENT_SETUP}/{account.waba_id}"
    url = signed_link(call.origin, path, account.token, configuration.name, until_ms)
    return {"oauth_url": url, "expiration": until_ms // 1000}
