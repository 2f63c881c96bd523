"""Loops that continue after any error."""

import asyncio
from typing import Any

import pytest

from tests.support.polling import poll_until
from waypost.base.loops import Loop

WITHIN_S = 10


class Log:
    """Keeps the records of failed turns."""

    def __init__(self) -> None:
        self.records: list[tuple[str, int]] = []

    def error(self, event: str, *, failures: int, exc_info: BaseException) -> None:
        del exc_info
        self.records.append((event, failures))


class Work:
    """Raises the given errors, one in each turn, and then works."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.turns = 0
        self.works = asyncio.Event()

    async def __call__(self) -> int:
        self.turns += 1
        if self.errors:
            raise self.errors.pop(0)
        self.works.set()
        return 1

    async def wait(self, _until: int) -> None:
        await asyncio.Event().wait()


def loop_of(work: Any, log: Any) -> Loop:
    return Loop("a loop", work, work.wait, log=log, retry_s=0.001)


@pytest.mark.parametrize("error", [ValueError("a defect"), OSError(28, "no space"), asyncio.CancelledError()])
async def test_turn_that_fails_is_run_again_and_logged_once(error: BaseException) -> None:
    work, log = Work(*[error] * 20), Log()
    loop = loop_of(work, log)
    loop.start()

    async with asyncio.timeout(WITHIN_S):
        await work.works.wait()

    assert (work.turns, loop.failure_text) == (21, "")
    assert log.records == [("a loop failed; trying again", 1)]
    await loop.stop()


async def test_loop_reports_that_it_fails_and_that_it_has_ended() -> None:
    work, log = Work(*[ValueError("a defect")] * 1_000_000), Log()
    loop = loop_of(work, log)
    before = loop.failure_text
    loop.start()
    await poll_until(lambda: asyncio.sleep(0, work.turns), lambda turns: turns >= 3)
    during = loop.failure_text

    await loop.stop()

    assert before == ""
    assert during.startswith("a loop has failed")
    assert loop.failure_text == "a loop has ended"


async def test_wait_that_fails_does_not_end_a_loop() -> None:
    work, log = Work(), Log()
    waits = 0

    async def wait(_until: int) -> None:
        nonlocal waits
        waits += 1
        if waits < 5:
            raise RuntimeError("a clock that cannot wait")
        await asyncio.Event().wait()

    work.wait = wait
    loop = loop_of(work, log)
    loop.start()

    await poll_until(lambda: asyncio.sleep(0, waits), lambda waits: waits == 5)
    await loop.stop()
