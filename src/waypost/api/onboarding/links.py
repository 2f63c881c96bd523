"""Endpoints that link apps: the link to the page of an app's onboarding, and linking by a token of the app."""

from functools import partial

from waypost.api.apps.apps import partner_of
from waypost.api.apps.settings import set_preferences
from waypost.api.auth.authorisation import authorise_app, authorise_partner, is_token_of
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.base.encryption import hash_secret
from waypost.domain.app import ONBOARDING_LINK_LIFE_MS, App
from waypost.domain.coercion import read_flag
from waypost.domain.errors import ApiError, ErrorCode, missing_parameter
from waypost.store.apps.keys import revoke_app_key
from waypost.wire.apps import app_linked_by_linking_token, app_linked_by_token

ONBOARDING_PATH = "/onboarding"


async def onboarding_link(services: Services, request: Request) -> ApiResponse:
    """Return the link to the app's onboarding page, which is valid for 5 days; `regenerate` replaces it.

    The page shows anyone with the link whether the app has a number and is live. `lang` is accepted and
    changes nothing: the page is in English.

    Errors in this order: 401, 429, 400 no query, 400 no user, 400 the link has expired.

    Source: ledger 1.3; facts 2, `onboarding/embed/link`.
    """
    app = await authorise_app(services, request)
    if not any(request.query(name) for name in ("regenerate", "user", "lang")):
        raise ApiError(ErrorCode.QUERY_EMPTY, "Send at least one of regenerate, user and lang in the query.")
    if not request.query("user"):
        raise missing_parameter("user", "a name of whom the link is for")
    now_ms = services.clock.now_ms()
    created_on_ms = app.preferences.onboarding_link_ms
    if not created_on_ms or read_flag(request.query("regenerate") or "", "regenerate"):
        created_on_ms = now_ms
        await set_preferences(services, app, onboarding_link_ms=created_on_ms)
    elif now_ms >= created_on_ms + ONBOARDING_LINK_LIFE_MS:
        raise ApiError(ErrorCode.LINK_EXPIRED, "The link is older than 5 days: regenerate=true replaces it.")
    code = services.secret_box.onboarding_codes(app.id, created_on_ms)[0]
    return ApiResponse({"status": "success", "link": f"{services.public_url}{ONBOARDING_PATH}/{code}"})


async def link_app_by_token(services: Services, request: Request) -> ApiResponse:
    """Return one of the partner's apps by its id and a token of it: all are linked already.

    A token that expires (`POST A/token`) is revoked, so that it works once; the app token stays.

    Errors in this order: 401, 429, 400 a missing field, 404 no such app of the partner, 400 not a token of the app.

    Source: ledger 1.2, `auth/appLink`.
    """
    partner_id = await authorise_partner(services, request)
    form = request.form_or_json()
    app_id = form.required("appId", "the id of one of your apps")
    token = form.required("token", "a token of the app, such as one of POST A/token")
    app = await services.directory.app(app_id)
    if app is None or app.partner_id != partner_id:
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, "appId must be the id of one of your apps.", field="appId")
    if not await _use_token(services, app, hash_secret(token)):
        raise ApiError(ErrorCode.INVALID_APP_DETAILS, "token must be a valid token of the app.", field="token")
    account = await services.directory.business_account(app.business_account_id) if app.business_account_id else None
    linked = app_linked_by_token(app, await partner_of(services, app), "" if account is None else account.namespace)
    return ApiResponse({"status": "success", "partnerApps": linked})


async def link_app_by_linking_token(services: Services, request: Request) -> ApiResponse:
    """Return the app of a token that expires (`POST A/token`), and revoke the token, so that it works once.

    All apps of a partner are linked already, so that nothing else changes.

    Errors in this order: 401, 429, 403 another partner's path, 400 no token, 400 no token of one of the partner's apps.

    Source: ledger 1.11.
    """
    partner_id = await authorise_partner(services, request)
    if request.path["partner_id"] != str(partner_id):
        raise ApiError(ErrorCode.FORBIDDEN_ACCESS, "The path must name the partner of the credential.")
    token = request.form_or_json().text("token")
    if not token:
        raise ApiError(ErrorCode.FIELD_BROKEN, "token is required", field="token")
    token_hash = hash_secret(token)
    key = await services.directory.app_key(token_hash)
    app = None if key is None else await services.directory.app(key.app_id)
    if app is None or app.partner_id != partner_id or not await _use_token(services, app, token_hash):
        raise ApiError(
            ErrorCode.FIELD_BROKEN,
            "SS app link token is not valid (status=error, tokenStatus=INVALID)",
            field="token",
            accepted="a token of one of your apps, such as one of POST A/token",
        )
    return ApiResponse(app_linked_by_linking_token(app))


async def _use_token(services: Services, app: App, token_hash: str) -> bool:
    """Return whether the token is one of the app; revoke it if it is one that expires."""
    if is_token_of(services, app, token_hash):
        return True
    key = await services.directory.app_key(token_hash)
    if key is None or key.app_id != app.id or key.expires_on_ms is None:
        return False
    now_ms = services.clock.now_ms()
    revoked = await services.database.write(
        partial(revoke_app_key, app_id=app.id, key_id=key.id, now_ms=now_ms, minted=True)
    )
    services.directory.invalidate()
    return revoked is not None and revoked.revoked_on_ms is None  # another request may have been faster
