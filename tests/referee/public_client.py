"""A public client of the operator's interface between a simulator and its webhooks, all on loopback."""

# The client exports its names without saying so, and leaves parts of its own types open.
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
from tests.support.waiting import HANGS_AFTER_S

Update = TypeVar("Update", bound=BaseUpdate)
VERIFY_TOKEN: Final = "verify-me"
_OPERATOR: Final = ("graph.facebook.com", "api.facebook.com")
_HANDLERS: Final = (
    handlers.MessageHandler,
    handlers.MessageStatusHandler,
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
)


class Redirected(httpx.AsyncBaseTransport):
    """Sends what is meant for the operator's address, which the client hard-sets, to the simulator.

    Nothing else of a request is touched, and a request for any other host is a failure: the tests
    speak to loopback only.
    """

    def __init__(self, base: str) -> None:
        self._base = httpx.URL(base)
        self._inner = httpx.AsyncHTTPTransport()
        self.asked: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Carry the request out at the simulator."""
        if request.url.host not in (*_OPERATOR, self._base.host):
            raise httpx.ConnectError(f"{request.url.host} is not on loopback", request=request)
        request.url = request.url.copy_with(scheme=self._base.scheme, host=self._base.host, port=self._base.port)
        self.asked.append(f"{request.method} {request.url.path}")
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
        """Begin to answer."""
        config = uvicorn.Config(self.application, lifespan="off", log_config=None, access_log=False, ws="none")
        config.load()
        self._server = uvicorn.Server(config)
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup([self._listener])

    def close(self) -> None:
        """Stop at once; the server's own way out would sleep."""
        assert self._server is not None
        for listening in self._server.servers:
            listening.close()
        for connection in list(self._server.server_state.connections):
            connection.shutdown()


@dataclass
class Arena:
    """A simulator, the public client in front of it, and the client's own webhook server behind it.

    Attributes:
        heard: every update that the client made of a webhook, in the order of arrival.
        raw: the webhooks as they came, for what the client could make nothing of.
    """

    bench: Bench
    server: WebhookServer
    client: WhatsApp
    transport: Redirected
    heard: list[BaseUpdate] = field(default_factory=list[BaseUpdate])
    raw: list[RawUpdate] = field(default_factory=list[RawUpdate])
    _came: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self) -> None:
        """Have the client keep all that it understands, and all that it does not."""
        self.client.add_handlers(*(handler(self._keep) for handler in _HANDLERS))
        self.client.add_handlers(handlers.RawUpdateHandler(self._keep_raw))
        await self.server.open()

    async def hears(self, kind: type[Update], is_meant: Callable[[Update], bool] = lambda _: True) -> Update:
        """The first update of a kind, as the client's own type, as soon as it is there."""
        return await self._until(
            lambda: next((one for one in self.heard if isinstance(one, kind) and is_meant(one)), None)
        )

    async def hears_raw(self, is_meant: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The value of the first webhook that is meant, whether the client understood it or not."""
        return await self._until(lambda: next((one.value for one in self.raw if is_meant(one.value)), None))

    async def phone_says(self, phone: str = ANN, **wish: Any) -> str:
        """A phone sends something to the business number; gives the message's id."""
        answer = await self.bench.control("POST", f"phones/{phone}/messages", {"to": BUSINESS, **wish})
        assert answer.status == 200, answer.body
        return answer.body["wamid"]

    async def act(self, path: str, body: Any = None, method: str = "POST") -> Any:
        """Ask the control door for something that must go well."""
        answer = await self.bench.control(method, path, body)
        assert answer.status == 200, answer.body
        return answer.body

    async def on_phone(self, wamid: str, phone: str = ANN) -> dict[str, Any]:
        """A message as the phone's owner sees it, as soon as it has arrived."""
        shown = await self.act(f"phones/{phone}?wait_ms=5000", method="GET")
        [message] = [one for one in shown["messages"] if one["wamid"] == wamid]
        return message

    async def _until(self, is_there: Callable[[], Any]) -> Any:
        async with asyncio.timeout(HANGS_AFTER_S):
            while (found := is_there()) is None:
                self._came.clear()
                await self._came.wait()
        return found

    async def _keep(self, _client: Any, update: BaseUpdate) -> None:
        self.heard.append(update)
        self._came.set()

    async def _keep_raw(self, _client: Any, update: RawUpdate) -> None:
        self.raw.append(update)
        self._came.set()


def make_client(transport: Redirected, server: WebhookServer | None = None, **more: Any) -> WhatsApp:
    """The client as anybody would make it, but for the address behind the operator's name."""
    chosen: dict[str, Any] = {
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
    return WhatsApp(**{**chosen, **more})
