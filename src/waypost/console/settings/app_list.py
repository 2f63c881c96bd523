"""The partner's apps, and creating one."""

from typing import Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.page_tools import PageTools
from waypost.console.settings.field_errors import words_of
from waypost.console.web.page_request import PageRequest

SHORTEST_NAME: Final = 6
LONGEST_NAME: Final = 150


async def show_apps(desk: PageTools, visit: PageRequest) -> Response:
    """List the apps, each with its number and whether it is live."""
    return await _page(desk, visit)


async def create_app(desk: PageTools, visit: PageRequest) -> Response:
    """Create a sandbox app; the administrator connects a number and makes it live. Source: facts 2."""
    name = (await visit.field("name")).strip()
    api = await desk.parts.apis.partner(visit.partner.id)
    try:
        response = await api.form("POST", "/partner/app", {"name": name})
    except ApiResponseError as error:
        return await _page(desk, visit, name=name, wrong=words_of(error))
    return desk.go(
        f"/apps/{response['appId']}/settings",
        f"App {name} created.",
        remedy="It is a sandbox app. The administrator connects it to a number and makes it live.",
    )


async def _page(desk: PageTools, visit: PageRequest, *, name: str = "", wrong: str = "") -> Response:
    return await desk.page(
        visit, "settings/apps.html", 400 if wrong else 200,
        typed=name, wrong=wrong, shortest=SHORTEST_NAME, longest=LONGEST_NAME,
    )  # fmt: skip
