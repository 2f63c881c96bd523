"""Endpoints for the username of an app's number, and for the usernames that its business prefers."""

from typing import Any, Final

from waypost.api.apps.settings import set_preferences
from waypost.api.auth.authorisation import authorise_app
from waypost.api.direct_calls import call_operator, number_of
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.app import App
from waypost.domain.direct_calls.names import DeleteUsername, GetUsername, ListUsernameSuggestions, SetUsername
from waypost.domain.errors import invalid_field

TRANSFER_ACTIONS: Final = ("none", "force_transfer")
MAX_USERNAME_CHARS: Final = 35  # Source: the operator's page "Business usernames"
PREFERENCES: Final = ("usernamePreference1", "usernamePreference2", "usernamePreference3")
_SUBMITTED: Final = "SubmittedToGupshup"  # Source: ledger 1.9: the documented value
_NOT_SUBMITTED: Final = "NotSubmitted"
_STORED_ONLY_HEADERS: Final = (("Waypost-Reason", "Kept; POST username reserves a username at the operator."),)


async def show_username(services: Services, request: Request) -> ApiResponse:
    """Return the number's username and its status, as the operator has it; nothing if it has none.

    Source: ledger 1.9, `username`.
    """
    app = await authorise_app(services, request)
    return ApiResponse((await call_operator(services, app, GetUsername(number_of(app)))).raw)


async def set_username(services: Services, request: Request) -> ApiResponse:
    """Reserve a username for the number, or take it from another number of the business.

    Source: ledger 1.9, `username`.
    """
    app = await authorise_app(services, request)
    form = request.form_or_json()
    username = form.required("username", f"3 to {MAX_USERNAME_CHARS} letters, digits, periods and underscores")
    action = form.text("transfer_action") or ""
    if action and action not in TRANSFER_ACTIONS:
        raise invalid_field("transfer_action", f"one of {', '.join(TRANSFER_ACTIONS)}")
    result = await call_operator(services, app, SetUsername(number_of(app), username, action))
    return ApiResponse({"status": "reserved", **result.raw})


async def delete_username(services: Services, request: Request) -> ApiResponse:
    """Delete the number's username. Source: ledger 1.9, `username`."""
    app = await authorise_app(services, request)
    await call_operator(services, app, DeleteUsername(number_of(app)))
    return ApiResponse({"status": "success"})


async def list_username_suggestions(services: Services, request: Request) -> ApiResponse:
    """Return the usernames that the operator suggests. Source: ledger 1.9, `username/suggestions`."""
    app = await authorise_app(services, request)
    names = await call_operator(services, app, ListUsernameSuggestions(number_of(app)))
    return ApiResponse({"username_suggestions": list(names)})


async def set_username_preferences(services: Services, request: Request) -> ApiResponse:
    """Store up to three usernames that the business prefers, in their order.

    Source: ledger 1.9, `username/preferences`.
    """
    app = await authorise_app(services, request)
    form = request.form_or_json()
    form.required(PREFERENCES[0], f"1 to {MAX_USERNAME_CHARS} characters")
    names = tuple((form.text(name) or "").strip() for name in PREFERENCES)
    for name, username in zip(PREFERENCES, names, strict=True):
        if len(username) > MAX_USERNAME_CHARS:
            raise invalid_field(name, f"at most {MAX_USERNAME_CHARS} characters")
    await set_preferences(services, app, username_preferences=names)
    message = "Username preferences submitted successfully"
    data = _preferences_object(app, names)
    return ApiResponse({"status": "success", "message": message, "data": data}, headers=_STORED_ONLY_HEADERS)


async def delete_username_preferences(services: Services, request: Request) -> ApiResponse:
    """Delete the stored preferences; the response is the same if there are none. Source: ledger 1.9."""
    app = await authorise_app(services, request)
    await set_preferences(services, app, username_preferences=())
    return ApiResponse({"status": "success"})


async def show_username_preferences(services: Services, request: Request) -> ApiResponse:
    """Return the stored preferences and their status. Source: ledger 1.9, `username/status`."""
    app = await authorise_app(services, request)
    return ApiResponse({"status": "success", "data": _preferences_object(app, app.preferences.username_preferences)})


def _preferences_object(app: App, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the preferences; those that are not set are missing."""
    set_names = {name: username for name, username in zip(PREFERENCES, names, strict=False) if username}
    status = _SUBMITTED if set_names else _NOT_SUBMITTED
    return {"businessPhoneNumber": app.phone_number, **set_names, "submissionStatus": status}
