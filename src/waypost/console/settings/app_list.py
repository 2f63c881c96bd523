"""The partner's apps, and creating one."""

from typing import Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.page_tools import PageTools
from waypost.console.settings.field_errors import form_error
from waypost.console.web.page_request import PageRequest

MIN_APP_NAME_CHARS: Final = 6
MAX_APP_NAME_CHARS: Final = 150


async def show_apps(tools: PageTools, page_request: PageRequest) -> Response:
    """List the apps, each with its number and whether it is live."""
    return await _page(tools, page_request)


async def create_app(tools: PageTools, page_request: PageRequest) -> Response:
    """Create a sandbox app; the administrator connects a number and makes it live. Source: facts 2."""
    name = (await page_request.field("name")).strip()
    api = await tools.services.apis.partner(page_request.partner.id)
    try:
        response = await api.form("POST", "/partner/app", {"name": name})
    except ApiResponseError as error:
        return await _page(tools, page_request, name=name, wrong=form_error(error))
    return tools.redirect(
        f"/apps/{response['appId']}/settings",
        f"App {name} created.",
        hint="It is a sandbox app. The administrator connects it to a number and makes it live.",
    )


async def _page(tools: PageTools, page_request: PageRequest, *, name: str = "", wrong: str = "") -> Response:
    return await tools.page(
        page_request, "settings/apps.html", 400 if wrong else 200,
        typed=name, wrong=wrong, shortest=MIN_APP_NAME_CHARS, longest=MAX_APP_NAME_CHARS,
    )  # fmt: skip
