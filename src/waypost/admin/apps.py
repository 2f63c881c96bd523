"""The admin API's operations on apps: list, add, connect to a number, renew the token, list messages and templates."""

from dataclasses import replace
from typing import Any, Final

import msgspec
from sqlalchemy import Connection

from waypost.admin.provisioning import AdminContext
from waypost.base.encryption import hash_of
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode, invalid_field, not_found
from waypost.domain.phone_number import read_phone_number
from waypost.store.accounts import partners as stored
from waypost.store.apps.apps import Taken, change_app
from waypost.store.apps.operator_history import keep_stay
from waypost.store.console.trace import newest_messages, newest_templates
from waypost.store.directory import KEPT_MS

MOST_MESSAGES: Final = 100
MOST_TEMPLATES: Final = 1000


class NewApp(msgspec.Struct, forbid_unknown_fields=True):
    """An app to add.

    Attributes:
        per_second: its number's throughput at the operator; None: the service's setting.
    """

    partner_id: int
    name: str
    phone_number: str
    phone_number_id: str
    business_account_id: str
    per_second: int | None = None


class AppConnection(msgspec.Struct, forbid_unknown_fields=True):
    """The number and the business account of an app."""

    phone_number: str
    phone_number_id: str
    business_account_id: str
    live: bool = True


async def list_apps(context: AdminContext) -> Any:
    """Return every app."""
    return {"apps": [msgspec.to_builtins(app) for app in await context.database.read(stored.all_apps)]}


async def add_app(context: AdminContext, given: NewApp) -> dict[str, Any]:
    """Store an app and return it with its app token.

    Raises:
        ApiError: a field is invalid, its name or its source number is in use, or its business account
            is not the partner's.
    """
    digits = read_phone_number(given.phone_number)
    if digits is None:
        raise invalid_field("phone_number", "8 to 15 digits")
    if not 1 <= len(given.name) <= 150:
        raise invalid_field("name", "1 to 150 characters")
    if given.per_second is not None and not 1 <= given.per_second <= 1000:
        raise invalid_field("per_second", "1 to 1000, or null")
    await _check_owner(context, given.business_account_id, given.partner_id)
    now_ms = context.clock.now_ms()
    app = App(
        id=context.ids.new(),
        partner_id=given.partner_id,
        name=given.name,
        phone_number=digits,
        phone_number_id=given.phone_number_id,
        business_account_id=given.business_account_id,
        created_on_ms=now_ms,
        modified_on_ms=now_ms,
        per_second=given.per_second,
    )
    token = context.seals.app_token(app.id, app.token_serial)
    if not await context.database.write(stored.add_app, app, hash_of(token)):
        raise ApiError(ErrorCode.ALREADY_EXISTS, "name or phone_number is taken by another app.", field="name")
    return {**msgspec.to_builtins(app), "app_token": token}


async def connect_app(context: AdminContext, given: AppConnection, app_id: str) -> Any:
    """Set an app's number and business account, and make it live or a sandbox app.

    Late events of messages sent before still count, also from the previous operator.

    Raises:
        ApiError: there is no such app, a field is invalid, the number is another app's, or the business
            account is not the partner's.
    """
    app = await _named(context, app_id)
    digits = read_phone_number(given.phone_number)
    if digits is None or not given.phone_number_id:
        raise ApiError(
            ErrorCode.FIELD_BROKEN,
            "phone_number must be 8 to 15 digits, and phone_number_id the operator's id of it.",
            field="phone_number" if digits is None else "phone_number_id",
        )
    await _check_owner(context, given.business_account_id, app.partner_id)
    now_ms = context.clock.now_ms()

    def connect(connection: Connection) -> App | None:
        def apply(stored: App) -> App:
            keep_stay(connection, stored, now_ms + KEPT_MS)
            since_ms = stored.preferences.live_since_ms if stored.live else now_ms
            return replace(
                stored,
                phone_number=digits,
                phone_number_id=given.phone_number_id,
                business_account_id=given.business_account_id,
                live=given.live,
                modified_on_ms=now_ms,
                preferences=replace(stored.preferences, live_since_ms=since_ms if given.live else 0),
            )

        return change_app(connection, app_id, apply)

    try:
        changed = await context.database.write(connect)
    except Taken as error:
        text = "phone_number is taken by another app."
        raise ApiError(ErrorCode.ALREADY_EXISTS, text, field="phone_number") from error
    context.directory.forget()
    if changed is None:
        raise not_found("app", "app_id")
    return msgspec.to_builtins(changed)


async def renew_token(context: AdminContext, app_id: str) -> Any:
    """Revoke an app's token and return the next one.

    Raises:
        ApiError: there is no such app.
    """
    serial = (await _named(context, app_id)).token_serial + 1
    token = context.seals.app_token(app_id, serial)
    await context.database.write(stored.renew_app_token, app_id, serial, hash_of(token), context.clock.now_ms())
    context.directory.forget()
    return {"app_token": token}


async def list_messages(context: AdminContext, app_id: str) -> Any:
    """Return an app's newest messages."""
    await _named(context, app_id)
    return {"messages": await context.database.read(newest_messages, app_id, MOST_MESSAGES)}


async def list_templates(context: AdminContext, app_id: str) -> Any:
    """Return an app's newest templates."""
    await _named(context, app_id)
    return {"templates": await context.database.read(newest_templates, app_id, MOST_TEMPLATES)}


async def _named(context: AdminContext, app_id: str) -> App:
    app = await context.database.read(stored.app_by_id, app_id)
    if app is None:
        raise not_found("app", "app_id")
    return app


async def _check_owner(context: AdminContext, business_account_id: str, partner_id: int) -> None:
    account = await context.directory.business_account(business_account_id)
    if account is None or account.partner_id != partner_id:
        text = "business_account_id must name a business account of the partner."
        raise ApiError(ErrorCode.NOT_FOUND, text, field="business_account_id")
