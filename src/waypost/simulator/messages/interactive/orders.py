"""Orders that a business sends for review, and its later order statuses: the content each requires.

Source: the operator's pages "Orders" and "Receive payments via payment gateways on WhatsApp", May 2026.
"""

import re
from typing import Any, Final

from waypost.base.json_values import list_or_none, object_or_none, objects_in, text_or_none
from waypost.simulator.media.references import Known
from waypost.simulator.messages.interactive.parts import missing, sized, wrong

REVIEW_AND_PAY: Final = "REVIEW_AND_PAY"
"""The type of the button that pays an order."""

_PATH: Final = "action']['parameters"
_REFERENCE_AT_MOST: Final = 35
_ITEM_NAME_AT_MOST: Final = 60
_DESCRIPTION_AT_MOST: Final = 120
_OFFSET: Final = 100
_VALUE_AT_MOST: Final = 2**53  # ours: the limit up to which every JSON reader keeps integers exact
_REFERENCE: Final = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)
_CURRENCY: Final = re.compile(r"[A-Z]{3}", re.ASCII)
_GOODS: Final = ("digital-goods", "physical-goods")
_PAYMENTS: Final = ("pending", "captured", "failed")
_STATUSES: Final = (
    "pending", "processing", "partially_shipped", "partially-shipped", "shipped", "completed",
    "canceled",
)  # fmt: skip
# fmt: off
_BESIDE: Final = {  # amounts besides the items, and their sign in the total
    "tax":       1,
    "shipping":  1,
    "discount": -1,
}
# fmt: on

Action = dict[str, Any]
Buttons = list[dict[str, Any]]


def order_details_buttons(action: Action, _known: Known | None) -> Buttons:
    """Check an order that is to be reviewed and paid, and return its button.

    Raises:
        GraphApiError: 100 for a missing member, 131009 for a wrong or too long one.
    """
    parameters = _parameters(action, "review_and_pay")
    reference_id = _reference(parameters)
    _one_of(parameters, "type", _PATH, _GOODS)
    currency = sized(parameters, "currency", _PATH, 3)
    if not _CURRENCY.fullmatch(currency):
        raise wrong(f"{_PATH}']['currency", "must be three capital letters, as in ISO 4217")
    total = _amount(parameters, "total_amount", _PATH)
    paid_by = _paid_by(parameters)
    order = object_or_none(parameters.get("order"))
    if order is not None:
        _check_order(order, total)
    return [
        {
            "type": REVIEW_AND_PAY,
            "text": "Review and pay",
            "reference_id": reference_id,
            "currency": currency,
            "amount": {"value": total, "offset": _OFFSET},
            "paid_by": paid_by,
        }
    ]


def order_status_buttons(action: Action, _known: Known | None) -> Buttons:
    """Check an order status, and return no buttons.

    Raises:
        GraphApiError: 100 for a missing member, 131009 for a wrong or too long one.
    """
    parameters = _parameters(action, "review_order")
    _reference(parameters)
    order, payment = object_or_none(parameters.get("order")), object_or_none(parameters.get("payment"))
    if order is None and payment is None:
        raise missing(f"{_PATH}']['order")
    if order is not None:
        path = f"{_PATH}']['order"
        _one_of(order, "status", path, _STATUSES)
        if order.get("description"):
            sized(order, "description", path, _DESCRIPTION_AT_MOST)
    if payment is not None:
        _one_of(payment, "status", f"{_PATH}']['payment", _PAYMENTS)
    return []


def _parameters(action: Action, name: str) -> dict[str, Any]:
    if action.get("name") != name:
        raise wrong("action']['name", f"must be {name}")
    parameters = object_or_none(action.get("parameters"))
    if parameters is None:
        raise missing(_PATH)
    return parameters


def _reference(parameters: dict[str, Any]) -> str:
    reference_id = sized(parameters, "reference_id", _PATH, _REFERENCE_AT_MOST)
    if not _REFERENCE.fullmatch(reference_id):
        raise wrong(f"{_PATH}']['reference_id", "has letters, digits, underscores, dashes and dots only")
    return reference_id


def _one_of(value: dict[str, Any], member: str, path: str, accepted: tuple[str, ...]) -> None:
    if sized(value, member, path, 64) not in accepted:
        raise wrong(f"{path}']['{member}", f"must be one of {', '.join(accepted)}")


def _amount(value: dict[str, Any], member: str, path: str) -> int:
    """Return the value of an amount, in hundredths."""
    path = f"{path}']['{member}"
    amount = object_or_none(value.get(member))
    if amount is None:
        raise missing(path)
    hundredths = amount.get("value")
    if not isinstance(hundredths, int) or isinstance(hundredths, bool) or not 0 <= hundredths <= _VALUE_AT_MOST:
        raise wrong(f"{path}']['value", f"must be a whole number from 0 to {_VALUE_AT_MOST}")
    if amount.get("offset") != _OFFSET:
        raise wrong(f"{path}']['offset", f"must be {_OFFSET}")
    return hundredths


def _paid_by(parameters: dict[str, Any]) -> str:
    """Return the payment type as the transaction names it: a gateway's type, or a setting's."""
    if parameters.get("payment_settings") is None:
        return "upi"
    path = f"{_PATH}']['payment_settings"
    settings = objects_in(parameters["payment_settings"])
    if not settings or len(settings) != len(list_or_none(parameters["payment_settings"]) or []):
        raise wrong(path, "must be an array of objects")
    kinds = [sized(setting, "type", path, 64) for setting in settings]
    gateway = object_or_none(settings[0].get(kinds[0])) or {}
    return text_or_none(gateway.get("type")) or kinds[0]


def _check_order(order: dict[str, Any], total: int) -> None:
    """Check an order and its sums.

    Raises:
        GraphApiError: 100 for a missing member, 131009 for a wrong one or a wrong sum.
    """
    path = f"{_PATH}']['order"
    _one_of(order, "status", path, ("pending",))
    items = objects_in(order.get("items"))
    if not items:
        raise missing(f"{path}']['items")
    items_total = sum(_price(item, f"{path}']['items") for item in items)
    subtotal = _amount(order, "subtotal", path)
    if subtotal != items_total:
        raise wrong(f"{path}']['subtotal", f"must be {items_total}, the sum of the items; it is {subtotal}")
    expected_total = subtotal + sum(
        sign * _amount(order, member, path) for member, sign in _BESIDE.items() if order.get(member) is not None
    )
    if total != expected_total:
        raise wrong(
            f"{_PATH}']['total_amount",
            f"must be {expected_total}: subtotal, tax and shipping less discount; it is {total}",
        )


def _price(item: dict[str, Any], path: str) -> int:
    sized(item, "name", path, _ITEM_NAME_AT_MOST)
    amount = _amount(item, "amount", path)
    if item.get("sale_amount") is not None:
        amount = _amount(item, "sale_amount", path)
    quantity = item.get("quantity")
    if quantity is None:
        raise missing(f"{path}']['quantity")
    if not isinstance(quantity, int) or isinstance(quantity, bool) or not 0 < quantity < 10**6:
        raise wrong(f"{path}']['quantity", "must be a whole number from 1 to 999999")
    return amount * quantity
