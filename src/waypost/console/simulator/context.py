"""The control API client and the tabs that the simulator pages share."""

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
    """Return an endpoint that responds 404 if there is no simulator; pages explain why."""

    async def check_simulator(desk: PageTools, visit: PageRequest) -> Response:
        if desk.parts.apis.control is not None:
            return await endpoint(desk, visit)
        if kind is Kind.PAGE:
            return await desk.page(visit, "simulator/none.html", 404)
        raise NotThere("This service has no simulator.")

    return check_simulator


def control_of(desk: PageTools) -> Control:
    """Return the client of the control API.

    Raises:
        NotThere: there is no simulator.
    """
    control = desk.parts.apis.control
    if control is None:
        raise NotThere("This service has no simulator.")
    return control


async def now_of(desk: PageTools) -> int:
    """Return the simulator's time; the service's if the simulator's clock cannot be advanced."""
    try:
        return (await control_of(desk).get("/control/clock"))["now_ms"]
    except ApiResponseError as error:
        if error.status != 404:
            raise
        return desk.parts.clock.now_ms()


async def tab(desk: PageTools, visit: PageRequest, name: str, status: int = 200, **values: Any) -> Response:
    """Return one of the simulator pages."""
    return await desk.page(
        visit, f"simulator/{name}.html", status,
        tabs=TABS, is_dev=desk.parts.demo_partner_id is not None, **values,
    )  # fmt: skip


async def attempt(
    desk: PageTools, visit: PageRequest, path: str, work: Callable[[], Awaitable[Any]]
) -> Response | None:
    """Call the control API, and return an error as a response of the page of the action.

    Returns:
        None if the call succeeded.
    """
    try:
        await work()
    except ApiResponseError as error:
        return refusal(desk, visit, path, error)
    return None
