"""Endpoints for the state of an app's number and business account: health, ratings, details."""

from waypost.api.auth.authorisation import authorise_app
from waypost.api.direct_calls import account_of, call_operator, number_of
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.app import App
from waypost.domain.direct_calls.account import BusinessStatus, GetBusinessStatus, GetNumber, NumberStatus
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.apps.limit_events import last_limit_event
from waypost.wire.account import business_account_info, ratings_object


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
    """Return the last change of the number's messaging limit, and its quality now; or that there was no change.

    The quality is missing if the operator does not report it, because the event is known without it.

    Source: ledger 1.9, `ratings`; facts 13.
    """
    app = await authorise_app(services, request)
    event = await services.database.read(last_limit_event, app.id)
    if event is None:
        return ApiResponse({"status": "success", "message": "no event update available"})
    try:
        quality = (await call_operator(services, app, GetNumber(number_of(app)))).quality
    except ApiError:
        quality = ""
    return ApiResponse(ratings_object(event, quality))


async def show_business_account(services: Services, request: Request) -> ApiResponse:
    """Return the operator's details of the number and its business account. Source: facts 13, `waba/info`."""
    app = await authorise_app(services, request)
    number, account = await _fetch_statuses(services, app)
    return ApiResponse({"status": "success", "wabaInfo": business_account_info(app, number, account)})


async def _fetch_statuses(services: Services, app: App) -> tuple[NumberStatus, BusinessStatus]:
    number = await call_operator(services, app, GetNumber(number_of(app)))
    return number, await call_operator(services, app, GetBusinessStatus(account_of(app)))
