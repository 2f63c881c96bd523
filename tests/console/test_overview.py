"""What is happening now."""

import pytest

from tests.console.conftest import LOOP, Desk, Tabs

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)


async def test_message_appears_on_the_overview_while_it_is_open(tabs: Tabs, desk: Desk) -> None:
    tab = await tabs("/")
    assert await tab.page.title() == "Overview · Waypost"

    await desk.send_text("Good morning")

    await tab.page.get_by_text("delivered").first.wait_for()
