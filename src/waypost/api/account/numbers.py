"""The state of an app's number and business account: health, ratings, details."""

from typing import Any, Final, Literal

from msgspec import Struct

from waypost.api.authorisation import Credential
from waypost.api.operation import APP, KEY_APP, AppCall, Operations, account_of, call_operator
from waypost.api.route import Confirmation, StatusFirst, Success
from waypost.domain.direct_calls import BusinessStatus, GetBusinessStatus, GetNumber, NumberStatus
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.apps.apps import last_limit_event
from waypost.wire.account import business_account_info, ratings_object

_HEALTH_ERRORS: Final = (
    ErrorCode.APP_NOT_LIVE,
    ErrorCode.NO_BUSINESS_ACCOUNT,
    ErrorCode.WRONG_BUSINESS_ACCOUNT,
    ErrorCode.BUSINESS_ACCOUNT_UNKNOWN,
)
_BY_KEY: Final = "facts 13; by API key as public clients call it"

operation = Operations("facts 13")


class Health(StatusFirst, kw_only=True):
    """The response about the health of a number."""

    healthy: Literal["true", "false"]


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


class BusinessAccountInfo(Success, rename="camel"):
    """The response about a number and its business account."""

    waba_info: NumberInfo


@operation("GET", f"{APP}/health", Health, rate="app_token", operator_errors=_HEALTH_ERRORS)
async def show_health(call: AppCall) -> Health:
    """Return `healthy`: true if the app's number is connected at the operator and its account active.

    An error if it is a sandbox app, has no business account, or if the operator does not know the account or the number,
    or does not respond.
    """
    app = call.app
    if not app.live:
        raise ApiError(
            ErrorCode.APP_NOT_LIVE,
            "A sandbox app has no health; the administrator makes it live with `waypost app connect`.",
        )
    if not app.business_account_id:
        raise ApiError(
            ErrorCode.NO_BUSINESS_ACCOUNT,
            "The app has no business account yet; the administrator connects one with `waypost app connect`.",
        )
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
    return Health(healthy="true" if account.status == "ACTIVE" and number.is_connected else "false")


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
        quality = (await call_operator(call.services, call.app, GetNumber(call.number))).quality
    except ApiError:
        quality = ""
    return ratings_object(event, quality)


@operation("GET", f"{KEY_APP}/business", BusinessAccountInfo, source=_BY_KEY, credential=Credential.API_KEY)
@operation("GET", f"{APP}/waba/info", BusinessAccountInfo)
async def show_business_account(call: AppCall) -> dict[str, Any]:
    """Return the operator's details of the number and its business account."""
    number, account = await _fetch_statuses(call)
    return {"status": "success", "wabaInfo": business_account_info(call.app, number, account)}


async def _fetch_statuses(call: AppCall) -> tuple[NumberStatus, BusinessStatus]:
    number = await call_operator(call.services, call.app, GetNumber(call.number))
    return number, await call_operator(call.services, call.app, GetBusinessStatus(account_of(call.app)))
