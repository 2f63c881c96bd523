"""A service that only sends callbacks: tests enqueue them as the stages do; no message is sent to an operator."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy import Connection

from tests.support.builders import APP, INSTANCE_KEY, OPERATOR
from tests.support.manual_clock import ManualClock
from tests.support.partner_seeding import store_partner
from tests.support.passing_time import advance_until
from tests.support.store_locations import StoreLocation
from waypost.admin import provisioning
from waypost.assembly.service import Waypost
from waypost.base.clock import Clock
from waypost.base.ids import Ids, RandomIds
from waypost.client.api_client import ApiClient, InProcessTransport
from waypost.config import Settings
from waypost.domain.app import App
from waypost.notifications.state_changes import StateChangeRecorder

ADMIN_TOKEN: Final = "callback-admin-token-of-thirty-two-or-more"


@dataclass
class CallbackService:
    """One service, one partner, one app.

    Attributes:
        changes: settings that differ from the defaults below.
    """

    folder: Path
    store_location: StoreLocation
    clock: Clock
    changes: dict[str, Any] = field(default_factory=dict[str, Any])
    token: str = ""

    async def open(self) -> None:
        """Start the service; it may be started again after `close`."""
        values: dict[str, Any] = {
            "data": self.folder,
            "secret_key": INSTANCE_KEY,
            "admin_token": ADMIN_TOKEN,
            "rates": False,
            "allowed_networks": ("127.0.0.0/8",),
            "stop_within_s": 0.2,
            "public_url": "http://127.0.0.1:9",
            **self.store_location.settings,
            **self.changes,
        }
        self.ids: Ids = RandomIds(self.clock)
        self.waypost = Waypost(Settings(**values), self.clock, self.ids)
        await self.waypost.open()
        if not self.token:
            await self._make_partner()
        self.waypost.start()
        transport = InProcessTransport(self.waypost.application)
        self._admin = ApiClient(transport, {"Authorization": f"Bearer {ADMIN_TOKEN}"})
        self._partner = ApiClient(transport, {"Authorization": self.token})

    async def close(self) -> None:
        """Stop it."""
        await self.waypost.drain()
        await self.waypost.close()

    async def admin(self, method: str, path: str, body: Any = None) -> Any:
        """Call the admin API."""
        return await self._admin.json(method, f"/admin/{path}", body)

    async def partner(self, method: str, path: str, form: Mapping[str, str]) -> Any:
        """Call the partner API, below the app's path."""
        return await self._partner.form(method, f"/partner/app/{APP.id}/{path}", form)

    async def subscribe(self, url: str, tag: str = "all", **more: str) -> int:
        """Subscribe this URL to callbacks, and return the subscription's id."""
        form = {"modes": "MESSAGE", "tag": tag, "url": url, "doCheck": "false", **more}
        created = await self.partner("POST", "subscription", form)
        return int(created["subscription"]["id"])

    async def subscription_health(self, subscription_id: int) -> dict[str, Any]:
        """Return a subscription with its delivery health, as the admin API shows it."""
        return await self.admin("GET", f"subscriptions/{subscription_id}")

    async def emit_callbacks(self, *recipients: str, times: int = 1) -> None:
        """Enqueue callbacks about each of these recipients, so many times."""
        await self.waypost.database.write(_emit_callbacks, self.ids, self.clock.now_ms(), recipients, times)

    async def is_idle(self) -> bool:
        """True if the service has no work that is due."""
        return not self.waypost.busy

    async def pass_time_until(self, is_so: Callable[[], bool], *, step_ms: int) -> None:
        """Advance a manual clock in steps until the condition holds; before each step the service finishes what is due."""
        assert isinstance(self.clock, ManualClock)
        await advance_until(self.clock, self.waypost, is_so, step_ms=step_ms)

    async def _make_partner(self) -> None:
        context = self.waypost.admin_context
        await provisioning.put_operator_account(context, OPERATOR)
        self.token = await store_partner(context)


def _emit_callbacks(
    connection: Connection, ids: Ids, at_ms: int, recipients: Sequence[str], times: int, app: App = APP
) -> None:
    recorder = StateChangeRecorder(connection, ids, at_ms)
    for turn in range(times):
        for recipient in recipients:
            body = msgspec.json.encode({"about": recipient, "turn": turn})
            recorder.emit_callback(
                app,
                mode="MESSAGE",
                subject=recipient,
                message_id=None,
                event_name="text",
                render=lambda _, body=body: body,
            )
    recorder.write()
