"""Endpoints for a partner's apps: lists, details, create, change, delete."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from waypost.api.auth.authorisation import app_of_app_token, authorise_app, authorise_partner
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.idempotency import commit
from waypost.api.services import Services
from waypost.api.subscriptions import check_webhook_room, set_webhook_url
from waypost.base.encryption import hash_secret
from waypost.domain.app import App
from waypost.domain.coercion import read_flag, read_integer
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.partner import Partner
from waypost.store.accounts.partners import add_app, partner_by_id
from waypost.store.apps.apps import DuplicateApp, app_by_name, change_app, delete_app, list_apps
from waypost.wire.apps import (
    AppForm,
    app_details,
    changed_app,
    linked_app,
    listed_app,
    partner_app,
    pipeline_object,
    read_app,
)

DEFAULT_APPS_PER_PAGE = 10
MAX_APPS_PER_PAGE = 1000


async def list_partner_apps(services: Services, request: Request) -> ApiResponse:
    """Return every app of the partner. Source: facts 2, `partnerApps`."""
    partner_id = await authorise_partner(services, request)
    apps = await services.database.read(list_apps, partner_id)
    return ApiResponse({"status": "success", "partnerAppsList": [partner_app(app) for app in apps]})


async def search_apps(services: Services, request: Request) -> ApiResponse:
    """Return a page of the partner's apps, filtered by parts of their names and numbers.

    The list is there twice: under its documented name, and under the one that older clients read.

    Source: ledger 1.2, C6; facts 2, `app/list`; decision 0024.
    """
    partner_id = await authorise_partner(services, request)
    page = _read_query_number(request, "pageNo", 1)
    size = min(_read_query_number(request, "pageSize", DEFAULT_APPS_PER_PAGE), MAX_APPS_PER_PAGE)
    apps = await services.database.read(
        partial(
            list_apps,
            partner_id=partner_id,
            name=request.query("name") or "",
            phone=(request.query("phone") or "").lstrip("+ "),
            offset=(page - 1) * size,
            at_most=size,
        )
    )
    items = [listed_app(app) for app in apps]
    return ApiResponse({"status": "success", "apps": items, "partnerAppsList": items})


async def link_app(services: Services, request: Request) -> ApiResponse:
    """Return one of the partner's apps by its name and a credential for it: all are linked already.

    Errors in this order: 401, 429, 400 a missing field, 400 no such app or another partner's credential.

    Source: facts 2, `appLink`.
    """
    partner_id = await authorise_partner(services, request)
    form = request.form_or_json()
    key = form.required("apiKey", "an API key of your account, or an app token")
    name = form.required("appName", "the name of one of your apps")
    app = await services.database.read(app_by_name, partner_id, name)
    key_hash = hash_secret(key)
    owner = await services.directory.partner_of_api_key(key_hash) or await services.directory.partner_of_app_token(
        key_hash
    )
    if app is None or owner != partner_id:
        raise ApiError(ErrorCode.INVALID_APP_DETAILS, "appName and apiKey must be of one of your apps.")
    return ApiResponse({"status": "success", "partnerApps": linked_app(app)})


async def show_app(services: Services, request: Request) -> ApiResponse:
    """Return one app's details. Source: facts 2, `details`."""
    app = await authorise_app(services, request)
    details = app_details(app, await partner_of(services, app))
    return ApiResponse({"status": "success", "app": "true", "appDetails": details})


async def show_app_by_id(services: Services, request: Request) -> ApiResponse:
    """Return one app's details under `app`, as public clients read them. Source: public clients; decision 0025."""
    app = await authorise_app(services, request)
    return ApiResponse({"status": "success", "app": app_details(app, await partner_of(services, app))})


async def show_pipeline(services: Services, request: Request) -> ApiResponse:
    """Return how far the app's onboarding is: clients poll it until `creationStage` says that it is done.

    Source: ledger 1.11.
    """
    return ApiResponse({"status": "success", "whatsapp": pipeline_object(await authorise_app(services, request))})


async def create_app(services: Services, request: Request) -> ApiResponse:
    """Create a sandbox app; the administrator gives it a number and makes it live.

    Errors in this order: 401, 429 eleventh in a minute, 400 an invalid name, 409 a duplicate name.

    Source: facts 2, `POST /partner/app`.
    """
    partner_id = await authorise_partner(services, request)
    form = read_app(request.form_or_json(), is_new=True)
    now_ms = services.clock.now_ms()
    app = App(
        id=services.ids.new(),
        partner_id=partner_id,
        name=form.name or "",
        phone_number="",
        phone_number_id="",
        business_account_id="",
        created_on_ms=now_ms,
        modified_on_ms=now_ms,
        live=False,
    )
    app = _apply_app_form(app, form)
    token = services.secret_box.app_token(app.id, app.token_serial)

    def make_response(is_new: bool) -> ApiResponse:
        if not is_new:
            raise _duplicate_name_error()
        return ApiResponse({"status": "success", "appId": app.id})

    return await commit(services, request, add_app, app, hash_secret(token), make_response=make_response)


async def edit_app(services: Services, request: Request) -> ApiResponse:
    """Change an app's name and preferences; absent fields stay unchanged.

    `webhookUrl` also makes or changes a subscription, so that callbacks arrive there; `callbackUrl` is stored only.

    Errors in this order: 401, 429, 400 no field, 400 an invalid one, 400 the region of a live app, 400 too many
    subscriptions, 409 a duplicate name.

    Source: facts 2, `PUT /partner/app/{appId}`; ledger 1.2, C7.
    """
    app = await authorise_app(services, request)
    form = read_app(request.form_or_json(), is_new=False)
    if app.live and form.storage_region is not None:
        raise ApiError(ErrorCode.REGION_AFTER_LIVE, "storageRegion can be set before the app goes live.")
    if form.webhook_url is not None:
        await check_webhook_room(services, app)
    changed = await update_app(services, app, partial(_apply_app_form, form=form))
    if form.webhook_url is not None:  # only now: a name that is taken must not leave a subscription behind
        await set_webhook_url(services, changed, form.webhook_url)
    item = changed_app(changed, await partner_of(services, changed))
    return ApiResponse({"status": "success", "app": item, "appDetails": item})  # public clients read either


async def remove_app(services: Services, request: Request) -> ApiResponse:
    """Delete a sandbox app with everything that belongs to it, or a live one with `deleteLiveApp`.

    Errors in this order: 401 wrong token, 403 not the partner's, 429, 400 an invalid flag, 403 a live app.

    Source: ledger 1.2, C8; facts 2, `DELETE /partner/app/{appId}`; their text is `Unauthorized Access`.
    """
    app = await app_of_app_token(services, request)
    request.note_caller(app.partner_id, app.id)
    await request.spend(services.limiter, str(app.partner_id))
    also_live = read_flag(request.query("deleteLiveApp") or "false", "deleteLiveApp")
    if not await services.database.write(partial(delete_app, app=app, also_live=also_live)):
        raise ApiError(ErrorCode.FORBIDDEN_ACCESS, "A live app is deleted with deleteLiveApp=true only.")
    services.directory.invalidate()
    return ApiResponse({"status": "success", "message": "App deleted successfully"})


async def update_app(services: Services, app: App, change: Callable[[App], App]) -> App:
    """Change an app as stored now, with immediate effect, and return it.

    Args:
        services: of the request.
        app: the app; this copy may be seconds old, so only its id is used.
        change: returns the stored app with the requested changes.

    Raises:
        ApiError: its name is a duplicate, or it has just been deleted.
    """

    def apply(stored: App) -> App:
        return replace(change(stored), modified_on_ms=services.clock.now_ms())

    try:
        updated = await services.database.write(change_app, app.id, apply)
    except DuplicateApp as error:
        raise _duplicate_name_error() from error
    services.directory.invalidate()
    if updated is None:
        raise ApiError(ErrorCode.NOT_FOR_THIS_APP, "The app has just been deleted.")
    return updated


def _apply_app_form(app: App, form: AppForm) -> App:
    requested: dict[str, Any] = {
        "template_messaging": form.template_messaging,
        "disable_optin_pref_url": form.disable_optin_pref_url,
        "storage_region": form.storage_region,
        "language_code": form.language_code,
        "enable_redis": form.enable_redis,
        "callback_url": form.webhook_url or form.callback_url,
    }
    changes = {name: value for name, value in requested.items() if value is not None}
    return replace(app, name=form.name or app.name, preferences=replace(app.preferences, **changes))


async def partner_of(services: Services, app: App) -> Partner:
    """Return the partner that an app belongs to."""
    partner = await services.database.read(partner_by_id, app.partner_id)
    if partner is None:
        raise LookupError(f"app {app.id} has no partner")
    return partner


def _read_query_number(request: Request, name: str, default: int) -> int:
    """Return a number of the query; 0 counts as absent, as in the lists of templates."""
    text = request.query(name)
    number = read_integer(text, name) if text else 0
    if not 0 <= number <= 1_000_000:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"{name} must be a number from 0 to 1000000.")
    return number or default


def _duplicate_name_error() -> ApiError:
    return ApiError(ErrorCode.APP_EXISTS, "name is taken by another of your apps; choose another.")
