"""A client of the APIs of a running service: requests over HTTP, their errors, and readers of JSON."""

import http.client
import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, cast
from urllib.parse import urlencode, urlsplit

from pytest_waypost.blocking_responses import PluginResponse

FORM_CONTENT_TYPE: Final = "application/x-www-form-urlencoded"
JSON_CONTENT_TYPE: Final = "application/json"


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
