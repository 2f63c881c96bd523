"""What the simulator's pages share: its control API, and the tabs."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.actions import refusal
from waypost.console.api_clients import Control
from waypost.console.page_tools import PageTools
from waypost.console.route import Endpoint, Kind
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest

# fmt: off
TABS: Final = (
    # name        label        path
    ("reviews",   "Reviews",   "/simulator"),
    ("faults",    "Faults",    "/simulator/faults"),
    ("clock",     "Clock",     "/simulator/clock"),
    ("fleets",    "Fleets",    "/simulator/fleets"),
    ("snapshots", "Snapshots", "/simulator/snapshots"),
    ("rules",     "Rules",     "/simulator/rules"),
)
# fmt: on


def with_simulator(kind: Kind, endpoint: Endpoint) -> Endpoint:
    """An endpoint that is asked only where there is a simulator; a page says what that means."""

    async def ask(desk: PageTools, visit: PageRequest) -> Response:
        if desk.parts.apis.control is not None:
            return await endpoint(desk, visit)
        if kind is Kind.PAGE:
            return await desk.page(visit, "simulator/none.html", 404)
        raise NotThere("There is no simulator behind this service.")

    return ask


def control_of(desk: PageTools) -> Control:
    """The control door.

    Raises:
        NotThere: there is no simulator.
    """
    control = desk.parts.apis.control
    if control is None:
        raise NotThere("There is no simulator behind this service.")
    return control


async def now_of(desk: PageTools) -> int:
    """The simulator's time; the service's where the simulator has no clock that moves."""
    try:
        return (await control_of(desk).get("/control/clock"))["now_ms"]
    except ApiResponseError as refused:
        if refused.status != 404:
            raise
        return desk.parts.clock.now_ms()


async def tab(desk: PageTools, visit: PageRequest, name: str, status: int = 200, **values: Any) -> Response:
    """One of the simulator's pages."""
    return await desk.page(
        visit, f"simulator/{name}.html", status,
        tabs=TABS, is_dev=desk.parts.demo_partner_id is not None, **values,
    )  # fmt: skip


async def attempt(
    desk: PageTools, visit: PageRequest, path: str, work: Callable[[], Awaitable[Any]]
) -> Response | None:
    """Do something at the control door; what it refuses is told on the page it was tried on.

    Returns:
        None: it was done.
    """
    try:
        await work()
    except ApiResponseError as refused:
        return refusal(desk, visit, path, refused)
    return None
