"""A web server for the files that partners name by URL."""

import asyncio

from aiohttp import web

from tests.support.media_samples import SAMPLES, sample


class FileServer:
    """Serves `/{sample}`, a larger sample at `/{sample}/{bytes}`, and the status n at `/status/{n}`.

    `/hops/{n}` redirects n times, then to a sample; `/to?{url}` redirects to a URL.
    `/held` responds when the server closes.

    Attributes:
        requested_paths: the path of each request, in order.
        headers: of each request, in the same order.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._host = host
        self.requested_paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self._closing = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def open(self) -> None:
        """Listen on a free port."""
        application = web.Application()
        application.router.add_get("/{path:.*}", self._respond)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, 0).start()
        self.url = f"http://{self._host}:{self._runner.addresses[0][1]}"

    async def close(self) -> None:
        """Stop listening."""
        self._closing.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        self.requested_paths.append(request.path)
        self.headers.append(dict(request.headers))
        first, _, second = request.match_info["path"].partition("/")
        if first == "status":
            return web.Response(status=int(second), headers={"Location": f"{self.url}/png"})
        if first == "hops":
            remaining = int(second)
            target = f"/hops/{remaining - 1}" if remaining > 1 else f"{self.url}/png"
            return web.Response(status=302 if remaining % 2 else 307, headers={"Location": target})
        if first == "to":
            return web.Response(status=301, headers={"Location": request.query_string})
        if first == "held":
            await self._closing.wait()
        if first == "broken":
            return await self._send_half(request)
        if first == "encoded":
            return web.Response(body=b"x", headers={"Content-Encoding": "zstd"})
        kind = first.partition(".")[0]
        if kind not in SAMPLES:
            return web.Response(status=404)
        return web.Response(body=sample(kind, int(second or 0)))

    async def _send_half(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100000"})
        await response.prepare(request)
        await response.write(sample("png"))
        await asyncio.sleep(0)
        assert request.transport is not None
        request.transport.abort()
        return response
