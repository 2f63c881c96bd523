"""Received callbacks, of either version."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_waypost.client import object_of, objects_in
from pytest_waypost.formatting import shorten


@dataclass(frozen=True, slots=True)
class Callback:
    """One received callback, and the response to it.

    Attributes:
        id: the header `Waypost-Callback-Id`, the same for every attempt.
        sequence: the header `Waypost-Sequence`.
        body: the JSON value.
        headers: of the request; names in lower case.
        status: of the response; your application's, if callbacks are forwarded to it.
        response: the beginning of the response's body, or why there was no response.
    """

    id: str
    sequence: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(repr=False, compare=False)
    status: int = 200
    response: str = ""

    @property
    def kind(self) -> str:
        """The event, in one word.

        `enqueued`, `sent`, `delivered`, `read`, `failed`; `text`, `quick_reply`, `button_reply`, `image` and
        so on for inbound messages; `status-update` for a template. In version 2 it is the value of
        `payload.type`; in version 3 the status, the message's type, or the field.
        """
        if "entry" in self.body:
            value = self._value
            for items, name in (("statuses", "status"), ("messages", "type")):
                item = _first_object(value.get(items))
                if item:
                    return str(item.get(name, ""))
            return str(self._change.get("field", ""))
        return str(object_of(self.body.get("payload")).get("type") or self.body.get("type", ""))

    @property
    def message_id(self) -> str:
        """Our id of the message it is about, or of the message that was replied to; empty if there is none."""
        if "entry" in self.body:
            status, message = _first_object(self._value.get("statuses")), self._message
            return str(status.get("gs_id") or object_of(message.get("context")).get("gs_id") or "")
        payload = object_of(self.body.get("payload"))
        context = object_of(payload.get("context"))
        ours = payload.get("gsId") or context.get("gsId")
        if not ours and self.body.get("type") == "message-event":
            ours = payload.get("id")
        if not ours:
            ours = object_of(payload.get("references")).get("gsId")
        return str(ours or "")

    @property
    def phone(self) -> str:
        """The digits of the phone it is about; empty if there is none."""
        if "entry" in self.body:
            status, message = _first_object(self._value.get("statuses")), self._message
            return str(status.get("recipient_id") or message.get("from") or "")
        payload = object_of(self.body.get("payload"))
        return str(payload.get("destination") or payload.get("source") or "")

    @property
    def text(self) -> str:
        """The text of an inbound message, or the label of the tapped button; otherwise empty."""
        if "entry" in self.body:
            content = object_of(self._message.get(str(self._message.get("type", ""))))
            return str(content.get("body") or content.get("text") or content.get("caption") or "")
        payload = object_of(self.body.get("payload"))
        if self.body.get("type") != "message":
            return ""
        content = object_of(payload.get("payload"))
        return str(content.get("text") or content.get("title") or content.get("caption") or "")

    @property
    def postback_text(self) -> str:
        """The postback text that the sender set for the tapped button; empty if it set none."""
        inner = object_of(object_of(self.body.get("payload")).get("payload"))
        return str(inner.get("postbackText") or "")

    @property
    def reason(self) -> str:
        """The reason why a message failed or a template was rejected; otherwise empty."""
        payload = object_of(self.body.get("payload"))
        inner = object_of(payload.get("payload"))
        if inner.get("code"):
            return f"{inner['code']} {inner.get('reason', '')}".strip()
        return str(payload.get("rejectedReason") or "")

    def __str__(self) -> str:
        """Return one line for the text of a failure."""
        parts = [self.kind]
        if self.message_id:
            parts.append(f"of message {self.message_id}")
        if self.phone:
            parts.append(f"phone {self.phone}")
        parts += [f'"{shorten(text)}"' for text in (self.text, self.reason) if text]
        status = object_of(self.body.get("payload")).get("status")
        if status:
            name = object_of(self.body.get("payload")).get("elementName", "")
            parts.append(f"{name} {status}".strip())
        response = f"response {self.status}" if self.status else "no response"
        reason = f": {shorten(self.response)}" if self.response and not self.was_delivered else ""
        return f"{', '.join(parts)}; {response}{reason}"

    @property
    def was_delivered(self) -> bool:
        """True if the status is 2xx, which counts as delivered."""
        return 200 <= self.status < 300

    @property
    def _change(self) -> Mapping[str, Any]:
        return _first_object(_first_object(self.body.get("entry")).get("changes"))

    @property
    def _value(self) -> Mapping[str, Any]:
        return object_of(self._change.get("value"))

    @property
    def _message(self) -> Mapping[str, Any]:
        return _first_object(self._value.get("messages"))


def _first_object(value: object) -> Mapping[str, Any]:
    """Return the first object of a list, or an empty one."""
    items = objects_in(value)
    return items[0] if items else {}
