"""Refunds and payment configurations in the formats of the partner API."""

from typing import Any, Final

import msgspec

from waypost.wire.forms import Form, read_json

CONFIGURATION_FIELDS: Final = ("purpose_code", "merchant_category_code", "redirect_url", "merchant_vpa")
"""The optional fields of a new payment configuration. Source: ledger 1.10."""


class PaymentAmount(msgspec.Struct):
    """An amount of money: the value divided by the offset, in the currency."""

    currency: str
    value: int
    offset: int


_amount: Final = msgspec.json.Decoder(PaymentAmount)


def read_refund(form: Form) -> dict[str, Any]:
    """Return the members of a refund, as the operator names them; it reports a missing one in the documented words.

    Raises:
        ApiError: the amount cannot be read.

    Source: ledger 1.10.
    """
    members: dict[str, Any] = {
        name: text for name in ("reference_id", "speed", "payment_config_id") if (text := form.text(name))
    }
    amount = form.text("amount")
    if amount:
        accepted = "an object with currency, value and offset"
        members["amount"] = msgspec.structs.asdict(read_json(amount, _amount, name="amount", accepted=accepted))
    return members
