"""The wrappers for coroutines: no call blocks the event loop of a test, and no method is missing."""

import asyncio
import inspect
from typing import Any

import pytest

from pytest_waypost.async_wrappers import AsyncFault, AsyncPartner, AsyncPhone, AsyncTimeMachine
from pytest_waypost.failures import NotSeen
from pytest_waypost.partner import Partner
from pytest_waypost.phone import Phone
from pytest_waypost.simulator import Fault, TimeMachine

NOT_WRAPPED = {"close", "restore_speed", "id", "control", "now"}
"""Members for the fixture only, and members that a wrapper has by `original`."""


@pytest.mark.parametrize(
    ("original", "wrapper"),
    [(Partner, AsyncPartner), (Phone, AsyncPhone), (TimeMachine, AsyncTimeMachine), (Fault, AsyncFault)],
)
def test_every_public_member_has_its_wrapper(original: type[Any], wrapper: type[Any]) -> None:
    public = {name for name, _ in inspect.getmembers(original) if not name.startswith("_")}

    assert public - NOT_WRAPPED <= set(dir(wrapper))


async def test_journey_works_with_awaited_calls(partner: Partner) -> None:
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


async def test_event_loop_of_the_test_runs_during_a_wait(partner: Partner) -> None:
    waypost = AsyncPartner(partner)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.01)

    task = asyncio.create_task(count_turns())
    with pytest.raises(NotSeen):
        await waypost.wait_for_callback("read", within_s=0.3)

    task.cancel()
    assert turns > 3
