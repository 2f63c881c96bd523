"""Stands between the service and the operator, both ways, and loses, holds or repeats what passes.

Real HTTP on either side: the adapter believes it to be the operator, the simulator believes it to
be the service.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from aiohttp import web

from tests.support.waiting import HANGS_AFTER_S

_HOP = {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "date", "server"}


class Between:
    """A line that a test can cut.

    Attributes:
        lose_answers: of so many sends the operator takes the message and the answer is lost.
        hold_answer: awaited with the operator's id of a sent message before its answer goes on.
        let_webhooks_pass: while it is not set, webhooks are answered 503 and come again later.
        hold_review: what to wait for before the answer to a template's submission is handed on.
        repeat_webhooks: how often each webhook is handed on.
        sends: how many messages were handed to the operator.
    """

    def __init__(self) -> None:
        self.lose_answers = 0
        self.hold_answer: Callable[[str], Awaitable[None]] | None = None
        self.hold_review: Callable[[], Awaitable[None]] | None = None
        self.let_webhooks_pass = True
        self.repeat_webhooks = 1
        self.sends = 0
        self.operator_url = ""
        self.service_url = ""
        self.port = 0
        self._passed = asyncio.Condition()
        self._told: list[str] = []
        self._runner: web.AppRunner | None = None
        self._http: aiohttp.ClientSession | None = None

    @property
    def url(self) -> str:
        """Its address, for either side."""
        return f"http://127.0.0.1:{self.port}"

    async def open(self) -> None:
        """Listen on a free port."""
        self._http = aiohttp.ClientSession(auto_decompress=False)
        application = web.Application(client_max_size=0)
        application.router.add_route("*", "/operator/{path:.*}", self._webhook)
        application.router.add_route("*", "/{path:.*}", self._call)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        """Let nothing pass any more."""
        if self._runner is not None:
            await self._runner.cleanup()
        if self._http is not None:
            await self._http.close()

    async def has_told(self, status: str, operator_message_id: str) -> None:
        """Return once the service has taken this status of this message."""
        async with asyncio.timeout(HANGS_AFTER_S), self._passed:
            await self._passed.wait_for(lambda: f"{status} {operator_message_id}" in self._told)

    async def _call(self, request: web.Request) -> web.StreamResponse:
        status, headers, body = await self._pass_on(request, self.operator_url)
        if request.method == "POST" and request.path.endswith("/messages") and status == 200:
            self.sends += 1
            if self.lose_answers > 0:
                self.lose_answers -= 1
                assert request.transport is not None
                request.transport.abort()
            elif self.hold_answer is not None:
                await self.hold_answer(json.loads(body)["messages"][0]["id"])
        if self.hold_review is not None and request.path.endswith("/message_templates"):
            await self.hold_review()
        return web.Response(status=status, headers=headers, body=body)

    async def _webhook(self, request: web.Request) -> web.StreamResponse:
        if not self.let_webhooks_pass:
            return web.Response(status=503)
        told = _statuses(await request.read())
        status, headers, body = 500, dict[str, str](), b""
        for _ in range(self.repeat_webhooks):
            status, headers, body = await self._pass_on(request, self.service_url)
        async with self._passed:
            self._told.extend(told)
            self._passed.notify_all()
        return web.Response(status=status, headers=headers, body=body)

    async def _pass_on(self, request: web.Request, base_url: str) -> tuple[int, dict[str, str], bytes]:
        assert self._http is not None
        async with self._http.request(
            request.method,
            f"{base_url}{request.path_qs}",
            data=await request.read(),
            headers={k: v for k, v in request.headers.items() if k.lower() not in _HOP},
        ) as answer:
            headers = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP}
            return answer.status, headers, await answer.read()


def _statuses(body: bytes) -> list[str]:
    """`status id` of every status in a webhook's body."""
    content: dict[str, Any] = json.loads(body)
    return [
        f"{status['status']} {status['id']}"
        for job in content["entry"]
        for change in job["changes"]
        for status in change["value"].get("statuses", [])
    ]
