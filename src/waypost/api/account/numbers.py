"""An app's number and its business account: health, ratings, what the operator says of them."""

from waypost.api.auth.authorisation import admitted_app
from waypost.api.direct_calls import account_of, ask, number_of
from waypost.api.http.requests import Answer, Request
from waypost.api.services import Services
from waypost.domain.app import App
from waypost.domain.direct_calls import BusinessStatus, GetBusinessStatus, GetNumber, NumberStatus
from waypost.domain.errors import ApiError, ErrorCode
from waypost.wire.account import business_account_info


async def health(services: Services, request: Request) -> Answer:
    """Whether the operator has the app's number connected and its account active.

    Refuses in this order: 401, 429, 400 a sandbox app, 400 no business account, 400 the operator does
    not know it or the number, 400 the operator does not answer.

    Source: facts 13, `health`.
    """
    app = await admitted_app(services, request)
    if not app.live:
        raise ApiError(ErrorCode.APP_NOT_LIVE, "A sandbox app has no health.")
    if not app.business_account_id:
        raise ApiError(ErrorCode.NO_BUSINESS_ACCOUNT, "The administrator connects a business account.")
    if not app.phone_number_id:
        raise ApiError(ErrorCode.WRONG_BUSINESS_ACCOUNT, "The app has no number yet.")
    try:
        number, account = await _told(services, app)
    except ApiError as refused:
        if refused.code is ErrorCode.OPERATOR_REFUSED:
            raise ApiError(ErrorCode.WRONG_BUSINESS_ACCOUNT, refused.explanation) from refused
        raise ApiError(ErrorCode.BUSINESS_ACCOUNT_UNKNOWN, refused.explanation) from refused
    is_healthy = account.status == "ACTIVE" and number.is_connected
    return Answer({"status": "success", "healthy": "true" if is_healthy else "false"})


async def ratings(services: Services, request: Request) -> Answer:
    """What the last event said of the number's quality and limit: events are called back, not kept.

    Source: facts 13, `ratings`; decision 0025.
    """
    await admitted_app(services, request)
    return Answer({"status": "success", "message": "no event update available"})


async def business_account_details(services: Services, request: Request) -> Answer:
    """What the operator says of the number and its business account. Source: facts 13, `waba/info`."""
    app = await admitted_app(services, request)
    number, account = await _told(services, app)
    return Answer({"status": "success", "wabaInfo": business_account_info(app, number, account)})


async def _told(services: Services, app: App) -> tuple[NumberStatus, BusinessStatus]:
    number = await ask(services, app, GetNumber(number_of(app)))
    return number, await ask(services, app, GetBusinessStatus(account_of(app)))
