"""The plugin's own receiver of callbacks: a real server, which can forward them to the application.

Forwarding makes a test of an application exact: a callback counts as received once the application has
responded, and the service gets that response, so that it retries a failed callback.
"""

import http.client
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from pytest_waypost.callback import Callback
from pytest_waypost.client import PluginResponse

_RESPONSE_TIMEOUT_S: Final = 10  # Source: docs/how-to/receive-callbacks.md
_NOT_FORWARDED: Final = frozenset({"host", "connection", "content-length", "transfer-encoding"})


@dataclass
class CallbackInbox:
    """The callbacks of one partner.

    Attributes:
        attempts: every attempt, whatever the response was, oldest first.
        forward_url: URL of the application; empty while callbacks are not forwarded.
        choose_status: returns the status of a response while callbacks are not forwarded.
    """

    url: str
    attempts: list[Callback] = field(default_factory=list[Callback])
    forward_url: str = ""
    choose_status: Callable[[Callback], int] = lambda _: 200
    changed: threading.Condition = field(default_factory=threading.Condition)
    _returned_ids: set[str] = field(default_factory=set[str])

    @property
    def delivered(self) -> tuple[Callback, ...]:
        """The callbacks with a 2xx response, each once."""
        by_id = {each.id or str(index): each for index, each in enumerate(self.attempts) if each.was_delivered}
        return tuple(by_id.values())

    def add(self, callback: Callback) -> None:
        """Add one attempt, and wake the threads that wait for it."""
        with self.changed:
            self.attempts.append(callback)
            self.changed.notify_all()

    def wait_for(self, matches: Callable[[Callback], bool], within_s: float) -> Callback | None:
        """Return the first delivered match that was not returned before; None if there is none in time."""

        def find() -> Callback | None:
            unreturned = (each for each in self.delivered if each.id not in self._returned_ids)
            return next(filter(matches, unreturned), None)

        with self.changed:
            callback = self.changed.wait_for(find, within_s)
            if callback is not None:
                self._returned_ids.add(callback.id)
            return callback


class Receiver:
    """One server on loopback for every partner of a test run; each partner has its own path."""

    def __init__(self) -> None:
        self._inboxes: dict[str, CallbackInbox] = {}
        receiver = self

        class BoundHandler(_CallbackRequestHandler):
            inboxes = receiver._inboxes

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), BoundHandler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="waypost-receiver", daemon=True
        )
        self._thread.start()

    def open_inbox(self, name: str) -> CallbackInbox:
        """Return an inbox for one partner's callbacks, with its own URL."""
        port = self._server.server_address[1]
        box = CallbackInbox(f"http://127.0.0.1:{port}/{name}")
        self._inboxes[f"/{name}"] = box
        return box

    def close_inbox(self, name: str) -> None:
        """Close a partner's inbox; further callbacks get status 410."""
        self._inboxes.pop(f"/{name}", None)

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _CallbackRequestHandler(BaseHTTPRequestHandler):
    inboxes: Mapping[str, CallbackInbox]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        box = self.inboxes.get(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        if box is None:
            self._respond(410, b"")
            return
        if not box.forward_url:
            callback = _make_callback(body, headers, 0, "")
            status = box.choose_status(callback)
            box.add(_make_callback(body, headers, status, ""))
            self._respond(status, b"")
            return
        status, response = _forward(box.forward_url, body, dict(self.headers.items()))
        box.add(_make_callback(body, headers, status, response.decode("utf-8", "replace")))
        self._respond(status or 502, response)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: failures show the callbacks."""

    def _respond(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _make_callback(body: bytes, headers: Mapping[str, str], status: int, response: str) -> Callback:
    try:
        value = json.loads(body)
    except ValueError:
        value = {"type": "unreadable", "body": body.decode("utf-8", "replace")}
    return Callback(
        id=headers.get("waypost-callback-id", ""),
        sequence=int(headers.get("waypost-sequence") or 0),
        body=value,
        headers=headers,
        status=status,
        response=response[:4096],
    )


def _forward(url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Return status and body of the application's response; without one, 0 and the reason."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = connect(parts.hostname or "", parts.port, timeout=_RESPONSE_TIMEOUT_S)
    connection.response_class = PluginResponse
    forwarded = {name: text for name, text in headers.items() if name.lower() not in _NOT_FORWARDED}
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("POST", path, body, forwarded)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return 0, f"your application at {url} did not respond: {reason}".encode()
    finally:
        connection.close()
