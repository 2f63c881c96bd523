"""What the shop does, and what it makes of each callback."""

import threading
from collections.abc import Mapping
from typing import Any, Final

from shop.messenger import Messenger
from shop.orders import Order, Orders

CONFIRMATION: Final = "order_confirmation"
UPDATE: Final = "order_update"
WINDOW_CLOSED: Final = 131047
"""The failure of a text to somebody who has not written for 24 hours."""

# fmt: off
TEMPLATES: Final = (
    # name         content                                                   example                                               buttons
    (CONFIRMATION, "Hi {{1}}, thank you for your order {{2}}: {{3}}. All right?", "Hi [Ann], thank you for your order [1]: [tea]. All right?", ("Keep it", "Cancel it")),
    (UPDATE,       "News of your order {{1}}: it is {{2}} now. Thank you!",       "News of your order [1]: it is [sent] now. Thank you!",      ()),
)
# fmt: on


class Shop:
    """Takes orders, confirms them by a template, and answers what customers tap.

    Attributes:
        problems: why a template was rejected, by its name.
    """

    def __init__(self, messenger: Messenger, orders: Orders) -> None:
        # A callback may come before the id that its send was answered has been kept, so it waits.
        self._one_at_a_time = threading.Lock()
        self._messenger = messenger
        self._orders = orders
        self._templates: dict[str, str] = {}
        self._approved: set[str] = set()
        self.problems: dict[str, str] = {}

    def submit_templates(self) -> None:
        """Submit what the shop wants to say; orders are confirmed once it is approved."""
        for name, content, example, buttons in TEMPLATES:
            template_id = self._messenger.submit_template(name, content, example, buttons)
            self._templates[name] = template_id

    def place(self, customer: str, phone: str, goods: str) -> int:
        """Take an order and confirm it as soon as that may be; gives its id."""
        with self._one_at_a_time:
            order = self._orders.add(customer, phone, goods)
            if CONFIRMATION in self._approved:
                self._confirm(order)
            return order.id

    def write(self, order_id: int, text: str) -> None:
        """Write to the customer of an order in free words."""
        with self._one_at_a_time:
            order = self._orders.get(order_id)
            message_id = self._messenger.send_text(order.phone, text)
            self._orders.set(order_id, message_id=message_id, message_state="accepted")

    def order(self, order_id: int) -> Order:
        """An order as it is now."""
        return self._orders.get(order_id)

    def take(self, callback_id: str, body: Mapping[str, Any]) -> None:
        """Take one callback; one that comes again changes nothing.

        It is remembered when all is done, so that one in whose middle the shop stops is done anew.
        """
        with self._one_at_a_time:
            if not self._orders.was_taken(callback_id):
                self._take(body)
                self._orders.remember(callback_id)

    def _take(self, body: Mapping[str, Any]) -> None:
        payload: Mapping[str, Any] = body.get("payload", {})
        match body.get("type"), payload.get("type"):
            case "message-event", str(state):
                self._message_came(payload, state)
            case "message", "quick_reply":
                self._tapped(str(payload["payload"].get("postbackText", "")))
            case "template-event", "status-update":
                self._reviewed(payload)
            case _:
                pass  # new kinds may come at any time

    def _confirm(self, order: Order) -> None:
        message_id = self._messenger.send_template(
            self._templates[CONFIRMATION],
            order.phone,
            [order.customer, str(order.id), order.goods],
            [f"keep {order.id}", f"cancel {order.id}"],
        )
        self._orders.set(order.id, message_id=message_id, message_state="accepted")

    def _message_came(self, payload: Mapping[str, Any], state: str) -> None:
        order = self._orders.by_message(str(payload.get("gsId") or payload["id"]))
        if order is None:
            return
        self._orders.set(order.id, message_state=state)
        if state == "failed" and payload["payload"]["code"] == WINDOW_CLOSED:
            params = [str(order.id), order.state]
            message_id = self._messenger.send_template(self._templates[UPDATE], order.phone, params)
            self._orders.set(order.id, message_id=message_id, message_state="accepted")

    def _tapped(self, postback_text: str) -> None:
        act, _, order_id = postback_text.partition(" ")
        if not order_id.isdigit():
            return
        order = self._orders.get(int(order_id))
        state = "cancelled" if act == "cancel" else "confirmed"
        self._orders.set(order.id, state=state)
        self._messenger.send_text(order.phone, f"Your order {order.id} is {state}.")

    def _reviewed(self, payload: Mapping[str, Any]) -> None:
        name = str(payload["elementName"])
        if payload["status"] == "rejected":
            self.problems[name] = str(payload.get("rejectedReason", ""))
        elif payload["status"] == "approved":
            self._approved.add(name)
            for order in self._orders.unconfirmed() if name == CONFIRMATION else ():
                self._confirm(order)
