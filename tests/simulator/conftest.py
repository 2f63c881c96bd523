"""A simulator on a free port, a client of its Graph and control APIs, and a receiver of its webhooks."""

import asyncio
import hashlib
import hmac
import io
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvicorn
from aiohttp import web
from msgspec.structs import replace

from tests.support.manual_clock import ManualClock
from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.http.servers import BreakableProtocol
from waypost.base.clock import Clock, SystemClock
from waypost.base.ids import SeededIds
from waypost.simulator import AccountSeed, NumberSeed, Simulator, SimulatorSettings
from waypost.simulator.state.phone import encode_user_id

WABA = "1000000000000001"
NUMBER_ID = "2000000000000002"
BUSINESS = "15550001111"
TOKEN = "token-of-one"
SECRET = "secret-of-one"
APP = "3000000000000003"
ANN = "15551234567"
ANN_USER_ID = encode_user_id(ANN)


@dataclass
class WebhookPost:
    body: bytes
    headers: dict[str, str]

    @property
    def value(self) -> dict[str, Any]:
        return json.loads(self.body)


@dataclass
class Receiver:
    """A business's webhook: stores POSTs and returns the configured statuses, 200 by default.

    It responds once `may_respond` is set, as it is by default.
    """

    uri: str = ""
    verify_token: str = "verify-me"
    posts: list[WebhookPost] = field(default_factory=list[WebhookPost])
    response_statuses: list[int] = field(default_factory=list[int])
    post_received: asyncio.Event = field(default_factory=asyncio.Event)
    may_respond: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_respond.set()

    async def handle(self, request: web.Request) -> web.Response:
        if request.method == "GET":
            if request.query["hub.verify_token"] != self.verify_token:
                return web.Response(status=403)
            return web.Response(text=request.query["hub.challenge"])
        status = self.response_statuses.pop(0) if self.response_statuses else 200
        self.posts.append(WebhookPost(await request.read(), dict(request.headers)))
        self.post_received.set()
        await self.may_respond.wait()
        return web.Response(status=status)

    def changes(self, field_name: str = "messages") -> list[dict[str, Any]]:
        return [
            change["value"]
            for post in self.posts
            for entry in post.value["entry"]
            for change in entry["changes"]
            if change["field"] == field_name
        ]

    def statuses(self, wamid: str | None = None) -> list[dict[str, Any]]:
        every = [status for value in self.changes() for status in value.get("statuses", [])]
        return [status for status in every if wamid in (None, status["id"])]

    def messages(self) -> list[dict[str, Any]]:
        return [message for value in self.changes() for message in value.get("messages", [])]

    def template_events(self) -> list[dict[str, Any]]:
        return self.changes("message_template_status_update")

    async def wait_until(self, is_ready: Callable[[], Any]) -> Any:
        async with asyncio.timeout(HANGS_AFTER_S):
            while not (found := is_ready()):
                self.post_received.clear()
                await self.post_received.wait()
        return found

    def is_signed(self, post: WebhookPost, secret: str = SECRET) -> bool:
        expected = hmac.new(secret.encode(), post.body, hashlib.sha256).hexdigest()
        return post.headers["X-Hub-Signature-256"] == f"sha256={expected}"


@dataclass
class SimulatorResponse:
    status: int
    body: Any
    headers: dict[str, str]

    @property
    def error(self) -> dict[str, Any]:
        return self.body["error"]


@dataclass
class Bench:
    """A running simulator with its settings, clock, HTTP client and webhook receiver."""

    simulator: Simulator
    settings: SimulatorSettings
    clock: Clock
    receiver: Receiver
    http: aiohttp.ClientSession
    base: str = ""
    server: uvicorn.Server | None = None

    async def start(self) -> None:
        listener = socket.socket(proto=socket.IPPROTO_TCP)
        listener.bind(("127.0.0.1", 0))
        self.base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        await self.simulator.open()
        config = uvicorn.Config(
            self.simulator.application,
            lifespan="off",
            log_config=None,
            access_log=False,
            ws="none",
            http=BreakableProtocol,
        )
        config.load()
        self.server = uvicorn.Server(config)
        self.server.lifespan = config.lifespan_class(config)
        await self.server.startup([listener])
        await self.simulator.seed(
            AccountSeed(
                waba_id=WABA,
                name="One",
                namespace="58e6d318_b627_4112_b9c7_2961197553ea",
                token=TOKEN,
                app_id="3000000000000003",
                app_secret=SECRET,
                verify_token=self.receiver.verify_token,
                callback_uri=self.receiver.uri,
            ),
            [NumberSeed(NUMBER_ID, WABA, BUSINESS, "Shop One")],
        )

    async def stop(self) -> None:
        # The server's own shutdown sleeps in steps of a tenth of a second, which would slow every test.
        assert self.server is not None
        for listening in self.server.servers:
            listening.close()
        for connection in list(self.server.server_state.connections):
            connection.shutdown()
        await self.simulator.close()

    async def restart(self, **changes: Any) -> None:
        """Stop once nothing is being delivered, and start again.

        A delivery interrupted after its receiver has responded is sent once more, as it must be,
        and a test that counts would fail on a busy machine only.
        """
        await self.wait_until_idle()
        await self.stop()
        self.settings = replace(self.settings, **changes)
        self.simulator = Simulator(self.settings, self.clock, SeededIds(self.clock, "again"))
        await self.start()

    async def wait_until_idle(self) -> None:
        """Return when nothing is in flight."""
        async with asyncio.timeout(HANGS_AFTER_S):
            while self.simulator.busy:  # noqa: ASYNC110  there is no event for it
                await asyncio.sleep(0.001)

    async def request(self, method: str, path: str, **more: Any) -> SimulatorResponse:
        async with self.http.request(method, self.base + path, **more) as response:
            body = await response.json(content_type=None)
            return SimulatorResponse(response.status, body, dict(response.headers))

    async def graph(self, method: str, path: str, token: str = TOKEN, **more: Any) -> SimulatorResponse:
        headers = {"Authorization": f"Bearer {token}", **more.pop("headers", {})}
        return await self.request(method, f"/v25.0/{path}", headers=headers, **more)

    async def control(self, method: str, path: str, body: Any = None, **more: Any) -> SimulatorResponse:
        if method != "GET":
            more["json"] = {} if body is None else body
        return await self.request(method, f"/control/{path}", **more)

    async def control_text(self, method: str, path: str, body: str | None = None) -> str:
        """Send JSON as it is written, and return the response as it is written."""
        headers = {"Content-Type": "application/json"}
        async with self.http.request(method, f"{self.base}/control/{path}", data=body, headers=headers) as response:
            assert response.status == 200, await response.text()
            return await response.text()

    async def send(self, message: dict[str, Any], number_id: str = NUMBER_ID) -> SimulatorResponse:
        envelope = {"messaging_product": "whatsapp", "to": f"+{ANN}"}
        return await self.graph("POST", f"{number_id}/messages", json={**envelope, **message})

    async def send_text(self, text: str = "Hello", **more: Any) -> str:
        response = await self.send({"type": "text", "text": {"body": text}, **more})
        assert response.status == 200, response.body
        return response.body["messages"][0]["id"]

    async def create_template(self, components: list[dict[str, Any]], **more: Any) -> SimulatorResponse:
        draft = {"name": "greeting", "language": "en_US", "category": "UTILITY", **more}
        return await self.graph("POST", f"{WABA}/message_templates", json={**draft, "components": components})

    async def seed_template(self, components: list[dict[str, Any]], name: str = "seeded", **more: Any) -> None:
        template = {
            "waba_id": WABA,
            "template_id": "1400000000000004",
            "language": "en_US",
            "category": "UTILITY",
            **more,
        }
        await self.simulator.seed_template(name=name, components=components, **template)

    async def send_template(
        self, components: list[dict[str, Any]] | None = None, name: str = "seeded", **more: Any
    ) -> SimulatorResponse:
        template: dict[str, Any] = {"name": name, "language": {"code": "en_US"}}
        if components is not None:
            template["components"] = components
        return await self.send({"type": "template", "template": template, **more})

    async def upload_file(self, mime_type: str = "image/png", content: bytes = b"example") -> str:
        """Run a resumable upload and return its handle."""
        query = {"file_length": str(len(content)), "file_type": mime_type, "file_name": "a"}
        begun = await self.graph("POST", f"{APP}/uploads", params=query)
        headers = {"Authorization": f"OAuth {TOKEN}", "file_offset": "0"}
        path = f"/v25.0/{begun.body['id']}"
        done = await self.request("POST", path, data=io.BytesIO(content), headers=headers)
        return done.body["h"]

    async def upload_media(self, mime_type: str, content: bytes = b"content") -> str:
        """Upload media to the number and return its id."""
        form = aiohttp.FormData({"messaging_product": "whatsapp", "type": mime_type})
        form.add_field("file", content, content_type=mime_type, filename="a.bin")
        response = await self.graph("POST", f"{NUMBER_ID}/media", data=form)
        assert response.status == 200, response.body
        return response.body["id"]

    async def inbox(self, phone: str = ANN) -> list[dict[str, Any]]:
        return (await self.control("GET", f"phones/{phone}")).body["messages"]

    async def wait_for_phone(self, is_ready: Callable[[dict[str, Any]], Any], phone: str = ANN) -> dict[str, Any]:
        """Return the phone as shown by the control API once `is_ready` is true of it."""
        async with asyncio.timeout(HANGS_AFTER_S):
            while not is_ready(shown := (await self.control("GET", f"phones/{phone}")).body):
                pass
        return shown

    async def wait_for_account(self, is_ready: Callable[[dict[str, Any]], Any]) -> None:
        """Return once `is_ready` is true of the first account, as shown by the control API."""
        async with asyncio.timeout(HANGS_AFTER_S):
            while not is_ready((await self.control("GET", "state")).body["accounts"][0]):
                pass

    async def wait_until_drained(self) -> None:
        """Return when no webhook is waiting, now or later."""
        async with asyncio.timeout(HANGS_AFTER_S):
            while (await self.control("GET", "state")).body["counts"]["outbox"]:
                pass

    async def send_from_phone(self, text: str = "Hi", phone: str = ANN) -> str:
        return await self.simulator.send_phone_text(phone=phone, to=BUSINESS, text=text)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    application = web.Application(client_max_size=8 * 1024 * 1024)
    application.router.add_route("*", "/hook", receiver.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    receiver.uri = f"http://{host}:{port}/hook"
    yield receiver
    await runner.cleanup()


def make_bench(path: Path, clock: Clock, receiver: Receiver, http: aiohttp.ClientSession, **more: Any) -> Bench:
    chosen: dict[str, Any] = {"deliver_after_ms": 0, "gather_ms": 0, "review_delay_ms": 0, **more}
    settings = SimulatorSettings(path / "simulator.sqlite3", **chosen)
    simulator = Simulator(settings, clock, SeededIds(clock, "tests"))
    return Bench(simulator, settings, clock, receiver, http)


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def bench(tmp_path: Path, receiver: Receiver, http: aiohttp.ClientSession) -> AsyncIterator[Bench]:
    """A simulator on the system clock, without delays."""
    bench = make_bench(tmp_path, SystemClock(), receiver, http)
    await bench.start()
    yield bench
    await bench.stop()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def slow(
    tmp_path: Path, clock: ManualClock, receiver: Receiver, http: aiohttp.ClientSession
) -> AsyncIterator[Bench]:
    """A simulator on a manual clock: delivery takes a second, a review a minute."""
    bench = make_bench(tmp_path, clock, receiver, http, deliver_after_ms=1000, review_delay_ms=60_000)
    await bench.start()
    yield bench
    await bench.stop()


@pytest.fixture
def post_junk(tmp_path: Path) -> Iterator[Callable[[str, bytes], tuple[int, Any]]]:
    """A function that posts to the Graph API outside any event loop: direct to the application, no socket."""
    loop = asyncio.new_event_loop()
    clock = ManualClock()
    settings = SimulatorSettings(tmp_path / "simulator.sqlite3", limits=False)
    simulator = Simulator(settings, clock, SeededIds(clock, "junk"))

    async def start() -> None:
        await simulator.open()
        account = AccountSeed(WABA, "One", "", TOKEN, "3000000000000003", SECRET, "v", "")
        await simulator.seed(account, [NumberSeed(NUMBER_ID, WABA, BUSINESS, "Shop One")])
        await simulator.seed_template(
            waba_id=WABA, template_id="1400000000000004", name="seeded", language="en_US",
            category="UTILITY", components=[
                {"type": "BODY", "text": "Hello {{1}}, how are you", "example": {"body_text": "A"}},
                {"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": "Yes"}]},
            ],
        )  # fmt: skip

    async def post(path: str, body: bytes) -> tuple[int, Any]:
        sent: list[Any] = []
        scope = {
            "type": "http", "method": "POST", "path": f"/v25.0/{path}", "query_string": b"",
            "headers": [(b"authorization", f"Bearer {TOKEN}".encode())],
        }  # fmt: skip

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            sent.append(message)

        await simulator.application(scope, receive, send)
        return sent[0]["status"], json.loads(sent[1]["body"])

    loop.run_until_complete(start())
    yield lambda path, body: loop.run_until_complete(post(path, body))
    loop.run_until_complete(simulator.close())
    loop.close()
