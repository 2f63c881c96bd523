"""The admin API's operations on apps: added, connected to a number, given another token, and what they have."""

from dataclasses import replace
from typing import Any, Final

import msgspec
from sqlalchemy import Connection

from waypost.admin.context import Office
from waypost.base.encryption import hash_of
from waypost.domain.app import App
from waypost.domain.errors import Reason, Refused, broken_field, unknown
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
        per_second: its number's throughput at the operator; None: what the service is set to.
    """

    partner_id: int
    name: str
    phone_number: str
    phone_number_id: str
    business_account_id: str
    per_second: int | None = None


class AppConnection(msgspec.Struct, forbid_unknown_fields=True):
    """The number and the business account that an app gets."""

    phone_number: str
    phone_number_id: str
    business_account_id: str
    live: bool = True


async def list_apps(office: Office) -> Any:
    """Return every app."""
    return {"apps": [msgspec.to_builtins(app) for app in await office.database.read(stored.all_apps)]}


async def add_app(office: Office, given: NewApp) -> dict[str, Any]:
    """Store an app and return it with its app token.

    Raises:
        Refused: a field is broken, its name or its source number is taken, or its business account
            is not the partner's.
    """
    digits = read_phone_number(given.phone_number)
    if digits is None:
        raise broken_field("phone_number", "8 to 15 digits")
    if not 1 <= len(given.name) <= 150:
        raise broken_field("name", "1 to 150 characters")
    if given.per_second is not None and not 1 <= given.per_second <= 1000:
        raise broken_field("per_second", "1 to 1000, or null")
    await _check_owner(office, given.business_account_id, given.partner_id)
    now_ms = office.clock.now_ms()
    app = App(
        id=office.ids.new(),
        partner_id=given.partner_id,
        name=given.name,
        phone_number=digits,
        phone_number_id=given.phone_number_id,
        business_account_id=given.business_account_id,
        created_on_ms=now_ms,
        modified_on_ms=now_ms,
        per_second=given.per_second,
    )
    token = office.seals.app_token(app.id, app.token_serial)
    if not await office.database.write(stored.add_app, app, hash_of(token)):
        raise Refused(Reason.ALREADY_EXISTS, "name or phone_number is taken by another app.", field="name")
    return {**msgspec.to_builtins(app), "app_token": token}


async def connect_app(office: Office, given: AppConnection, app_id: str) -> Any:
    """Give an app its number and business account, and make it live or a sandbox app.

    Late news of what was sent before still counts, also where another operator carries it now.

    Raises:
        Refused: there is no such app, a field is broken, the number is another app's, or the business
            account is not the partner's.
    """
    app = await _named(office, app_id)
    digits = read_phone_number(given.phone_number)
    if digits is None or not given.phone_number_id:
        raise Refused(
            Reason.FIELD_BROKEN,
            "phone_number must be 8 to 15 digits, and phone_number_id the operator's id of it.",
            field="phone_number" if digits is None else "phone_number_id",
        )
    await _check_owner(office, given.business_account_id, app.partner_id)
    now_ms = office.clock.now_ms()

    def connect(connection: Connection) -> App | None:
        def connected(held: App) -> App:
            keep_stay(connection, held, now_ms + KEPT_MS)
            since_ms = held.preferences.live_since_ms if held.live else now_ms
            return replace(
                held,
                phone_number=digits,
                phone_number_id=given.phone_number_id,
                business_account_id=given.business_account_id,
                live=given.live,
                modified_on_ms=now_ms,
                preferences=replace(held.preferences, live_since_ms=since_ms if given.live else 0),
            )

        return change_app(connection, app_id, connected)

    try:
        changed = await office.database.write(connect)
    except Taken as error:
        text = "phone_number is taken by another app."
        raise Refused(Reason.ALREADY_EXISTS, text, field="phone_number") from error
    office.directory.forget()
    if changed is None:
        raise unknown("app", "app_id")
    return msgspec.to_builtins(changed)


async def renew_token(office: Office, app_id: str) -> Any:
    """Revoke an app's token and return the next one.

    Raises:
        Refused: there is no such app.
    """
    serial = (await _named(office, app_id)).token_serial + 1
    token = office.seals.app_token(app_id, serial)
    await office.database.write(stored.renew_app_token, app_id, serial, hash_of(token), office.clock.now_ms())
    office.directory.forget()
    return {"app_token": token}


async def list_messages(office: Office, app_id: str) -> Any:
    """Return an app's newest messages."""
    await _named(office, app_id)
    return {"messages": await office.database.read(newest_messages, app_id, MOST_MESSAGES)}


async def list_templates(office: Office, app_id: str) -> Any:
    """Return an app's newest templates."""
    await _named(office, app_id)
    return {"templates": await office.database.read(newest_templates, app_id, MOST_TEMPLATES)}


async def _named(office: Office, app_id: str) -> App:
    app = await office.database.read(stored.app_by_id, app_id)
    if app is None:
        raise unknown("app", "app_id")
    return app


async def _check_owner(office: Office, business_account_id: str, partner_id: int) -> None:
    account = await office.directory.business_account(business_account_id)
    if account is None or account.partner_id != partner_id:
        text = "business_account_id must name a business account of the partner."
        raise Refused(Reason.NOT_FOUND, text, field="business_account_id")
