"""The adapters that there are, each with what stands in for its operator."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import aiohttp
import pytest
from aiohttp import web

from tests.operators.example.adapter import ExampleOperator
from tests.operators.example.server import KEY, ExampleServer
from tests.support.builders import ACCOUNT, APP, OPERATOR
from tests.support.waiting import HANGS_AFTER_S
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of
from waypost.base.clock import SystemClock
from waypost.base.ids import SeededIds
from waypost.domain import direct_calls
from waypost.domain.app import OperatorAccount
from waypost.domain.direct_calls import (
    CheckToken,
    GetComponents,
    GetProfile,
    ListBlocked,
    ListFlows,
    ListLibrary,
    OperatorCall,
)
from waypost.domain.event import Event
from waypost.operators.cloud.adapter import CloudOperator
from waypost.operators.contract import Operator
from waypost.simulator import AccountSeed, NumberSeed, Simulator, SimulatorSettings

Kind = TypeVar("Kind")


DIRECT_CALLS: Final[dict[str, type[OperatorCall[Any]]]] = {
    name: kind
    for name, kind in vars(direct_calls).items()
    if isinstance(kind, type) and issubclass(kind, OperatorCall) and kind is not OperatorCall
}


class StandIn(Protocol):
    """What stands in for an operator: a real server, with phones that a test writes from."""

    base_url: str

    async def write(self, whom: str, text: str) -> None:
        """Have somebody write to the app's number."""
        ...


@dataclass(frozen=True)
class AdapterCase:
    """An adapter with what stands in for its operator.

    Attributes:
        account: of ours there; the stand-in gives its base URL.
        stand_in: starts it, with our webhook's URL.
        credential: the account's field that opens the operator's API.
        handshake_secret: the account's field that the webhook's handshake needs.
        not_offered: of the calls that only ask, those that the operator does not have.
    """

    make: Callable[[], Operator]
    account: OperatorAccount
    stand_in: Callable[[AsyncExitStack, Path, str], Awaitable[StandIn]]
    credential: str
    handshake_secret: str
    not_offered: frozenset[type[OperatorCall[Any]]] = frozenset()


async def serving(stack: AsyncExitStack, handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> str:
    """The address of a real server on a free port, there until the stack unwinds."""
    application = web.Application(client_max_size=2**25)
    application.router.add_route("*", "/{path:.*}", handle)
    return await serving_application(stack, application)


async def serving_application(stack: AsyncExitStack, application: web.Application) -> str:
    """Likewise of a whole application."""
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return f"http://127.0.0.1:{runner.addresses[0][1]}"


class CloudSimulator:
    """The simulator of the Cloud API, with the account and number of the builders."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url

    async def write(self, whom: str, text: str) -> None:
        url = f"{self.base_url}/control/phones/{whom}/messages"
        body = {"to": APP.phone_number, "text": text}
        async with aiohttp.ClientSession() as http, http.post(url, json=body) as answer:
            assert answer.status == 200, await answer.text()

    @classmethod
    async def start(cls, stack: AsyncExitStack, folder: Path, webhook_url: str) -> "CloudSimulator":
        clock = SystemClock()
        settings = SimulatorSettings(path=folder / "simulator.db", review_delay_ms=0, deliver_after_ms=0, gather_ms=0)
        simulator = Simulator(settings, clock, SeededIds(clock, "conformance"))
        bound = bind_socket("127.0.0.1", 0, option="")
        await simulator.open()
        stack.push_async_callback(simulator.close)
        server = HttpServer(simulator.application, bound)
        await server.start()
        stack.push_async_callback(server.stop)
        await simulator.seed(
            AccountSeed(
                waba_id=ACCOUNT.id,
                name="Acme",
                namespace=ACCOUNT.namespace,
                token=OPERATOR["token"],
                app_id=OPERATOR["app_id"],
                app_secret=OPERATOR["app_secret"],
                verify_token=OPERATOR["verify_token"],
                callback_uri=webhook_url,
            ),
            [NumberSeed(APP.phone_number_id, ACCOUNT.id, APP.phone_number, "Acme Shop")],
        )
        return cls(f"http://127.0.0.1:{port_of(bound)}")


class ExampleStandIn:
    """The example operator, with the account and number of the builders."""

    def __init__(self, post: ExampleServer, base_url: str) -> None:
        self._post = post
        self.base_url = base_url

    async def write(self, whom: str, text: str) -> None:
        await self._post.write(whom, text)

    @classmethod
    async def start(cls, stack: AsyncExitStack, _folder: Path, webhook_url: str) -> "ExampleStandIn":
        post = ExampleServer(APP.phone_number_id, APP.phone_number, ACCOUNT.namespace)
        post.subscribe(webhook_url, EXAMPLE_ACCOUNT["seal"])
        return cls(post, await serving_application(stack, post.application()))


EXAMPLE_ACCOUNT: Final = OperatorAccount("other", "example", "http://127.0.0.1:9", {"key": KEY, "seal": "a seal"})
ADAPTERS: Final = {
    "cloud": AdapterCase(
        make=lambda: CloudOperator(timeout_s=5),
        account=OPERATOR,
        stand_in=CloudSimulator.start,
        credential="token",
        handshake_secret="verify_token",
    ),
    "example": AdapterCase(
        make=lambda: ExampleOperator(timeout_s=5),
        account=EXAMPLE_ACCOUNT,
        stand_in=ExampleStandIn.start,
        credential="key",
        handshake_secret="seal",
        not_offered=frozenset({CheckToken, GetProfile, GetComponents, ListBlocked, ListFlows, ListLibrary}),
    ),
}


@dataclass
class Line:
    """An adapter, what stands in for its operator, and the webhook in front of it.

    Attributes:
        events: what the operator has said, as the adapter reads it; only what is rightly signed.
        unsigned: how many bodies were not.
    """

    case: AdapterCase
    adapter: Operator
    account: OperatorAccount
    http: aiohttp.ClientSession
    stand_in: StandIn = field(init=False)
    webhook_url: str = ""
    events: list[Event] = field(default_factory=list[Event])
    unsigned: int = 0
    _came: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def hear(self, request: web.Request) -> web.Response:
        """The webhook, as the service has it."""
        if request.method == "GET":
            challenge = self.adapter.verify_handshake(self.account, request.query)
            return web.Response(text=challenge, status=200 if challenge else 403)
        body = await request.read()
        if not self.adapter.is_signed(self.account, request.headers, body):
            self.unsigned += 1
            return web.Response(status=401)
        async with self._came:
            self.events += [self.adapter.read(item.payload) for item in self.adapter.split(self.account, body)]
            self._came.notify_all()
        return web.Response()

    async def heard(self, kind: type[Kind], is_it: Callable[[Kind], object] = bool) -> Kind:
        """The first event of a kind that is meant, once it has come."""

        def found() -> list[Kind]:
            return [one for one in self.events if isinstance(one, kind) and is_it(one)]

        async with asyncio.timeout(HANGS_AFTER_S), self._came:
            await self._came.wait_for(lambda: bool(found()))
        return found()[0]


@pytest.fixture(params=ADAPTERS)
async def line(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Line]:
    """Each adapter in turn, connected both ways."""
    case = ADAPTERS[str(request.param)]
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(aiohttp.ClientSession())
        adapter = case.make()
        await adapter.open()
        stack.push_async_callback(adapter.close)
        line = Line(case, adapter, case.account, http)
        line.webhook_url = f"{await serving(stack, line.hear)}/operator/webhook/main"
        line.stand_in = await case.stand_in(stack, tmp_path, line.webhook_url)
        line.account = replace(case.account, base_url=line.stand_in.base_url)
        yield line
