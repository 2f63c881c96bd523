"""A partner's receiver as a separate process: stores every callback before it responds with 200.

Run as `python receiver.py HOST PORT FILE`. The file contains one JSON object a line, with the time,
the callback's id, its sequence number and its body.
"""

import json
import sys
import time
from pathlib import Path
from typing import TextIO

from aiohttp import web


def application(file: TextIO) -> web.Application:
    """Return the application: `POST /callbacks`, and `GET /` as a readiness check."""

    async def receive(request: web.Request) -> web.Response:
        record = {
            "at_ms": time.time_ns() // 1_000_000,
            "callback_id": request.headers.get("Waypost-Callback-Id"),
            "sequence": int(request.headers.get("Waypost-Sequence", "0")),
            "body": await request.json(),
        }
        file.write(json.dumps(record) + "\n")
        file.flush()
        return web.Response()

    async def ready(_request: web.Request) -> web.Response:
        return web.Response()

    app = web.Application()
    app.add_routes([web.post("/callbacks", receive), web.get("/", ready)])
    return app


def main(host: str, port: str, path: str) -> None:
    """Receive callbacks until a signal."""
    with Path(path).open("a", encoding="utf-8") as file:
        web.run_app(application(file), host=host, port=int(port), print=None)


if __name__ == "__main__":
    main(*sys.argv[1:])
