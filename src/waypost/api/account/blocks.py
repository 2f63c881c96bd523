"""Endpoints for the users whom an app's number has blocked, in their newer and their older form."""

from functools import partial
from typing import Final

import msgspec

from waypost.api.auth.authorisation import authorise_app, authorise_partner
from waypost.api.direct_calls import call_operator, number_of
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.app import App
from waypost.domain.direct_calls.profile import Block, BlockResult, ListBlocked, Unblock
from waypost.domain.errors import ApiError, ErrorCode, missing_parameter
from waypost.domain.phone_number import read_phone_number
from waypost.store.accounts.partners import set_block_enabled
from waypost.store.apps.users import app_user, list_users, set_blocked
from waypost.wire.account import BlockedUser
from waypost.wire.forms import read_json

MAX_BLOCKED_USERS: Final = 100
MAX_PAGE_SIZE: Final = 1000
MAX_PAGE: Final = 1_000_000
_PHONE: Final = "a phone number of 8 to 15 digits"
_PRODUCT: Final = "whatsapp"
_STORED_ONLY_HEADERS: Final = (("Waypost-Reason", "Kept; every app can block users in this service."),)
_users: Final = msgspec.json.Decoder(list[BlockedUser])


async def block_users(services: Services, request: Request) -> ApiResponse:
    """Block users of the number; the older form of the request names one user to block or unblock.

    Source: facts 13, `user/block`; ledger 1.9, `POST user/block`, old form.
    """
    if request.form_or_json().text("phone") is not None:
        return await set_user_blocked(services, request)
    return await _change_block_list(services, request, Block)


async def set_user_blocked(services: Services, request: Request) -> ApiResponse:
    """Block or unblock one user of the number.

    Errors in this order: 401, 429, 400 fields, 400 the operator's error, also if it lists the user
    as one that could not be blocked, 503.

    Source: ledger 0; 1.9, `PUT block`.
    """
    app = await authorise_app(services, request)
    form = request.form_or_json()
    phone = _read_phone(form.required("phone", _PHONE))
    form.required("isBlocked", "true or false", "Boolean")
    call = Block if form.flag("isBlocked") else Unblock
    result = await _call_block(services, app, call, [phone])
    if result.failure is not None:
        raise ApiError(ErrorCode.OPERATOR_REJECTED, result.failure)
    return ApiResponse({"status": "success"})


async def unblock_users(services: Services, request: Request) -> ApiResponse:
    """Unblock users of the number. Source: facts 13, `user/unblock`."""
    return await _change_block_list(services, request, Unblock)


async def list_blocked_users(services: Services, request: Request) -> ApiResponse:
    """Return a page of the users that the number has blocked, as the operator lists them. Source: facts 13."""
    app = await authorise_app(services, request)
    page = {name: request.query(name) or "" for name in ("limit", "after", "before")}
    if page["limit"] and not page["limit"].isdecimal():
        raise ApiError(ErrorCode.FIELD_BROKEN, "limit must be a number.")
    page_of_users = await call_operator(services, app, ListBlocked(number_of(app), **page))
    return ApiResponse({"data": [], **page_of_users.raw, "status": "success"})


async def list_known_users(services: Services, request: Request) -> ApiResponse:
    """Return a page of the users that are known to the app: who has opted in or out, or was blocked.

    Source: ledger 1.9, `user/list`.
    """
    app = await authorise_app(services, request)
    page, size = (
        _read_number(request, name, at_most) for name, at_most in (("pageNo", MAX_PAGE), ("pageSize", MAX_PAGE_SIZE))
    )
    users = await services.database.read(partial(list_users, app=app, offset=(page - 1) * size, at_most=size))
    return ApiResponse(
        {"status": "success", "users": [{"phone": user.phone_number, "blocked": user.blocked} for user in users]}
    )


async def show_user(services: Services, request: Request) -> ApiResponse:
    """Return whether a user is blocked, known or not. Source: ledger 1.9, `user/{phone}`."""
    app = await authorise_app(services, request)
    user = await services.database.read(app_user, app, _read_phone(request.path["phone"]))
    return ApiResponse({"status": "success", "user": {"phone": user.phone_number, "blocked": user.blocked}})


async def enable_blocking(services: Services, request: Request) -> ApiResponse:
    """Store whether the partner's apps may block users; here they always can.

    Source: ledger 1.9, `config/block/user`.
    """
    partner_id = await authorise_partner(services, request)
    form = request.form_or_json()
    form.required("blockEnabled", "true or false", "Boolean")
    await services.database.write(set_block_enabled, partner_id, form.flag("blockEnabled"))
    return ApiResponse({"status": "success"}, headers=_STORED_ONLY_HEADERS)


def _read_phone(text: str) -> str:
    """Return a phone number in digits.

    Raises:
        ApiError: it is none.
    """
    phone = read_phone_number(text)
    if phone is None:
        raise ApiError(ErrorCode.WRONG_TYPE, f"phone must be {_PHONE}.")
    return phone


def _read_number(request: Request, name: str, at_most: int) -> int:
    text = request.query(name)
    if not text:
        raise missing_parameter(name, f"1 to {at_most}", "Integer")
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= at_most):
        raise ApiError(ErrorCode.WRONG_TYPE, f"{name} must be a whole number from 1 to {at_most}.")
    return int(text)


async def _change_block_list(services: Services, request: Request, call: type[Block | Unblock]) -> ApiResponse:
    app = await authorise_app(services, request)
    form = request.form_or_json()
    if form.required("messaging_product", _PRODUCT) != _PRODUCT:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"messaging_product must be {_PRODUCT}.")
    users = read_json(
        form.required("block_users", "a list of objects with user", "List"),
        _users,
        name="block_users",
        accepted="a list of objects with user, a phone number",
    )
    if not 1 <= len(users) <= MAX_BLOCKED_USERS:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"block_users must name 1 to {MAX_BLOCKED_USERS} users.")
    result = await _call_block(services, app, call, [user.user for user in users])
    return ApiResponse({**result.raw, "status": "success"})


async def _call_block(services: Services, app: App, call: type[Block | Unblock], users: list[str]) -> BlockResult:
    """Block or unblock users at the operator, and store the users that it changed, for `userStatus`."""
    result = await call_operator(services, app, call(number_of(app), users))
    if result.users:
        is_blocked = call is Block
        await services.database.write(partial(set_blocked, app=app, phone_numbers=result.users, blocked=is_blocked))
    return result
