"""A person who uses the admin API while traffic flows, and restarts the service."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from simulation.accounts import PORTS, PartnerAccount
from simulation.choices import Choices, declare
from simulation.client import Response, call, request
from simulation.observed import Observed
from waypost.assembly.dev import demo
from waypost.simulator import Simulator

TURNS: Final = 6
TURN_EVERY_S: Final = 6
_ACTIONS: Final = {
    "administrator reads": "the administrator read what waits",
    "administrator rotates a signing key": "the administrator rotated the signing key of a subscription",
    "administrator retries a subscription": "the administrator let callbacks be retried at once",
    "administrator checks a subscription": "the administrator sent a ping to a receiver",
    "administrator replays callbacks": "the administrator replayed the callbacks of an app",
    "administrator replaces an API key": "the administrator gave a partner a new API key, and revoked the old one",
    "administrator replaces an app token": "the administrator gave a partner a new app token",
    "administrator replaces a graph token": "the administrator gave the service a new token of the operator",
    "administrator changes quotas": "the administrator gave a partner quotas of its own",
    "administrator restarts the service": "the administrator stopped and started the service",
    "administrator holds the service": "the administrator restarted the service with `hold`, and then without",
}
_READS: Final = ("/admin/waits", "/admin/queues", "/admin/subscriptions", "/admin/dead-letters", "/admin/messages")
_SHARE: Final = 0.12
_SHARES: Final = {"administrator holds the service": 0.3, "administrator changes quotas": 0.3}
"""Of the actions that seldom fall together with what they would change."""
SMALL_QUOTA: Final = 12

declare(_ACTIONS)

Restart = Callable[[float | None], Awaitable[None]]
"""Stops and starts the service; for so many seconds it then runs with `hold`."""


class Administrator:
    """The person.

    Args:
        restart: restarts the service.
    """

    def __init__(
        self,
        partners: list[PartnerAccount],
        simulator: Simulator,
        choices: Choices,
        observed: Observed,
        restart: Restart,
    ) -> None:
        self._partners, self._simulator, self._choices, self._observed = partners, simulator, choices, observed
        self._restart = restart
        self._actions: dict[str, Callable[[PartnerAccount], Awaitable[None]]] = {
            "administrator reads": self._read,
            "administrator rotates a signing key": self._rotate_signing_key,
            "administrator retries a subscription": self._retry_subscription,
            "administrator checks a subscription": self._check_subscription,
            "administrator replays callbacks": self._replay,
            "administrator replaces an API key": self._replace_api_key,
            "administrator replaces an app token": self._replace_app_token,
            "administrator replaces a graph token": self._replace_graph_token,
            "administrator changes quotas": self._change_quotas,
            "administrator restarts the service": self._restart_service,
            "administrator holds the service": self._hold_service,
        }

    async def work(self) -> None:
        """Do what the seed chooses, in a few turns."""
        for _ in range(TURNS):
            await asyncio.sleep(self._choices.between("administrator pause", 0.1, TURN_EVERY_S))
            happening = [kind for kind in self._actions if self._choices.happens(kind, _SHARES.get(kind, _SHARE))]
            for kind in happening:
                await self._actions[kind](self._choices.pick("partner", self._partners, of=kind))

    async def call(self, method: str, path: str, body: Any = None) -> Response | None:
        """Call the admin API over the network."""
        headers = {"Authorization": f"Bearer {demo.ADMIN_TOKEN}"}
        return await request(PORTS["service"], method, path, headers, json_body=body)

    async def _read(self, _partner: PartnerAccount) -> None:
        paths = [*_READS, *(f"/admin/trace/{one.id}" for one in self._observed.acknowledged[-1:] if one.to)]
        for path in paths:
            await self.call("GET", path)

    async def _rotate_signing_key(self, partner: PartnerAccount) -> None:
        for number in await self._subscriptions(partner):
            await self.call("POST", f"/admin/subscriptions/{number}/key/rotate", {})

    async def _retry_subscription(self, partner: PartnerAccount) -> None:
        for number in await self._subscriptions(partner):
            await self.call("POST", f"/admin/subscriptions/{number}/retry", {})

    async def _check_subscription(self, partner: PartnerAccount) -> None:
        for number in (await self._subscriptions(partner))[:1]:
            await self.call("POST", f"/admin/subscriptions/{number}/check", {})

    async def _replay(self, partner: PartnerAccount) -> None:
        await self.call("POST", "/admin/callbacks/replay", {"app_id": partner.apps[0].id})

    async def _replace_api_key(self, partner: PartnerAccount) -> None:
        response = await self.call("POST", f"/admin/partners/{partner.number}/api-keys", {"name": "next"})
        if response is not None and response.body is not None and response.status == 200:
            old = partner.api_keys[-1]
            partner.api_keys.append(response.body["api_key"])
            await self.call("POST", "/admin/api-keys/revoke", {"api_key": old})

    async def _replace_app_token(self, partner: PartnerAccount) -> None:
        app = partner.apps[0]
        response = await self.call("POST", f"/admin/apps/{app.id}/token/revoke", {})
        if response is not None and response.body is not None and response.status == 200:
            app.token = response.body["app_token"]

    async def _replace_graph_token(self, partner: PartnerAccount) -> None:
        """Let the operator make a token, store it, and only then revoke the old one."""
        made = await self._control("POST", "/control/tokens", {"waba_ids": [partner.waba_id]})
        token = made.body["token"]
        response = await self.call("PUT", f"/admin/operator-accounts/{partner.operator_account}", {"token": token})
        if response is not None and response.status == 200:
            await self._control("POST", "/control/tokens/revoke", {"token": partner.graph_tokens[-1]})
            partner.graph_tokens.append(token)

    async def _change_quotas(self, partner: PartnerAccount) -> None:
        """Give a partner quotas: they may be reached, but not by what waits at once in the second round."""
        body = {"message_quota": SMALL_QUOTA, "callback_quota": 1000}
        await self.call("PUT", f"/admin/partners/{partner.number}/quotas", body)

    async def _restart_service(self, _partner: PartnerAccount) -> None:
        await self._restart(None)

    async def _hold_service(self, _partner: PartnerAccount) -> None:
        await self._restart(self._choices.between("seconds", 1, 10, of="administrator holds the service"))

    async def _subscriptions(self, partner: PartnerAccount) -> list[str]:
        response = await self.call("GET", f"/admin/subscriptions?partner_id={partner.number}")
        if response is None or response.status != 200:
            return []
        return [one["id"] for one in response.body["subscriptions"]]

    async def _control(self, method: str, path: str, body: Any) -> Response:
        return await call(self._simulator.application, method, path, body)
