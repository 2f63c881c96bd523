"""Orders that a business sends for payment: items, total, status and payment."""

from typing import Any, Final

from waypost.base.json_values import integer_or_none, object_of, objects_in
from waypost.console.bubbles.json_fields import text_of

# fmt: off
_PAYMENTS: Final = {  # Source: simulator/handsets/payments.py
    "captured": "Paid",
    "pending":  "Pending",
    "failed":   "Failed",
}
# fmt: on
_KINDS: Final = ("order_details", "order_status")


def order_of(shown: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the type of a message about an order and its parameters; empty for any other message."""
    interactive = object_of(shown.get("interactive"))
    kind = text_of(interactive.get("type"))
    if kind not in _KINDS:
        return "", {}
    return kind, object_of(object_of(interactive.get("action")).get("parameters"))


def reference_of(shown: dict[str, Any]) -> str:
    """Return an order's reference id, which all messages about it share; empty for any other message."""
    return text_of(order_of(shown)[1].get("reference_id"))


def items_of_order(shown: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return name, quantity and price of each item of an order to pay."""
    kind, parameters = order_of(shown)
    if kind != "order_details":
        return []
    currency = text_of(parameters.get("currency"))
    return [
        (
            text_of(item.get("name")),
            text_of(item.get("quantity")),
            money(item.get("sale_amount") or item.get("amount"), currency),
        )
        for item in objects_in(object_of(parameters.get("order")).get("items"))
    ]


def facts_of_order(shown: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return further facts of an order, as names and values."""
    kind, parameters = order_of(shown)
    if not kind:
        return ()
    payment, status = object_of(shown.get("payment")), parameters
    if kind == "order_details":
        status = object_of(shown.get("order_status"))
    else:
        payment = object_of(parameters.get("payment"))
    order = object_of(status.get("order")) if status else {}
    total = money(parameters.get("total_amount"), text_of(parameters.get("currency")))
    facts = (
        ("Order", text_of(parameters.get("reference_id"))),
        ("Total", total),
        ("Status", text_of(order.get("status")).replace("_", " ").replace("-", " ").capitalize()),
        ("Note", text_of(order.get("description"))),
        ("Payment", _payment(payment)),
    )
    return tuple((name, value) for name, value in facts if value)


def is_paid(shown: dict[str, Any]) -> bool:
    """True if the phone has paid an order."""
    return object_of(shown.get("payment")).get("status") == "captured"


def money(amount: object, currency: str) -> str:
    """Return an amount in hundredths as text; empty if there is none."""
    value = integer_or_none(object_of(amount).get("value"))
    return "" if value is None else f"{value // 100}.{value % 100:02} {currency}".strip()


def _payment(payment: dict[str, Any]) -> str:
    status = text_of(payment.get("status"))
    reason = text_of(object_of(payment.get("error")).get("reason")).replace("_", " ")
    return _PAYMENTS.get(status, status) + (f": {reason}" if reason else "")
