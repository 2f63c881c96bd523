"""The blocking client of one API over HTTP: no event loop, no pool, no slow imports."""

import http.client
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from waypost.client.responses import ApiUnreachable, ClientResponse, is_api_error, read_json_response

__tracebackhide__ = is_api_error

FORM_CONTENT_TYPE: Final = "application/x-www-form-urlencoded"
JSON_CONTENT_TYPE: Final = "application/json"


class BlockingApiClient:
    """A client of one API, with its credential; each call has its own connection, so threads may share it.

    Every call raises `ApiResponseError` for any status but 2xx, and `ApiUnreachable` without a response.

    Args:
        base_url: of the API; paths are appended to it.
        headers: of every request, the credential among them.
        timeout_s: for one call.
    """

    def __init__(self, base_url: str, headers: Mapping[str, str] | None = None, *, timeout_s: float = 15) -> None:
        self.base_url = base_url.rstrip("/")
        self._headers = dict(headers or {})
        self._timeout_s = timeout_s

    def json(self, method: str, path: str, body: Any = None, *, timeout_s: float = 0) -> Any:
        """Send a JSON body and return the JSON response.

        Args:
            method: of the request.
            path: below the base URL.
            body: a JSON value; None: no body.
            timeout_s: for calls that wait on purpose; 0: the client's default.
        """
        content = None if body is None else msgspec.json.encode(body)
        return self._request_json(method, path, content, JSON_CONTENT_TYPE, timeout_s)

    def form(self, method: str, path: str, fields: Mapping[str, str]) -> Any:
        """Send a form and return the JSON response."""
        return self._request_json(method, path, urlencode(fields).encode(), FORM_CONTENT_TYPE)

    def file(self, method: str, path: str, content: bytes, *, file_type: str, name: str) -> Any:
        """Upload one file with its type and return the JSON response."""
        boundary = f"waypost-{sha256(content).hexdigest()[:24]}"
        quoted = name.replace('"', "%22").replace("\r", "").replace("\n", "")
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file_type"\r\n\r\n{file_type}\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{quoted}"\r\n'
            f"Content-Type: {file_type}\r\n\r\n"
        )
        body = head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
        return self._request_json(method, path, body, f"multipart/form-data; boundary={boundary}")

    def request(
        self, method: str, path: str, body: bytes | None, content_type: str, *, timeout_s: float = 0
    ) -> ClientResponse:
        """Send one request and return the response, whatever its status.

        Args:
            method: of the request.
            path: below the base URL.
            body: None: no body.
            content_type: its content type.
            timeout_s: 0: the client's default.

        Raises:
            ApiUnreachable: there is no response, or not in time.
        """
        parts = urlsplit(self.base_url)
        is_secure = parts.scheme == "https"
        connect = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
        connection = connect(parts.hostname or "", parts.port, timeout=timeout_s or self._timeout_s)
        try:
            connection.request(method, parts.path + path, body, {**self._headers, "Content-Type": content_type})
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return ClientResponse(response.status, response.read(), headers)
        except (OSError, http.client.HTTPException) as error:
            raise ApiUnreachable(f"no response to {method} {self.base_url}{path}: {error!r}") from error
        finally:
            connection.close()

    def _request_json(self, method: str, path: str, body: bytes | None, content_type: str, timeout_s: float = 0) -> Any:
        response = self.request(method, path, body, content_type, timeout_s=timeout_s)
        return read_json_response(response, f"{method} {self.base_url}{path}")
