"""A service with its simulator, on an event loop in a thread, for clients that block."""

import asyncio
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from waypost.assembly.dev.dev import DevOptions, DevServer, DevStatus
from waypost.base.clock import SystemClock
from waypost.base.telemetry.logs import set_up_logs
from waypost.config import Settings


class RunningService:
    """A running service, and the outcomes of its requests."""

    def __init__(self, dev: DevServer, running: DevStatus) -> None:
        self.running = running
        self._dev = dev

    @property
    def outcomes(self) -> Counter[tuple[str, str]]:
        """The number of requests by route and outcome: an error code, or `accepted`."""
        return self._dev.outcomes


@contextmanager
def run_service(folder: Path) -> Generator[RunningService]:
    """Start the demonstration with rates off, on free ports."""
    set_up_logs(SystemClock(), as_json=False, level="error")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="service", daemon=True)
    thread.start()
    settings = Settings(data=folder, port=0, rates=False, log_level="error")
    options = DevOptions(settings, simulator_port=0, env_file=folder / "dev.env")
    dev = DevServer(options)
    try:
        running = asyncio.run_coroutine_threadsafe(dev.open(), loop).result(30)
        yield RunningService(dev, running)
    finally:
        asyncio.run_coroutine_threadsafe(dev.close(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
