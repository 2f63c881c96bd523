"""Linking of apps: the link to the page of an app's onboarding, and linking by a token of the app."""

from functools import partial
from typing import Annotated, Any, Literal

from msgspec import Struct

from waypost.api.apps.apps import PartnerApp, partner_of
from waypost.api.apps.settings import set_preferences
from waypost.api.authorisation import Credential, is_token_of
from waypost.api.fields import Field, keep_text
from waypost.api.operation import APP, AppCall, Operations, OwnPartnerCall, PartnerCall
from waypost.api.route import success
from waypost.api.services import Services
from waypost.base.encryption import hash_secret
from waypost.domain.app import ONBOARDING_LINK_LIFE_MS, App
from waypost.domain.coercion import read_flag
from waypost.domain.errors import ApiError, ErrorCode, missing_parameter
from waypost.store.apps.keys import revoke_app_key
from waypost.wire.apps import app_linked_by_linking_token, app_linked_by_token

ONBOARDING_PATH = "/onboarding"


operation = Operations("ledger 1.3; facts 2", Credential.PARTNER_TOKEN, at_operator=False)


class OnboardingLink(Struct):
    """The link to a page; the flag is read last."""

    regenerate: Annotated[
        bool,
        Field(
            "True replaces the link, also one that has expired.",
            "false",
            read=keep_text,
            errors=(ErrorCode.WRONG_TYPE,),
        ),
    ] = False
    user: Annotated[str, Field("A name of whom the link is for.", "Ada", is_required=True)] = ""
    lang: Annotated[str, Field("The language of the page; it is in English.", "en")] = ""


class LinkingCredential(Struct, rename="camel"):
    """An app, and a token of it."""

    app_id: Annotated[
        str, Field("The id of one of your apps.", "01990000-0000-7000-8000-0000000000a1", "the id of one of your apps")
    ]
    token: Annotated[
        str,
        Field(
            "A token of the app: one of `POST …/token`, which then works no more, or the app token.",
            "sk_0123456789abcdef",
            "a token of the app, such as one of POST A/token",
        ),
    ]


class LinkingToken(Struct):
    """A token that names its app."""

    token: Annotated[
        str,
        Field("A token of one of the partner's apps that expires, such as one of `POST A/token`.", is_required=True),
    ] = ""


class AppLinkedByToken(PartnerApp):
    """An app that is linked by a token of it."""

    email: str
    preferred_timezone: str
    solution_id: str
    storage_region: str
    currency: str
    customer_org_id: str
    source: Literal["SS"]
    name_space: str


@operation(
    "GET",
    f"{APP}/onboarding/embed/link",
    success(link=str),
    errors=(ErrorCode.QUERY_EMPTY, ErrorCode.FIELD_MISSING, ErrorCode.LINK_EXPIRED),
)
async def onboarding_link(call: AppCall, query: OnboardingLink) -> dict[str, Any]:
    """Return the link to the app's onboarding page, which is valid for 5 days; `regenerate` replaces it.

    The page shows anyone with the link whether the app has a number and is live. `lang` is accepted and
    changes nothing: the page is in English.

    Errors in this order: 401, 429, 400 no query, 400 no user, 400 the link has expired.

    Source: ledger 1.3; facts 2, `onboarding/embed/link`.
    """
    services, _, app = call
    if not (query.regenerate or query.user or query.lang):
        raise ApiError(ErrorCode.QUERY_EMPTY, "Send at least one of regenerate, user and lang in the query.")
    if not query.user:
        raise missing_parameter("user", "a name of whom the link is for")
    now_ms = services.clock.now_ms()
    created_on_ms = app.preferences.onboarding_link_ms
    if not created_on_ms or read_flag(query.regenerate, "regenerate"):
        created_on_ms = now_ms
        await set_preferences(services, app, onboarding_link_ms=created_on_ms)
    elif now_ms >= created_on_ms + ONBOARDING_LINK_LIFE_MS:
        raise ApiError(ErrorCode.LINK_EXPIRED, "The link is older than 5 days: regenerate=true replaces it.")
    code = services.secret_box.onboarding_codes(app.id, created_on_ms)[0]
    return {"status": "success", "link": f"{services.public_url}{ONBOARDING_PATH}/{code}"}


@operation(
    "POST",
    "/partner/account/api/auth/appLink",
    success(partnerApps=AppLinkedByToken),
    source="ledger 1.2, `auth/appLink`",
    errors=(ErrorCode.RESOURCE_NOT_FOUND, ErrorCode.INVALID_APP_DETAILS),
)
async def link_app_by_token(call: PartnerCall, fields: LinkingCredential) -> dict[str, Any]:
    """Return one of the partner's apps by its id and a token of it: all are linked already.

    A token that expires (`POST A/token`) is revoked, so that it works once; the app token stays.

    Errors in this order: 401, 429, 400 a missing field, 404 no such app of the partner, 400 not a token of the app.

    Source: ledger 1.2, `auth/appLink`.
    """
    services = call.services
    app = await services.directory.app(fields.app_id)
    if app is None or app.partner_id != call.partner_id:
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, "appId must be the id of one of your apps.", field="appId")
    if not await _use_token(services, app, hash_secret(fields.token)):
        raise ApiError(ErrorCode.INVALID_APP_DETAILS, "token must be a valid token of the app.", field="token")
    account = await services.directory.business_account(app.business_account_id) if app.business_account_id else None
    linked = app_linked_by_token(app, await partner_of(services, app), "" if account is None else account.namespace)
    return {"status": "success", "partnerApps": linked}


@operation(
    "POST",
    "/partner/{partner_id}/app-link/app-token",
    success(linked=bool, appId=str, appName=str, customerId=str, partnerId=int, tokenStatus=str),
    source="ledger 1.11",
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.FORBIDDEN_ACCESS),
)
async def link_app_by_linking_token(call: OwnPartnerCall, fields: LinkingToken) -> dict[str, Any]:
    """Return the app of a token that expires (`POST A/token`), and revoke the token, so that it works once.

    All apps of a partner are linked already, so that nothing else changes.

    Errors in this order: 401, 429, 403 another partner's path, 400 no token, 400 no token of one of the partner's apps.

    Source: ledger 1.11.
    """
    if not fields.token:
        raise ApiError(ErrorCode.FIELD_BROKEN, "token is required", field="token")
    services, token_hash = call.services, hash_secret(fields.token)
    key = await services.directory.app_key(token_hash)
    app = None if key is None else await services.directory.app(key.app_id)
    if app is None or app.partner_id != call.partner_id or not await _use_token(services, app, token_hash):
        raise ApiError(
            ErrorCode.FIELD_BROKEN,
            "SS app link token is not valid (status=error, tokenStatus=INVALID)",
            field="token",
            accepted="a token of one of your apps, such as one of POST A/token",
        )
    return app_linked_by_linking_token(app)


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
