"""The service that tests talk to: started in this process, as a child, or found running."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from waypost.client.blocking_client import BlockingApiClient
from waypost.client.dev_variables import MissingVariable, read_variables
from waypost.client.responses import ApiResponseError, NotReached, is_told
from waypost.testing.runtime.engine import Elsewhere, Engine, NotStarted
from waypost.testing.runtime.receiver import Receiver

__tracebackhide__ = is_told

WITHIN_S: Final = 5.0
"""How long anything waits unless a test says otherwise."""
# fmt: off
AT_ONCE: Final = {  # the simulator of a service of our own: nothing happens later than it must
    "review_delay_ms":  None,  # a template waits until a test says what became of it
    "deliver_after_ms": 0,
    "gather_ms":        0,
}
# fmt: on


class Service:
    """A running service, its simulator, and the receiver of callbacks; shared by the tests of one process.

    Args:
        engine: what runs it.
        within_s: how long waits last unless told otherwise.
    """

    def __init__(self, engine: Engine, *, within_s: float = WITHIN_S) -> None:
        self._engine = engine
        self.variables = dict(engine.variables)
        self.within_s = within_s
        self.admin = BlockingApiClient(
            self.variables["ADMIN_URL"], {"Authorization": f"Bearer {self.variables['ADMIN_TOKEN']}"}
        )
        self.control = BlockingApiClient(self.variables["CONTROL_URL"])
        self.receiver = Receiver()

    @property
    def api_url(self) -> str:
        """Where the partner API and the messaging API are."""
        return self.variables["API_URL"]

    @property
    def graph_url(self) -> str:
        """Where the simulator's Graph interface is."""
        return self.variables["GRAPH_URL"]

    def simulator_settings(self) -> dict[str, Any]:
        """The simulator's settings that may change while it runs."""
        settings: dict[str, Any] = self.control.json("GET", "/state")["settings"]
        return settings

    def change_simulator(self, **settings: Any) -> None:
        """Change settings of the simulator for every test of this process.

        Raises:
            DoorRefused: there is no such setting, or its value will not do; the text says what would.
        """
        self.control.json("PUT", "/settings", settings)

    def close(self) -> None:
        """Stop what was started."""
        self.receiver.close()
        self._engine.stop()


def start(how: str, settings: Sequence[str] = (), *, within_s: float = WITHIN_S) -> Service:
    """Start a service, or find one.

    Args:
        how: `thread`, `child`, or the file of variables that a running `waypost dev` has written.
        settings: lines such as `per_second=200`: settings of the service, for one that is started.
        within_s: how long waits last unless told otherwise.

    Raises:
        NotStarted: it did not start, or there is none; the text says why.
    """
    engine: Engine
    match how:
        case "thread":
            from waypost.testing.runtime.thread import ThreadEngine

            engine = ThreadEngine(settings_of(settings))
        case "child":
            from waypost.testing.runtime.child_process import ChildEngine

            engine = ChildEngine(settings_of(settings))
        case _:
            return _found(Path(how), within_s=within_s)
    service = Service(engine, within_s=within_s)
    service.change_simulator(**AT_ONCE)
    return service


def settings_of(lines: Sequence[str]) -> dict[str, str]:
    """Lines such as `per_second=200` as settings of the service.

    Documented rates are off: a suite creates more than ten templates a minute. `rates=true` has them.

    Raises:
        NotStarted: a line is no setting.
    """
    settings = {"rates": "false"}
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals:
            raise NotStarted(f"waypost_settings: {line!r} must be name=value, as in per_second=200")
        settings[name.strip()] = value.strip()
    return settings


def _found(path: Path, *, within_s: float) -> Service:
    try:
        variables = read_variables(path)
    except MissingVariable as error:
        raise NotStarted(
            f"--waypost must be thread, child, or the file of variables of a running "
            f"`waypost dev`; there is no file {path}"
        ) from error
    missing = [
        name for name in ("API_URL", "GRAPH_URL", "ADMIN_URL", "ADMIN_TOKEN", "CONTROL_URL") if name not in variables
    ]
    if missing:
        raise NotStarted(f"{path} lacks {', '.join(missing)}; `waypost dev` writes them")
    service = Service(Elsewhere(variables), within_s=within_s)
    try:
        service.simulator_settings()
        service.admin.json("GET", "/queues")
    except (NotReached, ApiResponseError) as error:
        service.close()
        raise NotStarted(f"the service that {path} names does not run any more: {error}") from error
    return service
