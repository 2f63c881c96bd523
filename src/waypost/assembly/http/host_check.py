"""Refuses requests of foreign pages to `waypost dev`, whichever interface they are for.

A demonstration's credentials are known to everybody. A page of another site can point a name of its own
at this machine, and a browser then takes our responses for that site's own (DNS rebinding). What
protects is that such a request carries the name in `Host`; a page that sends its request here openly
names itself in `Origin`. A program that sends no `Origin`, and reaches us by an IP address or by a name
that the settings know, notices nothing.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from waypost.base.http.hosts import hostname_of, is_ip_address, is_loopback, netloc_of
from waypost.config import Settings

SETTING: Final = "WAYPOST_ADMIN_HOSTS"
_encode: Final = msgspec.json.Encoder().encode
ErrorBody = Callable[[str], dict[str, Any]]


def service_error(text: str) -> dict[str, Any]:
    """The body of an error as the service's interfaces send it."""
    return {"status": "error", "message": text}


def graph_error(text: str) -> dict[str, Any]:
    """The body of an error as the Graph interface sends it."""
    return {"error": {"message": text, "type": "OAuthException", "code": 200}}


def accepted_hosts(settings: Settings) -> tuple[str, ...]:
    """The names under which a demonstration may be reached, besides IP addresses."""
    named = (settings.host, hostname_of(settings.public_url or ""), *settings.admin_hosts)
    names = (name.lower() for name in named if name and not is_ip_address(name))
    return tuple(dict.fromkeys(("localhost", *names)))


class HostCheck:
    """An ASGI application that checks Host and Origin before another one sees a request.

    Args:
        application: the one that responds to what is accepted.
        hosts: names that are accepted besides IP addresses.
        error_body: makes the body of an error.
    """

    def __init__(self, application: Any, hosts: Sequence[str], error_body: ErrorBody = service_error) -> None:
        self._application = application
        self._hosts = frozenset(hosts)
        self._error_body = error_body
        self._accepted = f"an IP address or one of: {', '.join(hosts)}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to one request."""
        violation = self._violation(scope) if scope["type"] == "http" else ""
        if not violation:
            await self._application(scope, receive, send)
            return
        text = _encode(self._error_body(violation))
        head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(text))]
        await send({"type": "http.response.start", "status": 403, "headers": head})
        await send({"type": "http.response.body", "body": text})

    def _violation(self, scope: Any) -> str:
        """What is wrong with Host or Origin; empty: nothing."""
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        origins = [value for name, value in scope["headers"] if name == b"origin"]
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        name = hostname_of(f"//{host}")
        if not (name in self._hosts or is_ip_address(name)):
            return (
                f"Host {host[:100]!r} is not accepted by a demonstration: use {self._accepted}. "
                f"The setting {SETTING} adds a name."
            )
        for origin in (value.decode("latin-1") for value in origins):
            if not self._is_own(origin, host):
                return (
                    f"Origin {origin[:100]!r} is another site: a demonstration accepts requests "
                    "without Origin, and with one whose host is this machine's loopback, the request's "
                    f"own Host, or one of: {', '.join(sorted(self._hosts))}. The setting {SETTING} "
                    "adds a name."
                )
        return ""

    def _is_own(self, origin: str, host: str) -> bool:
        name, netloc = hostname_of(origin), netloc_of(origin)
        return name in self._hosts or is_loopback(name) or (netloc != "" and netloc == host.lower())
