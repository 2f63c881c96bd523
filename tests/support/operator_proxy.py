"""A proxy between the service and the operator, both ways, that loses, delays or repeats requests.

Real HTTP on either side: the adapter takes it for the operator, the simulator takes it for the service.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from aiohttp import web

from tests.support.polling import HANGS_AFTER_S

_HOP_HEADERS = {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "date", "server"}


class OperatorProxy:
    """A proxy whose faults a test sets.

    Attributes:
        lose_answers: number of sends that the operator accepts and whose response is lost.
        hold_answer: awaited with the operator's id of a sent message before its response is forwarded.
        let_webhooks_pass: while false, webhooks get a 503, and are sent again later.
        hold_review: awaited before the response to a template's submission is forwarded.
        repeat_webhooks: how often each webhook is forwarded.
        sends: number of messages that the operator has accepted.
    """

    def __init__(self) -> None:
        self.lose_responses = 0
        self.hold_response: Callable[[str], Awaitable[None]] | None = None
        self.hold_review: Callable[[], Awaitable[None]] | None = None
        self.let_webhooks_pass = True
        self.repeat_webhooks = 1
        self.sends = 0
        self.operator_url = ""
        self.service_url = ""
        self.port = 0
        self._forwarded = asyncio.Condition()
        self._forwarded_statuses: list[str] = []
        self._runner: web.AppRunner | None = None
        self._http: aiohttp.ClientSession | None = None

    @property
    def url(self) -> str:
        """The URL, for either side."""
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
        """Stop forwarding."""
        if self._runner is not None:
            await self._runner.cleanup()
        if self._http is not None:
            await self._http.close()

    async def wait_until_forwarded(self, status: str, operator_message_id: str) -> None:
        """Return once this status of this message has been forwarded to the service."""
        async with asyncio.timeout(HANGS_AFTER_S), self._forwarded:
            await self._forwarded.wait_for(lambda: f"{status} {operator_message_id}" in self._forwarded_statuses)

    async def _call(self, request: web.Request) -> web.StreamResponse:
        status, headers, body = await self._forward(request, self.operator_url)
        if request.method == "POST" and request.path.endswith("/messages") and status == 200:
            self.sends += 1
            if self.lose_responses > 0:
                self.lose_responses -= 1
                assert request.transport is not None
                request.transport.abort()
            elif self.hold_response is not None:
                await self.hold_response(json.loads(body)["messages"][0]["id"])
        is_submission = request.method == "POST" and request.path.endswith("/message_templates")
        if self.hold_review is not None and is_submission:
            await self.hold_review()
        return web.Response(status=status, headers=headers, body=body)

    async def _webhook(self, request: web.Request) -> web.StreamResponse:
        if not self.let_webhooks_pass:
            return web.Response(status=503)
        statuses = _statuses(await request.read())
        status, headers, body = 500, dict[str, str](), b""
        for _ in range(self.repeat_webhooks):
            status, headers, body = await self._forward(request, self.service_url)
        async with self._forwarded:
            self._forwarded_statuses.extend(statuses)
            self._forwarded.notify_all()
        return web.Response(status=status, headers=headers, body=body)

    async def _forward(self, request: web.Request, base_url: str) -> tuple[int, dict[str, str], bytes]:
        assert self._http is not None
        async with self._http.request(
            request.method,
            f"{base_url}{request.path_qs}",
            data=await request.read(),
            headers={k: v for k, v in request.headers.items() if k.lower() not in _HOP_HEADERS},
        ) as response:
            headers = {k: v for k, v in response.headers.items() if k.lower() not in _HOP_HEADERS}
            return response.status, headers, await response.read()


def _statuses(body: bytes) -> list[str]:
    """Return `status id` for every status in a webhook's body."""
    content: dict[str, Any] = json.loads(body)
    return [
        f"{status['status']} {status['id']}"
        for entry in content["entry"]
        for change in entry["changes"]
        for status in change["value"].get("statuses", [])
    ]
