"""A partner's receiver as a process of its own: keeps every callback it takes before it answers 200.

Run as `python receiver.py HOST PORT FILE`. The file gets one JSON object a line, with the time, the
callback's id, its sequence number and its body.
"""

import json
import sys
import time
from pathlib import Path
from typing import TextIO

from aiohttp import web


def application(file: TextIO) -> web.Application:
    """Takes `POST /callbacks`; `GET /` answers once it runs."""

    async def take(request: web.Request) -> web.Response:
        kept = {
            "at_ms": time.time_ns() // 1_000_000,
            "callback_id": request.headers.get("Waypost-Callback-Id"),
            "sequence": int(request.headers.get("Waypost-Sequence", "0")),
            "body": await request.json(),
        }
        file.write(json.dumps(kept) + "\n")
        file.flush()
        return web.Response()

    async def answer(_request: web.Request) -> web.Response:
        return web.Response()

    made = web.Application()
    made.add_routes([web.post("/callbacks", take), web.get("/", answer)])
    return made


def main(host: str, port: str, path: str) -> None:
    """Take callbacks until a signal."""
    with Path(path).open("a", encoding="utf-8") as file:
        web.run_app(application(file), host=host, port=int(port), print=None)


if __name__ == "__main__":
    main(*sys.argv[1:])
