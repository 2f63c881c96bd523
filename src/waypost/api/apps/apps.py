"""The apps of a partner: lists, details, create, change, delete."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final, Literal, Self

from msgspec import Struct

from waypost.api.authorisation import Credential, app_of_app_token
from waypost.api.fields import Field
from waypost.api.idempotency import commit
from waypost.api.operation import APP, AppCall, Operations, PartnerCall
from waypost.api.requests import ApiResponse, Request
from waypost.api.route import IdempotencyMode
from waypost.api.services import Services
from waypost.api.subscriptions import stored_subscriptions, too_many_error
from waypost.base.encryption import hash_secret
from waypost.domain.app import STORAGE_REGIONS, App, sandbox_app
from waypost.domain.callbacks import MAX_SUBSCRIPTIONS_PER_APP, Subscription, read_modes, resume_subscription
from waypost.domain.errors import ApiError, ErrorCode, invalid_field, missing_parameter
from waypost.domain.partner import Partner
from waypost.store.accounts.partners import add_app, partner_by_id
from waypost.store.apps.apps import DuplicateApp, app_by_name, change_app, delete_app, list_apps
from waypost.store.callbacks.subscriptions import (
    DuplicateTag,
    TooManySubscriptions,
    add_subscription,
    change_subscription,
)
from waypost.wire.apps import (
    AppDetails,
    ChangedApp,
    LinkedApp,
    ListedApp,
    OnboardingState,
    PartnerApp,
    app_details,
    changed_app,
    linked_app,
    listed_app,
    onboarding_state,
    partner_app,
)
from waypost.wire.responses import Confirmation, success
from waypost.wire.subscriptions import check_url

DEFAULT_APPS_PER_PAGE: Final = 10
MAX_APPS_PER_PAGE: Final = 1000
MIN_NAME_CHARS: Final = 6
MAX_NAME_CHARS: Final = 150
_NAME: Final = re.compile(r"[A-Za-z0-9 _-]*")  # the exact character set is not public
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}([_-][A-Za-z]{2,4})?")
_ACCOUNT: Final = "/partner/account/api"
_PAGE_NUMBER: Final = "a number from 0 to 1000000"

WEBHOOK_TAG: Final = "webhookUrl"
"""The tag of the subscription that `PUT /partner/app/{appId}` with `webhookUrl` makes. Source: decision 0025."""
WEBHOOK_MODES: Final = 2047
"""Its modes: all that have a bit and a body of version 2. Source: facts 4.3."""
operation = Operations("facts 2", Credential.PARTNER_TOKEN, at_operator=False)
_operation_on_details = partial(
    operation, wrong_credential=ErrorCode.UNAUTHORIZED_ACCESS, other_app=ErrorCode.FORBIDDEN_ACCESS
)


def _read_name(text: str, field: str) -> str:
    name = text.strip()
    if not name:
        raise missing_parameter(field, _NAME_LENGTH)
    if not _NAME.fullmatch(name):
        raise ApiError(ErrorCode.INVALID_APP_NAME, "name must hold letters, digits, spaces, - and _ only.")
    if not MIN_NAME_CHARS <= len(name) <= MAX_NAME_CHARS:
        raise ApiError(ErrorCode.APP_NAME_LENGTH, f"name must have {_NAME_LENGTH}; it has {len(name)}.")
    return name


def read_region(text: str, field: str) -> str:
    """Return the code of a country where data is stored, in upper case; empty if the text is blank.

    Raises:
        ApiError: there is no such country.
    """
    region = text.strip().upper()
    if region and region not in STORAGE_REGIONS:
        raise ApiError(ErrorCode.INVALID_REGION, f"{field} must be one of {', '.join(STORAGE_REGIONS)}.")
    return region


def _read_url(text: str, field: str) -> str:
    url = text.strip()
    if url:
        check_url(url, field)
    return url


_NAME_LENGTH: Final = f"{MIN_NAME_CHARS} to {MAX_NAME_CHARS} characters"
_NAME_ERRORS: Final = (ErrorCode.INVALID_APP_NAME, ErrorCode.APP_NAME_LENGTH)
REGION_MEANING: Final = (
    "The code of a country, before the app is live; stored and shown: data stays where this service stores it."
)
CALLBACK_MEANING: Final = "An http or https URL; stored and shown."
CALLBACK_EXAMPLE: Final = "https://shop.example/callbacks"
AppName = Annotated[
    str,
    Field(
        "The app's name: 6 to 150 letters, digits, spaces, hyphens and underscores.",
        "SpareShop",
        _NAME_LENGTH,
        read=_read_name,
        errors=_NAME_ERRORS,
    ),
]
_TemplateMessaging = Annotated[bool | None, Field("Stored and shown.", "true")]
_DisableOptinUrl = Annotated[bool | None, Field("Stored and shown.", "false")]


class LinkedCredential(Struct, rename="camel"):
    """An app, and a credential for it."""

    api_key: Annotated[
        str,
        Field(
            "An API key of the account, or an app token of the app.",
            accepted="an API key of your account, or an app token",
        ),
    ]
    app_name: Annotated[
        str, Field("The name of one of the partner's apps.", "DemoShop", "the name of one of your apps")
    ]


class AppSearch(Struct, rename="camel"):
    """A page of the apps that have these parts in their names and numbers."""

    name: Annotated[str, Field("Part of the app's name, in upper or lower case.", "shop")] = ""
    phone: Annotated[str, Field("Part of the app's number.", "1555")] = ""
    page_no: Annotated[
        int, Field("The page number, from 1; 0 counts as absent.", "1", _PAGE_NUMBER, between=(0, 1_000_000))
    ] = 0
    page_size: Annotated[int, Field("Apps per page; 10 when absent.", "10", _PAGE_NUMBER, between=(0, 1_000_000))] = 0


class NewSandboxApp(Struct, rename="camel"):
    """A sandbox app to create."""

    name: AppName
    template_messaging: _TemplateMessaging = None
    disable_optin_pref_url: _DisableOptinUrl = None


class AppChanges(Struct, rename="camel"):
    """Changes of an app; an absent field stays as it is. Region and language are checked after all others."""

    name: Annotated[
        str,
        Field(
            "Another name for the app.", "SpareShop2", read=_read_name, errors=(ErrorCode.FIELD_MISSING, *_NAME_ERRORS)
        ),
    ] = ""
    template_messaging: _TemplateMessaging = None
    disable_optin_pref_url: _DisableOptinUrl = None
    storage_region: Annotated[str, Field(REGION_MEANING, "IN", strip=True)] = ""
    language_code: Annotated[str, Field("The code of the app's language; stored and shown.", "en", strip=True)] = ""
    enable_redis: Annotated[bool | None, Field("Stored; no other effect.", "false")] = None
    webhook_url: Annotated[
        str,
        Field(
            "An http or https URL; a subscription with the tag `webhookUrl` sends the callbacks of version 2 there.",
            CALLBACK_EXAMPLE,
            read=_read_url,
            errors=(ErrorCode.INVALID_URL,),
        ),
    ] = ""
    callback_url: Annotated[
        str, Field(CALLBACK_MEANING, CALLBACK_EXAMPLE, read=_read_url, errors=(ErrorCode.INVALID_URL,))
    ] = ""


class Deletion(Struct, rename="camel"):
    """The deletion of an app."""

    comment: Annotated[str, Field("The reason for the deletion; not stored.")] = ""
    delete_live_app: Annotated[bool, Field("true deletes a live app too; false when absent.", "false")] = False


class DeletionCall(AppCall):
    """A call whose rate is counted for all apps of the partner together."""

    @classmethod
    async def authorise(cls, services: Services, request: Request) -> Self:
        """Return the call."""
        app = await app_of_app_token(services, request)
        request.note_caller(app.partner_id, app.id)
        await request.spend(services.limiter, str(app.partner_id))
        return cls(services, request, app)


@operation("GET", f"{_ACCOUNT}/partnerApps", success(partnerAppsList=list[PartnerApp]))
async def list_partner_apps(call: PartnerCall) -> dict[str, Any]:
    """Return every app of the partner."""
    apps = await call.services.database.read(list_apps, call.partner_id)
    return {"status": "success", "partnerAppsList": [partner_app(app) for app in apps]}


@operation("POST", f"{_ACCOUNT}/appLink", success(partnerApps=LinkedApp), errors=(ErrorCode.INVALID_APP_DETAILS,))
async def link_app(call: PartnerCall, fields: LinkedCredential) -> dict[str, Any]:
    """Return one of the partner's apps by its name and a credential for it: all are linked already.

    Errors in this order: 401, 429, 400 a missing field, 400 no such app or another partner's credential.
    """
    directory, key_hash = call.services.directory, hash_secret(fields.api_key)
    app = await call.services.database.read(app_by_name, call.partner_id, fields.app_name)
    owner = await directory.partner_of_api_key(key_hash) or await directory.partner_of_app_token(key_hash)
    if app is None or owner != call.partner_id:
        raise ApiError(ErrorCode.INVALID_APP_DETAILS, "appName and apiKey must be of one of your apps.")
    return {"status": "success", "partnerApps": linked_app(app)}


@operation(
    "GET",
    "/partner/app/list",
    success(apps=list[ListedApp], partnerAppsList=list[ListedApp]),
    source="facts 2; ledger 1.2",
    wrong_credential=ErrorCode.UNAUTHORIZED_ACCESS,
)
async def search_apps(call: PartnerCall, query: AppSearch) -> dict[str, Any]:
    """Return a page of the partner's apps, filtered by parts of their names and numbers.

    The list is there twice: under its documented name, and under the one that older clients read.

    Source: ledger 1.2, C6; facts 2, `app/list`; decision 0024.
    """
    size = min(query.page_size or DEFAULT_APPS_PER_PAGE, MAX_APPS_PER_PAGE)
    apps = await call.services.database.read(
        partial(
            list_apps,
            partner_id=call.partner_id,
            name=query.name,
            phone=query.phone.lstrip("+ "),
            offset=((query.page_no or 1) - 1) * size,
            at_most=size,
        )
    )
    items = [listed_app(app) for app in apps]
    return {"status": "success", "apps": items, "partnerAppsList": items}


@operation(
    "POST",
    "/partner/app",
    success(appId=str),
    rate="create_app",
    errors=(ErrorCode.APP_EXISTS,),
    idempotency=IdempotencyMode.ONE_TRANSACTION,
)
async def create_app(call: PartnerCall, fields: NewSandboxApp) -> ApiResponse:
    """Create a sandbox app; the administrator gives it a number and makes it live.

    Errors in this order: 401, 429 eleventh in a minute, 400 an invalid name, 409 a duplicate name.
    """
    services, now_ms = call.services, call.services.clock.now_ms()
    app = sandbox_app(services.ids.new(), call.partner_id, fields.name, now_ms)
    app = _apply_changes(app, AppChanges(fields.name, fields.template_messaging, fields.disable_optin_pref_url))
    token = services.secret_box.app_token(app.id, app.token_serial)

    def make_response(is_new: bool) -> ApiResponse:
        if not is_new:
            raise _duplicate_name_error()
        return ApiResponse({"status": "success", "appId": app.id})

    return await commit(services, call.request, add_app, app, hash_secret(token), make_response=make_response)


@_operation_on_details(
    "GET", f"{APP}/details", success(app=Literal["true"], appDetails=AppDetails), source="facts 2; ledger 1.2"
)
async def show_app(call: AppCall) -> dict[str, Any]:
    """Return one app's details."""
    details = app_details(call.app, await partner_of(call.services, call.app))
    return {"status": "success", "app": "true", "appDetails": details}


@_operation_on_details(
    "GET", APP, success(app=AppDetails), source="public clients; decision 0025", credential=Credential.APP_TOKEN
)
async def show_app_by_id(call: AppCall) -> dict[str, Any]:
    """Return one app's details under `app`, as public clients read them."""
    return {"status": "success", "app": app_details(call.app, await partner_of(call.services, call.app))}


@operation(
    "GET",
    f"{APP}/pipeline",
    success(whatsapp=OnboardingState),
    source="ledger 1.11",
    credential=Credential.APP_TOKEN,
    wrong_credential=ErrorCode.WRONG_TYPE,
    other_app=ErrorCode.WRONG_TYPE,
)
async def show_progress_of_onboarding(call: AppCall) -> dict[str, Any]:
    """Return how far the app's onboarding is: clients poll it until `creationStage` says that it is done."""
    return {"status": "success", "whatsapp": onboarding_state(call.app)}


@operation(
    "PUT",
    APP,
    success(app=ChangedApp, appDetails=ChangedApp),
    source="facts 2; ledger 1.2",
    errors=(
        ErrorCode.FIELD_BROKEN,
        ErrorCode.TOO_MANY_SUBSCRIPTIONS,
        ErrorCode.APP_EXISTS,
        ErrorCode.NO_FIELDS,
        ErrorCode.INVALID_REGION,
        ErrorCode.REGION_AFTER_LIVE,
    ),
)
async def edit_app(call: AppCall, fields: AppChanges) -> dict[str, Any]:
    """Change an app's name and preferences; absent fields stay unchanged.

    `webhookUrl` also makes or changes a subscription, so that callbacks arrive there; `callbackUrl` is stored only.

    Errors in this order: 401, 429, 400 no field, 400 an invalid one, 400 the region of a live app, 400 too many
    subscriptions, 409 a duplicate name.
    """
    services, app = call.services, call.app
    if fields == AppChanges():
        raise ApiError(
            ErrorCode.NO_FIELDS,
            (
                "Name at least one of name, templateMessaging, disableOptinPrefUrl, storageRegion, languageCode, "
                "enableRedis."
            ),
        )
    fields.storage_region = read_region(fields.storage_region, "storageRegion")
    if fields.language_code and not _LANGUAGE.fullmatch(fields.language_code):
        raise invalid_field("languageCode", "a code of a language such as en or pt_BR")
    if app.live and fields.storage_region:
        raise ApiError(
            ErrorCode.REGION_AFTER_LIVE, "storageRegion can be set only before the app goes live; this app is live."
        )
    if fields.webhook_url:
        subscriptions = await stored_subscriptions(services, app)
        if len(subscriptions) >= MAX_SUBSCRIPTIONS_PER_APP and all(one.tag != WEBHOOK_TAG for one in subscriptions):
            raise too_many_error()
    changed = await update_app(services, app, partial(_apply_changes, changes=fields))
    if fields.webhook_url:  # only now: a name that is taken must not leave a subscription behind
        await _set_webhook_url(services, changed, fields.webhook_url)
    item = changed_app(changed, await partner_of(services, changed))
    return {"status": "success", "app": item, "appDetails": item}  # public clients read either


def webhook_subscription(app: App, url: str, now_ms: int) -> Subscription:
    """Return the subscription that sends all callbacks of version 2 of an app to a URL."""
    return Subscription(
        id="",
        partner_id=app.partner_id,
        app_id=app.id,
        tag=WEBHOOK_TAG,
        url=url,
        version=2,
        modes=read_modes([str(WEBHOOK_MODES)]),
        created_on_ms=now_ms,
        modified_on_ms=now_ms,
    )


async def _set_webhook_url(services: Services, app: App, url: str) -> None:
    """Send all callbacks of version 2 to a URL, by the subscription that earlier calls of this made, or by a new one.

    The URL gets no ping: the calls of public clients that set a callback so are made before their server listens.
    """
    now_ms = services.clock.now_ms()
    subscription = webhook_subscription(app, url, now_ms)
    directory = services.directory

    def change(stored: Subscription) -> Subscription:
        return replace(resume_subscription(stored), url=url, active=True, modified_on_ms=now_ms)

    for current in await stored_subscriptions(services, app):
        if current.tag == WEBHOOK_TAG:
            await services.database.write(change_subscription, current, change, directory.seal, directory.unseal)
            return
    try:
        await services.database.write(add_subscription, subscription, directory.seal, MAX_SUBSCRIPTIONS_PER_APP)
    except DuplicateTag:  # the same call, made twice at once, has stored it
        return
    except TooManySubscriptions as error:
        raise too_many_error() from error


@_operation_on_details(
    "DELETE", APP, Confirmation, source="ledger 1.2; facts 2", credential=Credential.APP_TOKEN, rate="delete_app"
)
async def remove_app(call: DeletionCall, query: Deletion) -> dict[str, Any]:
    """Delete a sandbox app with everything that belongs to it, or a live one with `deleteLiveApp`.

    Errors in this order: 401 wrong token, 403 not the partner's, 429, 400 an invalid flag, 403 a live app.

    Source: ledger 1.2, C8; facts 2, `DELETE /partner/app/{appId}`; their text is `Unauthorized Access`.
    """
    if not await call.services.database.write(partial(delete_app, app=call.app, also_live=query.delete_live_app)):
        raise ApiError(ErrorCode.FORBIDDEN_ACCESS, "A live app is deleted with deleteLiveApp=true only.")
    call.services.directory.invalidate()
    return {"status": "success", "message": "App deleted successfully"}


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


def _apply_changes(app: App, changes: AppChanges) -> App:
    requested: dict[str, Any] = {
        "template_messaging": changes.template_messaging,
        "disable_optin_pref_url": changes.disable_optin_pref_url,
        "storage_region": changes.storage_region or None,
        "language_code": changes.language_code or None,
        "enable_redis": changes.enable_redis,
        "callback_url": changes.webhook_url or changes.callback_url or None,
    }
    preferences = {name: value for name, value in requested.items() if value is not None}
    return replace(app, name=changes.name or app.name, preferences=replace(app.preferences, **preferences))


async def partner_of(services: Services, app: App) -> Partner:
    """Return the partner that an app belongs to."""
    partner = await services.database.read(partner_by_id, app.partner_id)
    if partner is None:
        raise LookupError(f"app {app.id} has no partner")
    return partner


def _duplicate_name_error() -> ApiError:
    return ApiError(ErrorCode.APP_EXISTS, "name is taken by another of your apps; choose another.")
