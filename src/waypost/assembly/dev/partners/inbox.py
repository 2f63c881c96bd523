"""The callbacks of partners for tests: their receiver on the simulator's port, and the inbox of each partner.

Forwarding makes a test of an application exact: a callback counts as received once the application has responded, and
the service gets that response, so that it retries a failed callback.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from waypost.base.error_texts import error_text
from waypost.base.json_values import object_of, objects_in
from waypost.client.api_client import ApiUnreachable, HttpTransport
from waypost.simulator.apis.dev_partners import CallbackAttemptView, CallbackFilterBody

INBOX_PATH: Final = "/callbacks/"
"""Path of the inboxes on the simulator's port; followed by the partner's id."""
_MAX_ATTEMPTS: Final = 1000
_MAX_BYTES: Final = 1_000_000
_MAX_RESPONSE_CHARS: Final = 4096
_FORWARD_TIMEOUT_S: Final = 10  # Source: docs/how-to/receive-callbacks.md
_NOT_FORWARDED: Final = frozenset({"host", "connection", "content-length", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class CallbackOptions:
    """Subscription and responses of a partner's inbox."""

    forward_to: str  # URL of the application under test; empty: callbacks are not forwarded
    status: int  # of the response while callbacks are not forwarded
    version: int  # of the bodies, 2 or 3
    modes: tuple[str, ...]  # of the subscription
    headers: tuple[tuple[str, str], ...]  # that the service adds to each callback


def _first_text(*values: object) -> str:
    return str(next((value for value in values if value), ""))


def _read_version_2(body: Mapping[str, Any]) -> dict[str, str]:
    payload = object_of(body.get("payload"))
    content, context = object_of(payload.get("payload")), object_of(payload.get("context"))
    is_message, is_event = body.get("type") == "message", body.get("type") == "message-event"
    reason = f"{content['code']} {content.get('reason', '')}".strip() if content.get("code") else ""
    return {
        "kind": str(payload.get("type") or body.get("type", "")),
        "message_id": _first_text(
            payload.get("gsId"),
            context.get("gsId"),
            payload.get("id") if is_event else "",
            object_of(payload.get("references")).get("gsId"),
        ),
        "phone": _first_text(payload.get("destination"), payload.get("source")),
        "text": _first_text(*map(content.get, ("text", "title", "caption"))) if is_message else "",
        "postback_text": _first_text(content.get("postbackText")),
        "reason": reason or _first_text(payload.get("rejectedReason")),
    }


def _read_version_3(body: Mapping[str, Any]) -> dict[str, str]:
    change = _first_object(_first_object(body.get("entry")).get("changes"))
    value = object_of(change.get("value"))
    status, message = _first_object(value.get("statuses")), _first_object(value.get("messages"))
    content = object_of(message.get(str(message.get("type", ""))))
    return {
        "kind": _first_text(status.get("status"), message.get("type"), change.get("field", "")),
        "message_id": _first_text(status.get("gs_id"), object_of(message.get("context")).get("gs_id")),
        "phone": _first_text(status.get("recipient_id"), message.get("from")),
        "text": _first_text(*map(content.get, ("body", "text", "caption"))),
        "postback_text": "",
        "reason": "",
    }


def _first_object(value: object) -> Mapping[str, Any]:
    found = objects_in(value)
    return found[0] if found else {}


class PartnerInbox:
    """The newest attempts of one partner's callbacks, at most 1000 and 1 MB of them.

    Attributes:
        options: of its subscription and its responses.
        attempts: whatever the response was, oldest first.
    """

    def __init__(self, options: CallbackOptions) -> None:
        self.options = options
        self.attempts: deque[CallbackAttemptView] = deque()
        self._sizes: deque[int] = deque()
        self._returned_ids: set[str] = set()
        self._next_position = 1
        self._changed = asyncio.Event()

    async def receive(self, request: Request) -> Response:
        """Take a callback, and respond as the options say, or as the application to which it is forwarded."""
        body, headers = await request.body(), dict(request.headers.items())
        url = self.options.forward_to
        if not url:
            self._add(body, headers, self.options.status, "")
            return Response(status_code=self.options.status)
        status, content = await _forward(url, body, headers)
        self._add(body, headers, status, content.decode("utf-8", "replace"))
        return Response(content, status or 502)

    def _add(self, raw: bytes, headers: Mapping[str, str], status: int, response: str) -> None:
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
            status=status,
            response=response[:_MAX_RESPONSE_CHARS],
            headers=dict(headers),
            body=body,
            **(_read_version_3(body) if "entry" in body else _read_version_2(body)),
        )
        self.attempts.append(attempt)
        self._sizes.append(len(raw))
        while len(self.attempts) > 1 and (len(self.attempts) > _MAX_ATTEMPTS or sum(self._sizes) > _MAX_BYTES):
            self._sizes.popleft()
            self._returned_ids.discard(self.attempts.popleft().id)
        self.wake()

    def clear(self) -> None:
        """Remove all attempts."""
        self.attempts.clear()
        self._sizes.clear()
        self._returned_ids.clear()

    def wake(self) -> None:
        """Make the waits look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(
        self, wanted: CallbackFilterBody, timeout_ms: int, *, check: Callable[[], None]
    ) -> CallbackAttemptView | None:
        """Return the first match with a 2xx response that no wait has returned; None after the timeout.

        Args:
            timeout_ms: real time.
            check: called at each change; its exception ends the wait.
        """
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while True:
                    changed = self._changed
                    check()
                    if (match := self._find_unreturned(wanted)) is not None:
                        return match
                    await changed.wait()
        except TimeoutError:
            return self._find_unreturned(wanted)

    def _find_unreturned(self, wanted: CallbackFilterBody) -> CallbackAttemptView | None:
        for attempt in self.attempts:
            if attempt.was_delivered and attempt.id not in self._returned_ids and attempt.matches(wanted):
                return attempt
        return None

    def mark_returned(self, attempt: CallbackAttemptView) -> None:
        """Exclude a callback from later waits."""
        self._returned_ids.add(attempt.id)


class PartnerCallbackReceiver:
    """An ASGI application: callbacks go to the partner's inbox, all other requests to the simulator.

    Args:
        find_inbox: returns that of the partner with an id; None if there is none.
    """

    def __init__(self, simulator: Any, find_inbox: Callable[[str], PartnerInbox | None]) -> None:
        self._simulator = simulator
        self._find_inbox = find_inbox

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        if scope["type"] != "http" or not scope["path"].startswith(INBOX_PATH):
            await self._simulator(scope, receive, send)
            return
        inbox = self._find_inbox(scope["path"].removeprefix(INBOX_PATH))
        if scope["method"] != "POST":
            response = Response("a callback is a POST", 405, {"allow": "POST"})
        elif inbox is None:
            response = Response("there is no such partner", 410)
        else:
            response = await inbox.receive(Request(scope, receive))
        await response(scope, receive, send)


async def _forward(url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Return status and body of the application's response; without one, 0 and the reason."""
    parts = urlsplit(url)
    forwarded = {name.title(): text for name, text in headers.items() if name not in _NOT_FORWARDED}  # as sent
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    transport = HttpTransport(f"{parts.scheme}://{parts.netloc}", timeout_s=_FORWARD_TIMEOUT_S)
    try:
        response = await transport("POST", path, forwarded, body)
    except ApiUnreachable as error:
        return 0, f"your application at {url} did not respond: {error_text(error.__cause__ or error)}".encode()
    return response.status, response.body
