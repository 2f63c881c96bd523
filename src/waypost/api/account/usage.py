"""Wallet and usage: only data that this service has."""

import datetime
from functools import partial
from typing import Annotated, Any, Final

from msgspec import Struct

from waypost.api.authorisation import Credential
from waypost.api.fields import Field
from waypost.api.operation import APP, OLDER_API_ENDED_S, AppCall, Operations, PartnerCall
from waypost.api.route import StatusFirst, Success
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.apps.apps import daily_usage
from waypost.wire.account import messaging_wallet_object, usage_item, wallet_object

MAX_REPORT_DAYS: Final = 92
_DAY: Final = "a date as YYYY-MM-DD"
_EPOCH: Final = datetime.date(1970, 1, 1)

operation = Operations("facts 13", at_operator=False)


class Days(Struct, rename={"first": "from", "last": "to"}):
    """A range of days."""

    first: Annotated[datetime.date, Field("The first day, as YYYY-MM-DD, in UTC.", "2026-11-01", _DAY)]
    last: Annotated[datetime.date, Field("The last day; at most 91 days after the first.", "2026-11-30", _DAY)]


class Month(Struct):
    """A month of a year."""

    year: Annotated[
        int, Field("The year, of four digits.", "2026", "2000 to 9999", between=(2000, 9999), kind="Integer")
    ]
    month: Annotated[int, Field("The month, 1 to 12.", "11", "1 to 12", between=(1, 12), kind="Integer")]


class WalletState(Struct, rename="camel"):
    """A balance, as configured."""

    currency: str
    current_balance: float
    over_draft_limit: float


class WalletResponse(StatusFirst, kw_only=True, rename="camel"):
    """The response about the wallet."""

    wallet_response: WalletState


class Balance(StatusFirst, kw_only=True):
    """The balance in the format of the older messaging API."""

    balance: float


class UsageOfDay(Struct, rename="camel"):
    """The messages and the fees of a day; every fee is 0."""

    app_id: str
    app_name: str
    date: str
    incoming_msg: int
    outgoing_msg: int
    outgoing_media_msg: int
    template_msg: int
    template_media_msg: int
    total_msg: int
    marketing: int
    utility: int
    authentication: int
    currency: str
    discount: int
    gs_fees: int
    wa_fees: int
    total_fees: int
    cumulative_bill: int
    service: int
    mm_lite_marketing: int
    free_utility: int
    international_authentication: int
    fep: int
    ftc: int
    gs_cap: int


class UsageResponse(StatusFirst, kw_only=True, rename="camel"):
    """The usage of each day."""

    partner_app_usage_list: list[UsageOfDay]


class Discounts(Success, rename="camel"):
    """The discounts of each day."""

    daily_app_discount_list: list[Any]


@operation("GET", f"{APP}/wallet/balance", WalletResponse)
async def show_wallet_balance(call: AppCall) -> dict[str, Any]:
    """Return the wallet's balance, which comes from the settings."""
    return wallet_object(call.services.wallet)


@operation(
    "GET",
    "/sm/api/v2/wallet/balance",
    Balance,
    source="facts 9.2; public clients",
    credential=Credential.API_KEY,
    deprecated_s=OLDER_API_ENDED_S,
)
async def show_messaging_wallet_balance(call: PartnerCall) -> dict[str, Any]:
    """Return the account's wallet balance by API key."""
    return messaging_wallet_object(call.services.wallet)


@operation("GET", f"{APP}/usage", UsageResponse)
async def show_usage(call: AppCall, query: Days) -> dict[str, Any]:
    """Return the messages that the app sent and received on each day of a range, in UTC."""
    first, last = ((day - _EPOCH).days for day in (query.first, query.last))
    if not first <= last < first + MAX_REPORT_DAYS:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"to must be from or at most {MAX_REPORT_DAYS - 1} days after it.")
    days = await call.services.database.read(partial(daily_usage, app_id=call.app.id, first_day=first, last_day=last))
    items = [
        usage_item(
            call.app,
            call.services.wallet,
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
    return {"status": "success", "partnerAppUsageList": items}


@operation("GET", f"{APP}/discount", Discounts)
async def show_discounts(call: AppCall, query: Month) -> dict[str, Any]:
    """Return no discount for any day of a month: the service charges nothing."""
    return {"status": "success", "dailyAppDiscountList": []}
