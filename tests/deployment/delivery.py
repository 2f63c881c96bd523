"""One message through the proxy to a phone of the simulator, and its callbacks; everything over HTTP."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp

from crashes.partner import APP_NAME, SOURCE, Json, set_up
from crashes.processes import TIMEOUT_S, NotInTime
from tests.support.polling import poll_until

CONTROL_TOKEN: Final = "the control token of an image under test"
PHONE: Final = "15557001001"
STATES: Final = ("enqueued", "sent", "delivered")
"""The callbacks that a message must cause, in this order."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """URLs without a path.

    Attributes:
        proxy: for partners, and for the operator's webhooks.
        service: one process, whose admin API the proxy does not pass on.
        operator: the simulator.
        receiver: the partner's, for callbacks.
    """

    proxy: str
    service: str
    operator: str
    receiver: str


class Delivery:
    """Sets up a partner and sends for it; the `ClusterApis` of `crashes.partner`.

    Args:
        addresses: of what runs.
        admin_token: of the service.
        received: the file of `crashes/receiver.py`.
    """

    def __init__(self, addresses: Addresses, admin_token: str, received: Path) -> None:
        self.webhooks_url = addresses.proxy
        self.service_graph_url = addresses.operator
        self.service_callbacks_url = addresses.receiver
        self._addresses = addresses
        self._admin_token = admin_token
        self._received = received

    async def deliver(self) -> list[str]:
        """Send one message and return the states of its callbacks, up to its delivery."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as self._http:
            async with self._http.get(f"{self._addresses.proxy}/admin/queues") as response:
                assert response.status == 404, "the proxy passes on the admin API"
            partner = await set_up(self)
            template = {"id": partner.template_id, "params": ["4711"]}
            form = {"channel": "whatsapp", "source": SOURCE, "src.name": APP_NAME, "destination": PHONE}
            url = f"{self._addresses.proxy}/wa/api/v1/template/msg"
            form["template"] = json.dumps(template)
            async with self._http.post(url, data=form, headers={"apikey": partner.api_key}) as response:
                assert response.status == 200, await response.text()
            states = await poll_until(self._states, lambda states: STATES[-1] in states, within_s=TIMEOUT_S)
            assert tuple(state for state in states if state in STATES) == STATES, states
            deliveries = (await self.control("GET", "deliveries?limit=10&after=0"))["deliveries"]
            assert [delivery["to"] for delivery in deliveries] == [PHONE], deliveries
        return states

    async def _states(self) -> list[str]:
        lines = self._received.read_text(encoding="utf-8").splitlines() if self._received.exists() else []
        bodies = [json.loads(line)["body"] for line in lines]
        return [body["payload"]["type"] for body in bodies if body["type"] == "message-event"]

    async def admin(self, method: str, path: str, body: Json | None = None) -> Any:
        return await self._json(method, f"{self._addresses.service}/admin/{path}", self._admin_token, body)

    async def control(self, method: str, path: str, body: Json | None = None) -> Any:
        return await self._json(method, f"{self._addresses.operator}/control/{path}", CONTROL_TOKEN, body)

    async def app_call(self, app: Json, path: str, form: Json | None = None) -> Json:
        url = f"{self._addresses.proxy}/partner/app/{app['id']}/{path}"
        headers = {"Authorization": app["app_token"]}
        while True:
            async with self._http.request("POST" if form else "GET", url, data=form, headers=headers) as response:
                if response.status == 429:  # the documented rates are in force
                    await asyncio.sleep(float(response.headers["Retry-After"]))
                    continue
                assert response.status == 200, await response.text()
                return await response.json()

    async def wait_until(
        self, condition: Callable[[], Awaitable[bool]], description: str, *, within_s: float = TIMEOUT_S
    ) -> None:
        began_s = time.monotonic()
        try:
            await poll_until(condition, within_s=within_s)
        except TimeoutError:
            raise NotInTime(f"not true within {time.monotonic() - began_s:.0f} s: {description}") from None

    async def _json(self, method: str, url: str, token: str, body: Json | None) -> Any:
        async with self._http.request(method, url, json=body, headers={"Authorization": f"Bearer {token}"}) as response:
            assert response.status == 200, f"{method} {url}: {await response.text()}"
            return await response.json()
