"""The users of an app: opt in, opt out, status, list (decision 0065)."""

from functools import partial
from typing import Annotated, Any, Final, Literal

from msgspec import Struct, UnsetType
from sqlalchemy import Connection

from waypost.api.authorisation import Credential
from waypost.api.fields import Field
from waypost.api.operation import APP, OLDER_API_ENDED_S, AppCall, Operations
from waypost.base.ids import Ids
from waypost.domain.app import CUSTOMER_SERVICE_WINDOW_MS, App, AppUser
from waypost.domain.errors import ErrorCode, invalid_field
from waypost.domain.phone_number import country_and_national, read_phone_number
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.notifications.user_events import emit_user_event
from waypost.store.apps.users import app_user, list_opted_users, set_opt_in
from waypost.wire.callbacks.kinds import USER_KINDS
from waypost.wire.responses import Success, success

MAX_USERS_PER_PAGE: Final = 10_000
MAX_PAGE: Final = 1_000_000
NOT_OPTED_IN: Final = "Check User optin & User Preference. Please contact developer support."
"""Source: public page "User status", without the vendor's name."""
_SOURCE: Final = "API"

operation = Operations("facts 2, withdrawn", at_operator=False)
_operation_by_name = partial(
    operation,
    source="facts 9.2; public clients",
    credential=Credential.API_KEY,
    errors=(ErrorCode.INVALID_APP_DETAILS,),
    deprecated_s=OLDER_API_ENDED_S,
)


def _read_phone(text: str, name: str) -> str:
    phone = read_phone_number(text)
    if phone is None:
        raise invalid_field(name, "a phone number of 8 to 15 digits")
    return phone


Phone = Annotated[
    str,
    Field(
        "A phone number of 8 to 15 digits.",
        "15550002001",
        "a phone number of 8 to 15 digits",
        read=_read_phone,
        errors=(ErrorCode.FIELD_BROKEN,),
    ),
]


class OneUserPhone(Struct):
    """A user."""

    phone: Phone


class OptingUser(Struct):
    """A user who opts in or out."""

    user: Phone


class UserPage(Struct, rename="camel"):
    """A page of the users."""

    max_result: Annotated[
        int,
        Field(
            "Users per page, 1 to 10000; 10000 when absent.",
            "1000",
            f"a whole number from 1 to {MAX_USERS_PER_PAGE}",
            between=(1, MAX_USERS_PER_PAGE),
        ),
    ] = MAX_USERS_PER_PAGE
    page_no: Annotated[
        int, Field("The page number, from 1.", "1", f"a whole number from 1 to {MAX_PAGE}", between=(1, MAX_PAGE))
    ] = 1


class UserStatus(Struct, rename="camel"):
    """The status of a user."""

    active: bool
    app_id: str
    blocked: bool
    country_code: str
    dial_code: str
    phone: str
    status: Literal["OPT_IN", "OPT_OUT"]


class OptedUser(Struct, rename="camel"):
    """A user who has opted in or out."""

    country_code: str
    phone_code: str
    optin_status: Literal["OPT_IN", "OPT_OUT"]
    optin_source: str
    optin_time_stamp: int
    last_message_time_stamp: int


@operation("PUT", f"{APP}/optin", Success, status=202)
async def opt_in(call: AppCall, fields: OneUserPhone) -> None:
    """Opt a user in. Sending does not require it; the list of users and `userStatus` show it."""
    await _change_opt_status(call, fields.phone, opted_in=True)


@_operation_by_name("POST", "/sm/api/v1/app/opt/in/{app_name}", Success, status=202)
@_operation_by_name(
    "POST",
    "/wa/api/v1/optedin/{app_name}",
    Success,
    source="facts 2, withdrawn; by API key as public clients call it",
    status=202,
    deprecated_s=None,
)
async def opt_in_by_app_name(call: AppCall, fields: OptingUser) -> None:
    """Opt a user in, by the app's name and an API key."""
    await _change_opt_status(call, fields.user, opted_in=True)


@_operation_by_name("POST", "/sm/api/v1/app/opt/out/{app_name}", Success, status=202)
async def opt_out_by_app_name(call: AppCall, fields: OptingUser) -> None:
    """Opt a user out, by the app's name and an API key. Messages to the user are still sent."""
    await _change_opt_status(call, fields.user, opted_in=False)


@operation("GET", f"{APP}/userStatus", success(message=str | UnsetType, userStatus=UserStatus))
async def show_user_status(call: AppCall, query: OneUserPhone) -> dict[str, Any]:
    """Return the status of a user, who counts as opted in until the user opts out.

    A user is active while session messages may be sent.

    Source: facts 2, `userStatus`; public page "User status"; facts 12, codes 1004 to 1008; decision 0065.
    """
    user = await call.services.database.read(app_user, call.app, query.phone)
    country, national = country_and_national(user.phone_number)
    is_active = call.services.clock.now_ms() < user.last_written_ms + CUSTOMER_SERVICE_WINDOW_MS
    is_out = user.opted_in is False
    status = "OPT_OUT" if is_out else "OPT_IN"
    shown = UserStatus(is_active, call.app.id, user.blocked, country, national, user.phone_number, status)
    return {"status": "success", **({"message": NOT_OPTED_IN} if is_out else {}), "userStatus": shown}


@_operation_by_name("GET", "/sm/api/v1/users/{app_name}", success(users=list[OptedUser]))
async def list_users(call: AppCall, query: UserPage) -> dict[str, Any]:
    """Return the users that have opted in or out, the latest change first."""
    offset = (query.page_no - 1) * query.max_result
    page = partial(list_opted_users, app=call.app, offset=offset, at_most=query.max_result)
    users = await call.services.database.read(page)
    return {"status": "success", "users": [_opted_user(user) for user in users]}


def _opted_user(user: AppUser) -> OptedUser:
    status = "OPT_IN" if user.opted_in else "OPT_OUT"
    codes = country_and_national(user.phone_number)
    return OptedUser(*codes, status, user.source, user.opted_on_ms, user.last_written_ms)


async def _change_opt_status(call: AppCall, phone: str, *, opted_in: bool) -> None:
    services, now_ms = call.services, call.services.clock.now_ms()
    await services.database.write(_record_opt_change, services.ids, call.app, phone, opted_in, now_ms)


def _record_opt_change(connection: Connection, ids: Ids, app: App, phone: str, opted_in: bool, now_ms: int) -> None:
    """Store the change and emit its callbacks; a repeated one changes nothing and causes none."""
    if set_opt_in(connection, app, phone, opted_in=opted_in, source=_SOURCE, at_ms=now_ms):
        recorder = StateChangeRecorder(connection, ids, now_ms)
        emit_user_event(
            recorder, connection, app, phone, kind=USER_KINDS["resume" if opted_in else "stop"], at_ms=now_ms
        )
        recorder.write()
