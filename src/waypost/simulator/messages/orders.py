"""Orders that a business sends for review, and its later order statuses: the content each requires.

Source: the operator's pages "Orders" and "Receive payments via payment gateways on WhatsApp", May 2026.
"""

import re
from typing import Final

from waypost.base.json_values import list_or_none, object_or_none, objects_in, text_or_none
from waypost.simulator.messages.interactive_fields import Buttons, InteractiveObject

REVIEW_AND_PAY: Final = "REVIEW_AND_PAY"
"""The type of the button that pays an order."""

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


def order_details_buttons(action: InteractiveObject) -> Buttons:
    """Check an order that is to be reviewed and paid, and return its button.

    Raises:
        GraphApiError: 100 for a missing member, 131009 for a wrong or too long one.
    """
    parameters = _read_parameters(action, "review_and_pay")
    reference_id = _read_reference(parameters)
    parameters.require_one_of("type", _GOODS)
    currency = parameters.require_text("currency", 3)
    if not _CURRENCY.fullmatch(currency):
        raise parameters.invalid("currency", "must be three capital letters, as in ISO 4217")
    total = _read_amount(parameters, "total_amount")
    paid_by, configuration = _payment_type(parameters), _payment_configuration(parameters)
    order = parameters.find_object("order")
    if order is not None:
        _check_order(parameters, order, total)
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


def order_status_buttons(action: InteractiveObject) -> Buttons:
    """Check an order status, and return no buttons.

    Raises:
        GraphApiError: 100 for a missing member, 131009 for a wrong or too long one.
    """
    parameters = _read_parameters(action, "review_order")
    _read_reference(parameters)
    order, payment = parameters.find_object("order"), parameters.find_object("payment")
    if order is None and payment is None:
        raise parameters.missing("order")
    if order is not None:
        order.require_one_of("status", _STATUSES)
        if order.members.get("description"):
            order.require_text("description", _MAX_DESCRIPTION_CHARS)
    if payment is not None:
        payment.require_one_of("status", _PAYMENTS)
    return []


def _read_parameters(action: InteractiveObject, name: str) -> InteractiveObject:
    if action.members.get("name") != name:
        raise action.invalid("name", f"must be {name}")
    return action.require_object("parameters")


def _read_reference(parameters: InteractiveObject) -> str:
    reference_id = parameters.require_text("reference_id", _MAX_REFERENCE_CHARS)
    if not _REFERENCE.fullmatch(reference_id):
        raise parameters.invalid("reference_id", "has letters, digits, underscores, dashes and dots only")
    return reference_id


def _read_amount(parent: InteractiveObject, member: str) -> int:
    """Return the value of an amount, in hundredths."""
    amount = parent.require_object(member)
    hundredths = amount.members.get("value")
    if not isinstance(hundredths, int) or isinstance(hundredths, bool) or not 0 <= hundredths <= _MAX_AMOUNT_VALUE:
        raise amount.invalid("value", f"must be a whole number from 0 to {_MAX_AMOUNT_VALUE}")
    if amount.members.get("offset") != _OFFSET:
        raise amount.invalid("offset", f"must be {_OFFSET}")
    return hundredths


def _payment_type(parameters: InteractiveObject) -> str:
    """Return the payment type as the transaction names it: a gateway's type, or a setting's."""
    listed = parameters.members.get("payment_settings")
    if listed is None:
        return "upi"
    if not objects_in(listed) or len(objects_in(listed)) != len(list_or_none(listed) or []):
        raise parameters.invalid("payment_settings", "must be an array of objects")
    settings = parameters.require_objects("payment_settings")
    kinds = [setting.require_text("type", 64) for setting in settings]
    return settings[0].object(kinds[0]).text("type") or kinds[0]


def _payment_configuration(parameters: InteractiveObject) -> str:
    """Return the name of the payment configuration; empty if the order names none. Nothing checks it at the send."""
    settings = objects_in(parameters.members.get("payment_settings"))
    gateway = object_or_none(settings[0].get("payment_gateway")) if settings else None
    if gateway is not None:
        return text_or_none(gateway.get("configuration_name")) or ""
    return parameters.text("payment_configuration")


def _check_order(parameters: InteractiveObject, order: InteractiveObject, total: int) -> None:
    """Check an order and its sums.

    Raises:
        GraphApiError: 100 for a missing member, 131009 for a wrong one or a wrong sum.
    """
    order.require_one_of("status", ("pending",))
    items_total = sum(_read_price(item) for item in order.require_objects("items"))
    subtotal = _read_amount(order, "subtotal")
    if subtotal != items_total:
        raise order.invalid("subtotal", f"must be {items_total}, the sum of the items; it is {subtotal}")
    expected_total = subtotal + sum(
        sign * _read_amount(order, member)
        for member, sign in _TOTAL_SIGNS.items()
        if order.members.get(member) is not None
    )
    if total != expected_total:
        rule = f"must be {expected_total}: subtotal, tax and shipping less discount; it is {total}"
        raise parameters.invalid("total_amount", rule)


def _read_price(item: InteractiveObject) -> int:
    item.require_text("name", _MAX_ITEM_NAME_CHARS)
    amount = _read_amount(item, "amount")
    if item.members.get("sale_amount") is not None:
        amount = _read_amount(item, "sale_amount")
    quantity = item.members.get("quantity")
    if quantity is None:
        raise item.missing("quantity")
    if not isinstance(quantity, int) or isinstance(quantity, bool) or not 0 < quantity < 10**6:
        raise item.invalid("quantity", "must be a whole number from 1 to 999999")
    return amount * quantity
