"""Messages on a simulated phone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from waypost.base.json_values import object_or_none, objects_in
from waypost.testing.formatting import clock_time, shorten


@dataclass(frozen=True, slots=True)
class Button:
    """A button, or a row of a list, as a phone shows it.

    Attributes:
        index: counted from 0, over the message or over the card.
        type: `QUICK_REPLY`, `URL`, `PHONE_NUMBER`, `REPLY`, `LIST_ROW`, `FLOW` and so on.
        text: its label.
        card: its card, counted from 0; None if it belongs to the message itself.
    """

    index: int
    type: str
    text: str
    card: int | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message on a phone, in either direction.

    Attributes:
        wamid: the operator's id.
        message_id: ours, as the send returned it; empty if the phone wrote the message.
        from_phone: whether the phone wrote it.
        type: `text`, `template`, `image`, `interactive` and so on.
        text: the body, or a medium's caption.
        header: the text above the body, if any.
        footer: the text below the body, if any.
        buttons: in order; those of cards after those of the message.
        state: `sent`, `delivered` or `read`.
        at_ms: when it was sent, by the service's clock.
        reply_to: the wamid of the message it replies to, if any.
        raw: its record in the control API.
    """

    wamid: str
    message_id: str
    from_phone: bool
    type: str
    text: str
    header: str
    footer: str
    buttons: tuple[Button, ...]
    state: str
    at_ms: int
    reply_to: str
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its buttons."""
        return tuple(button.text for button in self.buttons)

    def __str__(self) -> str:
        """Return one line for the text of a failure."""
        verb = "wrote" if self.from_phone else "got"
        below = "".join(f" [{label}]" for label in self.labels)
        state = "" if self.from_phone else f", {self.state}"
        return f'{clock_time(self.at_ms)} {verb} {self.type} "{shorten(self.text)}"{below}{state}'


def parse_message(view: Mapping[str, Any]) -> Message:
    """Return a message from its record in the control API."""
    from_phone = view.get("direction") == "from_phone"
    buttons = [_parse_button(button) for button in objects_in(view.get("buttons"))]
    for card in objects_in(view.get("cards")):
        index = int(card.get("index", 0))
        buttons += [_parse_button(button, index) for button in objects_in(card.get("buttons"))]
    header = view.get("header")
    header_object = object_or_none(header)
    return Message(
        wamid=str(view.get("wamid", "")),
        message_id="" if from_phone else str(view.get("callback_data") or ""),
        from_phone=from_phone,
        type=str(view.get("type", "")),
        text=str(view.get("text") or ""),
        header=str((header if header_object is None else header_object.get("text")) or ""),
        footer=str(view.get("footer") or ""),
        buttons=tuple(buttons),
        state=str(view.get("state", "")),
        at_ms=int(view.get("at_ms", 0)),
        reply_to=str(view.get("context_id") or ""),
        raw=view,
    )


def _parse_button(view: Mapping[str, Any], card: int | None = None) -> Button:
    return Button(int(view.get("index", 0)), str(view.get("type", "")), str(view.get("text", "")), card)
