"""The receiver of callbacks in the server of the tools: it accepts each, and the admin API has their contents."""

from collections.abc import Mapping
from typing import Any

from waypost.assembly.http.servers import HttpServer, bind_socket, port_of
from waypost.cli.commands.listen import DEFAULT_MODES
from waypost.cli.commands.listener import ListeningReceiver, ListenOptions, delete_abandoned_subscriptions
from waypost.cli.connections import partner_client


class ToolReceiver:
    """A receiver with a subscription of its own, until it is closed."""

    def __init__(self) -> None:
        bound = bind_socket("127.0.0.1", 0, option="--port")
        self._port = port_of(bound)
        self._server = HttpServer(ListeningReceiver(ListenOptions(DEFAULT_MODES), lambda _: None), bound)
        self._is_started = False
        self._subscription: tuple[Mapping[str, str], str] | None = None

    async def subscribe(self, variables: Mapping[str, str], modes: str) -> dict[str, Any]:
        """Subscribe to the callbacks of the app with these modes, instead of an earlier subscription of its own.

        Raises:
            ApiResponseError: the subscription was rejected.
            ApiUnreachable: the service does not respond.
        """
        if not self._is_started:
            await self._server.start()
            self._is_started = True
        await self._unsubscribe()
        await delete_abandoned_subscriptions(variables)
        url, tag = f"http://127.0.0.1:{self._port}/callbacks", f"mcp-{self._port}"
        subscription = await subscribe_url(variables, url, modes, tag)
        self._subscription = variables, subscription["id"]
        return subscription

    async def close(self) -> None:
        """Delete the subscription, and stop."""
        try:
            await self._unsubscribe()
        finally:
            await self._server.stop()

    async def _unsubscribe(self) -> None:
        if self._subscription is not None:
            variables, subscription_id = self._subscription
            self._subscription = None
            path = f"/partner/app/{variables['APP_ID']}/subscription/{subscription_id}"
            await partner_client(variables).json("DELETE", path)


async def subscribe_url(variables: Mapping[str, str], url: str, modes: str, tag: str) -> dict[str, Any]:
    """Subscribe a URL to the callbacks of the app, and return the subscription.

    Raises:
        ApiResponseError: the subscription was rejected.
        ApiUnreachable: the service does not respond.
    """
    path = f"/partner/app/{variables['APP_ID']}/subscription"
    fields = {"modes": modes, "tag": tag, "url": url, "version": "2"}
    return (await partner_client(variables).form("POST", path, fields))["subscription"]
