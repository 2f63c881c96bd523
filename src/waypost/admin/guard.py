"""Who may use a door that is not for partners: the right host, no foreign origin, JSON, and the credential."""

from collections.abc import Sequence

from starlette.requests import Request

from waypost.base.hosts import hostname_of, is_loopback
from waypost.domain.refusals import Reason, Refused


def check_origin(request: Request, hosts: Sequence[str]) -> None:
    """Return when no page of another site has sent the request.

    Host and origin keep a page in somebody's browser out, also one whose name resolves to this
    machine. Source: decision 0081.

    Raises:
        Refused: wrong host, or foreign origin.
    """
    host = hostname_of("//" + request.headers.get("host", ""))
    if not (host in hosts or is_loopback(host)):
        raise Refused(Reason.FORBIDDEN_ORIGIN, "Host must be a loopback name or one of admin_hosts.")
    origin = request.headers.get("origin")
    of_origin = host if origin is None else hostname_of(origin)
    if not (of_origin in hosts or is_loopback(of_origin)):
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
