"""Business-scoped user ids in callbacks: of one app, and of every app of a partner."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from msgspec import Struct
from sqlalchemy import Connection

from waypost.api.apps.apps import update_app
from waypost.api.authorisation import Credential
from waypost.api.fields import Field, keep_text
from waypost.api.operation import APP, AppCall, Operations, PartnerCall
from waypost.api.route import StatusFirst, Success
from waypost.domain.app import App
from waypost.domain.coercion import read_integer
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.apps.apps import change_app, list_apps

operation = Operations("ledger 1.2", at_operator=False)


class UserIdSwitches(Struct, rename={"user_ids": "enableBSUID", "user_ids_v3": "enableBSUIDV3"}):
    """Switches of user ids in callbacks; an absent one stays as it is."""

    user_ids: Annotated[
        bool | None, Field("true: callbacks of version 2 have business-scoped user ids; for a live app.", "true")
    ] = None
    user_ids_v3: Annotated[
        bool | None, Field("true: callbacks of version 3 have business-scoped user ids; for a live app.", "true")
    ] = None


class UserIdSwitch(Struct, rename={"user_ids_v3": "enableBSUIDV3"}):
    """The switch of user ids in the callbacks of all apps."""

    user_ids_v3: Annotated[
        bool,
        Field(
            "true: callbacks of version 3 of every live app have business-scoped user ids.",
            "true",
            "true or false",
            kind="Boolean",
        ),
    ]


class ConfiguredPartner(Struct, rename="camel"):
    """The partner whose apps change; the body is checked before the number is."""

    partner_id: Annotated[
        int,
        Field(
            "The id of the partner whose token is sent.",
            "1",
            "the id of the partner whose token is sent",
            kind="Integer",
            read=keep_text,
            errors=(ErrorCode.WRONG_TYPE,),
        ),
    ]


class ConfiguredApps(StatusFirst, kw_only=True, rename="camel"):
    """The number of changed apps; there the change is queued, and a summary is sent by mail."""

    message: str
    partner_id: str
    total_apps: str


@operation(
    "PUT", f"{APP}/config/bsuid", Success, rate="app_token", errors=(ErrorCode.NO_USER_ID_FLAG, ErrorCode.APP_NOT_LIVE)
)
async def set_user_ids(call: AppCall, fields: UserIdSwitches) -> Success:
    """Set whether callbacks of versions 2 and 3 have user ids; a flag that is absent stays unchanged.

    Only a live app can enable them. Callbacks of earlier events do not change.
    """
    flags = {"user_ids": fields.user_ids, "user_ids_v3": fields.user_ids_v3}
    changes = {name: flag for name, flag in flags.items() if flag is not None}
    if not changes:
        raise ApiError(
            ErrorCode.NO_USER_ID_FLAG,
            "Send enableBSUID, for callbacks of version 2, enableBSUIDV3, for version 3, or both: true or false.",
        )
    if not call.app.live and any(changes.values()):
        raise ApiError(ErrorCode.APP_NOT_LIVE, "Only a live app can enable user ids; this one is a sandbox app.")
    await update_app(call.services, call.app, partial(_set_preferences, changes=changes))
    return Success()


@operation(
    "PUT",
    "/partner/account/apps/config",
    ConfiguredApps,
    credential=Credential.PARTNER_TOKEN,
    rate="create_app",
    errors=(ErrorCode.FORBIDDEN_ACCESS,),
)
async def set_user_ids_of_apps(call: PartnerCall, query: ConfiguredPartner, fields: UserIdSwitch) -> ConfiguredApps:
    """Set whether callbacks of version 3 have user ids, for every live app of the partner, in one transaction."""
    services, partner_id = call.services, call.partner_id
    if read_integer(query.partner_id, "partnerId") != partner_id:
        raise ApiError(ErrorCode.FORBIDDEN_ACCESS, "partnerId must be the id of the partner whose token is sent.")
    changes, now_ms = {"user_ids_v3": fields.user_ids_v3}, services.clock.now_ms()

    def change_all(connection: Connection) -> int:
        live = [app for app in list_apps(connection, partner_id) if app.live]
        for app in live:
            change_app(
                connection,
                app.id,
                lambda stored: replace(_set_preferences(stored, changes=changes), modified_on_ms=now_ms),
            )
        return len(live)

    count = await services.database.write(change_all)
    services.directory.invalidate()
    text = f"App config update for partner {partner_id} is complete. No mail is sent."
    return ConfiguredApps(message=text, partner_id=str(partner_id), total_apps=str(count))


def _set_preferences(app: App, *, changes: Mapping[str, Any]) -> App:
    return replace(app, preferences=replace(app.preferences, **changes))
