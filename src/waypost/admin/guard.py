"""Who may use a door that is not for partners: the right host, no foreign origin, JSON, and the credential."""

from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.requests import Request

from waypost.domain.refusals import Reason, Refused


def check_origin(request: Request, hosts: Sequence[str]) -> None:
    """Return when no page of another site has sent the request.

    Host and origin keep a page in somebody's browser out, also one whose name resolves to this
    machine. Source: decision 0081.

    Raises:
        Refused: wrong host, or foreign origin.
    """
    host = _host_of("//" + request.headers.get("host", ""))
    if not _is_ours(host, hosts):
        raise Refused(Reason.FORBIDDEN_ORIGIN, "Host must be a loopback name or one of admin_hosts.")
    origin = request.headers.get("origin")
    if origin is not None and not _is_ours(_host_of(origin), hosts):
        raise Refused(Reason.FORBIDDEN_ORIGIN, "Origin must be this service's own.")


def token_of(request: Request) -> str:
    """The token that a request holds; empty: none."""
    return request.headers.get("authorization", "").removeprefix("Bearer ")


def check_json(request: Request) -> None:
    """Return when a body is said to be JSON, which no page of another site can send unasked.

    Raises:
        Refused: it is not.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method in ("POST", "PUT") and kind != "application/json":
        raise Refused(Reason.MEDIA_TYPE, "Content-Type must be application/json.")


def _host_of(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _is_ours(host: str, hosts: Sequence[str]) -> bool:
    if host == "localhost" or host in hosts:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
