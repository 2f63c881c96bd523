"""A public client of the Graph API between a simulator and its webhooks, all on loopback."""

# The client does not declare its exports, and leaves parts of its types unknown.
# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import httpx
import uvicorn
from pywa.types.base_update import BaseUpdate
from pywa_async import WhatsApp, handlers
from pywa_async.types import RawUpdate
from starlette.applications import Starlette

from tests.simulator.conftest import ANN, APP, BUSINESS, NUMBER_ID, SECRET, TOKEN, WABA, Bench
from tests.support.polling import HANGS_AFTER_S

Update = TypeVar("Update", bound=BaseUpdate)
VERIFY_TOKEN: Final = "verify-me"
_OPERATOR: Final = ("graph.facebook.com", "api.facebook.com")
_HANDLERS: Final = (
    handlers.MessageHandler,
    handlers.MessageStatusHandler,
    handlers.GroupMessageStatusesHandler,
    handlers.CallbackButtonHandler,
    handlers.CallbackSelectionHandler,
    handlers.FlowCompletionHandler,
    handlers.PhoneNumberChangeHandler,
    handlers.TemplateStatusUpdateHandler,
    handlers.TemplateCategoryUpdateHandler,
    handlers.TemplateQualityUpdateHandler,
    handlers.TemplateComponentsUpdateHandler,
    handlers.UserMarketingPreferencesHandler,
    handlers.CallPermissionUpdateHandler,
    handlers.AccountUpdateHandler,
    handlers.EditedMessageHandler,
    handlers.DeletedMessageHandler,
    handlers.OutgoingMessageHandler,
    handlers.OutgoingEditedMessageHandler,
    handlers.OutgoingDeletedMessageHandler,
)


class RedirectingTransport(httpx.AsyncBaseTransport):
    """Sends requests for the operator's host, which is fixed in the client, to the simulator.

    Nothing else of a request is changed. A request for any other host fails: the tests connect to
    loopback only.
    """

    def __init__(self, base: str) -> None:
        self._base = httpx.URL(base)
        self._inner = httpx.AsyncHTTPTransport()
        self.requests: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request to the simulator."""
        if request.url.host not in (*_OPERATOR, self._base.host):
            raise httpx.ConnectError(f"{request.url.host} is not on loopback", request=request)
        request.url = request.url.copy_with(scheme=self._base.scheme, host=self._base.host, port=self._base.port)
        self.requests.append(f"{request.method} {request.url.path}")
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


class WebhookServer:
    """A loopback server with the routes that the client itself registers: handshake and webhooks."""

    def __init__(self) -> None:
        self.application = Starlette()
        self._listener = socket.socket(proto=socket.IPPROTO_TCP)
        self._listener.bind(("127.0.0.1", 0))
        self.uri = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        self._server: uvicorn.Server | None = None

    async def open(self) -> None:
        """Start accepting requests."""
        config = uvicorn.Config(self.application, lifespan="off", log_config=None, access_log=False, ws="none")
        config.load()
        self._server = uvicorn.Server(config)
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup([self._listener])

    def close(self) -> None:
        """Stop at once; the server's own shutdown would sleep."""
        assert self._server is not None
        for server in self._server.servers:
            server.close()
        for connection in list(self._server.server_state.connections):
            connection.shutdown()


@dataclass
class ClientHarness:
    """A simulator, the public client in front of it, and the client's own webhook server behind it.

    Attributes:
        updates: every update that the client has parsed from a webhook, in order.
        raw: the webhooks as received, also those that the client cannot parse.
    """

    bench: Bench
    server: WebhookServer
    client: WhatsApp
    transport: RedirectingTransport
    updates: list[BaseUpdate] = field(default_factory=list[BaseUpdate])
    raw: list[RawUpdate] = field(default_factory=list[RawUpdate])
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self) -> None:
        """Record all updates that the client parses, and all raw webhooks."""
        self.client.add_handlers(*(handler(self._record) for handler in _HANDLERS))
        self.client.add_handlers(handlers.RawUpdateHandler(self._record_raw))
        await self.server.open()

    async def wait_for_update(self, kind: type[Update], matches: Callable[[Update], bool] = lambda _: True) -> Update:
        """Wait for the first matching update of a type, and return it as the client's own type."""
        return await self._wait_until(
            lambda: next((update for update in self.updates if isinstance(update, kind) and matches(update)), None)
        )

    async def wait_for_webhook(self, matches: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for the first matching webhook, parsed by the client or not, and return its value."""
        return await self._wait_until(
            lambda: next((update.value for update in self.raw if matches(update.value)), None)
        )

    async def send_from_phone(self, phone: str = ANN, **message: Any) -> str:
        """Send a message from a phone to the business number; return the message's id."""
        response = await self.bench.control("POST", f"phones/{phone}/messages", {"to": BUSINESS, **message})
        assert response.status == 200, response.body
        return response.body["wamid"]

    async def control(self, path: str, body: Any = None, method: str = "POST") -> Any:
        """Send a request to the simulator control API; it must succeed."""
        response = await self.bench.control(method, path, body)
        assert response.status == 200, response.body
        return response.body

    async def phone_message(self, wamid: str, phone: str = ANN) -> dict[str, Any]:
        """Wait for a message on a phone, and return it as the phone shows it."""
        shown = await self.control(f"phones/{phone}?wait_ms=5000", method="GET")
        [message] = [message for message in shown["messages"] if message["wamid"] == wamid]
        return message

    async def _wait_until(self, read_value: Callable[[], Any]) -> Any:
        async with asyncio.timeout(HANGS_AFTER_S):
            while (value := read_value()) is None:
                self._arrived.clear()
                await self._arrived.wait()
        return value

    async def _record(self, _client: Any, update: BaseUpdate) -> None:
        self.updates.append(update)
        self._arrived.set()

    async def _record_raw(self, _client: Any, update: RawUpdate) -> None:
        self.raw.append(update)
        self._arrived.set()


def make_client(transport: RedirectingTransport, server: WebhookServer | None = None, **more: Any) -> WhatsApp:
    """Return the client with its usual arguments, except for the transport."""
    arguments: dict[str, Any] = {
        "phone_id": NUMBER_ID,
        "token": TOKEN,
        "waba_id": WABA,
        "app_id": APP,
        "app_secret": SECRET,
        "verify_token": VERIFY_TOKEN,
        "session": httpx.AsyncClient(transport=transport, trust_env=False),
        "server": None if server is None else server.application,
        "continue_handling": True,
        "skip_duplicate_updates": False,
    }
    return WhatsApp(**{**arguments, **more})
