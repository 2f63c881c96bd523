"""The same for coroutines: nothing blocks the loop of a test, and nothing is missing."""

import asyncio
import inspect
from typing import Any

import pytest

from waypost.testing.async_wrappers import AsyncFault, AsyncPartner, AsyncPhone, AsyncTimeMachine
from waypost.testing.clock import TimeMachine
from waypost.testing.failures import NotSeen
from waypost.testing.faults import Fault
from waypost.testing.partner import Partner
from waypost.testing.phone import Phone

OWN_LIFE = {"close", "restore_speed", "id", "control", "now"}
"""What the fixture sees to, and what a twin reaches by `original`."""


@pytest.mark.parametrize(
    ("original", "twin"),
    [(Partner, AsyncPartner), (Phone, AsyncPhone), (TimeMachine, AsyncTimeMachine), (Fault, AsyncFault)],
)
def test_everything_has_its_twin(original: type[Any], twin: type[Any]) -> None:
    public = {name for name, _ in inspect.getmembers(original) if not name.startswith("_")}

    assert public - OWN_LIFE <= set(dir(twin))


async def test_journey_is_awaited(partner: Partner) -> None:
    waypost = AsyncPartner(partner)
    ann = await waypost.phone("Ann")
    template = await waypost.create_template("order_ready", "Hi {{1}}, all right?", buttons=["Yes", "No"])

    message_id = await waypost.send_template(template, partner.phone("Ann"), ["Ann"])
    await ann.tap("Yes")

    tapped = await waypost.wait_for_callback("quick_reply")
    assert tapped.message_id == message_id
    assert (await ann.inbox())[0].labels == ("Yes", "No")
    await waypost.clock.advance(hours=1)
    async with await waypost.fault("messages.send", error=131026) as fault:
        await waypost.send_text("Lost", partner.phone("Ann"))
        await waypost.wait_for_callback("failed")
        assert await fault.hits() == 1


async def test_loop_of_the_test_goes_on_while_a_wait_lasts(partner: Partner) -> None:
    ann = AsyncPartner(partner)
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.01)

    turning = asyncio.create_task(turn())
    with pytest.raises(NotSeen):
        await ann.wait_for_callback("read", within_s=0.3)

    turning.cancel()
    assert turns > 3
