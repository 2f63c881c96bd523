"""Payments of orders as the business sees them: looked up by reference, and refunded."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.json_values import object_or_none, objects_in
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.delivery_signals import DeliverySignals
from waypost.simulator.errors import GraphApiError, bad_parameter
from waypost.simulator.handsets.payments import payment_update, transactions_of
from waypost.simulator.outbox import Outbox
from waypost.simulator.payments.configurations import PaymentConfigurations
from waypost.simulator.phones.phones import Phones
from waypost.simulator.settings import SimulatorSettingsStore
from waypost.simulator.store import Statement, Store, run_statements
from waypost.simulator.tables.messages import MESSAGES, SimulatedMessage, find_orders
from waypost.simulator.tables.updates import add_update

SPEEDS: Final = ("instant", "normal")
_OFFSET: Final = 100
_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class RefundRequest:
    """A refund to be written.

    Args:
        value: in hundredths of the order's currency.
        speed: one of `SPEEDS`.
    """

    number: Number
    configuration: str
    reference_id: str
    value: int
    currency: str
    speed: str
    refund_id: str
    at_ms: int
    has_contacts: bool


class Refunds:
    """Looks payments up, and refunds them: the order on the phone and the status for the business change together."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        settings: SimulatorSettingsStore,
        phones: Phones,
        signals: DeliverySignals,
        outbox: Outbox,
        configurations: PaymentConfigurations,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._phones = phones
        self._signals = signals
        self._outbox = outbox
        self._configurations = configurations

    async def find_payment(self, number: Number, configuration: str, reference_id: str) -> dict[str, Any]:
        """Return the payment of the newest order with a reference.

        Raises:
            GraphApiError: 134009, the account has no such configuration; 134006, no order has the reference.

        Source: ledger 1.10.
        """
        name = self._configurations.find(number.waba_id, configuration).name
        order = await self._store.read(
            lambda connection: _find_order(connection, number.phone_number_id, name, reference_id)
        )
        if order is None:
            raise _unknown_reference()
        button, payment = order.buttons[0], object_or_none(order.content.get("payment")) or {}
        return {
            "reference_id": reference_id,
            "status": str(payment.get("status", "pending")).upper(),
            "amount": button["amount"],
            "currency": button["currency"],
            "transactions": [{**item, "refunds": item.get("refunds", [])} for item in transactions_of(order)],
        }

    async def refund(self, number: Number, fields: dict[str, Any]) -> dict[str, Any]:
        """Refund a captured payment or a part of it; the refund succeeds at once, which the webhook reports.

        Raises:
            GraphApiError: 100, a parameter is missing or invalid, or more than was paid; 134009 or 134006 as above.

        Source: ledger 1.10, row 70.
        """
        for name in ("reference_id", "payment_config_id"):
            if not isinstance(fields.get(name), str) or not fields[name]:
                raise bad_parameter(f"The parameter {name} is required.")
        speed = fields.get("speed", "normal")
        if speed not in SPEEDS:
            raise bad_parameter(f"Param speed must be one of {{{', '.join(SPEEDS)}}}.")
        value, currency = _read_amount(fields.get("amount"))
        request = RefundRequest(
            number=number,
            configuration=self._configurations.find(number.waba_id, fields["payment_config_id"]).name,
            reference_id=fields["reference_id"],
            value=value,
            currency=currency,
            speed=speed,
            refund_id=f"rfnd_{self._ids.digits(14)}",
            at_ms=self._clock.now_ms(),
            has_contacts=self._settings.value.statuses_contacts,
        )
        outcome: SimulatedMessage | GraphApiError = await self._store.write(self._write_refunds, request)
        if isinstance(outcome, GraphApiError):
            raise outcome
        self._outbox.wake_events(number.waba_id).set()
        self._signals.wake(outcome.phone)
        return {"id": request.refund_id, "status": "pending", "speed_processed": speed}

    def _write_refunds(
        self, connection: sqlite3.Connection, requests: Sequence[RefundRequest]
    ) -> Sequence[SimulatedMessage | GraphApiError]:
        return [self._write_refund(connection, request) for request in requests]

    def _write_refund(self, connection: sqlite3.Connection, request: RefundRequest) -> SimulatedMessage | GraphApiError:
        number = request.number
        order = _find_order(connection, number.phone_number_id, request.configuration, request.reference_id)
        if order is None:
            return _unknown_reference()
        transactions = transactions_of(order)
        captured = next((item for item in transactions if item["status"] == "success"), None)
        if captured is None:
            return bad_parameter("Param reference_id must be of a captured payment.")
        if request.currency != captured["currency"]:
            return bad_parameter(f"Param amount['currency'] must be {captured['currency']}.")
        refunds = objects_in(captured.get("refunds"))
        left = captured["amount"]["value"] - sum(refund["amount"]["value"] for refund in refunds)
        if request.value > left:
            return bad_parameter(f"Param amount['value'] must be at most {left}, which is left of the payment.")
        now_s = request.at_ms // 1000
        refund = {
            "id": request.refund_id,
            "amount": {"value": request.value, "offset": _OFFSET},
            "speed_processed": request.speed,
            "status": "success",
            "created_timestamp": now_s,
            "updated_timestamp": now_s,
        }
        refunded = {**captured, "updated_timestamp": now_s, "refunds": [*refunds, refund]}
        shown = {
            **order.content,
            "transactions": [refunded if item["id"] == captured["id"] else item for item in transactions],
        }
        statements: list[Statement] = [MESSAGES.update({"shown": _encode(shown).decode()}, wamid=order.wamid)]
        if self._outbox.has_subscribers(number.waba_id):
            phone = self._phones.fill_user_id(self._phones.find_or_default(order.phone))
            update = payment_update(
                self._outbox,
                number,
                phone,
                order,
                refunded,
                status="captured",
                at_ms=request.at_ms,
                has_contacts=request.has_contacts,
            )
            statements.append(add_update(update))
        run_statements(connection, statements)
        return order


def _find_order(
    connection: sqlite3.Connection, phone_number_id: str, configuration: str, reference_id: str
) -> SimulatedMessage | None:
    """Return the newest order with a reference and a payment configuration."""
    orders = find_orders(connection, phone_number_id, reference_id)
    return next((order for order in orders if order.buttons[0].get("configuration") == configuration), None)


def _unknown_reference() -> GraphApiError:
    error = {"message": "(#134006) Reference id is invalid", "type": "OAuthException", "code": 134006}
    return GraphApiError(400, error)


def _read_amount(value: object) -> tuple[int, str]:
    """Return value, in hundredths, and currency of an amount."""
    amount = object_or_none(value)
    if amount is None:
        raise bad_parameter("The parameter amount is required.")
    hundredths, currency = amount.get("value"), amount.get("currency")
    if type(hundredths) is not int or hundredths <= 0:
        raise bad_parameter("Param amount['value'] must be a whole number above 0.")
    if amount.get("offset") != _OFFSET:
        raise bad_parameter(f"Param amount['offset'] must be {_OFFSET}.")
    if not isinstance(currency, str):
        raise bad_parameter("The parameter amount['currency'] is required.")
    return hundredths, currency
