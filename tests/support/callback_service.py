"""The service with something to tell: callbacks are appended as the stages append them, and nobody is sent to."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy import Connection

from tests.support.builders import APP, INSTANCE_KEY, OPERATOR
from tests.support.seeding import store_partner
from tests.support.stores import Place
from tests.support.waiting import HANGS_AFTER_S
from waypost.admin import provisioning
from waypost.assembly.service import Waypost
from waypost.base.clock import Clock, ManualClock
from waypost.base.ids import Ids, RandomIds
from waypost.client.api_client import ApiClient, InProcessTransport
from waypost.config import Settings
from waypost.domain.app import App
from waypost.notifications.state_changes import StateChangeRecorder

ADMIN_TOKEN: Final = "teller-admin-token-of-thirty-two-or-more"


@dataclass
class Teller:
    """One service, one partner, one app.

    Attributes:
        changes: settings that differ.
    """

    folder: Path
    place: Place
    clock: Clock
    changes: dict[str, Any] = field(default_factory=dict[str, Any])
    token: str = ""

    async def open(self) -> None:
        """Start the service; also again, after `close`."""
        chosen: dict[str, Any] = {
            "data": self.folder,
            "secret_key": INSTANCE_KEY,
            "admin_token": ADMIN_TOKEN,
            "rates": False,
            "allowed_networks": ("127.0.0.0/8",),
            "stop_within_s": 0.2,
            "public_url": "http://127.0.0.1:9",
            **self.place.settings,
            **self.changes,
        }
        self.ids: Ids = RandomIds(self.clock)
        self.waypost = Waypost(Settings(**chosen), self.clock, self.ids)
        await self.waypost.open()
        if not self.token:
            await self._make_partner()
        self.waypost.start()
        door = InProcessTransport(self.waypost.application)
        self._admin = ApiClient(door, {"Authorization": f"Bearer {ADMIN_TOKEN}"})
        self._partner = ApiClient(door, {"Authorization": self.token})

    async def close(self) -> None:
        """Stop it."""
        await self.waypost.drain()
        await self.waypost.close()

    async def admin(self, method: str, path: str, body: Any = None) -> Any:
        """One call of the administration door."""
        return await self._admin.json(method, f"/admin/{path}", body)

    async def partner(self, method: str, path: str, form: Mapping[str, str]) -> Any:
        """One call of the partner API, below the app."""
        return await self._partner.form(method, f"/partner/app/{APP.id}/{path}", form)

    async def subscribe(self, url: str, tag: str = "all", **more: str) -> int:
        """Have callbacks sent there, and give the subscription's id."""
        form = {"modes": "MESSAGE", "tag": tag, "url": url, "doCheck": "false", **more}
        made = await self.partner("POST", "subscription", form)
        return int(made["subscription"]["id"])

    async def standing(self, subscription_id: int) -> dict[str, Any]:
        """How a subscription is doing, as the administrator sees it."""
        return await self.admin("GET", f"subscriptions/{subscription_id}")

    async def tell(self, *abouts: str, times: int = 1) -> None:
        """Something happens to each of these recipients, so many times."""
        await self.waypost.database.write(_tell, self.ids, self.clock.now_ms(), abouts, times)

    async def is_still(self) -> bool:
        """Whether the service has done what it can for now."""
        return not self.waypost.busy

    async def pass_time_until(self, is_so: Callable[[], bool], *, step_ms: int) -> None:
        """Move a manual clock until the claim holds, each time once the service has done what it can."""
        assert isinstance(self.clock, ManualClock)
        async with asyncio.timeout(HANGS_AFTER_S):
            while not is_so():
                self.clock.advance(ms=step_ms)
                for _ in range(40):
                    await asyncio.sleep(0.005)
                    if not self.waypost.busy:
                        break

    async def _make_partner(self) -> None:
        office = self.waypost.admin_context
        await provisioning.put_operator_account(office, OPERATOR)
        self.token = await store_partner(office)


def _tell(connection: Connection, ids: Ids, at_ms: int, abouts: Sequence[str], times: int, app: App = APP) -> None:
    telling = StateChangeRecorder(connection, ids, at_ms)
    for turn in range(times):
        for about in abouts:
            body = msgspec.json.encode({"about": about, "turn": turn})
            telling.emit_callback(
                app, mode="MESSAGE", about=about, message_id=None, event_name="text", render=lambda _, body=body: body
            )
    telling.write()
