"""The linking of apps with a partner: by a token of the app, and on a customer's request with the partner's token.

Source: ledger 1.11; decision 0126.
"""

from functools import partial
from typing import Annotated, Any, Final, Literal

from msgspec import Struct

from waypost.api.apps.apps import partner_of
from waypost.api.authorisation import Credential, is_token_of
from waypost.api.fields import Field
from waypost.api.operation import Operations, OwnPartnerCall, PartnerCall
from waypost.api.services import Services
from waypost.base.clock import DAY_MS
from waypost.base.encryption import TOKEN_PREFIX, hash_secret
from waypost.domain.app import App
from waypost.domain.app_links import (
    DEFAULT_LINKING_DAYS,
    MAX_LINKING_DAYS,
    AppLink,
    LinkAction,
    LinkStatus,
    PartnerLinkingToken,
    app_of_link,
)
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.store.accounts.partners import partner_by_id
from waypost.store.apps.app_links import (
    LinkIsDecided,
    LinkNameInUse,
    app_link_by_id,
    app_link_of,
    decide_link,
    get_or_replace_linking_token,
    list_app_links,
)
from waypost.store.apps.keys import revoke_app_key
from waypost.wire.app_links import LinkRequest, customer_id, link_request
from waypost.wire.apps import AppLinkedByToken, app_linked_by_linking_token, app_linked_by_token
from waypost.wire.responses import response, success
from waypost.wire.tokens import is_app_linking_token, partner_linking_token, read_app_claim

DEFAULT_LINKS_PER_PAGE: Final = 10
MAX_LINKS_PER_PAGE: Final = 100
_PAGE_NUMBER: Final = "a number from 0 to 1000000"

operation = Operations("ledger 1.11", Credential.PARTNER_TOKEN, at_operator=False)
_LINKS: Final = "/partner/{partner_id}/app-link"
_request_operation = partial(operation, wrong_credential=ErrorCode.NOT_FOR_THIS_APP)


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
        Field(
            "An app linking token, as the administrator makes it for the app of a customer, or a token of one of the "
            "partner's apps that expires, such as one of `POST A/token`.",
            is_required=True,
        ),
    ] = ""


class LinkingTokenRequest(Struct, rename="camel"):
    """The linking token of a partner."""

    regenerate: Annotated[
        bool, Field("True replaces the token, and the one before it is no longer valid.", "false")
    ] = False
    expiry_days: Annotated[
        int | None, Field("The lifetime of a new token in days; 30 when absent.", "30", between=(1, MAX_LINKING_DAYS))
    ] = None


class LinkFilter(Struct, rename="camel"):
    """A page of requests to link an app."""

    status: Annotated[
        Literal["", "PENDING", "APPROVED", "REJECTED", "EXPIRED"], Field("Only requests with this status.", "PENDING")
    ] = ""
    page_no: Annotated[
        int, Field("The page number, from 1; 0 counts as absent.", "1", _PAGE_NUMBER, between=(0, 1_000_000))
    ] = 0
    page_size: Annotated[
        int, Field("Requests per page, at most 100; 10 when absent.", "10", _PAGE_NUMBER, between=(0, 1_000_000))
    ] = 0


class LinkDecision(Struct):
    """A decision about a request to link an app."""

    id: Annotated[str, Field("The id of a pending request.", "01990000-0000-7000-8000-0000000000a1")] = ""
    action: Annotated[str, Field("APPROVE or REJECT.", "APPROVE", strip=True, is_required=True)] = ""


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
    f"{_LINKS}/app-token",
    success(linked=bool, appId=str, appName=str, customerId=str, partnerId=int, tokenStatus=str),
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.FORBIDDEN_PARTNER, ErrorCode.APP_EXISTS),
)
async def link_app_by_linking_token(call: OwnPartnerCall, fields: LinkingToken) -> dict[str, Any]:
    """Give the partner the app of an app linking token, as a sandbox app without a number.

    A token of one of the partner's own apps that expires (`POST A/token`) is accepted, too: it changes nothing but that
    the token is revoked, so that it works once.

    Errors in this order: 401, 429, 403 another partner's path, 400 no token, 400 no JWT, 400 it names no app, 400 not
    a valid token, 400 an unknown app, 400 the app has a partner, 409 the partner has an app of this name.
    """
    if not fields.token:
        raise ApiError(ErrorCode.FIELD_BROKEN, "token is required", field="token")
    services = call.services
    if not fields.token.startswith(TOKEN_PREFIX):
        return await _link_customers_app(call, fields.token)
    token_hash = hash_secret(fields.token)
    key = await services.directory.app_key(token_hash)
    app = None if key is None else await services.directory.app(key.app_id)
    if app is None or app.partner_id != call.partner_id or not await _use_token(services, app, token_hash):
        raise _invalid_token("error", "INVALID")
    return app_linked_by_linking_token(app, str(app.partner_id))


async def _link_customers_app(call: OwnPartnerCall, token: str) -> dict[str, Any]:
    """Give the app of an app linking token to the partner, and return the response."""
    services = call.services
    app_id = read_app_claim(token)
    if app_id is None:
        raise ApiError(ErrorCode.FIELD_BROKEN, "Invalid token format", field="token", accepted=_TOKENS)
    if not app_id:
        raise ApiError(ErrorCode.FIELD_BROKEN, "Invalid token: appId claim is missing", field="token", accepted=_TOKENS)
    if not is_app_linking_token(services.secret_box, token):
        raise _invalid_token("error", "INVALID")
    link = await services.database.read(app_link_of, app_id)
    if link is None:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"App details not found for appId: {app_id}", field="token")
    if link.status is LinkStatus.APPROVED:
        raise ApiError(ErrorCode.FIELD_BROKEN, "App is already linked to Partner", field="token")
    if link.status_at(services.clock.now_ms()) is not LinkStatus.PENDING:
        raise _invalid_token("success", link.status_at(services.clock.now_ms()).value)
    try:
        decided = await _decide(call, link, LinkAction.APPROVE)
    except LinkIsDecided as error:  # another request was faster
        raise ApiError(ErrorCode.FIELD_BROKEN, "App is already linked to Partner", field="token") from error
    return app_linked_by_linking_token(app_of_link(decided, call.partner_id, 0), customer_id(decided.customer))


_TOKENS: Final = "an app linking token, or a token of one of your apps, such as one of POST A/token"


def _invalid_token(status: str, token_status: str) -> ApiError:
    text = f"SS app link token is not valid (status={status}, tokenStatus={token_status})"
    return ApiError(ErrorCode.FIELD_BROKEN, text, field="token", accepted=_TOKENS)


@_request_operation(
    "POST",
    f"{_LINKS}/partner-link-token",
    response(partnerId=int, partnerLinkingToken=str, issuedAt=int, expiresAt=int),
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.FORBIDDEN_PARTNER),
)
async def get_partner_linking_token(call: OwnPartnerCall, fields: LinkingTokenRequest) -> dict[str, Any]:
    """Return the partner's linking token, by which a customer requests that the partner gets its app.

    It is the same until it expires or is replaced; a new one lives 30 days unless `expiryDays` is less.

    Errors in this order: 401, 429, 403 another partner's path, 400 an invalid field.
    """
    services, now_ms = call.services, call.services.clock.now_ms()
    token = PartnerLinkingToken(
        partner_id=call.partner_id,
        token_id=services.ids.new(),
        issued_on_ms=now_ms,
        expires_on_ms=now_ms + (fields.expiry_days or DEFAULT_LINKING_DAYS) * DAY_MS,
    )
    current = await services.database.write(
        partial(get_or_replace_linking_token, token=token, replaces=fields.regenerate)
    )
    return {
        "partnerId": current.partner_id,
        "partnerLinkingToken": partner_linking_token(services.secret_box, current),
        "issuedAt": current.issued_on_ms,
        "expiresAt": current.expires_on_ms,
    }


@_request_operation(
    "GET",
    f"{_LINKS}/details",
    response(items=list[LinkRequest], pageNo=int, pageSize=int, totalCount=int),
    rate="universal_tokens",
    errors=(ErrorCode.FORBIDDEN_PARTNER,),
)
async def list_link_requests(call: OwnPartnerCall, query: LinkFilter) -> dict[str, Any]:
    """Return a page of the requests to link an app to the partner, newest first.

    Errors in this order: 401, 429, 403 another partner's path, 400 an invalid parameter.
    """
    services, now_ms, page = call.services, call.services.clock.now_ms(), query.page_no or 1
    size = min(query.page_size or DEFAULT_LINKS_PER_PAGE, MAX_LINKS_PER_PAGE)
    links, count = await services.database.read(
        partial(
            list_app_links,
            partner_id=call.partner_id,
            status=LinkStatus(query.status) if query.status else None,
            now_ms=now_ms,
            offset=(page - 1) * size,
            at_most=size,
        )
    )
    items = [link_request(link, now_ms) for link in links]
    return {"items": items, "pageNo": page, "pageSize": size, "totalCount": count}


@_request_operation(
    "POST",
    f"{_LINKS}/status",
    LinkRequest,
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.FORBIDDEN_PARTNER, ErrorCode.APP_EXISTS),
)
async def decide_link_request(call: OwnPartnerCall, fields: LinkDecision) -> LinkRequest:
    """Approve a pending request, which gives the partner the app as a sandbox app without a number, or reject it.

    Errors in this order: 401, 429, 403 another partner's path, 400 no action, 400 no such request of the partner,
    400 decided or expired, 409 the partner has an app of this name.
    """
    if not fields.action:
        raise ApiError(ErrorCode.FIELD_BROKEN, "action is required", field="action", accepted="APPROVE or REJECT")
    action = next((each for each in LinkAction if each == fields.action), None)
    if action is None:
        raise invalid_field("action", "APPROVE or REJECT")
    link = await call.services.database.read(app_link_by_id, fields.id)
    if link is None or link.partner_id != call.partner_id:
        raise invalid_field("id", "the id of a request to link an app to you, as app-link/details lists them")
    try:
        decided = await _decide(call, link, action)
    except LinkIsDecided as error:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"The request is {error}, and no longer PENDING.", field="id") from error
    return link_request(decided, call.services.clock.now_ms())


async def _decide(call: OwnPartnerCall, link: AppLink, action: LinkAction) -> AppLink:
    """Decide a link as the partner of the call. Raises ApiError: it has an app of this name; and LinkIsDecided."""
    services, now_ms = call.services, call.services.clock.now_ms()
    app = app_of_link(link, call.partner_id, now_ms)
    partner = await services.database.read(partner_by_id, call.partner_id)
    try:
        decided = await services.database.write(
            partial(
                decide_link,
                link_id=link.id,
                partner_id=call.partner_id,
                action=action,
                app=app,
                token_hash=hash_secret(services.secret_box.app_token(app.id, app.token_serial)),
                decided_by=partner.email if partner is not None else "",
                now_ms=now_ms,
            )
        )
    except LinkNameInUse as error:
        text = f"You have an app with the name {error}: rename it first, or reject the request."
        raise ApiError(ErrorCode.APP_EXISTS, text) from error
    services.directory.invalidate()
    if decided is None:
        raise LinkIsDecided(LinkStatus.EXPIRED)  # deleted meanwhile
    return decided


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
