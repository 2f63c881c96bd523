"""The plugin's own receiver of callbacks: a real server, which may pass them on to the application.

Passing on is what makes a test of a webhook exact: a callback counts as come once the application has
answered it, and the service gets that very answer, so that a refused one is tried again.
"""

import http.client
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from waypost.base.error_texts import error_text
from waypost.testing.callback import Callback

_ANSWER_WITHIN_S: Final = 10  # Source: docs/how-to/receive-callbacks.md, "Answer"
_NOT_PASSED_ON: Final = frozenset({"host", "connection", "content-length", "transfer-encoding"})


@dataclass
class Box:
    """What came for one partner.

    Attributes:
        tries: every request in order, whatever it was answered.
        goes_to: the address of the application, empty while callbacks end here.
        answers: chooses a status while callbacks end here.
    """

    url: str
    tries: list[Callback] = field(default_factory=list[Callback])
    goes_to: str = ""
    answers: Callable[[Callback], int] = lambda _: 200
    came: threading.Condition = field(default_factory=threading.Condition)

    @property
    def taken(self) -> tuple[Callback, ...]:
        """The callbacks that were answered with 2xx, each once."""
        found = {one.id or str(place): one for place, one in enumerate(self.tries) if one.was_taken}
        return tuple(found.values())

    def keep(self, callback: Callback) -> None:
        """Note one try, and wake whoever waits."""
        with self.came:
            self.tries.append(callback)
            self.came.notify_all()


class Receiver:
    """One server on loopback for every partner of a test run; each has a path of its own."""

    def __init__(self) -> None:
        self._boxes: dict[str, Box] = {}
        receiver = self

        class Handler(_Handler):
            boxes = receiver._boxes

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._serving = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="waypost-receiver", daemon=True
        )
        self._serving.start()

    def open_box(self, name: str) -> Box:
        """A place for one partner's callbacks, under an address of its own."""
        port = self._server.server_address[1]
        box = Box(f"http://127.0.0.1:{port}/{name}")
        self._boxes[f"/{name}"] = box
        return box

    def close_box(self, name: str) -> None:
        """Keep nothing more for a partner; what still comes is answered with 410."""
        self._boxes.pop(f"/{name}", None)

    def close(self) -> None:
        """Listen no longer."""
        self._server.shutdown()
        self._server.server_close()
        self._serving.join()


class _Handler(BaseHTTPRequestHandler):
    boxes: Mapping[str, Box]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        box = self.boxes.get(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        if box is None:
            self._answer(410, b"")
            return
        if not box.goes_to:
            came = _callback(body, headers, 0, "")
            status = box.answers(came)
            box.keep(_callback(body, headers, status, ""))
            self._answer(status, b"")
            return
        status, answer = _pass_on(box.goes_to, body, dict(self.headers.items()))
        box.keep(_callback(body, headers, status, answer.decode("utf-8", "replace")))
        self._answer(status or 502, answer)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: failures show what came."""

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _callback(body: bytes, headers: Mapping[str, str], status: int, answer: str) -> Callback:
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
        answer=answer[:4096],
    )


def _pass_on(url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """What the application answers; a status of 0 when it does not, with the reason as the answer."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = connect(parts.hostname or "", parts.port, timeout=_ANSWER_WITHIN_S)
    sent = {name: text for name, text in headers.items() if name.lower() not in _NOT_PASSED_ON}
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("POST", path, body, sent)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        return 0, f"your application at {url} did not answer: {error_text(error)}".encode()
    finally:
        connection.close()
