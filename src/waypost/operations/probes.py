"""The endpoints `/healthz` and `/readyz`."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from waypost import __version__
from waypost.operations.readiness import Readiness


class Probes:
    """The probes of the process: no credential; they show only the status, and why a check fails."""

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness

    def routes(self) -> list[Route]:
        """Return both routes."""
        return [Route("/healthz", self._healthz), Route("/readyz", self._readyz)]

    async def _healthz(self, _request: Request) -> Response:
        """Return 200: a process whose loop runs can respond; whether it can work, `/readyz` shows."""
        return JSONResponse({"status": "ok", "version": __version__})

    async def _readyz(self, _request: Request) -> Response:
        """Return 200 where every check passes; otherwise 503, with the reason of each check that fails."""
        reasons = await self._readiness.reasons()
        failing = {name: why for name, why in reasons.items() if why}
        checks = {name: why or "ok" for name, why in reasons.items()}
        status = "not ready" if failing else "ready"
        return JSONResponse({"status": status, "checks": checks}, 503 if failing else 200)
