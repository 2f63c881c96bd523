"""`/healthz` and `/readyz`."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from waypost import __version__
from waypost.operations.readiness import Readiness


class Probes:
    """The process's own answers; no credential, nothing told but whether, and of what fails why."""

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness

    def routes(self) -> list[Route]:
        """Both routes."""
        return [Route("/healthz", self._healthz), Route("/readyz", self._readyz)]

    async def _healthz(self, _request: Request) -> Response:
        """The process runs its loop, or this would not be answered; whether it can work, `/readyz` says."""
        return JSONResponse({"status": "ok", "version": __version__})

    async def _readyz(self, _request: Request) -> Response:
        """200 where every check passes; else 503, and each check that fails says why."""
        said = await self._readiness.reasons()
        failing = {name: why for name, why in said.items() if why}
        checks = {name: why or "ok" for name, why in said.items()}
        status = "not ready" if failing else "ready"
        return JSONResponse({"status": status, "checks": checks}, 503 if failing else 200)
