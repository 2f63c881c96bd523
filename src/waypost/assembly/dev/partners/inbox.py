"""The callbacks of one partner for a test: the newest attempts, and waiting for them."""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import object_of, objects_in
from waypost.simulator.dev_partners import CallbackFilterBody

_MAX_ATTEMPTS: Final = 1000
_MAX_BYTES: Final = 1_000_000
_MAX_RESPONSE_CHARS: Final = 4096


@dataclass(frozen=True, slots=True)
class CallbackAttemptView:
    """One received attempt of a callback, and the response to it.

    Attributes:
        position: counts the attempts of the inbox from 1.
        id: the header `Waypost-Callback-Id`, the same for every attempt of one callback.
        sequence: the header `Waypost-Sequence`.
        body: the JSON value.
        headers: of the request; names in lower case.
        status: of the response; 0 if the application did not respond.
        response: the beginning of the response's body, or why there was none.
        size_bytes: of the body.
    """

    position: int
    id: str
    sequence: int
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    status: int
    response: str
    size_bytes: int

    @property
    def kind(self) -> str:
        """The event: `delivered`, `failed`, `text`, `quick_reply`, `status-update` and so on.

        In version 2 it is the value of `payload.type`; in version 3 the status, the message's type, or the field.
        """
        if not self._is_version_3:
            return str(self._payload.get("type") or self.body.get("type", ""))
        status, message = self._status, self._message
        return str(status.get("status") or message.get("type") or self._change.get("field", ""))

    @property
    def message_id(self) -> str:
        """Our id of the message it is about, or of the message that was replied to; empty if there is none."""
        if self._is_version_3:
            return str(self._status.get("gs_id") or object_of(self._message.get("context")).get("gs_id") or "")
        payload = self._payload
        ids = [payload.get("gsId"), object_of(payload.get("context")).get("gsId")]
        ids += [payload.get("id")] if self.body.get("type") == "message-event" else []
        ids += [object_of(payload.get("references")).get("gsId")]
        return str(next((value for value in ids if value), ""))

    @property
    def phone(self) -> str:
        """The digits of the phone it is about; empty if there is none."""
        if self._is_version_3:
            return str(self._status.get("recipient_id") or self._message.get("from") or "")
        return str(self._payload.get("destination") or self._payload.get("source") or "")

    @property
    def text(self) -> str:
        """The text of an inbound message, or the label of the tapped button; otherwise empty."""
        if self._is_version_3:
            content = object_of(self._message.get(str(self._message.get("type", ""))))
            return str(content.get("body") or content.get("text") or content.get("caption") or "")
        if self.body.get("type") != "message":
            return ""
        content = object_of(self._payload.get("payload"))
        return str(content.get("text") or content.get("title") or content.get("caption") or "")

    @property
    def postback_text(self) -> str:
        """The postback text that the sender set for the tapped button; empty if it set none."""
        return str(object_of(self._payload.get("payload")).get("postbackText") or "")

    @property
    def reason(self) -> str:
        """The reason why a message failed or a template was rejected; otherwise empty."""
        inner = object_of(self._payload.get("payload"))
        if inner.get("code"):
            return f"{inner['code']} {inner.get('reason', '')}".strip()
        return str(self._payload.get("rejectedReason") or "")

    @property
    def template_status(self) -> str:
        """Name and status of the template it is about; empty if it is about none."""
        status = self._payload.get("status")
        return f"{self._payload.get('elementName', '')} {status}".strip() if status else ""

    @property
    def was_delivered(self) -> bool:
        """True if the status is 2xx, which counts as delivered."""
        return 200 <= self.status < 300

    def matches(self, wanted: CallbackFilterBody) -> bool:
        """True if all conditions are met."""
        return (
            wanted.kind in ("", self.kind)
            and wanted.message_id in ("", self.message_id)
            and wanted.phone.lstrip("+") in ("", self.phone)
            and wanted.text in self.text
            and wanted.postback_text in ("", self.postback_text)
        )

    def view(self) -> dict[str, Any]:
        """Return it as the control API shows it."""
        return {
            "position": self.position,
            "id": self.id,
            "sequence": self.sequence,
            "kind": self.kind,
            "message_id": self.message_id,
            "phone": self.phone,
            "text": self.text,
            "postback_text": self.postback_text,
            "reason": self.reason,
            "status": self.status,
            "response": self.response,
            "headers": self.headers,
            "body": self.body,
        }

    @property
    def _is_version_3(self) -> bool:
        return "entry" in self.body

    @property
    def _payload(self) -> Mapping[str, Any]:
        return object_of(self.body.get("payload"))

    @property
    def _change(self) -> Mapping[str, Any]:
        return _first_object(_first_object(self.body.get("entry")).get("changes"))

    @property
    def _status(self) -> Mapping[str, Any]:
        return _first_object(object_of(self._change.get("value")).get("statuses"))

    @property
    def _message(self) -> Mapping[str, Any]:
        return _first_object(object_of(self._change.get("value")).get("messages"))


def _first_object(value: object) -> Mapping[str, Any]:
    found = objects_in(value)
    return found[0] if found else {}


class PartnerInbox:
    """The newest attempts of one partner's callbacks, at most 1000 and 1 MB of them.

    Attributes:
        attempts: whatever the response was, oldest first.
    """

    def __init__(self) -> None:
        self.attempts: deque[CallbackAttemptView] = deque()
        self._returned_ids: set[str] = set()
        self._size_bytes = 0
        self._next_position = 1
        self._changed = asyncio.Event()

    def add(self, raw: bytes, headers: Mapping[str, str], status: int, response: str) -> None:
        """Add one attempt, and wake the waits."""
        try:
            body = object_of(json.loads(raw))
        except ValueError:
            body = {"type": "unreadable", "body": raw.decode("utf-8", "replace")}
        sequence = headers.get("waypost-sequence", "")
        position, self._next_position = self._next_position, self._next_position + 1
        attempt = CallbackAttemptView(
            position=position,
            id=headers.get("waypost-callback-id") or str(position),
            sequence=int(sequence) if sequence.isdecimal() else 0,
            body=body,
            headers=headers,
            status=status,
            response=response[:_MAX_RESPONSE_CHARS],
            size_bytes=len(raw),
        )
        self.attempts.append(attempt)
        self._size_bytes += len(raw)
        while len(self.attempts) > 1 and (len(self.attempts) > _MAX_ATTEMPTS or self._size_bytes > _MAX_BYTES):
            dropped = self.attempts.popleft()
            self._size_bytes -= dropped.size_bytes
            self._returned_ids.discard(dropped.id)
        self.wake()

    def clear(self) -> None:
        """Remove all attempts."""
        self.attempts.clear()
        self._returned_ids.clear()
        self._size_bytes = 0

    def wake(self) -> None:
        """Make the waits look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def find_unreturned(self, wanted: CallbackFilterBody) -> CallbackAttemptView | None:
        """Return the first match with a 2xx response that no wait has returned; None if there is none."""
        return next(
            (
                attempt
                for attempt in self.attempts
                if attempt.was_delivered and attempt.id not in self._returned_ids and attempt.matches(wanted)
            ),
            None,
        )

    async def wait(
        self, wanted: CallbackFilterBody, timeout_ms: int, *, check: Callable[[], None]
    ) -> CallbackAttemptView | None:
        """Return the first match, as `find_unreturned` does; None after the timeout.

        Args:
            timeout_ms: real time.
            check: called at each change; its exception ends the wait.
        """
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while True:
                    changed = self._changed
                    check()
                    if (match := self.find_unreturned(wanted)) is not None:
                        return match
                    await changed.wait()
        except TimeoutError:
            return self.find_unreturned(wanted)

    def mark_returned(self, attempt: CallbackAttemptView) -> None:
        """Exclude a callback from later waits."""
        self._returned_ids.add(attempt.id)
