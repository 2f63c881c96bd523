"""Long-lived loops that no error ends: a turn that fails is logged at a bounded rate and run again."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

AGAIN_S: Final = 1.0
"""How long after a failed turn the next one begins."""

LOG_EVERY_S: Final = 30.0
"""At most one record of failed turns in such a time."""


class Loop:
    """Repeats its work until it is stopped.

    Args:
        name: what it does; for the log and for readiness.
        work: one turn; gives what `wait` needs.
        wait: returns when there may be work again.
        log: gets records of failed turns.

    Attributes:
        failures: how many turns in a row have failed.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[Any]],
        wait: Callable[[Any], Awaitable[object]],
        *,
        log: Any,
        again_s: float = AGAIN_S,
    ) -> None:
        self.name = name
        self.failures = 0
        self._work = work
        self._wait = wait
        self._log = log
        self._again_s = again_s
        self._logged_s = float("-inf")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin the first turn."""
        self._task = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        """Cancel it, and return when it has ended."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def why_not(self) -> str:
        """Why it does not work; an empty text while it does."""
        if self._task is not None and self._task.done():
            return f"{self.name} has ended"
        return f"{self.name} has failed {self.failures} times in a row" if self.failures else ""

    async def _run(self) -> None:
        while True:
            try:
                until = await self._work()
                self.failures = 0
                await self._wait(until)
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                await self._failed(error)  # something that it waited for was cancelled, not the loop
            except Exception as error:  # noqa: BLE001  a defect is reported and must not end the loop
                await self._failed(error)

    async def _failed(self, error: BaseException) -> None:
        self.failures += 1
        now_s = time.monotonic()
        if now_s - self._logged_s >= LOG_EVERY_S:
            self._logged_s = now_s
            self._log.error(f"{self.name} failed; trying again", failures=self.failures, exc_info=error)
        await asyncio.sleep(self._again_s)
