"""A simulated phone, controlled by a test."""

import base64
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from pytest_waypost.client import is_api_error
from pytest_waypost.failures import Deadline, NotSeen, missing_message
from pytest_waypost.message import Message, parse_message
from pytest_waypost.partner_setup import Tenancy

if TYPE_CHECKING:
    from pytest_waypost.flow import PlayedFlow

__tracebackhide__ = is_api_error

_MAX_MESSAGES: Final = 1000
_MAX_WAIT_MS: Final = 250
"""A message may arrive before one that was sent earlier; the control API's own wait does not notice that."""


class Phone:
    """A simulated phone: what its owner sees and does. `Partner.phone` makes it.

    Actions on a message take the message; by default they use the newest one that fits.
    """

    def __init__(self, tenancy: Tenancy, name: str, number: str) -> None:
        self._tenancy = tenancy
        self._control = tenancy.service.control
        self._returned_wamids: set[str] = set()
        self.name = name
        self.number = number
        self._control.json("PUT", f"/phones/{number}", {"name": name})

    def __str__(self) -> str:
        """Return its digits, so that a phone can be used as a number."""
        return self.number

    @property
    def chat(self) -> tuple[Message, ...]:
        """All messages between this phone and the partner, oldest first."""
        return self._chat(after=0, wait_ms=0)

    @property
    def inbox(self) -> tuple[Message, ...]:
        """The messages that the phone has received from the partner, oldest first."""
        return tuple(message for message in self.chat if not message.from_phone)

    def wait_for_message(
        self, text: str = "", *, where: Callable[[Message], bool] | None = None, within_s: float | None = None
    ) -> Message:
        """Return the first matching message that was not returned before: each is returned once.

        Args:
            text: a part of its text.
            where: a further condition.
            within_s: real time to wait; 5 s by default.

        Raises:
            NotSeen: none arrived in time; the text shows what did, and what happened to the others.
        """
        __tracebackhide__ = True
        wait_s = self._tenancy.service.within_s if within_s is None else within_s

        def matches(message: Message) -> bool:
            is_new = not message.from_phone and message.wamid not in self._returned_wamids
            return is_new and text in message.text and (where is None or where(message))

        message = self._wait(matches, wait_s)
        if message is None:
            expected = f'with "{text}" ' if text else ""
            expected += "that matches `where` " if where else ""
            raise missing_message(
                self._tenancy, name=self.name, digits=self.number, expected=expected,
                within_s=wait_s, seen=self.chat,
            )  # fmt: skip
        self._returned_wamids.add(message.wamid)
        return message

    def write(self, text: str, *, reply_to: Message | None = None) -> str:
        """Write to the partner, which opens the 24-hour window; return the wamid."""
        return self._send({"text": text}, reply_to)

    def send_media(self, kind: str, content: bytes, mime_type: str, *, caption: str = "", file_name: str = "") -> str:
        """Send `image`, `video`, `audio`, `document` or `sticker`, and return the wamid."""
        media: dict[str, Any] = {
            "content": base64.b64encode(content).decode(),
            "mime_type": mime_type,
            "file_name": file_name,
        }
        if caption:
            media["caption"] = caption
        return self._send({"type": kind, "media": media})

    def send_location(
        self, latitude: float, longitude: float, *, name: str = "", address: str = "", reply_to: Message | None = None
    ) -> str:
        """Send a location, which may reply to a request for it; return the wamid."""
        location: dict[str, Any] = {"latitude": latitude, "longitude": longitude}
        location |= {key: text for key, text in (("name", name), ("address", address)) if text}
        return self._send({"type": "location", "location": location}, reply_to)

    def react(self, emoji: str, message: Message | None = None) -> str:
        """React to a message, or remove the reaction with an empty emoji; return the wamid."""
        __tracebackhide__ = True
        target = message or self._newest(lambda _: True, "to react to")
        return self._send({"type": "reaction", "reaction": {"message_id": target.wamid, "emoji": emoji}})

    def tap(self, button: str | int, message: Message | None = None, *, card: int | None = None) -> str:
        """Tap a button, or choose a row of a list; return the wamid of the message that this sends.

        Args:
            button: its label, or its index counted from 0.
            message: its message; by default the newest with such a button, which may still be on its way.
            card: of a carousel, counted from 0.

        Raises:
            NotSeen: no such button arrived in time.
        """
        __tracebackhide__ = True
        label = f"[{button}]" if isinstance(button, str) else f"number {button}"

        def has_button(candidate: Message) -> bool:
            return any(each.card == card and button in (each.text, each.index) for each in candidate.buttons)

        if message is None:
            message = self._newest(has_button, f"with a button {label}")
        elif not has_button(message):
            labels = ", ".join(message.labels) or "none"
            raise NotSeen(f"the message has no button {label}; its buttons are: {labels}\n  {message}")
        body: dict[str, Any] = {"message_id": message.wamid}
        body |= {"text": button} if isinstance(button, str) else {"index": button}
        body |= {} if card is None else {"card": card}
        return str(self._post_action("tap", body)["wamid"])

    def submit_form(self, response: Mapping[str, Any], message: Message | None = None) -> str:
        """Fill in a flow or an address form and submit it; return the wamid."""
        __tracebackhide__ = True
        target = message or self._newest(_is_form, "with a flow or a form")
        body = {"message_id": target.wamid, "response": dict(response)}
        return str(self._post_action("respond", body)["wamid"])

    def flow(self, message: Message | None = None, *, restart: bool = False) -> "PlayedFlow":
        """Open a flow, and return it; one that was closed is shown where it was left.

        Args:
            message: its message; by default the newest with a flow, which may still be on its way.
            restart: begin again.

        Raises:
            ApiResponseError: it cannot be opened, such as one that is completed; the text says why.
        """
        __tracebackhide__ = True
        from pytest_waypost.flow import PlayedFlow  # of few tests

        target = message or self._newest(_has_flow, "with a flow")
        opened = self._post_action("flow", {"message_id": target.wamid, "restart": restart})
        return PlayedFlow(self._control, self.number, opened)

    def pay(self, message: Message | None = None, *, status: str = "captured") -> str:
        """Pay an order, by default the newest unpaid one; return the transaction's id.

        Args:
            message: the order, of type `order_details`.
            status: `captured`, `pending`, or `failed` for a failed payment.
        """
        __tracebackhide__ = True
        target = message or self._newest(_is_unpaid_order, "with an order to pay")
        body = {"message_id": target.wamid, "status": status}
        return str(self._post_action("pay", body)["payment"]["transaction_id"])

    def read(self, message: Message | None = None) -> int:
        """Read the chat of a message, or all chats; return the number of messages read."""
        body = {} if message is None else {"message_id": message.wamid}
        return int(self._post_action("read", body)["read"])

    def block(self) -> None:
        """Block the partner: its messages stay `sent`, and it is not notified."""
        self._post_action("block", {"to": self._tenancy.names.source, "blocks": True})

    def unblock(self) -> None:
        """Unblock the partner."""
        self._post_action("block", {"to": self._tenancy.names.source, "blocks": False})

    def go_offline(self) -> None:
        """Go offline: messages wait until the phone is online."""
        self.set(is_offline=True)

    def go_online(self) -> None:
        """Go online: waiting messages arrive, in order."""
        self.set(is_offline=False)

    def stop_marketing(self) -> None:
        """Opt out of the partner's marketing messages."""
        self._post_action("marketing", {"to": self._tenancy.names.source, "wants": False})

    def resume_marketing(self) -> None:
        """Opt in to the partner's marketing messages again."""
        self._post_action("marketing", {"to": self._tenancy.names.source, "wants": True})

    def set(self, **settings: Any) -> None:
        """Change settings of the phone: the members of `PUT /control/phones/{phone}`.

        Raises:
            ApiResponseError: there is no such setting, or its value is invalid; the text names the valid ones.
        """
        self._control.json("PUT", f"/phones/{self.number}", settings)

    def _send(self, content: dict[str, Any], reply_to: Message | None = None) -> str:
        body = {"to": self._tenancy.names.source, **content}
        if reply_to is not None:
            body["context_id"] = reply_to.wamid
        return str(self._post_action("messages", body)["wamid"])

    def _post_action(self, action: str, body: dict[str, Any]) -> dict[str, Any]:
        response: dict[str, Any] = self._control.json("POST", f"/phones/{self.number}/{action}", body)
        return response

    def _newest(self, matches: Callable[[Message], bool], expected: str) -> Message:
        __tracebackhide__ = True
        wait_s = self._tenancy.service.within_s
        message = self._wait(lambda each: not each.from_phone and matches(each), wait_s, newest=True)
        if message is None:
            raise missing_message(
                self._tenancy, name=self.name, digits=self.number, expected=f"{expected} ",
                within_s=wait_s, seen=self.chat,
            )  # fmt: skip
        return message

    def _wait(self, is_match: Callable[[Message], bool], wait_s: float, *, newest: bool = False) -> Message | None:
        deadline = Deadline(wait_s)
        while True:
            chat = self.chat
            matches = [message for message in chat if is_match(message)]
            if matches or deadline.is_over:
                return matches[-1 if newest else 0] if matches else None
            last = max((int(message.raw["position"]) for message in chat), default=0)
            wait_ms = min(int(deadline.left_s * 1000) + 1, _MAX_WAIT_MS)
            self._chat(after=last, wait_ms=wait_ms)

    def _chat(self, *, after: int, wait_ms: int) -> tuple[Message, ...]:
        path = f"/phones/{self.number}?limit={_MAX_MESSAGES}&after={after}&wait_ms={wait_ms}"
        views = self._control.json("GET", path)["messages"]
        number = self._tenancy.names.phone_number_id
        return tuple(parse_message(view) for view in views if view["phone_number_id"] == number)


def _is_unpaid_order(message: Message) -> bool:
    is_paid = message.raw.get("payment", {}).get("status") == "captured"
    return not is_paid and any(each.type == "REVIEW_AND_PAY" for each in message.buttons)


def _has_flow(message: Message) -> bool:
    return any(each.type == "FLOW" for each in message.buttons)


def _is_form(message: Message) -> bool:
    return any(each.type in ("FLOW", "ADDRESS", "CALL_PERMISSION") for each in message.buttons)
