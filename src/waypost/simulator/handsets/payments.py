"""Payments of orders by a phone's owner, and the statuses that the business receives."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.json_values import object_or_none, objects_in
from waypost.base.written_numbers import ascii_json
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.delivery_signals import DeliverySignals
from waypost.simulator.messages.statuses import contact_json, recipient_json
from waypost.simulator.outbox import Outbox, status_json
from waypost.simulator.phones.phone import SimulatedPhone
from waypost.simulator.phones.phones import Phones
from waypost.simulator.settings import SimulatorSettingsStore
from waypost.simulator.store import Statement, Store, run_statements
from waypost.simulator.tables.messages import MESSAGES, SimulatedMessage
from waypost.simulator.tables.updates import Update, add_update

TRANSACTION_STATUSES: Final = {  # status of a payment: status of its transaction; Source: the operator's page "Payment status webhooks"
    "pending": "pending",
    "captured": "success",
    "failed": "failed",
}
_encode_payment: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class PaymentAttempt:
    """One attempt to pay an order.

    Args:
        wamid: of the order.
        button: of the order, as the phone shows it.
        status: a row of `TRANSACTION_STATUSES`.
        error: of a failed attempt: `code` and `reason`.
        transaction_id: for a transaction that begins with this attempt.
        sends_webhook: whether the business receives a status.
        has_contacts: whether the webhook also names the recipient in `contacts`.
    """

    phone: SimulatedPhone
    number: Number
    at_ms: int
    wamid: str
    button: dict[str, Any]
    status: str
    error: dict[str, str]
    transaction_id: str
    sends_webhook: bool
    has_contacts: bool


class Payments:
    """Pays orders: the message on the phone and the status for the business are written together."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        settings: SimulatorSettingsStore,
        phones: Phones,
        signals: DeliverySignals,
        outbox: Outbox,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._phones = phones
        self._signals = signals
        self._outbox = outbox

    async def pay(
        self, phone: str, number: Number, wamid: str, button: dict[str, Any], status: str, error: dict[str, str]
    ) -> dict[str, Any]:
        """Pay an order, or fail to; return the payment as the phone shows it.

        Args:
            phone: its digits.
            number: the business number.
            wamid: of the order.
            button: the order's pay button.
            status: a row of `TRANSACTION_STATUSES`.
            error: of a failed payment: `code` and `reason`.

        Raises:
            ControlApiError: the order has been paid.
        """
        handset, _ = self._phones.find_or_create(phone)
        attempt = PaymentAttempt(
            phone=handset,
            number=number,
            at_ms=self._clock.now_ms(),
            wamid=wamid,
            button=button,
            status=status,
            error=error if status == "failed" else {},
            transaction_id=f"pay_{self._ids.digits(14)}",
            sends_webhook=self._outbox.has_subscribers(number.waba_id),
            has_contacts=self._settings.value.statuses_contacts,
        )
        payment: dict[str, Any] | None = await self._store.write(self._write_attempts, attempt)
        self._outbox.wake_events(number.waba_id).set()
        self._signals.wake(phone)
        if payment is None:
            raise ControlApiError("message_id", "the order is paid already", "an order that is not paid", status=409)
        return payment

    def _write_attempts(
        self, connection: sqlite3.Connection, attempts: Sequence[PaymentAttempt]
    ) -> Sequence[dict[str, Any] | None]:
        return [self._write_attempt(connection, attempt) for attempt in attempts]

    def _write_attempt(self, connection: sqlite3.Connection, attempt: PaymentAttempt) -> dict[str, Any] | None:
        [order] = MESSAGES.find_on(connection, wamid=attempt.wamid)
        rendered = order.content
        earlier = object_or_none(rendered.get("payment")) or {}
        if earlier.get("status") == "captured":
            return None
        now_s = attempt.at_ms // 1000
        is_continued = earlier.get("status") == "pending"
        payment = {
            "status": attempt.status,
            "transaction_id": earlier["transaction_id"] if is_continued else attempt.transaction_id,
            "created_s": earlier["created_s"] if is_continued else now_s,
            "updated_s": now_s,
            **({"error": attempt.error} if attempt.error else {}),
        }
        transaction = _transaction(attempt, payment)
        earlier_ones = [item for item in transactions_of(order) if item["id"] != transaction["id"]]
        paid = {**rendered, "payment": payment, "transactions": [*earlier_ones, transaction]}
        content = _encode_payment(paid).decode()
        statements: list[Statement] = [MESSAGES.update({"shown": content}, wamid=attempt.wamid)]
        if attempt.sends_webhook:
            update = payment_update(
                self._outbox,
                attempt.number,
                attempt.phone,
                order,
                transaction,
                status=attempt.status,
                at_ms=attempt.at_ms,
                has_contacts=attempt.has_contacts,
            )
            statements.append(add_update(update))
        run_statements(connection, statements)
        return payment


def payment_update(
    outbox: Outbox,
    number: Number,
    phone: SimulatedPhone,
    order: SimulatedMessage,
    transaction: dict[str, Any],
    *,
    status: str,
    at_ms: int,
    has_contacts: bool,
) -> Update:
    """Return the status about a payment. Source: the operator's page "Payment status webhooks"."""
    button = order.buttons[0]
    money = {"amount": button["amount"], "currency": button["currency"]}
    details = {"reference_id": button["reference_id"], **money, "transaction": transaction}
    payment_members = ',"type":"payment","payment":' + ascii_json(details)
    contact = contact_json(phone) if has_contacts else ""
    rest = status_json(recipient_json(phone), order.callback_data, payment_members, contact=contact)
    return Update(
        number.waba_id, at_ms, outbox.next_id(), status, number.phone_number_id, order.wamid, rest
    )  # fmt: skip


def transactions_of(order: SimulatedMessage) -> list[dict[str, Any]]:
    """Return the transactions of an order, oldest first, as the operator reports them."""
    return objects_in(order.content.get("transactions"))


def _transaction(attempt: PaymentAttempt, payment: dict[str, Any]) -> dict[str, Any]:
    button = attempt.button
    return {
        "id": payment["transaction_id"],
        "type": button["paid_by"],
        "status": TRANSACTION_STATUSES[attempt.status],
        "created_timestamp": payment["created_s"],
        "updated_timestamp": payment["updated_s"],
        "amount": button["amount"],
        "currency": button["currency"],
        **({"error": attempt.error} if attempt.error else {}),
    }
