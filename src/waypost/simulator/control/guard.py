"""Who may use the control door: this machine, a program that speaks JSON, the holder of the token."""

import hmac
from collections.abc import Mapping
from typing import Final

from waypost.base.http.hosts import hostname_of, is_loopback, netloc_of
from waypost.simulator.violation import BrokenRule

JSON: Final = "application/json"
BYTES: Final = "application/octet-stream"
"""Of a file as it is. A page of another site may send neither without being asked about first."""
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


def check_caller(
    method: str,
    headers: Mapping[str, str],
    *,
    allowed_hosts: tuple[str, ...],
    control_token: str | None,
    takes: tuple[str, ...] = (JSON,),
) -> None:
    """Refuse what a page in somebody's browser could send, and whoever lacks the token.

    A page of another site can make a browser send requests here, and a name of its own can be made
    to point here; neither survives the checks of Host, Origin and content type.

    Args:
        method: of the request.
        headers: names in lower case.
        allowed_hosts: names besides the loopback ones.
        control_token: None means that none is needed.
        takes: the content types of bodies.

    Raises:
        BrokenRule: 403, 401 or 415.
    """
    host = headers.get("host", "")
    name = hostname_of(f"//{host}")
    if not (is_loopback(name) or name in (one.lower() for one in allowed_hosts)):
        raise BrokenRule(
            "Host",
            "names neither this machine nor an allowed host",
            ", ".join(("localhost", "127.0.0.1", "[::1]", *allowed_hosts)),
            status=403,
        )
    origin = headers.get("origin")
    if origin is not None and netloc_of(origin) != host.lower():
        raise BrokenRule("Origin", "is another site", f"no Origin, or http://{host}", status=403)
    if control_token is not None and not _has_token(headers, control_token):
        raise BrokenRule("Authorization", "does not hold the control token", "Bearer and the control token", status=401)
    if method in _WITH_BODY and kind_of(headers) not in takes:
        raise BrokenRule("Content-Type", "is not JSON", " or ".join(takes), status=415)


def kind_of(headers: Mapping[str, str]) -> str:
    """The content type of a request, in lower case and without parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _has_token(headers: Mapping[str, str], control_token: str) -> bool:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), control_token.encode())
