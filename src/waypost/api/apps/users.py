"""Endpoints for users of an app: opt in, opt out, status, list (decision 0065)."""

from typing import Final

from sqlalchemy import Connection

from waypost.api.auth.authorisation import authorise_app, authorise_app_by_name
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.base.ids import Ids
from waypost.domain.app import App, AppUser
from waypost.domain.coercion import read_integer
from waypost.domain.errors import ApiError, ErrorCode, missing_parameter
from waypost.domain.phone_number import read_phone_number
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.notifications.user_events import emit_opt_event
from waypost.store.apps.users import app_user, list_opted_users, set_opt_in
from waypost.wire.apps import user_item, user_status_object

MAX_USERS_PER_PAGE: Final = 10_000
_PHONE: Final = "a phone number of 8 to 15 digits"
_SOURCE: Final = "API"


async def opt_in(services: Services, request: Request) -> ApiResponse:
    """Opt a user in. Sending does not require it; the list of users and `userStatus` show it.

    Source: facts 2, `optin`: the opt-in calls are withdrawn, and no check is made.
    """
    app = await authorise_app(services, request)
    return await _change_opt_status(services, request, app, "phone", opted_in=True)


async def opt_in_by_app_name(services: Services, request: Request) -> ApiResponse:
    """Opt a user in, by the app's name and an API key. Source: facts 2; public clients."""
    app = await authorise_app_by_name(services, request)
    return await _change_opt_status(services, request, app, "user", opted_in=True)


async def opt_out_by_app_name(services: Services, request: Request) -> ApiResponse:
    """Opt a user out, by the app's name and an API key. Messages to the user are still sent.

    Source: facts 2; public clients of the older messaging API.
    """
    app = await authorise_app_by_name(services, request)
    return await _change_opt_status(services, request, app, "user", opted_in=False)


async def show_user_status(services: Services, request: Request) -> ApiResponse:
    """Return the status of a user, who counts as opted in until the user opts out.

    Source: facts 2, `userStatus`; public page "User status".
    """
    app = await authorise_app(services, request)
    phone = request.query("phone")
    if not phone:
        raise missing_parameter("phone", _PHONE)
    user = await services.database.read(app_user, app, _read_phone(phone, "phone"))
    return ApiResponse(user_status_object(app, user, services.clock.now_ms()))


async def list_users(services: Services, request: Request) -> ApiResponse:
    """Return the users that have opted in or out, the latest change first.

    Errors in this order: 401, 400 an app that is not yours, 429, 400 invalid numbers.

    Source: public clients of the older messaging API.
    """
    app = await authorise_app_by_name(services, request)
    size = _read_count(request, "maxResult", MAX_USERS_PER_PAGE)
    page = _read_count(request, "pageNo", 1_000_000, default=1)
    users = await services.database.read(_page_of_users, app, page, size)
    return ApiResponse({"status": "success", "users": [user_item(user) for user in users]})


async def _change_opt_status(
    services: Services, request: Request, app: App, field: str, *, opted_in: bool
) -> ApiResponse:
    phone = _read_phone(request.form_or_json().required(field, _PHONE), field)
    now_ms = services.clock.now_ms()
    await services.database.write(_record_opt_change, services.ids, app, phone, opted_in, now_ms)
    return ApiResponse({"status": "success"}, 202)


def _record_opt_change(connection: Connection, ids: Ids, app: App, phone: str, opted_in: bool, now_ms: int) -> None:
    """Store the change and emit its callbacks; a repeated one changes nothing and causes none."""
    if set_opt_in(connection, app, phone, opted_in=opted_in, source=_SOURCE, at_ms=now_ms):
        recorder = StateChangeRecorder(connection, ids, now_ms)
        emit_opt_event(recorder, connection, app, phone, opted_in=opted_in, at_ms=now_ms)
        recorder.write()


def _page_of_users(connection: Connection, app: App, page: int, size: int) -> list[AppUser]:
    return list_opted_users(connection, app, offset=(page - 1) * size, at_most=size)


def _read_phone(text: str, name: str) -> str:
    phone = read_phone_number(text)
    if phone is None:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"{name} must be {_PHONE}.")
    return phone


def _read_count(request: Request, name: str, maximum: int, *, default: int | None = None) -> int:
    text = request.query(name)
    number = read_integer(text, name) if text else default or maximum
    if not 1 <= number <= maximum:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"{name} must be a whole number from 1 to {maximum}.")
    return number
