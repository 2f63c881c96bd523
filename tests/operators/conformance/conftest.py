"""The adapters to test, each with a stand-in for its operator."""

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
from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of
from waypost.base.clock import SystemClock
from waypost.base.ids import SeededIds
from waypost.domain import direct_calls
from waypost.domain.app import OperatorAccount
from waypost.domain.direct_calls import CheckToken, OperatorCall
from waypost.domain.event import Event
from waypost.operators.cloud.adapter import CloudOperator
from waypost.operators.contract import Operator
from waypost.simulator import AccountSeed, NumberSeed, Simulator, SimulatorSettings

EventT = TypeVar("EventT")


DIRECT_CALLS: Final[dict[str, type[OperatorCall[Any]]]] = {
    name: call_type
    for name, call_type in vars(direct_calls).items()
    if isinstance(call_type, type) and issubclass(call_type, OperatorCall) and call_type is not OperatorCall
}


class StandIn(Protocol):
    """A stand-in for an operator: a real server, with phones that a test writes from."""

    base_url: str

    async def write(self, phone: str, text: str) -> None:
        """Write to the app's number from a phone."""
        ...


@dataclass(frozen=True)
class AdapterCase:
    """An adapter with the stand-in for its operator.

    Attributes:
        account: our account at the operator; the stand-in gives its base URL.
        stand_in: starts it, with our webhook's URL.
        credential: the account's field that opens the operator's API.
        handshake_secret: the account's field that the webhook's handshake needs.
        not_offered: the read-only calls that the operator does not have.
    """

    make: Callable[[], Operator]
    account: OperatorAccount
    stand_in: Callable[[AsyncExitStack, Path, str], Awaitable[StandIn]]
    credential: str
    handshake_secret: str
    not_offered: frozenset[type[OperatorCall[Any]]] = frozenset()


async def serve_handler(stack: AsyncExitStack, handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> str:
    """Start a real server on a free port until the stack unwinds, and return its URL."""
    application = web.Application(client_max_size=2**25)
    application.router.add_route("*", "/{path:.*}", handle)
    return await serving_application(stack, application)


async def serving_application(stack: AsyncExitStack, application: web.Application) -> str:
    """Start a server of a whole application until the stack unwinds, and return its URL."""
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return f"http://127.0.0.1:{runner.addresses[0][1]}"


class CloudSimulator:
    """The simulator of the Cloud API, with the account and number of the builders."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url

    async def write(self, phone: str, text: str) -> None:
        url = f"{self.base_url}/control/phones/{phone}/messages"
        body = {"to": APP.phone_number, "text": text}
        async with aiohttp.ClientSession() as http, http.post(url, json=body) as response:
            assert response.status == 200, await response.text()

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

    def __init__(self, server: ExampleServer, base_url: str) -> None:
        self._server = server
        self.base_url = base_url

    async def write(self, phone: str, text: str) -> None:
        await self._server.write(phone, text)

    @classmethod
    async def start(cls, stack: AsyncExitStack, _folder: Path, webhook_url: str) -> "ExampleStandIn":
        server = ExampleServer(APP.phone_number_id, APP.phone_number, ACCOUNT.namespace)
        server.subscribe(webhook_url, EXAMPLE_ACCOUNT["seal"])
        return cls(server, await serving_application(stack, server.application()))


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
        not_offered=frozenset({CheckToken}),
    ),
}


@dataclass
class AdapterHarness:
    """An adapter, the stand-in for its operator, and our webhook.

    Attributes:
        events: the events of correctly signed webhooks, as the adapter reads them.
        unsigned: how many webhooks had no valid signature.
    """

    case: AdapterCase
    adapter: Operator
    account: OperatorAccount
    http: aiohttp.ClientSession
    stand_in: StandIn = field(init=False)
    webhook_url: str = ""
    events: list[Event] = field(default_factory=list[Event])
    unsigned: int = 0
    _received: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def receive_webhook(self, request: web.Request) -> web.Response:
        """Handle a webhook request as the service does."""
        if request.method == "GET":
            challenge = self.adapter.verify_handshake(self.account, request.query)
            return web.Response(text=challenge, status=200 if challenge else 403)
        body = await request.read()
        if not self.adapter.is_signed(self.account, request.headers, body):
            self.unsigned += 1
            return web.Response(status=401)
        async with self._received:
            self.events += [self.adapter.read(item.payload) for item in self.adapter.split(self.account, body)]
            self._received.notify_all()
        return web.Response()

    async def wait_for_event(self, event_type: type[EventT], predicate: Callable[[EventT], object] = bool) -> EventT:
        """Wait for an event of a type that satisfies the predicate, and return the first."""

        def matching_events() -> list[EventT]:
            return [event for event in self.events if isinstance(event, event_type) and predicate(event)]

        async with asyncio.timeout(HANGS_AFTER_S), self._received:
            await self._received.wait_for(lambda: bool(matching_events()))
        return matching_events()[0]


@pytest.fixture(params=ADAPTERS)
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AdapterHarness]:
    """Each adapter in turn, connected both ways."""
    case = ADAPTERS[str(request.param)]
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(aiohttp.ClientSession())
        adapter = case.make()
        await adapter.open()
        stack.push_async_callback(adapter.close)
        harness = AdapterHarness(case, adapter, case.account, http)
        harness.webhook_url = f"{await serve_handler(stack, harness.receive_webhook)}/operator/webhook/main"
        harness.stand_in = await case.stand_in(stack, tmp_path, harness.webhook_url)
        harness.account = replace(case.account, base_url=harness.stand_in.base_url)
        yield harness
