"""Messages on a simulated phone, and the traces of those that a partner has sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_waypost.client import object_of, objects_in
from pytest_waypost.formatting import clock_time, count_in_words, shorten


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
    return Message(
        wamid=str(view.get("wamid", "")),
        message_id="" if from_phone else str(view.get("callback_data") or ""),
        from_phone=from_phone,
        type=str(view.get("type", "")),
        text=str(view.get("text") or ""),
        header=header if isinstance(header, str) else str(object_of(header).get("text") or ""),
        footer=str(view.get("footer") or ""),
        buttons=tuple(buttons),
        state=str(view.get("state", "")),
        at_ms=int(view.get("at_ms", 0)),
        reply_to=str(view.get("context_id") or ""),
        raw=view,
    )


def _parse_button(view: Mapping[str, Any], card: int | None = None) -> Button:
    return Button(int(view.get("index", 0)), str(view.get("type", "")), str(view.get("text", "")), card)


@dataclass(frozen=True, slots=True)
class MessageTraceStep:
    """One event of a message.

    Attributes:
        event: `accepted`, `enqueued`, `sent`, `delivered`, `read`, `failed` and so on.
        at_ms: its time, by the service's clock.
        changed_state: false if it came late and did not change the state.
    """

    event: str
    at_ms: int
    changed_state: bool = True


@dataclass(frozen=True, slots=True)
class Trace:
    """The trace of one message.

    Attributes:
        message_id: ours.
        state: `accepted`, `enqueued`, `sent`, `delivered`, `read` or `failed`.
        code: of a failure, else None.
        reason: of a failure, as text of the operator or ours.
        destination: the digits of the recipient.
        steps: its steps, oldest first.
        waiting: its job's attempts, next due time and last error; empty once it has left the service.
        raw: its record in the admin API.
    """

    message_id: str
    state: str
    code: int | None
    reason: str
    destination: str
    steps: tuple[MessageTraceStep, ...]
    waiting: str
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    def __str__(self) -> str:
        """Return one line for the text of a failure."""
        steps = " → ".join(f"{step.event} {clock_time(step.at_ms)}" for step in self.steps)
        failure = f" {self.code or ''} {self.reason}".rstrip() if self.state == "failed" else ""
        waits = f"; {self.waiting}" if self.waiting else ""
        return f"{self.message_id} to {self.destination}: {self.state}{failure} ({steps}){waits}"


def parse_trace(view: Mapping[str, Any]) -> Trace:
    """Return a trace from a message's record in the admin API."""
    steps = [
        MessageTraceStep(str(step["event"]), int(step["at_ms"]), bool(step["applied"]))
        for step in objects_in(view["events"])
    ]
    return Trace(
        message_id=str(view["id"]),
        state=str(view["state"]),
        code=view.get("code"),
        reason=str(view.get("reason") or ""),
        destination=str(view["destination"]),
        steps=(MessageTraceStep("accepted", int(view["accepted_on_ms"])), *steps),
        waiting=_describe_waiting(object_of(view.get("waiting"))),
        raw=view,
    )


def _describe_waiting(job: Mapping[str, Any]) -> str:
    if not job:
        return ""
    if not job["attempt"]:
        return "no attempt yet"
    reason = f": {job['note']}" if job.get("note") else ""
    return f"tried {count_in_words(int(job['attempt']))}, next attempt at {clock_time(int(job['due_ms']))}{reason}"
