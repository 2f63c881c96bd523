"""Wallet and usage: what we know, and nothing invented."""

from functools import partial

from waypost.api.auth.authorisation import admitted_app, holder_of_api_key
from waypost.api.http.requests import Answer, Request
from waypost.api.services import Services
from waypost.domain.coercion import read_integer
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.apps.usage import usage_of
from waypost.wire.account import messaging_wallet_answer, read_days, usage_item, wallet_answer


async def wallet_balance(services: Services, request: Request) -> Answer:
    """The wallet's balance: settings, shown as set. Source: facts 13, `wallet/balance`."""
    await admitted_app(services, request)
    return Answer(wallet_answer(services.wallet))


async def messaging_wallet_balance(services: Services, request: Request) -> Answer:
    """The wallet's balance by an API key, for the account. Source: public clients of the older messaging API."""
    holder = await holder_of_api_key(services, request)
    await request.spend(services.limiter, str(holder.partner_id))
    return Answer(messaging_wallet_answer(services.wallet))


async def usage(services: Services, request: Request) -> Answer:
    """What the app has sent and received on each day of a range, in UTC, counted from its messages.

    Refuses in this order: 401, 429, 400 dates that are none, the wrong way round or too far apart.

    Source: facts 13, `usage`.
    """
    app = await admitted_app(services, request)
    first, last = read_days(request.query("from"), request.query("to"))
    days = await services.database.read(partial(usage_of, app_id=app.id, first_day=first, last_day=last))
    items = [
        usage_item(
            app,
            services.wallet,
            one.day,
            incoming=one.incoming,
            texts=one.texts,
            media=one.media,
            templates=one.templates,
            media_templates=one.media_templates,
            by_category=one.by_category,
        )
        for one in days
    ]
    return Answer({"status": "success", "partnerAppUsageList": items})


async def discount(services: Services, request: Request) -> Answer:
    """No discount on any day of a month: nobody is charged. Source: facts 13, `discount`."""
    await admitted_app(services, request)
    for name, least, most in (("year", 2000, 9999), ("month", 1, 12)):
        text = request.query(name)
        if not text:
            raise ApiError(
                ErrorCode.FIELD_MISSING, f"Required request parameter '{name}' is not present: {least} to {most}."
            )
        if not least <= read_integer(text, name) <= most:
            raise ApiError(ErrorCode.FIELD_BROKEN, f"{name} must be {least} to {most}.")
    return Answer({"status": "success", "dailyAppDiscountList": []})
