"""The service in a thread of this process: its own event loop, free ports, a temporary folder."""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, cast

import structlog
from pydantic import ValidationError

from waypost.assembly.dev.dev import DevOptions, DevServer
from waypost.base.clock import VirtualClock
from waypost.base.telemetry.logs import set_up_logs
from waypost.config import Settings
from waypost.testing.runtime.contract import NotStarted

THREAD_START_TIMEOUT_S: Final = 60
_THREAD_STOP_TIMEOUT_S: Final = 20


class ThreadRuntime:
    """Runs `DevServer` until it is stopped, in the interpreter of the tests.

    Args:
        settings: of the service; the environment is ignored, so that no shell changes a test.

    Raises:
        NotStarted: it did not start.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._ready: Future[Mapping[str, str]] = Future()
        self._stop: Callable[[], object] = lambda: None
        self._settings = _make_settings(settings)
        if not structlog.is_configured():  # otherwise the tests have configured logging
            set_up_logs(VirtualClock(), as_json=False, level="error")
        self._thread = threading.Thread(target=self._run, name="waypost-service", daemon=True)
        self._thread.start()
        try:
            self.variables = self._ready.result(THREAD_START_TIMEOUT_S)
        except Exception as error:
            raise NotStarted(f"the service did not start: {error!r}") from error

    def stop(self) -> None:
        """Stop servers, drain stages, close stores, and wait for the thread to end."""
        self._stop()
        self._thread.join(_THREAD_STOP_TIMEOUT_S)

    def _run(self) -> None:
        try:
            import uvloop

            factory: Callable[[], asyncio.AbstractEventLoop] | None = uvloop.new_event_loop
        except ImportError:
            factory = None
        try:
            with asyncio.Runner(loop_factory=factory) as runner:
                runner.run(self._run_service())
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            else:
                raise

    async def _run_service(self) -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        with tempfile.TemporaryDirectory(prefix="waypost-") as folder:
            options = DevOptions(
                self._settings, simulator_port=0, memory=True, env_file=Path(folder) / "waypost-dev.env"
            )
            dev = DevServer(options)
            try:
                running = await dev.open()
                self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
                self._ready.set_result(running.variables)
                await stopped.wait()
            finally:
                await dev.close()


def _make_settings(values: Mapping[str, str]) -> Settings:
    valid = set(Settings.model_fields)
    unknown = sorted(set(values) - valid)
    if unknown:
        raise NotStarted(
            f"waypost_settings: there is no setting {unknown[0]}; the settings are {', '.join(sorted(valid))}"
        )
    try:
        return Settings(
            _env_prefix="WAYPOST_OF_NO_SHELL_",  # pyright: ignore[reportCallIssue]  # of the base class
            **cast("dict[str, Any]", {"port": 0, **values}),
        )
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise NotStarted(f"waypost_settings: {name} is invalid: {first['msg']}") from error
