"""The shop: places orders, confirms them, and handles callbacks."""

import threading
from collections.abc import Mapping
from typing import Any, Final

from shop.messenger import Messenger
from shop.orders import Order, Orders

CONFIRMATION: Final = "order_confirmation"
UPDATE: Final = "order_update"
WINDOW_CLOSED: Final = 131047
"""The error code of a text to a customer who has not written for 24 hours."""

# fmt: off
TEMPLATES: Final = (
    # name         content                                                   example                                               buttons
    (CONFIRMATION, "Hi {{1}}, thank you for your order {{2}}: {{3}}. All right?", "Hi [Ann], thank you for your order [1]: [tea]. All right?", ("Keep it", "Cancel it")),
    (UPDATE,       "Update on your order {{1}}: it is {{2}} now. Thank you!",     "Update on your order [1]: it is [sent] now. Thank you!",    ()),
)
# fmt: on


class Shop:
    """Places orders, confirms each with a template message, and handles the buttons that customers tap.

    Attributes:
        rejection_reasons: the reason of each rejected template, by its name.
    """

    def __init__(self, messenger: Messenger, orders: Orders) -> None:
        # A callback may arrive before the message id of the send is stored, so it waits for the lock.
        self._lock = threading.Lock()
        self._messenger = messenger
        self._orders = orders
        self._templates: dict[str, str] = {}
        self._approved: set[str] = set()
        self.rejection_reasons: dict[str, str] = {}

    def submit_templates(self) -> None:
        """Submit the templates of the shop; orders are confirmed once they are approved."""
        for name, content, example, buttons in TEMPLATES:
            template_id = self._messenger.submit_template(name, content, example, buttons)
            self._templates[name] = template_id

    def place_order(self, customer: str, phone: str, goods: str) -> int:
        """Store an order, and return its id. It is confirmed at once, or when the template is approved."""
        with self._lock:
            order = self._orders.add(customer, phone, goods)
            if CONFIRMATION in self._approved:
                self._confirm(order)
            return order.id

    def send_text(self, order_id: int, text: str) -> None:
        """Send a text to the customer of an order."""
        with self._lock:
            order = self._orders.get(order_id)
            message_id = self._messenger.send_text(order.phone, text)
            self._orders.set(order_id, message_id=message_id, message_state="accepted")

    def get_order(self, order_id: int) -> Order:
        """Return an order."""
        return self._orders.get(order_id)

    def handle_callback(self, callback_id: str, body: Mapping[str, Any]) -> None:
        """Process one callback; a repeated one has no effect.

        It is marked as processed at the end. If the shop stops before that, the next attempt is processed.
        """
        with self._lock:
            if not self._orders.is_processed(callback_id):
                self._process(body)
                self._orders.mark_processed(callback_id)

    def _process(self, body: Mapping[str, Any]) -> None:
        payload: Mapping[str, Any] = body.get("payload", {})
        match body.get("type"), payload.get("type"):
            case "message-event", str(state):
                self._update_message_state(payload, state)
            case "message", "quick_reply":
                self._handle_tap(str(payload["payload"].get("postbackText", "")))
            case "template-event", "status-update":
                self._handle_review(payload)
            case _:
                pass  # new kinds may be added at any time

    def _confirm(self, order: Order) -> None:
        message_id = self._messenger.send_template(
            self._templates[CONFIRMATION],
            order.phone,
            [order.customer, str(order.id), order.goods],
            [f"keep {order.id}", f"cancel {order.id}"],
        )
        self._orders.set(order.id, message_id=message_id, message_state="accepted")

    def _update_message_state(self, payload: Mapping[str, Any], state: str) -> None:
        order = self._orders.find_by_message(str(payload.get("gsId") or payload["id"]))
        if order is None:
            return
        self._orders.set(order.id, message_state=state)
        if state == "failed" and payload["payload"]["code"] == WINDOW_CLOSED:
            params = [str(order.id), order.state]
            message_id = self._messenger.send_template(self._templates[UPDATE], order.phone, params)
            self._orders.set(order.id, message_id=message_id, message_state="accepted")

    def _handle_tap(self, postback_text: str) -> None:
        action, _, order_id = postback_text.partition(" ")
        if not order_id.isdigit():
            return
        order = self._orders.get(int(order_id))
        state = "cancelled" if action == "cancel" else "confirmed"
        self._orders.set(order.id, state=state)
        self._messenger.send_text(order.phone, f"Your order {order.id} is {state}.")

    def _handle_review(self, payload: Mapping[str, Any]) -> None:
        name = str(payload["elementName"])
        if payload["status"] == "rejected":
            self.rejection_reasons[name] = str(payload.get("rejectedReason", ""))
        elif payload["status"] == "approved":
            self._approved.add(name)
            for order in self._orders.list_unconfirmed() if name == CONFIRMATION else ():
                self._confirm(order)
