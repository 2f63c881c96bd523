"""Endpoints for the state of an app's number and business account: health, ratings, details."""

from waypost.api.auth.authorisation import authorise_app
from waypost.api.direct_calls import account_of, call_operator, number_of
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.app import App
from waypost.domain.direct_calls.account import BusinessStatus, GetBusinessStatus, GetNumber, NumberStatus
from waypost.domain.errors import ApiError, ErrorCode
from waypost.wire.account import business_account_info


async def show_health(services: Services, request: Request) -> ApiResponse:
    """Return `healthy`: true if the app's number is connected at the operator and its account active.

    Errors in this order: 401, 429, 400 a sandbox app, 400 no business account, 400 the operator does
    not know it or the number, 400 the operator does not respond.

    Source: facts 13, `health`.
    """
    app = await authorise_app(services, request)
    if not app.live:
        raise ApiError(ErrorCode.APP_NOT_LIVE, "A sandbox app has no health.")
    if not app.business_account_id:
        raise ApiError(ErrorCode.NO_BUSINESS_ACCOUNT, "The administrator connects a business account.")
    if not app.phone_number_id:
        raise ApiError(ErrorCode.WRONG_BUSINESS_ACCOUNT, "The app has no number yet.")
    try:
        number, account = await _fetch_statuses(services, app)
    except ApiError as error:
        if error.code is ErrorCode.OPERATOR_REJECTED:
            raise ApiError(ErrorCode.WRONG_BUSINESS_ACCOUNT, error.explanation) from error
        raise ApiError(ErrorCode.BUSINESS_ACCOUNT_UNKNOWN, error.explanation) from error
    is_healthy = account.status == "ACTIVE" and number.is_connected
    return ApiResponse({"status": "success", "healthy": "true" if is_healthy else "false"})


async def show_ratings(services: Services, request: Request) -> ApiResponse:
    """Return that no quality or limit event is available: such events are sent as callbacks, not stored.

    Source: facts 13, `ratings`; decision 0025.
    """
    await authorise_app(services, request)
    return ApiResponse({"status": "success", "message": "no event update available"})


async def show_business_account(services: Services, request: Request) -> ApiResponse:
    """Return the operator's details of the number and its business account. Source: facts 13, `waba/info`."""
    app = await authorise_app(services, request)
    number, account = await _fetch_statuses(services, app)
    return ApiResponse({"status": "success", "wabaInfo": business_account_info(app, number, account)})


async def _fetch_statuses(services: Services, app: App) -> tuple[NumberStatus, BusinessStatus]:
    number = await call_operator(services, app, GetNumber(number_of(app)))
    return number, await call_operator(services, app, GetBusinessStatus(account_of(app)))
