"""Changes that meet: each sets what it names, on what is there then, and undoes nobody else's."""

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
    """A partner's receiver that answers once it is told to.

    Attributes:
        asked: it has been asked something.
        may_answer: it answers from then on.
    """

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.url = ""

    async def open(self) -> None:
        """Listen on a free port."""
        application = web.Application()
        application.router.add_post("/", self._answer)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/"

    async def close(self) -> None:
        """Listen no more."""
        await self._runner.cleanup()

    async def _answer(self, _: web.Request) -> web.Response:
        self.asked.set()
        await self.may_answer.wait()
        return web.Response()


@pytest.fixture
async def slow() -> AsyncIterator[SlowReceiver]:
    """A receiver that takes its time."""
    slow = SlowReceiver()
    await slow.open()
    yield slow
    await slow.close()


@pytest.mark.parametrize("what", ["callbackUrl", "appPreference"])
async def test_preferences_that_are_set_at_once_are_both_kept(pipeline: PipelineHarness, what: str) -> None:
    first, second = ("callbackUrl", "appPreference")
    if what == second:
        first, second = second, first

    await asyncio.gather(set_it(pipeline, first), set_it(pipeline, second))

    app = await pipeline.waypost.database.read(app_by_id, APP.id)
    assert app is not None
    assert app.preferences.callback_url == CHANGES["callbackUrl"]["callbackUrl"]
    assert app.preferences.template_messaging is False


async def test_number_that_the_administrator_gives_outlives_a_partners_preference(pipeline: PipelineHarness) -> None:
    await set_it(pipeline, "callbackUrl")  # the app is looked up, and its look-up kept
    connection = AppConnection("15557770001", APP.phone_number_id, ACCOUNT.id)
    connecting = connect_app(pipeline.waypost.admin_context, connection, APP.id)

    await asyncio.gather(connecting, set_it(pipeline, "appPreference"))

    app = await pipeline.waypost.database.read(app_by_id, APP.id)
    assert app is not None
    assert app.phone_number == "15557770001"
    assert app.preferences.template_messaging is False


async def test_pause_outlives_a_change_of_address_that_was_still_being_checked(
    pipeline: PipelineHarness, slow: SlowReceiver
) -> None:
    held = await pipeline.subscribe(tag="two", modes="SENT")
    path = f"/partner/app/{APP.id}/subscription/{held['id']}"
    moving = asyncio.create_task(pipeline.ask("PUT", path, {"url": slow.url}, headers(pipeline)))
    await slow.asked.wait()

    pausing = await pipeline.ask("PUT", path, {"active": "false"}, headers(pipeline))
    slow.may_answer.set()
    moved = await moving

    assert pausing.body["subscription"]["active"] is False
    assert moved.status == 200
    answer = await pipeline.ask("GET", path, headers=headers(pipeline))
    assert answer.body["subscription"] == moved.body["subscription"]
    assert answer.body["subscription"]["active"] is False
    assert answer.body["subscription"]["url"] == slow.url


async def set_it(pipeline: PipelineHarness, what: str) -> None:
    """One of the calls that set one preference."""
    path = f"/partner/app/{APP.id}/{what}"
    answer = await pipeline.ask("PUT", path, CHANGES[what], headers(pipeline))
    assert answer.status == 200, answer


def headers(pipeline: PipelineHarness) -> dict[str, str]:
    """The app token, where the calls of this file take it."""
    return {"Authorization": pipeline.app_token}
