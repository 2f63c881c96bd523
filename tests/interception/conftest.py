"""A sandbox of two servers that record what they are asked, and an interception in front of them."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from waypost.interception.hosts import SandboxSide
from waypost.interception.interception import MAPPED_ADDRESS, Interception


@dataclass
class RecordedRequest:
    """A request that a side of the sandbox has received."""

    side: str
    method: str
    path: str
    headers: dict[str, str]
    body_bytes: int


@dataclass
class RecordingSandbox:
    """Both sides; a request for `/download/N` responds with N bytes."""

    urls: dict[SandboxSide, str]
    requests: list[RecordedRequest] = field(default_factory=list[RecordedRequest])
    received_bytes: int = 0


@pytest.fixture
async def sandbox() -> AsyncGenerator[RecordingSandbox]:
    """Start both sides."""
    recording = RecordingSandbox({})
    runners: list[web.AppRunner] = []
    for side in SandboxSide:

        async def respond(request: web.Request, side: SandboxSide = side) -> web.StreamResponse:
            size = 0
            async for part in request.content.iter_chunked(65_536):
                size += len(part)
                recording.received_bytes += len(part)
            headers = {name.lower(): value for name, value in request.headers.items()}
            recording.requests.append(RecordedRequest(side, request.method, request.path_qs, headers, size))
            if not request.path.startswith("/download/"):
                return web.json_response({"side": side})
            response = web.StreamResponse()
            await response.prepare(request)
            for _ in range(int(request.path.rpartition("/")[2]) // 65_536):
                await response.write(bytes(65_536))
            return response

        application = web.Application(client_max_size=1 << 30)
        application.router.add_route("*", "/{path:.*}", respond)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        recording.urls[side] = f"http://127.0.0.1:{runner.addresses[0][1]}"
        runners.append(runner)
    yield recording
    for runner in runners:
        await runner.cleanup()


@dataclass
class OpenInterception:
    """An interception, and connections to it."""

    interception: Interception
    authorities: Path

    @property
    def proxy_port(self) -> int:
        """Port of the proxy."""
        return int(self.interception.proxy_url.rpartition(":")[2])

    def client_context(self) -> ssl.SSLContext:
        """Return the TLS settings of a client that trusts what the child trusts."""
        return ssl.create_default_context(cafile=str(self.authorities))

    async def connect(self, host: str, name: str | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a connection to a host, by the proxy; TLS names `name`."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.proxy_port)
        writer.write(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        await writer.start_tls(self.client_context(), server_hostname=name or host)
        return reader, writer


@pytest.fixture
async def opened(sandbox: RecordingSandbox) -> AsyncGenerator[OpenInterception]:
    """Open an interception that passes other hosts."""
    interception = Interception(sandbox.urls, blocks_others=False)
    await interception.open({})
    yield OpenInterception(interception, Path(interception.proxy_variables()["SSL_CERT_FILE"]))
    await interception.close()


__all__ = ("MAPPED_ADDRESS", "OpenInterception", "RecordedRequest", "RecordingSandbox")
