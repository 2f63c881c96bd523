"""Callbacks as they come, of either version."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from waypost.base.json_values import object_of, objects_in
from waypost.testing.formatting import shortened


@dataclass(frozen=True, slots=True)
class Callback:
    """One callback as it came, and what it was answered.

    Attributes:
        id: the header `Waypost-Callback-Id`, the same at every try.
        sequence: the header `Waypost-Sequence`.
        body: the JSON value.
        headers: of the request; names in lower case.
        status: what was answered; by your application where callbacks go on to it.
        answer: the beginning of the answer's body, or why there was none.
    """

    id: str
    sequence: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(repr=False, compare=False)
    status: int = 200
    answer: str = ""

    @property
    def kind(self) -> str:
        """What happened, in one word.

        `enqueued`, `sent`, `delivered`, `read`, `failed`; `text`, `quick_reply`, `button_reply`, `image` and
        so on for what a phone sends; `status-update` of a template. The value of `payload.type` in version
        2; of version 3 the status, the message's type, or the field.
        """
        if "entry" in self.body:
            value = self._value
            for items, name in (("statuses", "status"), ("messages", "type")):
                found = _first(value.get(items))
                if found:
                    return str(found.get(name, ""))
            return str(self._change.get("field", ""))
        return str(object_of(self.body.get("payload")).get("type") or self.body.get("type", ""))

    @property
    def message_id(self) -> str:
        """Our id of the message it is about, also of the one that was answered; empty where there is none."""
        if "entry" in self.body:
            status, message = _first(self._value.get("statuses")), self._message
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
        """The digits of the phone it is about; empty where there is none."""
        if "entry" in self.body:
            status, message = _first(self._value.get("statuses")), self._message
            return str(status.get("recipient_id") or message.get("from") or "")
        payload = object_of(self.body.get("payload"))
        return str(payload.get("destination") or payload.get("source") or "")

    @property
    def text(self) -> str:
        """What a person wrote, or the label of what was tapped; empty for all else."""
        if "entry" in self.body:
            said = object_of(self._message.get(str(self._message.get("type", ""))))
            return str(said.get("body") or said.get("text") or said.get("caption") or "")
        payload = object_of(self.body.get("payload"))
        if self.body.get("type") != "message":
            return ""
        said = object_of(payload.get("payload"))
        return str(said.get("text") or said.get("title") or said.get("caption") or "")

    @property
    def postback_text(self) -> str:
        """What the sender put behind the tapped button; empty where it put nothing."""
        inner = object_of(object_of(self.body.get("payload")).get("payload"))
        return str(inner.get("postbackText") or "")

    @property
    def reason(self) -> str:
        """Why a message failed, or why a template was rejected; empty for all else."""
        payload = object_of(self.body.get("payload"))
        inner = object_of(payload.get("payload"))
        if inner.get("code"):
            return f"{inner['code']} {inner.get('reason', '')}".strip()
        return str(payload.get("rejectedReason") or "")

    def __str__(self) -> str:
        """One line for a failure's text."""
        parts = [self.kind]
        if self.message_id:
            parts.append(f"of message {self.message_id}")
        if self.phone:
            parts.append(f"phone {self.phone}")
        parts += [f'"{shortened(text)}"' for text in (self.text, self.reason) if text]
        status = object_of(self.body.get("payload")).get("status")
        if status:
            name = object_of(self.body.get("payload")).get("elementName", "")
            parts.append(f"{name} {status}".strip())
        answered = f"answered {self.status}" if self.status else "not answered"
        why = f": {shortened(self.answer)}" if self.answer and not self.was_taken else ""
        return f"{', '.join(parts)}; {answered}{why}"

    @property
    def was_taken(self) -> bool:
        """Whether the answer counts as received."""
        return 200 <= self.status < 300

    @property
    def _change(self) -> Mapping[str, Any]:
        return _first(_first(self.body.get("entry")).get("changes"))

    @property
    def _value(self) -> Mapping[str, Any]:
        return object_of(self._change.get("value"))

    @property
    def _message(self) -> Mapping[str, Any]:
        return _first(self._value.get("messages"))


def _first(value: object) -> Mapping[str, Any]:
    """The first object of a list."""
    found = objects_in(value)
    return found[0] if found else {}
