"""The service that the tests of one process use: started for them, or running already."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_waypost.client import ApiResponseError, ApiUnreachable, BlockingApiClient, is_api_error
from pytest_waypost.dev_process import NotStarted, WaypostProcess
from pytest_waypost.receiver import Receiver

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
_REQUIRED: Final = ("API_URL", "GRAPH_URL", "CONTROL_URL", "ADMIN_URL", "ADMIN_TOKEN")


class Service:
    """A running service, its simulator, and the receiver of callbacks; shared by the tests of one process.

    Attributes:
        is_external: true if it was started elsewhere, so that others use it and its settings are not ours.

    Args:
        variables: those that `waypost dev` writes for other programs.
        stop: stops it; None if it was started elsewhere.
        within_s: default timeout of waits.
    """

    def __init__(
        self,
        variables: Mapping[str, str],
        stop: Callable[[], None] | None = None,
        *,
        within_s: float = DEFAULT_WAIT_TIMEOUT_S,
    ) -> None:
        self._stop = stop
        self.is_external = stop is None
        self.variables = dict(variables)
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
        if self._stop is not None:
            self._stop()


def serve_from(process: WaypostProcess, *, within_s: float = DEFAULT_WAIT_TIMEOUT_S) -> Service:
    """Return the service of a process, once it serves.

    Raises:
        NotStarted: it did not start, or does not respond; the text has the reason.
    """
    service = Service(process.wait_until_started(), process.stop, within_s=within_s)
    try:
        service.change_simulator(**NO_DELAYS)
    except ApiUnreachable as error:
        service.close()
        raise NotStarted(
            f"`waypost dev` has started, and cannot be reached: {error}. An image needs `--network=host`"
        ) from error
    return service


def connect_to_service(path: Path, *, within_s: float = DEFAULT_WAIT_TIMEOUT_S) -> Service:
    """Return the service that runs elsewhere.

    Args:
        path: the environment file of a running `waypost dev`.
        within_s: default timeout of waits.

    Raises:
        NotStarted: there is no such file, or its service does not respond; the text has the reason.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise NotStarted(
            f"--waypost must be the environment file of a running `waypost dev`; {path} cannot be read: "
            f"{getattr(error, 'strerror', None) or error}"
        ) from error
    variables = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    missing = [name for name in _REQUIRED if name not in variables]
    if missing:
        raise NotStarted(f"{path} lacks {', '.join(missing)}; `waypost dev` writes them")
    service = Service(variables, within_s=within_s)
    try:
        service.simulator_settings()
        service.admin.json("GET", "/queues")
    except (ApiUnreachable, ApiResponseError) as error:
        service.close()
        raise NotStarted(f"the service of {path} is not running: {error}") from error
    return service
