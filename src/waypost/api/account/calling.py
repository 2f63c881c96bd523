"""Endpoint for the settings of a number's calls."""

from waypost.api.auth.authorisation import authorise_app
from waypost.api.direct_calls import call_operator, number_of
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.direct_calls.calling import SetCalling
from waypost.wire.calling import read_call_settings


async def set_calling(services: Services, request: Request) -> ApiResponse:
    """Enable or disable calls to the number, and set their hours and where they go.

    Errors in this order: 401, 429, 400 fields, 400 the operator's error, 503.

    Source: ledger 1.7, `voice`.
    """
    app = await authorise_app(services, request)
    settings = read_call_settings(request.form_or_json())
    await call_operator(services, app, SetCalling(number_of(app), settings))
    enabled = "true" if settings.is_enabled else "false"
    return ApiResponse({"message": f"Whatsapp voice status updated to {enabled}", "status": "success"})
