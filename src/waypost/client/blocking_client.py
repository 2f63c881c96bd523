"""One door over HTTP for programs that wait: no event loop, no pool, nothing that takes long to import."""

import http.client
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from waypost.client.responses import NotReached, Reply, is_told, read_answer

__tracebackhide__ = is_told

FORM: Final = "application/x-www-form-urlencoded"
JSON: Final = "application/json"


class BlockingApiClient:
    """Calls of one door, with its credential; each has a connection of its own, so threads may share it.

    Every call raises `ApiResponseError` for any answer but 2xx, and `NotReached` when nobody answers.

    Args:
        base_url: where it is; what calls name begins after it.
        headers: of every request, the credential among them.
        timeout_s: for one call.
    """

    def __init__(self, base_url: str, headers: Mapping[str, str] | None = None, *, timeout_s: float = 15) -> None:
        self.base_url = base_url.rstrip("/")
        self._headers = dict(headers or {})
        self._timeout_s = timeout_s

    def json(self, method: str, path: str, body: Any = None, *, timeout_s: float = 0) -> Any:
        """A call that takes and gives JSON.

        Args:
            method: of the request.
            path: after the address of the door.
            body: what is sent; None sends nothing.
            timeout_s: for calls that wait on purpose; 0 leaves the door's own.
        """
        content = None if body is None else msgspec.json.encode(body)
        return self._read(method, path, content, JSON, timeout_s)

    def form(self, method: str, path: str, fields: Mapping[str, str]) -> Any:
        """A call that takes a form and gives JSON."""
        return self._read(method, path, urlencode(fields).encode(), FORM)

    def file(self, method: str, path: str, content: bytes, *, file_type: str, name: str) -> Any:
        """A call that takes one file, and its type beside it, and gives JSON."""
        boundary = f"waypost-{sha256(content).hexdigest()[:24]}"
        quoted = name.replace('"', "%22").replace("\r", "").replace("\n", "")
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file_type"\r\n\r\n{file_type}\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{quoted}"\r\n'
            f"Content-Type: {file_type}\r\n\r\n"
        )
        body = head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
        return self._read(method, path, body, f"multipart/form-data; boundary={boundary}")

    def ask(self, method: str, path: str, body: bytes | None, kind: str, *, timeout_s: float = 0) -> Reply:
        """Send one request and give the answer, whatever its status.

        Args:
            method: of the request.
            path: after the address of the door.
            body: what is sent, if anything.
            kind: its content type.
            timeout_s: 0 leaves the door's own.

        Raises:
            NotReached: nobody answers there, or not in time.
        """
        parts = urlsplit(self.base_url)
        secure = parts.scheme == "https"
        connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = connect(parts.hostname or "", parts.port, timeout=timeout_s or self._timeout_s)
        try:
            connection.request(method, parts.path + path, body, {**self._headers, "Content-Type": kind})
            answer = connection.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, answer.read(), headers)
        except (OSError, http.client.HTTPException) as error:
            raise NotReached(f"nobody answers {method} {self.base_url}{path}: {error!r}") from error
        finally:
            connection.close()

    def _read(self, method: str, path: str, body: bytes | None, kind: str, timeout_s: float = 0) -> Any:
        reply = self.ask(method, path, body, kind, timeout_s=timeout_s)
        return read_answer(reply, f"{method} {self.base_url}{path}")
