"""The service that tests use: started in this process or as a child, or running already."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from waypost.client.blocking_client import BlockingApiClient
from waypost.client.dev_variables import MissingVariable, read_variables
from waypost.client.responses import ApiResponseError, ApiUnreachable, is_api_error
from waypost.testing.runtime.contract import ExternalRuntime, NotStarted, ServiceRuntime
from waypost.testing.runtime.receiver import Receiver

__tracebackhide__ = is_api_error

DEFAULT_WAIT_TIMEOUT_S: Final = 5.0
"""Default timeout of every wait."""
# fmt: off
NO_DELAYS: Final = {  # settings of the simulator of a service that we start: no delays
    "review_delay_ms":  None,  # a review waits until a test decides it
    "deliver_after_ms": 0,
    "gather_ms":        0,
}
# fmt: on


class Service:
    """A running service, its simulator, and the receiver of callbacks; shared by the tests of one process.

    Args:
        runtime: what runs it.
        within_s: default timeout of waits.
    """

    def __init__(self, runtime: ServiceRuntime, *, within_s: float = DEFAULT_WAIT_TIMEOUT_S) -> None:
        self._runtime = runtime
        self.variables = dict(runtime.variables)
        self.within_s = within_s
        self.admin = BlockingApiClient(
            self.variables["ADMIN_URL"], {"Authorization": f"Bearer {self.variables['ADMIN_TOKEN']}"}
        )
        self.control = BlockingApiClient(self.variables["CONTROL_URL"])
        self.receiver = Receiver()

    @property
    def api_url(self) -> str:
        """URL of the partner API and the messaging API."""
        return self.variables["API_URL"]

    @property
    def graph_url(self) -> str:
        """URL of the simulator's Graph API."""
        return self.variables["GRAPH_URL"]

    def simulator_settings(self) -> dict[str, Any]:
        """Return the simulator's settings that can change while it runs."""
        settings: dict[str, Any] = self.control.json("GET", "/state")["settings"]
        return settings

    def change_simulator(self, **settings: Any) -> None:
        """Change settings of the simulator for every test of this process.

        Raises:
            ApiResponseError: there is no such setting, or its value is invalid; the text names the valid ones.
        """
        self.control.json("PUT", "/settings", settings)

    def close(self) -> None:
        """Stop the receiver and the service, if it was started here."""
        self.receiver.close()
        self._runtime.stop()


def start_service(how: str, settings: Sequence[str] = (), *, within_s: float = DEFAULT_WAIT_TIMEOUT_S) -> Service:
    """Start a service, or connect to a running one.

    Args:
        how: `thread`, `child`, or the environment file of a running `waypost dev`.
        settings: lines such as `per_second=200`, for a service that is started.
        within_s: default timeout of waits.

    Raises:
        NotStarted: it did not start, or there is none; the text has the reason.
    """
    engine: ServiceRuntime
    match how:
        case "thread":
            from waypost.testing.runtime.thread import ThreadRuntime

            engine = ThreadRuntime(parse_settings(settings))
        case "child":
            from waypost.testing.runtime.child_process import ChildRuntime

            engine = ChildRuntime(parse_settings(settings))
        case _:
            return _connect(Path(how), within_s=within_s)
    service = Service(engine, within_s=within_s)
    service.change_simulator(**NO_DELAYS)
    return service


def parse_settings(lines: Sequence[str]) -> dict[str, str]:
    """Return lines such as `per_second=200` as settings of the service.

    Documented rates are off: a suite creates more than ten templates a minute. `rates=true` turns them on.

    Raises:
        NotStarted: a line is not a setting.
    """
    settings = {"rates": "false"}
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals:
            raise NotStarted(f"waypost_settings: {line!r} must be name=value, as in per_second=200")
        settings[name.strip()] = value.strip()
    return settings


def _connect(path: Path, *, within_s: float) -> Service:
    try:
        variables = read_variables(path)
    except MissingVariable as error:
        raise NotStarted(
            f"--waypost must be thread, child, or the environment file of a running "
            f"`waypost dev`; there is no file {path}"
        ) from error
    missing = [
        name for name in ("API_URL", "GRAPH_URL", "ADMIN_URL", "ADMIN_TOKEN", "CONTROL_URL") if name not in variables
    ]
    if missing:
        raise NotStarted(f"{path} lacks {', '.join(missing)}; `waypost dev` writes them")
    service = Service(ExternalRuntime(variables), within_s=within_s)
    try:
        service.simulator_settings()
        service.admin.json("GET", "/queues")
    except (ApiUnreachable, ApiResponseError) as error:
        service.close()
        raise NotStarted(f"the service of {path} is not running: {error}") from error
    return service
