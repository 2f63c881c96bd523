"""Orders that a business sends for review, and its later order statuses: the content each requires.

Source: the operator's pages "Orders" and "Receive payments via payment gateways on WhatsApp", May 2026.
"""

import re
from typing import Any, Final

from waypost.base.json_values import list_or_none, object_or_none, objects_in, text_or_none
from waypost.simulator.media.references import KnownReferences
from waypost.simulator.messages.interactive_fields import invalid_error, missing_error, require_text

REVIEW_AND_PAY: Final = "REVIEW_AND_PAY"
"""The type of the button that pays an order."""

_PATH: Final = "action']['parameters"
_MAX_REFERENCE_CHARS: Final = 35
_MAX_ITEM_NAME_CHARS: Final = 60
_MAX_DESCRIPTION_CHARS: Final = 120
_OFFSET: Final = 100
_MAX_AMOUNT_VALUE: Final = 2**53  # ours: the limit up to which every JSON reader keeps integers exact
_REFERENCE: Final = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)
_CURRENCY: Final = re.compile(r"[A-Z]{3}", re.ASCII)
_GOODS: Final = ("digital-goods", "physical-goods")
_PAYMENTS: Final = ("pending", "captured", "failed")
_STATUSES: Final = (
    "pending", "processing", "partially_shipped", "partially-shipped", "shipped", "completed",
    "canceled",
)  # fmt: skip
# fmt: off
_TOTAL_SIGNS: Final = {  # amounts besides the items, and their sign in the total
    "tax":      1,
    "shipping": 1,
    "discount": -1,
}
# fmt: on

Action = dict[str, Any]
Buttons = list[dict[str, Any]]


def order_details_buttons(action: Action, _references: KnownReferences | None) -> Buttons:
    """Check an order that is to be reviewed and paid, and return its button.

    Raises:
        GraphApiError: 100 for a missing member, 131009 for a wrong or too long one.
    """
    parameters = _parameters(action, "review_and_pay")
    reference_id = _reference(parameters)
    _check_one_of(parameters, "type", _PATH, _GOODS)
    currency = require_text(parameters, "currency", _PATH, 3)
    if not _CURRENCY.fullmatch(currency):
        raise invalid_error(f"{_PATH}']['currency", "must be three capital letters, as in ISO 4217")
    total = _read_amount(parameters, "total_amount", _PATH)
    paid_by, configuration = _payment_type(parameters), _payment_configuration(parameters)
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
            **({"configuration": configuration} if configuration else {}),
        }
    ]


def order_status_buttons(action: Action, _references: KnownReferences | None) -> Buttons:
    """Check an order status, and return no buttons.

    Raises:
        GraphApiError: 100 for a missing member, 131009 for a wrong or too long one.
    """
    parameters = _parameters(action, "review_order")
    _reference(parameters)
    order, payment = object_or_none(parameters.get("order")), object_or_none(parameters.get("payment"))
    if order is None and payment is None:
        raise missing_error(f"{_PATH}']['order")
    if order is not None:
        path = f"{_PATH}']['order"
        _check_one_of(order, "status", path, _STATUSES)
        if order.get("description"):
            require_text(order, "description", path, _MAX_DESCRIPTION_CHARS)
    if payment is not None:
        _check_one_of(payment, "status", f"{_PATH}']['payment", _PAYMENTS)
    return []


def _parameters(action: Action, name: str) -> dict[str, Any]:
    if action.get("name") != name:
        raise invalid_error("action']['name", f"must be {name}")
    parameters = object_or_none(action.get("parameters"))
    if parameters is None:
        raise missing_error(_PATH)
    return parameters


def _reference(parameters: dict[str, Any]) -> str:
    reference_id = require_text(parameters, "reference_id", _PATH, _MAX_REFERENCE_CHARS)
    if not _REFERENCE.fullmatch(reference_id):
        raise invalid_error(f"{_PATH}']['reference_id", "has letters, digits, underscores, dashes and dots only")
    return reference_id


def _check_one_of(value: dict[str, Any], member: str, path: str, accepted: tuple[str, ...]) -> None:
    if require_text(value, member, path, 64) not in accepted:
        raise invalid_error(f"{path}']['{member}", f"must be one of {', '.join(accepted)}")


def _read_amount(value: dict[str, Any], member: str, path: str) -> int:
    """Return the value of an amount, in hundredths."""
    path = f"{path}']['{member}"
    amount = object_or_none(value.get(member))
    if amount is None:
        raise missing_error(path)
    hundredths = amount.get("value")
    if not isinstance(hundredths, int) or isinstance(hundredths, bool) or not 0 <= hundredths <= _MAX_AMOUNT_VALUE:
        raise invalid_error(f"{path}']['value", f"must be a whole number from 0 to {_MAX_AMOUNT_VALUE}")
    if amount.get("offset") != _OFFSET:
        raise invalid_error(f"{path}']['offset", f"must be {_OFFSET}")
    return hundredths


def _payment_type(parameters: dict[str, Any]) -> str:
    """Return the payment type as the transaction names it: a gateway's type, or a setting's."""
    if parameters.get("payment_settings") is None:
        return "upi"
    path = f"{_PATH}']['payment_settings"
    settings = objects_in(parameters["payment_settings"])
    if not settings or len(settings) != len(list_or_none(parameters["payment_settings"]) or []):
        raise invalid_error(path, "must be an array of objects")
    kinds = [require_text(setting, "type", path, 64) for setting in settings]
    gateway = object_or_none(settings[0].get(kinds[0])) or {}
    return text_or_none(gateway.get("type")) or kinds[0]


def _payment_configuration(parameters: dict[str, Any]) -> str:
    """Return the name of the payment configuration; empty if the order names none. Nothing checks it at the send."""
    settings = objects_in(parameters.get("payment_settings"))
    gateway = object_or_none(settings[0].get("payment_gateway")) if settings else None
    if gateway is not None:
        return text_or_none(gateway.get("configuration_name")) or ""
    return text_or_none(parameters.get("payment_configuration")) or ""


def _check_order(order: dict[str, Any], total: int) -> None:
    """Check an order and its sums.

    Raises:
        GraphApiError: 100 for a missing member, 131009 for a wrong one or a wrong sum.
    """
    path = f"{_PATH}']['order"
    _check_one_of(order, "status", path, ("pending",))
    items = objects_in(order.get("items"))
    if not items:
        raise missing_error(f"{path}']['items")
    items_total = sum(_item_price(item, f"{path}']['items") for item in items)
    subtotal = _read_amount(order, "subtotal", path)
    if subtotal != items_total:
        raise invalid_error(f"{path}']['subtotal", f"must be {items_total}, the sum of the items; it is {subtotal}")
    expected_total = subtotal + sum(
        sign * _read_amount(order, member, path)
        for member, sign in _TOTAL_SIGNS.items()
        if order.get(member) is not None
    )
    if total != expected_total:
        raise invalid_error(
            f"{_PATH}']['total_amount",
            f"must be {expected_total}: subtotal, tax and shipping less discount; it is {total}",
        )


def _item_price(item: dict[str, Any], path: str) -> int:
    require_text(item, "name", path, _MAX_ITEM_NAME_CHARS)
    amount = _read_amount(item, "amount", path)
    if item.get("sale_amount") is not None:
        amount = _read_amount(item, "sale_amount", path)
    quantity = item.get("quantity")
    if quantity is None:
        raise missing_error(f"{path}']['quantity")
    if not isinstance(quantity, int) or isinstance(quantity, bool) or not 0 < quantity < 10**6:
        raise invalid_error(f"{path}']['quantity", "must be a whole number from 1 to 999999")
    return amount * quantity
