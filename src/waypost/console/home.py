"""The first page, and what is said of addresses that lead nowhere."""

from starlette.responses import RedirectResponse, Response

from waypost.console.page_tools import PageTools
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest


async def show_home(desk: PageTools, visit: PageRequest) -> Response:
    """The overview of the app that was looked at last; without an app, what to do about that."""
    app = visit.shown_app
    if app is None:
        return await desk.page(visit, "no_apps.html")
    return RedirectResponse(f"/apps/{app.id}", 303)


async def show_nothing(desk: PageTools, visit: PageRequest) -> Response:
    """Say that there is nothing at an address.

    Raises:
        NotThere: always.
    """
    del desk, visit
    raise NotThere
