"""Credentials of the session for "Try it" in the API reference."""

from starlette.responses import JSONResponse, Response

from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest


async def show_session(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the partner's name, its apps, and the token of the forms of the session."""
    del tools
    session = page_request.session
    assert session is not None, "the guard requires a session"  # noqa: S101  a defect
    apps = [{"id": app.id, "name": app.name, "phone_number": app.phone_number} for app in page_request.apps]
    body = {"partner": session.partner.name, "csrf": session.csrf, "apps": apps}
    return JSONResponse(body)


async def give_partner_token(tools: PageTools, page_request: PageRequest) -> Response:
    """Return a partner token."""
    return _credential(await tools.services.apis.partner_token(page_request.partner.id))


async def give_app_token(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the token of an app, which the messaging API accepts as an API key too."""
    return _credential(tools.services.apis.app_token(page_request.app))


def _credential(token: str) -> Response:
    return JSONResponse({"token": token})
