"""A person's phone, held by a test."""

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from waypost.client.responses import is_told
from waypost.testing.failures import NotSeen, not_on_phone
from waypost.testing.message import Message, message_of
from waypost.testing.partner_setup import Tenancy
from waypost.testing.waiting import Deadline

__tracebackhide__ = is_told

_INBOX: Final = 1000
_AT_LEAST_EVERY_MS: Final = 250
"""A message may arrive behind one that was sent after it, which the door's own wait does not look for."""


class Phone:
    """What its owner sees and does. Made by `Partner.phone`.

    Whatever acts on a message takes the message, and without one the newest that fits.
    """

    def __init__(self, tenancy: Tenancy, name: str, number: str) -> None:
        self._tenancy = tenancy
        self._control = tenancy.service.control
        self._given: set[str] = set()
        self.name = name
        self.number = number
        self._control.json("PUT", f"/phones/{number}", {"name": name})

    def __str__(self) -> str:
        """Its digits, so that a phone can stand wherever a number does."""
        return self.number

    @property
    def chat(self) -> tuple[Message, ...]:
        """All that was said between this phone and the partner, oldest first."""
        return self._chat(after=0, wait_ms=0)

    @property
    def inbox(self) -> tuple[Message, ...]:
        """What the phone has got from the partner, oldest first."""
        return tuple(one for one in self.chat if not one.from_phone)

    def wait_for_message(
        self, text: str = "", *, where: Callable[[Message], bool] | None = None, within_s: float | None = None
    ) -> Message:
        """The first message that fits and was not given before: each message is given once.

        Args:
            text: what its text contains.
            where: what else must be so.
            within_s: real time to wait; 5 s unless set otherwise.

        Raises:
            NotSeen: none came in time; the text shows what did, and what became of the others.
        """
        __tracebackhide__ = True
        wait_s = self._tenancy.service.within_s if within_s is None else within_s

        def fits(message: Message) -> bool:
            is_new = not message.from_phone and message.wamid not in self._given
            return is_new and text in message.text and (where is None or where(message))

        message = self._wait(fits, wait_s)
        if message is None:
            wanted = f'with "{text}" ' if text else ""
            wanted += "that fits `where` " if where else ""
            raise not_on_phone(
                self._tenancy, name=self.name, digits=self.number, wanted=wanted,
                within_s=wait_s, seen=self.chat,
            )  # fmt: skip
        self._given.add(message.wamid)
        return message

    def write(self, text: str, *, reply_to: Message | None = None) -> str:
        """Write to the partner, which opens its 24-hour window; gives the wamid."""
        return self._say({"text": text}, reply_to)

    def send_media(self, kind: str, content: bytes, mime_type: str, *, caption: str = "", file_name: str = "") -> str:
        """Send `image`, `video`, `audio`, `document` or `sticker`; gives the wamid."""
        media: dict[str, Any] = {
            "content": base64.b64encode(content).decode(),
            "mime_type": mime_type,
            "file_name": file_name,
        }
        if caption:
            media["caption"] = caption
        return self._say({"type": kind, "media": media})

    def send_location(
        self, latitude: float, longitude: float, *, name: str = "", address: str = "", reply_to: Message | None = None
    ) -> str:
        """Send a place, perhaps in reply to a request for it; gives the wamid."""
        place: dict[str, Any] = {"latitude": latitude, "longitude": longitude}
        place |= {key: text for key, text in (("name", name), ("address", address)) if text}
        return self._say({"type": "location", "location": place}, reply_to)

    def react(self, emoji: str, message: Message | None = None) -> str:
        """React to a message, or with an empty text take the reaction back; gives the wamid."""
        __tracebackhide__ = True
        target = message or self._newest(lambda _: True, "to react to")
        return self._say({"type": "reaction", "reaction": {"message_id": target.wamid, "emoji": emoji}})

    def tap(self, button: str | int, message: Message | None = None, *, card: int | None = None) -> str:
        """Tap a button, or choose a row of a list; gives the wamid of what that sends.

        Args:
            button: its label, or its index counted from 0.
            message: the one it is under; without it the newest that has such a button, which may
                still be on its way.
            card: of a carousel, counted from 0.

        Raises:
            NotSeen: no such button came in time.
        """
        __tracebackhide__ = True
        shown = f"[{button}]" if isinstance(button, str) else f"number {button}"

        def has_it(one: Message) -> bool:
            return any(each.card == card and button in (each.text, each.index) for each in one.buttons)

        if message is None:
            message = self._newest(has_it, f"with a button {shown}")
        elif not has_it(message):
            labels = ", ".join(message.labels) or "none"
            raise NotSeen(f"the message has no button {shown}; its buttons are: {labels}\n  {message}")
        wish: dict[str, Any] = {"message_id": message.wamid}
        wish |= {"text": button} if isinstance(button, str) else {"index": button}
        wish |= {} if card is None else {"card": card}
        return str(self._act("tap", wish)["wamid"])

    def answer(self, response: Mapping[str, Any], message: Message | None = None) -> str:
        """Fill in a flow, or an address form, and send it back; gives the wamid."""
        __tracebackhide__ = True
        target = message or self._newest(_is_form, "with a flow or a form")
        wish = {"message_id": target.wamid, "response": dict(response)}
        return str(self._act("answer", wish)["wamid"])

    def pay(self, message: Message | None = None, *, status: str = "captured") -> str:
        """Pay an order, without one the newest that is not paid; gives the transaction's id.

        Args:
            message: the order, of type `order_details`.
            status: `captured`, `pending`, or `failed` to let the payment fail.
        """
        __tracebackhide__ = True
        target = message or self._newest(_is_to_pay, "with an order to pay")
        wish = {"message_id": target.wamid, "status": status}
        return str(self._act("pay", wish)["payment"]["transaction_id"])

    def read(self, message: Message | None = None) -> int:
        """Read the chat that a message is in, or all chats; gives how many messages that were."""
        wish = {} if message is None else {"message_id": message.wamid}
        return int(self._act("read", wish)["read"])

    def block(self) -> None:
        """Block the partner: what it sends stays `sent`, and nobody tells it."""
        self._act("block", {"to": self._tenancy.names.source, "blocks": True})

    def unblock(self) -> None:
        """Hear from the partner again."""
        self._act("block", {"to": self._tenancy.names.source, "blocks": False})

    def go_offline(self) -> None:
        """Get nothing until it is back."""
        self.set(is_offline=True)

    def go_online(self) -> None:
        """Be back: all that waited arrives, in order."""
        self.set(is_offline=False)

    def stop_marketing(self) -> None:
        """Want no marketing of this partner any more."""
        self._act("marketing", {"to": self._tenancy.names.source, "wants": False})

    def resume_marketing(self) -> None:
        """Want the partner's marketing again."""
        self._act("marketing", {"to": self._tenancy.names.source, "wants": True})

    def set(self, **habits: Any) -> None:
        """Change habits and conditions, as `PUT /control/phones/{phone}` takes them.

        Raises:
            DoorRefused: there is no such habit, or its value will not do; the text says what would.
        """
        self._control.json("PUT", f"/phones/{self.number}", habits)

    def _say(self, wish: dict[str, Any], reply_to: Message | None = None) -> str:
        said = {"to": self._tenancy.names.source, **wish}
        if reply_to is not None:
            said["context_id"] = reply_to.wamid
        return str(self._act("messages", said)["wamid"])

    def _act(self, act: str, wish: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._control.json("POST", f"/phones/{self.number}/{act}", wish)
        return answer

    def _newest(self, fits: Callable[[Message], bool], wanted: str) -> Message:
        __tracebackhide__ = True
        wait_s = self._tenancy.service.within_s
        message = self._wait(lambda one: not one.from_phone and fits(one), wait_s, newest=True)
        if message is None:
            raise not_on_phone(
                self._tenancy, name=self.name, digits=self.number, wanted=f"{wanted} ",
                within_s=wait_s, seen=self.chat,
            )  # fmt: skip
        return message

    def _wait(self, fits: Callable[[Message], bool], wait_s: float, *, newest: bool = False) -> Message | None:
        deadline = Deadline(wait_s)
        while True:
            chat = self.chat
            found = [one for one in chat if fits(one)]
            if found or deadline.is_over:
                return found[-1 if newest else 0] if found else None
            last = max((int(one.raw["position"]) for one in chat), default=0)
            wait_ms = min(int(deadline.left_s * 1000) + 1, _AT_LEAST_EVERY_MS)
            self._chat(after=last, wait_ms=wait_ms)

    def _chat(self, *, after: int, wait_ms: int) -> tuple[Message, ...]:
        path = f"/phones/{self.number}?limit={_INBOX}&after={after}&wait_ms={wait_ms}"
        views = self._control.json("GET", path)["messages"]
        number = self._tenancy.names.phone_number_id
        return tuple(message_of(one) for one in views if one["phone_number_id"] == number)


def _is_to_pay(message: Message) -> bool:
    is_paid = message.raw.get("payment", {}).get("status") == "captured"
    return not is_paid and any(each.type == "REVIEW_AND_PAY" for each in message.buttons)


def _is_form(message: Message) -> bool:
    return any(each.type in ("FLOW", "ADDRESS", "CALL_PERMISSION") for each in message.buttons)
