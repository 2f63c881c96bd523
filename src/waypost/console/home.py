"""The home page, and the page for unknown paths."""

from starlette.responses import RedirectResponse, Response

from waypost.console.page_tools import PageTools
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest


async def show_home(desk: PageTools, visit: PageRequest) -> Response:
    """Redirect to the overview of the last viewed app; without an app, show how to create one."""
    app = visit.shown_app
    if app is None:
        return await desk.page(visit, "no_apps.html")
    return RedirectResponse(f"/apps/{app.id}", 303)


async def show_nothing(desk: PageTools, visit: PageRequest) -> Response:
    """Report an unknown path.

    Raises:
        NotFound: always.
    """
    del desk, visit
    raise NotThere
