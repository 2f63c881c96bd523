"""The first page, and what the command palette offers."""

from typing import Final

from starlette.responses import JSONResponse, RedirectResponse, Response

from waypost.console.desk import Desk
from waypost.console.not_there import NotThere
from waypost.console.visit import Visit

SETTINGS: Final = (
    ("Change password", "/settings/password"),
    ("Client secrets", "/settings/secrets"),
    ("API keys", "/settings/keys"),
    ("Apps and their tokens", "/settings/apps"),
    ("Operator and health check", "/settings/operator"),
)


async def show_home(desk: Desk, visit: Visit) -> Response:
    """The overview of the app that was looked at last; without an app, what to do about that."""
    app = visit.shown_app
    if app is None:
        return await desk.page(visit, "no_apps.html")
    return RedirectResponse(f"/apps/{app.id}", 303)


async def show_nothing(desk: Desk, visit: Visit) -> Response:
    """Say that there is nothing at an address.

    Raises:
        NotThere: always.
    """
    del desk, visit
    raise NotThere


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
    commands += [{"name": name, "hint": "Settings", "path": path} for name, path in SETTINGS]
    return JSONResponse({"commands": commands})
