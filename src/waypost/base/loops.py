"""Long-lived loops that no error ends: a failed turn is logged at a bounded rate and repeated."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

LOOP_RETRY_S: Final = 1.0
"""Time between a failed turn and the next one."""

FAILURE_LOG_INTERVAL_S: Final = 30.0
"""Failed turns are logged at most once in this time."""


class Loop:
    """A loop that repeats its work until it is stopped.

    Args:
        name: for the log and for readiness.
        work: one turn; returns the argument of `wait`.
        wait: returns when there may be work again.
        log: gets records of failed turns.

    Attributes:
        failures: number of consecutive failed turns.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[Any]],
        wait: Callable[[Any], Awaitable[object]],
        *,
        log: Any,
        retry_s: float = LOOP_RETRY_S,
    ) -> None:
        self.name = name
        self.failures = 0
        self._work = work
        self._wait = wait
        self._log = log
        self._retry_s = retry_s
        self._logged_s = float("-inf")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the first turn."""
        self._task = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        """Cancel the loop, and return when it has ended."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def failure_text(self) -> str:
        """The reason why the loop does not work; empty while it does."""
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
                await self._record_failure(error)  # an awaited task was cancelled, not the loop
            except Exception as error:  # noqa: BLE001  a defect is reported and must not end the loop
                await self._record_failure(error)

    async def _record_failure(self, error: BaseException) -> None:
        self.failures += 1
        now_s = time.monotonic()
        if now_s - self._logged_s >= FAILURE_LOG_INTERVAL_S:
            self._logged_s = now_s
            self._log.error(f"{self.name} failed; trying again", failures=self.failures, exc_info=error)
        await asyncio.sleep(self._retry_s)
