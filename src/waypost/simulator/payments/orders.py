"""Payments of orders: by the phone's owner; looked up and refunded by the business; the statuses that it receives.

The order on the phone and the status for the business change in one transaction.
"""

from typing import Annotated, Any, Final, NamedTuple

import msgspec

from waypost.base.json_values import object_of, object_or_none, objects_in
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.errors import bad_parameter, coded_error
from waypost.simulator.outbox import status_json, status_recipient
from waypost.simulator.parameters import check_id, is_missing, one_of
from waypost.simulator.payments.model import find_configuration
from waypost.simulator.simulator_state import SimulatorState, Transaction
from waypost.simulator.tables.messages import MESSAGES, SimulatedMessage, find_orders
from waypost.simulator.tables.updates import Update

_OFFSET: Final = 100
TRANSACTION_STATUSES: Final = {"pending": "pending", "captured": "success", "failed": "failed"}
"""Status of a payment: status of its transaction. Source: the operator's page "Payment status webhooks"."""


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


class RefundParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a refund."""

    reference_id: Annotated[str, check_id]
    payment_config_id: Annotated[str, check_id]
    speed: Annotated[str, one_of("instant", "normal")] = "normal"
    amount: Annotated[Amount, _read_amount]


async def pay_order(
    state: SimulatorState, number: Number, wamid: str, button: dict[str, Any], status: str, error: dict[str, str]
) -> dict[str, Any]:
    """Pay an order, or fail to; return the payment as the phone shows it.

    Args:
        button: its pay button.
        status: a row of `TRANSACTION_STATUSES`.
        error: of a failed payment: `code` and `reason`.

    Raises ControlApiError: the order has been paid.
    """
    now_s, new_id = state.clock.now_ms() // 1000, f"pay_{state.ids.digits(14)}"
    failure = {"error": error} if status == "failed" else {}

    def write(transaction: Transaction) -> dict[str, Any]:
        [order] = MESSAGES.find_on(transaction.connection, wamid=wamid)
        earlier = object_of(order.content.get("payment"))
        if earlier.get("status") == "captured":
            raise ControlApiError("message_id", "the order is paid already", "an order that is not paid", status=409)
        begun = earlier if earlier.get("status") == "pending" else {"transaction_id": new_id, "created_s": now_s}
        payment = {
            "status": status,
            "transaction_id": begun["transaction_id"],
            "created_s": begun["created_s"],
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
        others = [item for item in _attempts(order) if item["id"] != attempt["id"]]
        content = {**order.content, "payment": payment, "transactions": [*others, attempt]}
        _save(state, transaction, number, order, content, attempt, status)
        return payment

    return await state.transact(write)


async def find_payment(state: SimulatorState, number: Number, configuration: str, reference_id: str) -> dict[str, Any]:
    """Return the payment of the newest order with a reference.

    Raises GraphApiError: 134009, the account has no such configuration; 134006, no order has the reference. Source:
    ledger 1.10.
    """
    find_configuration(state, number.waba_id, configuration)

    def read(transaction: Transaction) -> SimulatedMessage:
        return _find_order(transaction, number, configuration, reference_id)

    order = await state.transact(read)
    button, payment = order.buttons[0], object_of(order.content.get("payment"))
    return {
        "reference_id": reference_id,
        "status": str(payment.get("status", "pending")).upper(),
        "amount": button["amount"],
        "currency": button["currency"],
        "transactions": [{**item, "refunds": item.get("refunds", [])} for item in _attempts(order)],
    }


async def refund_order(state: SimulatorState, number: Number, new: RefundParameters) -> str:
    """Refund a captured payment or a part of it, and return the refund's id; it succeeds at once, as the webhook says.

    Raises GraphApiError: 100, more than was paid, or nothing was; 134009 or 134006 as above. Source: ledger 1.10, row
    70.
    """
    find_configuration(state, number.waba_id, new.payment_config_id)
    refund_id, now_s = f"rfnd_{state.ids.digits(14)}", state.clock.now_ms() // 1000

    def write(transaction: Transaction) -> None:
        order = _find_order(transaction, number, new.payment_config_id, new.reference_id)
        captured = next((item for item in _attempts(order) if item["status"] == "success"), None)
        if captured is None:
            raise bad_parameter("Param reference_id must be of a captured payment.")
        if new.amount.currency != captured["currency"]:
            raise bad_parameter(f"Param amount['currency'] must be {captured['currency']}.")
        refunds = objects_in(captured.get("refunds"))
        left = captured["amount"]["value"] - sum(refund["amount"]["value"] for refund in refunds)
        if new.amount.value > left:
            raise bad_parameter(f"Param amount['value'] must be at most {left}, which is left of the payment.")
        refund = {
            "id": refund_id,
            "amount": {"value": new.amount.value, "offset": _OFFSET},
            "speed_processed": new.speed,
            "status": "success",
            "created_timestamp": now_s,
            "updated_timestamp": now_s,
        }
        refunded = {**captured, "updated_timestamp": now_s, "refunds": [*refunds, refund]}
        attempts = [refunded if item["id"] == captured["id"] else item for item in _attempts(order)]
        _save(state, transaction, number, order, {**order.content, "transactions": attempts}, refunded, "captured")

    await state.transact(write)
    return refund_id


def _save(
    state: SimulatorState,
    transaction: Transaction,
    number: Number,
    order: SimulatedMessage,
    content: dict[str, Any],
    attempt: dict[str, Any],
    status: str,
) -> None:
    """Write the changed content of an order, and the status about its payment.

    Source: the operator's page "Payment status webhooks".
    """
    transaction.run(MESSAGES.update({"shown": msgspec.json.encode(content).decode()}, wamid=order.wamid))
    phone, button = state.phones.fill_user_id(state.phones.find_or_default(order.phone)), order.buttons[0]
    details = {name: button[name] for name in ("reference_id", "amount", "currency")} | {"transaction": attempt}
    rest = status_json(
        status_recipient(phone),
        order.callback_data,
        {"type": "payment", "payment": details},
        contact=phone if state.settings.value.statuses_contacts else None,
    )
    at_ms = state.clock.now_ms()
    transaction.send(Update(number.waba_id, at_ms, status, number.phone_number_id, order.wamid, rest))
    transaction.wake_phone(order.phone)


def _attempts(order: SimulatedMessage) -> list[dict[str, Any]]:
    """Return the transactions of an order, oldest first, as the operator reports them."""
    return objects_in(order.content.get("transactions"))


def _find_order(transaction: Transaction, number: Number, configuration: str, reference_id: str) -> SimulatedMessage:
    """Return the newest order with a reference and a payment configuration."""
    for order in find_orders(transaction.connection, number.phone_number_id, reference_id):
        if order.buttons[0].get("configuration") == configuration:
            return order
    raise coded_error(134006, "Reference id is invalid")
