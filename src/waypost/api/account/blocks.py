"""The users whom an app's number has blocked, in the newer and the older form of the calls."""

from functools import partial
from typing import Annotated, Any, Final, Literal

from msgspec import Struct

from waypost.api.authorisation import Credential
from waypost.api.fields import Field, omit_empty, read_fields
from waypost.api.operation import APP, AppCall, Operations, PartnerCall
from waypost.api.requests import ApiResponse
from waypost.base.json_values import coerced_text, object_of, objects_in
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.phone_number import read_phone_number
from waypost.store.accounts.partners import set_block_enabled
from waypost.store.apps.users import app_user, list_users, set_blocked
from waypost.wire.responses import Success, passed_on, success

MAX_BLOCKED_USERS: Final = 100
MAX_PAGE_SIZE: Final = 1000
MAX_PAGE: Final = 1_000_000
_FIELD_BROKEN: Final = (ErrorCode.FIELD_BROKEN,)
_WRONG_TYPE: Final = (ErrorCode.WRONG_TYPE,)
_PHONE: Final = "a phone number of 8 to 15 digits"
_USERS: Final = '[{"user":"15550002001"}]'
_STORED_ONLY_HEADERS: Final = (("Waypost-Reason", "Kept; every app can block users in this service."),)

operation = Operations("facts 13")
_CHANGED: Final = passed_on(status=Literal["success"])


def _read_number(text: str, name: str, *, at_most: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= at_most):
        raise ApiError(ErrorCode.WRONG_TYPE, f"{name} must be a whole number from 1 to {at_most}.")
    return int(text)


def _read_limit(text: str, name: str) -> int:
    if not text.isdecimal():
        raise ApiError(ErrorCode.FIELD_BROKEN, f"{name} must be a number.")
    return int(text)


class BlockedUser(Struct):
    """A user to block or unblock."""

    user: str


class BlockList(Struct):
    """The users to block or unblock."""

    messaging_product: Annotated[Literal["whatsapp"], Field("The product: whatsapp.", "whatsapp", "whatsapp")]
    block_users: Annotated[
        list[BlockedUser],
        Field(
            "The users, as a JSON array of objects with `user`; 1 to 100.",
            _USERS,
            "a list of objects with user, a phone number",
            kind="List",
            missing="a list of objects with user",
        ),
    ]


class UserBlock(Struct, rename="camel"):
    """A user to block or unblock, in the older form."""

    phone: Annotated[str, Field("A phone number of 8 to 15 digits.", "15550002001", _PHONE)]
    is_blocked: Annotated[
        bool, Field("true blocks the user, false unblocks it.", "true", "true or false", kind="Boolean")
    ]


class EitherBlock(Struct):
    """Users to block, or one user in the older form: the fields of both."""

    messaging_product: Annotated[str, Field("The product: whatsapp.", "whatsapp")] = ""
    block_users: Annotated[
        list[BlockedUser] | None,
        Field("The users, as a JSON array of objects with `user`; 1 to 100. Required unless `phone` is there.", _USERS),
    ] = None
    phone: Annotated[str, Field("The older form: one user, a phone number of 8 to 15 digits.")] = ""
    isBlocked: Annotated[  # noqa: N815  the other names of this form have underscores
        bool, Field("The older form: true blocks the user, false unblocks it; required with `phone`.")
    ] = False


class BlockedPage(Struct):
    """A page of the blocked users; the cursors are the operator's."""

    limit: Annotated[int | None, Field("Users per page.", "100", read=_read_limit, errors=_FIELD_BROKEN)] = None
    after: Annotated[str, Field("The cursor at the end of the previous page.")] = ""
    before: Annotated[str, Field("The cursor at the start of the next page.")] = ""


class KnownPage(Struct, rename="camel"):
    """A page of the users that are known to the app."""

    page_no: Annotated[
        int,
        Field(
            "The page number, from 1.",
            "1",
            f"1 to {MAX_PAGE}",
            kind="Integer",
            read=partial(_read_number, at_most=MAX_PAGE),
            errors=_WRONG_TYPE,
        ),
    ]
    page_size: Annotated[
        int,
        Field(
            "Users per page, 1 to 1000.",
            "100",
            f"1 to {MAX_PAGE_SIZE}",
            kind="Integer",
            read=partial(_read_number, at_most=MAX_PAGE_SIZE),
            errors=_WRONG_TYPE,
        ),
    ]


class BlockingSwitch(Struct, rename="camel"):
    """The switch of blocking for all apps."""

    block_enabled: Annotated[bool, Field("Stored; every app can block users.", "true", "true or false", kind="Boolean")]


class KnownUser(Struct):
    """A user that is known to the app."""

    phone: str
    blocked: bool


@operation(
    "POST",
    f"{APP}/user/block",
    _CHANGED,
    source="ledger 1.9; facts 13",
    body=EitherBlock,
    errors=(ErrorCode.FIELD_MISSING, ErrorCode.FIELD_BROKEN),
    by_key=True,
)
async def block_users(call: AppCall) -> dict[str, Any]:
    """Block users of the number; the older form of the request names one user to block or unblock."""
    form = call.request.form_or_json()
    if form.text("phone") is not None:
        await set_user_blocked(call, read_fields(UserBlock, form.text))
        return {"status": "success"}
    return await _change_block_list(call, "POST", read_fields(BlockList, form.text))


@operation("PUT", f"{APP}/block", Success, source="ledger 0, 1.9")
async def set_user_blocked(call: AppCall, fields: UserBlock) -> None:
    """Block or unblock one user of the number.

    An error, too, if the operator lists the user as one that failed.
    """
    phone = _read_phone(fields.phone)
    response = await _change_users(call, "POST" if fields.is_blocked else "DELETE", [phone])
    failed = objects_in(object_of(response.get("block_users")).get("failed_users"))
    if failed:
        raise ApiError(ErrorCode.OPERATOR_REJECTED, _failure_text(failed[0]))


@operation("POST", f"{APP}/user/unblock", _CHANGED, errors=(ErrorCode.FIELD_BROKEN,), by_key=True)
async def unblock_users(call: AppCall, fields: BlockList) -> dict[str, Any]:
    """Unblock users of the number."""
    return await _change_block_list(call, "DELETE", fields)


@operation("GET", f"{APP}/user/blocklist", passed_on(status=Literal["success"], data=list[Any]), by_key=True)
async def list_blocked_users(call: AppCall, query: BlockedPage) -> dict[str, Any]:
    """Return a page of the users that the number has blocked, as the operator lists them."""
    page = await call.graph_page(f"{call.number}/block_users", omit_empty(query))
    return {**page, "status": "success"}


@operation(
    "GET", f"{APP}/user/list", success(users=list[KnownUser]), source="ledger 1.9", rate="app_token", at_operator=False
)
async def list_known_users(call: AppCall, query: KnownPage) -> dict[str, Any]:
    """Return a page of the users that are known to the app: who has opted in or out, or was blocked."""
    offset = (query.page_no - 1) * query.page_size
    users = await call.services.database.read(partial(list_users, app=call.app, offset=offset, at_most=query.page_size))
    return {"status": "success", "users": [KnownUser(user.phone_number, user.blocked) for user in users]}


@operation(
    "GET",
    f"{APP}/user/{{phone}}",
    success(user=KnownUser),
    source="ledger 1.9",
    rate="app_token",
    errors=(ErrorCode.WRONG_TYPE,),
    at_operator=False,
)
async def show_user(call: AppCall) -> dict[str, Any]:
    """Return whether a user is blocked, known or not."""
    user = await call.services.database.read(app_user, call.app, _read_phone(call.request.path["phone"]))
    return {"status": "success", "user": KnownUser(user.phone_number, user.blocked)}


@operation(
    "PUT",
    "/partner/account/config/block/user",
    Success,
    source="ledger 1.9",
    credential=Credential.PARTNER_TOKEN,
    at_operator=False,
)
async def enable_blocking(call: PartnerCall, fields: BlockingSwitch) -> ApiResponse:
    """Store whether the partner's apps may block users; here they always can."""
    await call.services.database.write(set_block_enabled, call.partner_id, fields.block_enabled)
    return ApiResponse(Success(), headers=_STORED_ONLY_HEADERS)


def _read_phone(text: str) -> str:
    """Return a phone number in digits."""
    phone = read_phone_number(text)
    if phone is None:
        raise ApiError(ErrorCode.WRONG_TYPE, f"phone must be {_PHONE}.")
    return phone


async def _change_block_list(call: AppCall, method: Literal["POST", "DELETE"], fields: BlockList) -> dict[str, Any]:
    if not 1 <= len(fields.block_users) <= MAX_BLOCKED_USERS:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"block_users must name 1 to {MAX_BLOCKED_USERS} users.")
    response = await _change_users(call, method, [user.user for user in fields.block_users])
    return {**response, "status": "success"}


async def _change_users(call: AppCall, method: Literal["POST", "DELETE"], users: list[str]) -> dict[str, Any]:
    """Block or unblock users at the operator, and store the users that it changed, for `userStatus`."""
    body = {"messaging_product": "whatsapp", "block_users": [{"user": user} for user in users]}
    response = await call.graph(method, f"{call.number}/block_users", body)
    is_blocked = method == "POST"
    changed = objects_in(object_of(response.get("block_users")).get("added_users" if is_blocked else "removed_users"))
    whatsapp_ids: dict[str, str] = {}
    for user in changed:
        number, whatsapp_id = (read_phone_number(coerced_text(user.get(name))) for name in ("input", "wa_id"))
        if whatsapp_id:
            whatsapp_ids[number or whatsapp_id] = whatsapp_id
    if whatsapp_ids:
        store = partial(set_blocked, app=call.app, whatsapp_ids=whatsapp_ids, blocked=is_blocked)
        await call.services.database.write(store)
    return response


def _failure_text(user: dict[str, Any]) -> str:
    match user.get("errors"):
        case [{"error_data": {"details": str(details)}}, *_]:
            return details
        case [{"message": str(message)}, *_]:
            return message
        case _:
            return "The operator could not block or unblock the user."
