"""`/healthz` and `/readyz`."""

from sqlalchemy import Connection, select
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from waypost import __version__
from waypost.base.logs import log
from waypost.store.database import Database


class Probes:
    """The process's own answers; no credential, nothing told but whether."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._log = log("operations")
        self.stopping = False

    def routes(self) -> list[Route]:
        """Both routes."""
        return [Route("/healthz", self._healthz), Route("/readyz", self._readyz)]

    async def _healthz(self, _request: Request) -> Response:
        """The process runs its loop."""
        return JSONResponse({"status": "ok", "version": __version__})

    async def _readyz(self, _request: Request) -> Response:
        """The store answers and the service is not stopping; else 503."""
        if self.stopping:
            return JSONResponse({"status": "stopping"}, 503)
        try:
            await self._database.read(_ask)
        except Exception:  # noqa: BLE001  whatever keeps the store from answering
            self._log.exception("the store does not answer")
            return JSONResponse({"status": "the store does not answer"}, 503)
        return JSONResponse({"status": "ready"})


def _ask(connection: Connection) -> int:
    return connection.execute(select(1)).scalar_one()
