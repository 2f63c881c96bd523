"""Rejects requests of foreign web pages to any API of `waypost dev`.

A demonstration's credentials are public. A page of another site can point its own host name at this
machine, and a browser then treats our responses as that site's (DNS rebinding). Such a request has the
foreign name in `Host`; a page that sends a request here directly has its own name in `Origin`. Programs
that send no `Origin`, and use an IP address or a name from the settings, are not affected.
"""

from collections.abc import Sequence
from typing import Any, Final

from waypost.assembly.http.limits import ErrorBody, service_error_body
from waypost.base.http.hosts import hostname_of, is_ip_address, is_loopback, netloc_of
from waypost.config import Settings

HOSTS_SETTING: Final = "WAYPOST_ADMIN_HOSTS"


def accepted_hosts(settings: Settings) -> tuple[str, ...]:
    """Return the host names under which a demonstration can be reached, besides IP addresses."""
    configured = (settings.host, hostname_of(settings.public_url or ""), *settings.admin_hosts)
    names = (name.lower() for name in configured if name and not is_ip_address(name))
    return tuple(dict.fromkeys(("localhost", *names)))


class HostCheck:
    """An ASGI application that checks Host and Origin before another one sees a request.

    Args:
        application: serves the requests that are accepted.
        hosts: names that are accepted besides IP addresses.
        error_body: returns the body of an error.
    """

    def __init__(self, application: Any, hosts: Sequence[str], error_body: ErrorBody = service_error_body) -> None:
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
        text = self._error_body(403, violation)
        head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(text))]
        await send({"type": "http.response.start", "status": 403, "headers": head})
        await send({"type": "http.response.body", "body": text})

    def _violation(self, scope: Any) -> str:
        """Return what is wrong with Host or Origin; empty if both are accepted."""
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        origins = [value for name, value in scope["headers"] if name == b"origin"]
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        name = hostname_of(f"//{host}")
        if not (name in self._hosts or is_ip_address(name)):
            return (
                f"Host {host[:100]!r} is not accepted by a demonstration: use {self._accepted}. "
                f"The setting {HOSTS_SETTING} adds a name."
            )
        for origin in (value.decode("latin-1") for value in origins):
            if not self._is_own(origin, host):
                return (
                    f"Origin {origin[:100]!r} is another site: a demonstration accepts requests "
                    "without Origin, and with one whose host is this machine's loopback, the request's "
                    f"own Host, or one of: {', '.join(sorted(self._hosts))}. The setting {HOSTS_SETTING} "
                    "adds a name."
                )
        return ""

    def _is_own(self, origin: str, host: str) -> bool:
        name, netloc = hostname_of(origin), netloc_of(origin)
        return name in self._hosts or is_loopback(name) or (netloc != "" and netloc == host.lower())
