"""A client of the APIs of a running service: requests over HTTP, their errors, and readers of JSON."""

import http.client
import io
import json
import socket
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, cast
from urllib.parse import urlencode, urlsplit

FORM_CONTENT_TYPE: Final = "application/x-www-form-urlencoded"
JSON_CONTENT_TYPE: Final = "application/json"

MAX_INFORMATIONAL_RESPONSES: Final = 8
MAX_FRAMING_BYTES: Final = 64 * 1024
"""Of a response, all that comes before its body."""
MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""With the framing of its chunks."""


class PluginResponseTooLarge(http.client.HTTPException):
    """A response exceeds a limit; the text names it."""


class PluginResponse(http.client.HTTPResponse):
    """A response that ends with an error when it exceeds a limit.

    Its time is that of the connection's `timeout`, from its beginning to the end of its body.
    """

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self._informational = 0
        self._raw = _PluginReader(sock, self.fp.detach())
        self.fp = io.BufferedReader(self._raw)

    def begin(self) -> None:
        """Read up to the body.

        Raises:
            PluginResponseTooLarge: the response exceeds a limit.
            TimeoutError: it has not arrived in time.
        """
        super().begin()
        if (self.length or 0) > MAX_BODY_BYTES:
            raise PluginResponseTooLarge(f"the body of the response has more than {MAX_BODY_BYTES} bytes")
        self._raw.left_bytes = MAX_FRAMING_BYTES + MAX_BODY_BYTES

    def read(self, amt: int | None = None) -> bytes:
        """Return the body, or the beginning of it.

        Raises:
            HTTPException: it exceeds a limit, or a chunk has no valid size.
            TimeoutError: it has not arrived in time.
        """
        try:
            return super().read(amt)
        except (ValueError, MemoryError) as error:
            raise http.client.HTTPException("a chunk of the body has no valid size") from error

    def _read_status(self) -> Any:
        self._informational += 1
        if self._informational > MAX_INFORMATIONAL_RESPONSES + 1:
            raise PluginResponseTooLarge(f"more than {MAX_INFORMATIONAL_RESPONSES} informational responses came")
        original: Any = super()
        version, status, reason = original._read_status()  # noqa: SLF001  it has no public name
        is_informational = status < 200 and status != http.HTTPStatus.SWITCHING_PROTOCOLS
        return version, http.HTTPStatus.CONTINUE if is_informational else status, reason  # it skips no other


class _PluginReader(io.RawIOBase):
    """Reads from a socket, until a time and a number of bytes.

    Attributes:
        left_bytes: bytes that may still come.
    """

    def __init__(self, sock: socket.socket, raw: io.RawIOBase) -> None:
        self._socket = sock
        self._raw = raw
        timeout_s: float | None = sock.gettimeout()
        self._until_s = None if timeout_s is None else time.monotonic() + timeout_s
        self.left_bytes = MAX_FRAMING_BYTES + io.DEFAULT_BUFFER_SIZE

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what has arrived.

        Raises:
            PluginResponseTooLarge: too many bytes came.
            TimeoutError: the time is over.
        """
        if self._until_s is not None:
            left_s = self._until_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("no complete response in time")
            self._socket.settimeout(left_s)
        size: int | None = self._raw.readinto(buffer)
        self.left_bytes -= size or 0
        if self.left_bytes < 0:
            raise PluginResponseTooLarge(
                f"the response has more than {MAX_FRAMING_BYTES} bytes before its body, or {MAX_BODY_BYTES} in it"
            )
        return size

    def close(self) -> None:
        """Close the socket's file."""
        self._raw.close()
        super().close()


class ApiResponseError(Exception):
    """An error response of an API; the text is the API's own.

    Attributes:
        status: of the response.
        message: of the response, unchanged.
        explanation: the header `Waypost-Reason`, if present.
        field: name of the field that violates a rule; empty: none, or not known.
        rule: the violated rule: the simulator control API's text, or its name in the table of errors.
        accepted: valid values of the field; empty: not known.
    """

    def __init__(
        self, status: int, message: str, explanation: str = "", *, field: str = "", rule: str = "", accepted: str = ""
    ) -> None:
        explained = f"{message}: {explanation}" if explanation and explanation not in message else message
        super().__init__(f"{explained} ({status})")
        self.status = status
        self.message = message
        self.explanation = explanation
        self.field = field
        self.rule = rule
        self.accepted = accepted


class ApiUnreachable(Exception):
    """No response from the API."""


def is_api_error(exception_info: Any) -> bool:
    """True if an exception is an API's response and not a defect; pytest then hides the frames below it.

    Args:
        exception_info: an `ExceptionInfo`. Modules pass this function to pytest as `__tracebackhide__`.
    """
    return issubclass(exception_info.type, (ApiResponseError, ApiUnreachable))


__tracebackhide__ = is_api_error


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
        """Send a JSON body and return the JSON response; None if it has no body.

        Args:
            method: of the request.
            path: below the base URL.
            body: a JSON value; None: no body.
            timeout_s: for calls that wait on purpose; 0: the client's default.
        """
        content = None if body is None else json.dumps(body).encode()
        return self._request(method, path, content, JSON_CONTENT_TYPE, timeout_s)

    def form(self, method: str, path: str, fields: Mapping[str, str]) -> Any:
        """Send a form and return the JSON response."""
        return self._request(method, path, urlencode(fields).encode(), FORM_CONTENT_TYPE)

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
        return self._request(method, path, body, f"multipart/form-data; boundary={boundary}")

    def _request(self, method: str, path: str, body: bytes | None, content_type: str, timeout_s: float = 0) -> Any:
        parts = urlsplit(self.base_url)
        is_secure = parts.scheme == "https"
        connect = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
        request = f"{method} {self.base_url}{path}"
        connection = connect(parts.hostname or "", parts.port, timeout=timeout_s or self._timeout_s)
        connection.response_class = PluginResponse
        try:
            connection.request(method, parts.path + path, body, {**self._headers, "Content-Type": content_type})
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ApiUnreachable(f"no response to {request}: {error!r}") from error
        finally:
            connection.close()
        if 200 <= response.status < 300:
            return _decode_or_none(content)
        raise _read_error(response, content, request)


def _read_error(response: http.client.HTTPResponse, content: bytes, request: str) -> ApiResponseError:
    body = object_of(_decode_or_none(content))
    # The simulator names the field in the body; the APIs of the service, whose bodies are documented, in a header.
    header = response.headers.get("Waypost-Error", "")
    details = object_of(_decode_or_none(header.encode())) or body
    texts = (body.get("message"), body.get("error"), object_of(body.get("error")).get("message"))
    message = next((text for text in texts if isinstance(text, str)), f"{request} failed without an error message")
    return ApiResponseError(
        response.status,
        message,
        response.headers.get("Waypost-Reason", ""),
        field=_text_of(details.get("field")),
        rule=_text_of(details.get("rule")),
        accepted=_text_of(details.get("accepted")),
    )


def _decode_or_none(content: bytes) -> Any:
    """Return the value of a JSON text; None if it is invalid."""
    try:
        return json.loads(content)
    except ValueError:
        return None


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def object_of(value: object) -> dict[str, Any]:
    """Return the value if it is a JSON object, or an empty object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def objects_in(value: object) -> list[dict[str, Any]]:
    """Return the objects in a JSON array; none if it is no array."""
    members = cast("list[object]", value) if isinstance(value, list) else []
    return [found for member in members if (found := object_of(member))]
