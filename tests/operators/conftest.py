"""A tiny operator that responds as a test says, and the adapter that calls it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from aiohttp import web

from tests.support.builders import APP, OPERATOR, message, template
from tests.support.loop_time import time_passes
from tests.support.polling import HANGS_AFTER_S
from waypost.domain.app import OperatorAccount
from waypost.domain.outcome import Outcome
from waypost.operators.cloud.adapter import CloudOperator

Responder = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class TinyOperator:
    """A real server; `responses` are sent one after the other, and the last one repeatedly."""

    adapter: CloudOperator
    account: OperatorAccount = OPERATOR
    responses: list[Responder] = field(default_factory=list[Responder])
    requests: list[tuple[str, str, Any, dict[str, str]]] = field(
        default_factory=list[tuple[str, str, Any, dict[str, str]]]
    )

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.content_type == "application/json" and request.can_read_body else None
        self.requests.append((request.method, request.path_qs, body, dict(request.headers)))
        respond = self.responses.pop(0) if len(self.responses) > 1 else self.responses[0]
        return await respond(request)

    async def send(self) -> Outcome:
        with self._time_passes():
            return await self.adapter.send(self.account, APP, message(), template=None, reply_to=None, copies={})

    async def submit(self) -> Outcome:
        with self._time_passes():
            return await self.adapter.submit_template(self.account, template(), {})

    def _time_passes(self) -> AbstractContextManager[None]:
        """Let the timeout pass only once an operator that never responds has the request."""
        return time_passes(HANGS_AFTER_S, when=lambda: self.requests and never_respond in self.responses)


def json_response(body: Any, status: int = 200, **headers: str) -> Responder:
    async def respond(_request: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()})

    return respond


def text_response(text: str, status: int, **headers: str) -> Responder:
    async def respond(_request: web.Request) -> web.StreamResponse:
        named = {k.replace("_", "-"): v for k, v in headers.items()}
        return web.Response(text=text, status=status, content_type="text/html", headers=named)

    return respond


async def hang_up(request: web.Request) -> web.StreamResponse:
    """Accept the request and break the connection."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def send_half_a_response(request: web.Request) -> web.StreamResponse:
    """Begin a response, and break the connection."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"messages":[{"id":')
    assert request.transport is not None
    request.transport.abort()
    return response


async def never_respond(_request: web.Request) -> web.StreamResponse:
    """Accept the request and send nothing until the server stops."""
    await asyncio.Event().wait()
    return web.Response()


@pytest.fixture
async def tiny() -> AsyncIterator[TinyOperator]:
    adapter = CloudOperator(timeout_s=HANGS_AFTER_S)
    await adapter.open()
    tiny = TinyOperator(adapter)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", tiny.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    tiny.account = replace(OPERATOR, base_url=f"http://127.0.0.1:{port}")
    yield tiny
    await adapter.close()
    await runner.cleanup()
