"""The first page, and what the command palette offers."""

from starlette.responses import JSONResponse, RedirectResponse, Response

from waypost.console.desk import Desk
from waypost.console.visit import Visit


async def show_home(desk: Desk, visit: Visit) -> Response:
    """The overview of the app that was looked at last; without an app, what to do about that."""
    app = visit.shown_app
    if app is None:
        return await desk.page(visit, "no_apps.html")
    return RedirectResponse(f"/apps/{app.id}", 303)


async def list_commands(desk: Desk, visit: Visit) -> Response:
    """Pages and apps, as `{name, hint, path}`; templates and phones are found by typing on their pages."""
    del desk
    commands = [
        {
            "name": app.name,
            "hint": f"App, {app.phone_number or 'no number'}",
            "path": f"/apps/{app.id}",
        }
        for app in visit.apps
    ]
    return JSONResponse({"commands": commands})
