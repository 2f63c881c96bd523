"""Concurrent changes: each sets only its own fields, and undoes no other change."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from tests.support.builders import ACCOUNT, APP
from tests.support.pipeline import PipelineHarness
from waypost.admin.apps import AppConnection, connect_app
from waypost.store.accounts.partners import app_by_id

CHANGES = {"callbackUrl": {"callbackUrl": "https://shop.example/hook"}, "appPreference": {"isHSMEnabled": "false"}}


class SlowReceiver:
    """A partner's receiver that responds once the test lets it.

    Attributes:
        requested: set at the first request.
        may_respond: lets it respond, once set.
    """

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.may_respond = asyncio.Event()
        self.url = ""

    async def open(self) -> None:
        """Listen on a free port."""
        application = web.Application()
        application.router.add_post("/", self._respond)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/"

    async def close(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _respond(self, _: web.Request) -> web.Response:
        self.requested.set()
        await self.may_respond.wait()
        return web.Response()


@pytest.fixture
async def slow() -> AsyncIterator[SlowReceiver]:
    """Start a slow receiver."""
    slow = SlowReceiver()
    await slow.open()
    yield slow
    await slow.close()


@pytest.mark.parametrize("what", ["callbackUrl", "appPreference"])
async def test_preferences_that_are_set_concurrently_are_both_stored(pipeline: PipelineHarness, what: str) -> None:
    first, second = ("callbackUrl", "appPreference")
    if what == second:
        first, second = second, first

    await asyncio.gather(set_preference(pipeline, first), set_preference(pipeline, second))

    app = await pipeline.waypost.database.read(app_by_id, APP.id)
    assert app is not None
    assert app.preferences.callback_url == CHANGES["callbackUrl"]["callbackUrl"]
    assert app.preferences.template_messaging is False


async def test_number_set_by_the_administrator_is_not_undone_by_a_partners_preference(
    pipeline: PipelineHarness,
) -> None:
    await set_preference(pipeline, "callbackUrl")  # the app is read, and cached
    connection = AppConnection("15557770001", APP.phone_number_id, ACCOUNT.id)
    connecting = connect_app(pipeline.waypost.admin_context, connection, APP.id)

    await asyncio.gather(connecting, set_preference(pipeline, "appPreference"))

    app = await pipeline.waypost.database.read(app_by_id, APP.id)
    assert app is not None
    assert app.phone_number == "15557770001"
    assert app.preferences.template_messaging is False


async def test_pause_is_not_undone_by_a_change_of_url_that_was_still_being_checked(
    pipeline: PipelineHarness, slow: SlowReceiver
) -> None:
    subscription = await pipeline.subscribe(tag="two", modes="SENT")
    path = f"/partner/app/{APP.id}/subscription/{subscription['id']}"
    url_change = asyncio.create_task(pipeline.send_request("PUT", path, {"url": slow.url}, token_headers(pipeline)))
    await slow.requested.wait()

    paused = await pipeline.send_request("PUT", path, {"active": "false"}, token_headers(pipeline))
    slow.may_respond.set()
    changed = await url_change

    assert paused.body["subscription"]["active"] is False
    assert changed.status == 200
    response = await pipeline.send_request("GET", path, headers=token_headers(pipeline))
    assert response.body["subscription"] == changed.body["subscription"]
    assert response.body["subscription"]["active"] is False
    assert response.body["subscription"]["url"] == slow.url


async def set_preference(pipeline: PipelineHarness, what: str) -> None:
    """Make the call that sets one preference."""
    path = f"/partner/app/{APP.id}/{what}"
    response = await pipeline.send_request("PUT", path, CHANGES[what], token_headers(pipeline))
    assert response.status == 200, response


def token_headers(pipeline: PipelineHarness) -> dict[str, str]:
    """Return the headers with the app token."""
    return {"Authorization": pipeline.app_token}
