"""Access check of the control API: the host, the origin, the token and the content type of a request."""

import hmac
from collections.abc import Mapping
from typing import Final

from waypost.base.http.hosts import hostname_of, is_loopback, netloc_of
from waypost.simulator.control_error import ControlApiError

JSON: Final = "application/json"
BYTES: Final = "application/octet-stream"
"""Of a file's bytes. A browser sends neither type from another site without a preflight request."""
_BODY_METHODS: Final = frozenset({"POST", "PUT", "PATCH"})


def check_caller(
    method: str,
    headers: Mapping[str, str],
    *,
    allowed_hosts: tuple[str, ...],
    control_token: str | None,
    content_types: tuple[str, ...] = (JSON,),
) -> None:
    """Reject requests without the token, and those that a page in a browser could send.

    A page of another site can make a browser send requests here, and its host name can be pointed
    here (DNS rebinding); the checks of Host, Origin and content type reject both.

    Args:
        method: of the request.
        headers: names in lower case.
        allowed_hosts: Host names besides the loopback ones.
        control_token: None: no token is needed.
        content_types: the accepted content types of bodies.

    Raises:
        ControlApiError: 403, 401 or 415.
    """
    host = headers.get("host", "")
    name = hostname_of(f"//{host}")
    if not (is_loopback(name) or name in (allowed.lower() for allowed in allowed_hosts)):
        raise ControlApiError(
            "Host",
            "names neither this machine nor an allowed host",
            ", ".join(("localhost", "127.0.0.1", "[::1]", *allowed_hosts)),
            status=403,
        )
    origin = headers.get("origin")
    if origin is not None and netloc_of(origin) != host.lower():
        raise ControlApiError("Origin", "is another site", f"no Origin, or http://{host}", status=403)
    if control_token is not None and not _has_token(headers, control_token):
        raise ControlApiError(
            "Authorization", "does not hold the control token", "Bearer and the control token", status=401
        )
    if method in _BODY_METHODS and content_type(headers) not in content_types:
        raise ControlApiError("Content-Type", "is not JSON", " or ".join(content_types), status=415)


def content_type(headers: Mapping[str, str]) -> str:
    """Return the content type of a request, in lower case and without parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _has_token(headers: Mapping[str, str], control_token: str) -> bool:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), control_token.encode())
