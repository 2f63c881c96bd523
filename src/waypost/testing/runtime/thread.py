"""The service in this process: a thread with an event loop of its own, on free ports, in a temporary folder."""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, cast

import structlog
from pydantic import ValidationError

from waypost.assembly.dev.dev import Dev, DevOptions
from waypost.base.clock import VirtualClock
from waypost.base.telemetry.logs import set_up_logs
from waypost.config import Settings
from waypost.testing.runtime.engine import NotStarted

START_WITHIN_S: Final = 60
_STOP_WITHIN_S: Final = 20


class ThreadEngine:
    """Runs `Dev` until it is stopped. It quietly shares the interpreter with the tests.

    Args:
        settings: of the service; the environment does not count, so that no shell changes a test.

    Raises:
        NotStarted: it did not start.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._ready: Future[Mapping[str, str]] = Future()
        self._stop: Callable[[], object] = lambda: None
        self._settings = _settings(settings)
        if not structlog.is_configured():  # else the logs are the tests' own
            set_up_logs(VirtualClock(), as_json=False, level="error")
        self._thread = threading.Thread(target=self._run, name="waypost-service", daemon=True)
        self._thread.start()
        try:
            self.variables = self._ready.result(START_WITHIN_S)
        except Exception as error:
            raise NotStarted(f"the service did not start: {error!r}") from error

    def stop(self) -> None:
        """Stop doors, drain stages, close stores, and wait for the thread to end."""
        self._stop()
        self._thread.join(_STOP_WITHIN_S)

    def _run(self) -> None:
        try:
            import uvloop

            factory: Callable[[], asyncio.AbstractEventLoop] | None = uvloop.new_event_loop
        except ImportError:
            factory = None
        try:
            with asyncio.Runner(loop_factory=factory) as runner:
                runner.run(self._live())
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            else:
                raise

    async def _live(self) -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        with tempfile.TemporaryDirectory(prefix="waypost-") as folder:
            options = DevOptions(
                self._settings, simulator_port=0, memory=True, env_file=Path(folder) / "waypost-dev.env"
            )
            dev = Dev(options)
            try:
                running = await dev.open()
                self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
                self._ready.set_result(running.variables)
                await stopped.wait()
            finally:
                await dev.close()


def _settings(given: Mapping[str, str]) -> Settings:
    known = set(Settings.model_fields)
    unknown = sorted(set(given) - known)
    if unknown:
        raise NotStarted(f"waypost_settings: {unknown[0]} is no setting; there are {', '.join(sorted(known))}")
    try:
        return Settings(
            _env_prefix="WAYPOST_OF_NO_SHELL_",  # pyright: ignore[reportCallIssue]  # of the base class
            **cast("dict[str, Any]", {"port": 0, **given}),
        )
    except ValidationError as error:
        wrong = error.errors()[0]
        name = ".".join(map(str, wrong["loc"]))
        raise NotStarted(f"waypost_settings: {name} is wrong: {wrong['msg']}") from error
