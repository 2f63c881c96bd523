"""Endpoints for wallet and usage; they return only data that this service has."""

from functools import partial

from waypost.api.auth.authorisation import authorise_app, holder_of_api_key
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.coercion import read_integer
from waypost.domain.errors import ApiError, ErrorCode, missing_parameter
from waypost.store.apps.usage import daily_usage
from waypost.wire.account import messaging_wallet_object, read_days, usage_item, wallet_object


async def show_wallet_balance(services: Services, request: Request) -> ApiResponse:
    """Return the wallet's balance, which comes from the settings. Source: facts 13, `wallet/balance`."""
    await authorise_app(services, request)
    return ApiResponse(wallet_object(services.wallet))


async def show_messaging_wallet_balance(services: Services, request: Request) -> ApiResponse:
    """Return the account's wallet balance by API key. Source: public clients of the older messaging API."""
    holder = await holder_of_api_key(services, request)
    await request.spend(services.limiter, str(holder.partner_id))
    return ApiResponse(messaging_wallet_object(services.wallet))


async def show_usage(services: Services, request: Request) -> ApiResponse:
    """Return the messages that the app sent and received on each day of a range, in UTC.

    Errors in this order: 401, 429, 400 invalid dates, in the wrong order or too far apart.

    Source: facts 13, `usage`.
    """
    app = await authorise_app(services, request)
    first, last = read_days(request.query("from"), request.query("to"))
    days = await services.database.read(partial(daily_usage, app_id=app.id, first_day=first, last_day=last))
    items = [
        usage_item(
            app,
            services.wallet,
            day.day,
            incoming=day.incoming,
            texts=day.texts,
            media=day.media,
            templates=day.templates,
            media_templates=day.media_templates,
            by_category=day.by_category,
            marketing_api=day.marketing_api,
        )
        for day in days
    ]
    return ApiResponse({"status": "success", "partnerAppUsageList": items})


async def show_discounts(services: Services, request: Request) -> ApiResponse:
    """Return no discount for any day of a month: the service charges nothing. Source: facts 13, `discount`."""
    await authorise_app(services, request)
    for name, minimum, maximum in (("year", 2000, 9999), ("month", 1, 12)):
        text = request.query(name)
        if not text:
            raise missing_parameter(name, f"{minimum} to {maximum}", "Integer")
        if not minimum <= read_integer(text, name) <= maximum:
            raise ApiError(ErrorCode.FIELD_BROKEN, f"{name} must be {minimum} to {maximum}.")
    return ApiResponse({"status": "success", "dailyAppDiscountList": []})
