"""Credentials of the session for "Try it" in the API reference."""

from starlette.responses import JSONResponse, Response

from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest


async def show_session(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the partner's name, its apps, and the token of the forms of the session."""
    del tools
    apps = [{"id": app.id, "name": app.name, "phone_number": app.phone_number} for app in page_request.apps]
    csrf = page_request.session.csrf if page_request.session else ""
    return JSONResponse({"partner": page_request.partner.name, "csrf": csrf, "apps": apps})


async def give_partner_token(tools: PageTools, page_request: PageRequest) -> Response:
    """Return a partner token."""
    return JSONResponse({"token": await tools.services.apis.partner_token(page_request.partner.id)})


async def give_app_token(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the token of an app, which the messaging API accepts as an API key too."""
    return JSONResponse({"token": tools.services.apis.app_token(page_request.app)})
