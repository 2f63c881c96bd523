"""Which paths a listener serves, where the admin API and the metrics have one of their own."""

from collections.abc import Callable
from typing import Any, Final

_ADMIN: Final = "/admin"
_METRICS: Final = "/metrics"
_PROBES: Final = ("/healthz", "/readyz")
_NOT_HERE: Final = b'{"status":"error","message":"There is nothing at this path."}'


def is_administrative(path: str) -> bool:
    """True for the admin API and the metrics."""
    path = path.rstrip("/")
    return path in (_ADMIN, _METRICS) or path.startswith(f"{_ADMIN}/")


def is_for_administrators(path: str) -> bool:
    """True for what the listener of its own serves: those, and the probes."""
    return is_administrative(path) or path.rstrip("/") in _PROBES


class PathFilter:
    """An ASGI application that passes some paths on, and responds 404 to others.

    Args:
        application: that serves them.
        serves: whether a path is passed on.
    """

    def __init__(self, application: Any, serves: Callable[[str], bool]) -> None:
        self._application = application
        self._serves = serves

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to one request."""
        if scope["type"] != "http" or self._serves(scope["path"]):
            await self._application(scope, receive, send)
            return
        head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(_NOT_HERE))]
        await send({"type": "http.response.start", "status": 404, "headers": head})
        await send({"type": "http.response.body", "body": _NOT_HERE})
