"""The home page, and the page for unknown paths."""

from starlette.responses import RedirectResponse, Response

from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import NotFound, PageRequest


async def show_home(tools: PageTools, page_request: PageRequest) -> Response:
    """Redirect to the overview of the last viewed app; without an app, show how to create one."""
    app = page_request.shown_app
    if app is None:
        return await tools.page(page_request, "no_apps.html")
    return RedirectResponse(f"/apps/{app.id}", 303)


async def report_unknown_path(tools: PageTools, page_request: PageRequest) -> Response:
    """Report an unknown path.

    Raises:
        NotFound: always.
    """
    del tools, page_request
    raise NotFound
