"""Graph API calls for payments."""

from html import escape
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from waypost.base.clock import HOUR_MS
from waypost.base.json_values import object_of, object_or_none, objects_in
from waypost.simulator.apis.errors import bad_parameter, coded_error, no_such_object
from waypost.simulator.apis.links import is_valid_link, signed_link
from waypost.simulator.apis.parameters import check_filled_text, check_id, is_missing, one_of, read_parameters
from waypost.simulator.apis.requests import GRAPH_SUCCESS, Call, Download
from waypost.simulator.payments.model import (
    ACTIVE,
    CONFIGURATIONS,
    PaymentConfiguration,
    find_configuration,
    payment_attempts,
    save_order,
    set_status,
)
from waypost.simulator.state.accounts import Account, Number
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.tables.messages import SimulatedMessage, find_orders

operation = GraphOperations()

PAYMENT_SETUP: Final = "payment_setup"
"""The first path segment of the links that connect a payment configuration; they need no token."""
_LINK_LIFETIME_MS: Final = HOUR_MS  # ours; the operator documents an expiry without its length
_MAX_NAME_CHARS: Final = 60
_OFFSET: Final = 100


class Amount(NamedTuple):
    """Money, in hundredths of a currency."""

    value: int
    currency: str


def _read_amount(name: str, value: Any) -> Amount:
    amount = object_or_none(value)
    if amount is None:
        raise is_missing(name)
    hundredths, currency = amount.get("value"), amount.get("currency")
    if type(hundredths) is not int or hundredths <= 0:
        raise bad_parameter(f"Param {name}['value'] must be a whole number above 0.")
    if amount.get("offset") != _OFFSET:
        raise bad_parameter(f"Param {name}['offset'] must be {_OFFSET}.")
    if not isinstance(currency, str):
        raise is_missing(f"{name}['currency']")
    return Amount(hundredths, currency)


def _check_new_name(name: str, value: Any) -> str:
    text = check_filled_text(name, value)
    if "/" in text or len(text) > _MAX_NAME_CHARS:
        raise bad_parameter(f"Param {name} must have at most {_MAX_NAME_CHARS} characters, without /.")
    return text


class ConfigurationParameters(Struct, frozen=True):
    """The parameters of a configuration; the gateway sends its merchant to `redirect_url` after the connection."""

    configuration_name: Annotated[str, _check_new_name]
    provider_name: str
    merchant_category_code: str = ""
    purpose_code: str = ""
    merchant_vpa: str = ""
    redirect_url: str = ""


class RemovalParameters(Struct):
    """A configuration to remove."""

    configuration_name: str


class LinkParameters(RemovalParameters):
    """A new link of a configuration."""

    redirect_url: str


class RefundParameters(Struct, frozen=True, kw_only=True):
    """The parameters of a refund."""

    reference_id: Annotated[str, check_id]
    payment_config_id: Annotated[str, check_id]
    speed: Annotated[str, one_of("instant", "normal")] = "normal"
    amount: Annotated[Amount, _read_amount]


def list_configurations(state: SimulatorState, _call: Call, account: Account) -> dict[str, Any]:
    """Return an account's payment configurations, oldest first."""
    configurations = [item.view() for item in state.values(CONFIGURATIONS, account.waba_id).values()]
    return {"data": [{"payment_configurations": configurations}]}


def show_configuration(state: SimulatorState, call: Call, account: Account) -> dict[str, Any]:
    """Return a payment configuration of an account."""
    return {"data": [find_configuration(state, account.waba_id, call.names[0]).view()]}


@operation("payment_configurations.create", "POST", Account, "payment_configuration")
def create_configuration(transaction: Transaction, call: Call, account: Account) -> dict[str, Any]:
    """Create a payment configuration that is not connected yet, and return the link that connects it."""
    members = asdict(read_parameters(ConfigurationParameters, call.fields))
    name, now_ms = members.pop("configuration_name"), transaction.state.clock.now_ms()
    if transaction.find(CONFIGURATIONS, name, account.waba_id) is not None:
        raise bad_parameter("Param configuration_name is in use in this account.")
    configuration = PaymentConfiguration(account.waba_id, name, created_ms=now_ms, updated_ms=now_ms, **members)
    transaction.save(CONFIGURATIONS, configuration, name, account.waba_id)
    return {**_link_members(call, account, name, now_ms), **GRAPH_SUCCESS}


@operation("payment_configurations.renew_link", "POST", Account, "generate_payment_configuration_oauth_link")
def regenerate_link(transaction: Transaction, call: Call, account: Account) -> dict[str, Any]:
    """Return a new link for a payment configuration, and set where the gateway sends the merchant."""
    new = read_parameters(LinkParameters, call.fields)
    known = find_configuration(transaction, account.waba_id, new.configuration_name)
    changed = replace(known, redirect_url=new.redirect_url)
    transaction.save(CONFIGURATIONS, changed, known.name, account.waba_id)
    return _link_members(call, account, known.name, transaction.state.clock.now_ms())


@operation("payment_configurations.delete", "DELETE", Account, "payment_configuration")
def remove_configuration(transaction: Transaction, call: Call, account: Account) -> dict[str, Any]:
    """Remove a payment configuration."""
    name = read_parameters(RemovalParameters, call.fields).configuration_name
    find_configuration(transaction, account.waba_id, name)
    transaction.delete(CONFIGURATIONS, name, account.waba_id)
    return GRAPH_SUCCESS


@operation("payment_setup.read", "GET", "payment_setup", is_open=True)
def open_setup_link(transaction: Transaction, call: Call) -> Download:
    """Connect a payment configuration, as its merchant does at the gateway; the page leads to the redirect URL."""
    state, name = transaction.state, call.query.get("mid", "")
    account = state.accounts.by_id.get(call.edge)
    if account is None or not is_valid_link(call.query, account.token, name, state.clock.now_ms()):
        raise no_such_object(call.method, call.edge)
    url = set_status(transaction, account.waba_id, name, ACTIVE).redirect_url
    back = f'<p><a href="{escape(url)}">Continue</a></p>' if url.startswith(("https://", "http://")) else ""
    page = f"<!doctype html><title>Connected</title><p>{escape(name)} is connected.</p>{back}".encode()
    return Download("text/html; charset=utf-8", len(page), content=page)


@operation("payments.read", "GET", Number, "payments/{}/{}")
def find_payment(transaction: Transaction, call: Call, number: Number) -> dict[str, Any]:
    """Return the payment of the newest order with a reference. Source: ledger 1.10."""
    configuration, reference_id = call.names
    order = _find_order(transaction, number, configuration, reference_id)
    button, payment = order.buttons[0], object_of(order.content.get("payment"))
    shown = {
        "reference_id": reference_id,
        "status": str(payment.get("status", "pending")).upper(),
        "amount": button["amount"],
        "currency": button["currency"],
        "transactions": [{**item, "refunds": item.get("refunds", [])} for item in payment_attempts(order)],
    }
    return {"payments": [shown]}


@operation("payments.refund", "POST", Number, "payments_refund")
def refund_payment(transaction: Transaction, call: Call, number: Number) -> dict[str, Any]:
    """Refund a captured payment or a part of it; it succeeds at once, as the webhook says.

    Raises GraphApiError: 100, more than was paid, or nothing was. Source: ledger 1.10, row 70.
    """
    new = read_parameters(RefundParameters, call.fields)
    order = _find_order(transaction, number, new.payment_config_id, new.reference_id)
    captured = next((item for item in payment_attempts(order) if item["status"] == "success"), None)
    if captured is None:
        raise bad_parameter("Param reference_id must be of a captured payment.")
    if new.amount.currency != captured["currency"]:
        raise bad_parameter(f"Param amount['currency'] must be {captured['currency']}.")
    refunds = objects_in(captured.get("refunds"))
    left = captured["amount"]["value"] - sum(refund["amount"]["value"] for refund in refunds)
    if new.amount.value > left:
        raise bad_parameter(f"Param amount['value'] must be at most {left}, which is left of the payment.")
    refund_id, now_s = f"rfnd_{transaction.state.ids.digits(14)}", transaction.state.clock.now_ms() // 1000
    refund = {
        "id": refund_id,
        "amount": {"value": new.amount.value, "offset": _OFFSET},
        "speed_processed": new.speed,
        "status": "success",
        "created_timestamp": now_s,
        "updated_timestamp": now_s,
    }
    refunded = {**captured, "updated_timestamp": now_s, "refunds": [*refunds, refund]}
    attempts = [refunded if item["id"] == captured["id"] else item for item in payment_attempts(order)]
    save_order(transaction, number, order, {"transactions": attempts}, refunded, "captured")
    return {"id": refund_id, "status": "pending", "speed_processed": new.speed}


def _find_order(transaction: Transaction, number: Number, configuration: str, reference_id: str) -> SimulatedMessage:
    """Return the newest order; raises 134009 without the configuration, 134006 if no order has the reference."""
    find_configuration(transaction, number.waba_id, configuration)
    for order in find_orders(transaction.connection, number.phone_number_id, reference_id):
        if order.buttons[0].get("configuration") == configuration:
            return order
    raise coded_error(134006, "Reference id is invalid")


def _link_members(call: Call, account: Account, name: str, now_ms: int) -> dict[str, Any]:
    until_ms = now_ms + _LINK_LIFETIME_MS
    url = signed_link(call.origin, f"/{PAYMENT_SETUP}/{account.waba_id}", account.token, name, until_ms)
    return {"oauth_url": url, "expiration": until_ms // 1000}
