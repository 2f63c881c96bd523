"""Numbers: their health and ratings, calls on them, and what an app has used and may spend."""

import datetime
from functools import partial
from typing import Annotated, Any, Final, Literal

from msgspec import Struct

from waypost.api.authorisation import Credential
from waypost.api.fields import Field
from waypost.api.operation import APP, KEY_APP, NO_ACCOUNT, OLDER_API_ENDED_S, AppCall, Operations, PartnerCall
from waypost.domain.direct_calls import BusinessStatus, GetBusinessStatus, GetNumber, NumberStatus
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.apps.apps import daily_usage, last_limit_event
from waypost.wire.account import (
    business_account_info,
    messaging_wallet_object,
    ratings_object,
    usage_item,
    wallet_object,
)
from waypost.wire.calling import CallSettings, SipAccount, VoiceParameters, read_call_settings
from waypost.wire.responses import Confirmation, response, success

_HEALTH_ERRORS: Final = (
    ErrorCode.APP_NOT_LIVE,
    ErrorCode.NO_BUSINESS_ACCOUNT,
    ErrorCode.WRONG_BUSINESS_ACCOUNT,
    ErrorCode.BUSINESS_ACCOUNT_UNKNOWN,
)
_BY_KEY: Final = "facts 13; by API key as public clients call it"

operation = Operations("facts 13")


class LimitChange(Struct, rename="camel"):
    """The last change of a number's messaging limit."""

    old_limit: str
    current_limit: str
    event: str
    event_time: int
    phone_quality: Literal["Green", "Yellow", "Red", "Unknown"]


class NumberError(Struct):
    """A reason why a number cannot send."""

    error_code: str
    error_description: str
    possible_solution: str


class NumberInfo(Struct, rename="camel"):
    """A number and its business account."""

    account_status: str
    docker_status: Literal["CONNECTED", "DISCONNECTED", "FLAGGED", "PENDING", "RESTRICTED", "UNKNOWN"]
    phone_number_id: str
    messaging_limit: str
    mm_lite_status: str
    ownership_type: str
    phone: str
    phone_quality: Literal["GREEN", "YELLOW", "RED", "UNKNOWN"]
    throughput: str
    verified_name: str
    waba_id: str
    can_send_message: str
    errors: list[NumberError]
    additional_info: list[Any]


_ACCOUNT_INFO: Final = response(wabaInfo=NumberInfo, status=Literal["success"])


@operation(
    "GET", f"{APP}/health", success(healthy=Literal["true", "false"]), rate="app_token", operator_errors=_HEALTH_ERRORS
)
async def show_health(call: AppCall) -> dict[str, Any]:
    """Return `healthy`: true if the app's number is connected at the operator and its account active.

    An error if it is a sandbox app, has no business account, or if the operator does not know the account or the
    number, or does not respond.
    """
    app = call.app
    if not app.live:
        raise ApiError(
            ErrorCode.APP_NOT_LIVE,
            "A sandbox app has no health; the administrator makes it live with `waypost app connect`.",
        )
    if not app.business_account_id:
        raise ApiError(ErrorCode.NO_BUSINESS_ACCOUNT, NO_ACCOUNT)
    if not app.phone_number_id:
        raise ApiError(
            ErrorCode.WRONG_BUSINESS_ACCOUNT,
            "The app has no number yet; the administrator connects one with `waypost app connect`.",
        )
    try:
        number, account = await _fetch_statuses(call)
    except ApiError as error:
        if error.code is ErrorCode.OPERATOR_REJECTED:
            raise ApiError(ErrorCode.WRONG_BUSINESS_ACCOUNT, error.explanation) from error
        raise ApiError(ErrorCode.BUSINESS_ACCOUNT_UNKNOWN, error.explanation) from error
    is_healthy = account.status == "ACTIVE" and number.is_connected
    return {"status": "success", "healthy": "true" if is_healthy else "false"}


@operation(
    "GET",
    f"{APP}/ratings",
    Confirmation | LimitChange,
    source="ledger 1.9; facts 13",
    rate="ratings",
    operator_errors=(),
)
async def show_ratings(call: AppCall) -> dict[str, Any]:
    """Return the last change of the number's messaging limit, and its quality now; or that there was no change.

    The quality is missing if the operator does not report it, because the event is known without it.
    """
    event = await call.services.database.read(last_limit_event, call.app.id)
    if event is None:
        return {"status": "success", "message": "no event update available"}
    try:
        quality = (await call.operator(GetNumber(call.number))).quality
    except ApiError:
        quality = ""
    return ratings_object(event, quality)


@operation("GET", f"{KEY_APP}/business", _ACCOUNT_INFO, source=_BY_KEY, credential=Credential.API_KEY)
@operation("GET", f"{APP}/waba/info", _ACCOUNT_INFO)
async def show_business_account(call: AppCall) -> dict[str, Any]:
    """Return the operator's details of the number and its business account."""
    number, account = await _fetch_statuses(call)
    return {"status": "success", "wabaInfo": business_account_info(call.app, number, account)}


async def _fetch_statuses(call: AppCall) -> tuple[NumberStatus, BusinessStatus]:
    number = await call.operator(GetNumber(call.number))
    return number, await call.operator(GetBusinessStatus(call.account))


_STATUSES: Final = {True: "ENABLED", False: "DISABLED"}
_HOURS: Final = (
    '{"call_hours":{"status":"ENABLED","timezone_id":"Asia/Kolkata","weekly_operating_hours":'
    '[{"day_of_week":"MONDAY","open_time":"0800","close_time":"1800"}]}}'
)

call_operation = Operations("ledger 1.7, `voice`")


class CallSettingsForm(Struct, rename="camel"):
    """Settings for calls; which are read depends on the mode."""

    enable: Annotated[bool, Field("Whether people can call the number.", "true")]
    icon_visibility: Annotated[
        str, Field("Whether chats show the button that starts a call: DEFAULT or DISABLE_ALL.", "DEFAULT")
    ] = ""
    mode: Annotated[
        str, Field("GS_SIP: calls go to the SIP server in `metaData`. Without it they come as events.", "GS_SIP")
    ] = ""
    meta_data: Annotated[
        list[SipAccount] | None,
        Field(
            "JSON text: the SIP servers; required for the mode GS_SIP. Only `host` and `port` reach the operator.",
            '[{"host":"sip.shop.example","port":"5071"}]',
        ),
    ] = None
    additional_params: Annotated[
        VoiceParameters | None, Field("JSON text: the hours in which people can call.", _HOURS)
    ] = None


@call_operation("POST", f"{APP}/voice", Confirmation, body=CallSettingsForm, errors=(ErrorCode.FIELD_BROKEN,))
async def set_calling(call: AppCall) -> Confirmation:
    """Enable or disable calls to the number, and set their hours and where they go."""
    settings = read_call_settings(call.request.form_or_json())
    await call.graph("POST", f"{call.number}/settings", {"calling": _calling(settings)})
    enabled = "true" if settings.is_enabled else "false"
    return Confirmation(f"Whatsapp voice status updated to {enabled}")


def _calling(settings: CallSettings) -> dict[str, Any]:
    servers = settings.sip_servers
    calling: dict[str, Any] = {"status": _STATUSES[settings.is_enabled]}
    if settings.icon_visibility is not None:
        calling["call_icon_visibility"] = settings.icon_visibility
    if settings.hours is not None:
        calling["call_hours"] = settings.hours
    if servers is not None:
        listed = [{"hostname": server.hostname, "port": server.port} for server in servers]
        calling["sip"] = {"status": _STATUSES[bool(servers)], **({"servers": listed} if listed else {})}
    return calling


MAX_REPORT_DAYS: Final = 92
_DAY: Final = "a date as YYYY-MM-DD"
_EPOCH: Final = datetime.date(1970, 1, 1)

usage_operation = Operations("facts 13", at_operator=False)


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


@usage_operation(
    "GET",
    f"{APP}/wallet/balance",
    success(walletResponse=response(currency=str, currentBalance=float, overDraftLimit=float)),
)
async def show_wallet_balance(call: AppCall) -> dict[str, Any]:
    """Return the wallet's balance, which comes from the settings."""
    return wallet_object(call.services.wallet)


@usage_operation(
    "GET",
    "/sm/api/v2/wallet/balance",
    success(balance=float),
    source="facts 9.2; public clients",
    credential=Credential.API_KEY,
    deprecated_s=OLDER_API_ENDED_S,
)
async def show_wallet_balance_by_api_key(call: PartnerCall) -> dict[str, Any]:
    """Return the account's wallet balance by API key."""
    return messaging_wallet_object(call.services.wallet)


@usage_operation("GET", f"{APP}/usage", success(partnerAppUsageList=list[UsageOfDay]))
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


@usage_operation("GET", f"{APP}/discount", response(dailyAppDiscountList=list[Any], status=Literal["success"]))
async def show_discounts(call: AppCall, query: Month) -> dict[str, Any]:
    """Return no discount for any day of a month: the service charges nothing."""
    return {"status": "success", "dailyAppDiscountList": []}
