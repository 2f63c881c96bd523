"""Endpoints for business-scoped user ids in callbacks: of one app, and of every app of a partner."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from sqlalchemy import Connection

from waypost.api.apps.apps import update_app
from waypost.api.auth.authorisation import authorise_app, authorise_partner
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.app import App
from waypost.domain.coercion import read_integer
from waypost.domain.errors import ApiError, ErrorCode, missing_parameter
from waypost.store.apps.apps import change_app, list_apps

_FLAGS = {"enableBSUID": "user_ids", "enableBSUIDV3": "user_ids_v3"}  # and the preference of each


async def set_user_ids(services: Services, request: Request) -> ApiResponse:
    """Set whether callbacks of versions 2 and 3 have user ids; a flag that is absent stays unchanged.

    Errors in this order: 401, 429, 400 neither flag, 400 a flag that is no boolean, 400 a sandbox app and a flag
    that is true. Callbacks of earlier events do not change.

    Source: ledger 1.2, `config/bsuid`.
    """
    app = await authorise_app(services, request)
    form = request.form_or_json()
    if not any(form.text(flag) for flag in _FLAGS):
        raise ApiError(ErrorCode.NO_USER_ID_FLAG, "enableBSUID is for version 2, enableBSUIDV3 for version 3.")
    changes = {preference: form.flag(flag) for flag, preference in _FLAGS.items() if form.text(flag)}
    if not app.live and any(changes.values()):
        raise ApiError(ErrorCode.APP_NOT_LIVE, "Only a live app can enable user ids; this one is a sandbox app.")
    await update_app(services, app, partial(_set_preferences, changes=changes))
    return ApiResponse({"status": "success"})


async def set_user_ids_of_apps(services: Services, request: Request) -> ApiResponse:
    """Set whether callbacks of version 3 have user ids, for every live app of the partner, in one transaction.

    Errors in this order: 401, 429, 400 a missing or invalid field, 403 another partner's id.

    Source: ledger 1.2, `apps/config`; there the change is queued, and a summary is sent by mail.
    """
    partner_id = await authorise_partner(services, request)
    requested_id = request.query("partnerId") or ""
    if not requested_id:
        raise missing_parameter("partnerId", "the id of the partner whose token is sent", "Integer")
    form = request.form_or_json()
    form.required("enableBSUIDV3", "true or false", "Boolean")
    changes = {"user_ids_v3": form.flag("enableBSUIDV3")}
    if read_integer(requested_id, "partnerId") != partner_id:
        raise ApiError(ErrorCode.FORBIDDEN_ACCESS, "partnerId must be the id of the partner whose token is sent.")
    now_ms = services.clock.now_ms()

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
    return ApiResponse({"status": "success", "message": text, "partnerId": str(partner_id), "totalApps": str(count)})


def _set_preferences(app: App, *, changes: Mapping[str, bool]) -> App:
    return replace(app, preferences=replace(app.preferences, **changes))
