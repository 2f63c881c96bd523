"""Payment configurations, active once their link is opened, and the payments of orders with the webhooks about them."""

from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from waypost.base.json_values import object_of, objects_in
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.errors import coded_error
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.outbox import phone_status
from waypost.simulator.state.phones import fill_user_id, find_phone
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind
from waypost.simulator.storage.tables.messages import MESSAGES, SimulatedMessage
from waypost.simulator.storage.tables.updates import Update

NEEDS_CONNECTING: Final = "Needs_Connecting"
ACTIVE: Final = "Active"
CONFIGURATION_STATUSES: Final = (NEEDS_CONNECTING, "Needs_Testing", ACTIVE)
"""The statuses of a configuration. Source: the operator's page "Payments onboarding APIs"."""
TRANSACTION_STATUSES: Final = {"pending": "pending", "captured": "success", "failed": "failed"}
"""Status of a payment: status of its transaction. Source: the operator's page "Payment status webhooks"."""


class PaymentConfiguration(msgspec.Struct, frozen=True, omit_defaults=True):
    """A configuration; `provider_mid`, of the merchant at the gateway, is empty until it is connected."""

    waba_id: str
    name: str
    provider_name: str
    created_ms: int
    updated_ms: int
    status: str = NEEDS_CONNECTING
    provider_mid: str = ""
    merchant_category_code: str = ""
    purpose_code: str = ""
    merchant_vpa: str = ""
    redirect_url: str = ""

    def view(self) -> "PaymentConfigurationView":
        """Return the configuration as the operator shows it."""
        return PaymentConfigurationView(
            configuration_name=self.name,
            merchant_category_code={"code": self.merchant_category_code, "description": ""},
            purpose_code={"code": self.purpose_code, "description": ""},
            **self.connection(),
            merchant_vpa=self.merchant_vpa or UNSET,
        )

    def connection(self) -> dict[str, Any]:
        """Return the state of the connection, which is also the webhook about a change; times in seconds."""
        return {
            "status": self.status,
            "provider_mid": self.provider_mid,
            "provider_name": self.provider_name,
            "created_timestamp": self.created_ms // 1000,
            "updated_timestamp": self.updated_ms // 1000,
        }


class PaymentConfigurationView(msgspec.Struct, frozen=True, kw_only=True):
    """A payment configuration as the operator shows it; times in seconds."""

    configuration_name: str
    merchant_category_code: dict[str, str]
    purpose_code: dict[str, str]
    status: str
    provider_mid: str
    provider_name: str
    created_timestamp: int
    updated_timestamp: int
    merchant_vpa: str | UnsetType = UNSET


CONFIGURATIONS: Final = StoredKind("payment_configuration", PaymentConfiguration)
"""By name, of an account."""


def find_configuration(reader: SimulatorState | Transaction, waba_id: str, name: str) -> PaymentConfiguration:
    """Return an account's configuration; raises GraphApiError 134009 if there is none. Source: ledger 1.10."""
    known = reader.values(CONFIGURATIONS, waba_id).get(name)
    if known is None:
        raise coded_error(134009, "Payment configuration id is invalid")
    return known


def set_status(transaction: Transaction, waba_id: str, name: str, status: str) -> PaymentConfiguration:
    """Set a configuration's status, send the webhook about it, and return the configuration.

    Source: the operator's page "payment_configuration_update webhook".
    """
    state, known = transaction.state, find_configuration(transaction, waba_id, name)
    provider_mid = known.provider_mid or f"mid_{state.ids.digits(12)}"
    changed = replace(known, status=status, provider_mid=provider_mid, updated_ms=state.clock.now_ms())
    transaction.save(CONFIGURATIONS, changed, name, waba_id)
    value = {"configuration_name": name, **changed.connection()}
    transaction.notify(waba_id, "payment_configuration_update", value)
    return changed


def pay_order(
    transaction: Transaction, number: Number, wamid: str, button: dict[str, Any], status: str, error: dict[str, str]
) -> dict[str, Any]:
    """Pay an order, or fail to; return the payment as the phone shows it.

    Args:
        transaction: in which the order and the status for the business change.
        number: the business number.
        wamid: of the order.
        button: its pay button.
        status: a row of `TRANSACTION_STATUSES`.
        error: of a failed payment: `code` and `reason`.

    Raises:
        ControlApiError: the order has been paid.
    """
    now_s = transaction.state.clock.now_ms() // 1000
    failure = {"error": error} if status == "failed" else {}
    [order] = MESSAGES.find_on(transaction.connection, wamid=wamid)
    earlier = object_of(order.content.get("payment"))
    if earlier.get("status") == "captured":
        raise ControlApiError("message_id", "the order is paid already", "an order that is not paid", status=409)
    if earlier.get("status") != "pending":
        earlier = {"transaction_id": f"pay_{transaction.state.ids.digits(14)}", "created_s": now_s}
    payment = {
        "status": status,
        "transaction_id": earlier["transaction_id"],
        "created_s": earlier["created_s"],
        "updated_s": now_s,
        **failure,
    }
    attempt = {
        "id": payment["transaction_id"],
        "type": button["paid_by"],
        "status": TRANSACTION_STATUSES[status],
        "created_timestamp": payment["created_s"],
        "updated_timestamp": now_s,
        "amount": button["amount"],
        "currency": button["currency"],
        **failure,
    }
    others = [item for item in payment_attempts(order) if item["id"] != attempt["id"]]
    save_order(transaction, number, order, {"payment": payment, "transactions": [*others, attempt]}, attempt, status)
    return payment


def payment_attempts(order: SimulatedMessage) -> list[dict[str, Any]]:
    """Return the transactions of an order, oldest first, as the operator reports them."""
    return objects_in(order.content.get("transactions"))


def save_order(
    transaction: Transaction,
    number: Number,
    order: SimulatedMessage,
    members: dict[str, Any],
    attempt: dict[str, Any],
    status: str,
) -> None:
    """Write changed members of an order's content, and send the status about its payment.

    Source: the operator's page "Payment status webhooks".
    """
    state = transaction.state
    transaction.run(MESSAGES.update({"content": {**order.content, **members}}, wamid=order.wamid))
    phone, button = fill_user_id(state, find_phone(state, order.phone)), order.buttons[0]
    details = {name: button[name] for name in ("reference_id", "amount", "currency")} | {"transaction": attempt}
    paid = {"type": "payment", "payment": details}
    content = phone_status(state.settings.value, phone, order.callback_data, paid)
    at_ms = state.clock.now_ms()
    transaction.send(Update(number.waba_id, at_ms, status, number.phone_number_id, order.wamid, content))
    transaction.wake_phone(order.phone)
