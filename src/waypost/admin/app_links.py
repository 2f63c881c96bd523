"""The admin API's operations on apps of customers that wait for a partner: offer one, list, decide in its place."""

from functools import partial
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from waypost.admin.operation import AdminOperations
from waypost.admin.provisioning import AdminContext, partner_of
from waypost.base.encryption import hash_secret
from waypost.domain.app_links import LINK_LIFE_MS, AppLink, LinkAction, app_of_link
from waypost.domain.errors import ApiError, ErrorCode, invalid_field, resource_not_found
from waypost.store.accounts.audit_log import ADMIN_ACTOR
from waypost.store.apps import app_links as stored
from waypost.wire.app_links import LinkRequest, link_request
from waypost.wire.responses import response
from waypost.wire.tokens import app_linking_token, read_partner_linking_token

MAX_NAME_CHARS: Final = 150
MAX_CUSTOMER_CHARS: Final = 254
MAX_LISTED_LINKS: Final = 1000

operation = AdminOperations()


class NewAppLink(msgspec.Struct, forbid_unknown_fields=True):
    """The app of a customer that a partner is to get."""

    name: Annotated[str, Meta(description="The app's name: 1 to 150 characters.")]
    customer: Annotated[str, Meta(description="An e-mail address by which the partner knows the customer.")]
    partner_linking_token: Annotated[
        str,
        Meta(
            description=(
                "The linking token that a partner gave to the customer: the partner gets a request. "
                "[default: none; an app linking token is shown, which the customer gives to a partner]"
            )
        ),
    ] = ""


class AdminLinkDecision(msgspec.Struct, forbid_unknown_fields=True):
    """A decision about a request."""

    action: Annotated[LinkAction, Meta(description="APPROVE or REJECT.")]


@operation("GET", "/admin/app-links", response(app_links=list[LinkRequest]))
async def list_links(context: AdminContext) -> dict[str, Any]:
    """Return the newest apps of customers that were offered or requested; partner 0: none yet."""
    now_ms = context.clock.now_ms()
    links, _ = await context.database.read(
        partial(stored.list_app_links, partner_id=None, status=None, now_ms=now_ms, at_most=MAX_LISTED_LINKS)
    )
    return {"app_links": [link_request(link, now_ms) for link in links]}


@operation("POST", "/admin/app-links", response(id=str, app_id=str, partner_id=int, app_linking_token=str))
async def offer_app(context: AdminContext, new_link: NewAppLink) -> dict[str, Any]:
    """Offer the app of a customer: to the partner of a linking token, or to who uses the app linking token.

    The request, or the token, is good for 30 days. The partner gets a sandbox app without a number.

    Raises:
        ApiError: a field is invalid, or the linking token is not one that is valid now.
    """
    name, customer, now_ms = new_link.name.strip(), new_link.customer.strip(), context.clock.now_ms()
    if not 1 <= len(name) <= MAX_NAME_CHARS:
        raise invalid_field("name", f"1 to {MAX_NAME_CHARS} characters")
    if not 1 <= len(customer) <= MAX_CUSTOMER_CHARS:
        raise invalid_field("customer", f"1 to {MAX_CUSTOMER_CHARS} characters")
    partner_id = await _partner_of_token(context, new_link.partner_linking_token, now_ms)
    link = AppLink(
        id=context.ids.new(),
        app_id=context.ids.new(),
        app_name=name,
        customer=customer,
        partner_id=partner_id,
        requested_on_ms=now_ms,
        expires_on_ms=now_ms + LINK_LIFE_MS,
    )
    await context.database.write(stored.add_app_link, link)
    token = app_linking_token(context.secret_box, link) if partner_id is None else ""
    return {"id": link.id, "app_id": link.app_id, "partner_id": partner_id or 0, "app_linking_token": token}


@operation("POST", "/admin/app-links/{link_id}/decide")
async def decide_link(context: AdminContext, decision: AdminLinkDecision, link_id: str) -> LinkRequest:
    """Approve or reject a request in place of its partner.

    Raises:
        ApiError: there is no such request, it was decided or has expired, or the partner has an app of this name.
    """
    link, now_ms = await context.database.read(stored.app_link_by_id, link_id), context.clock.now_ms()
    if link is None or link.partner_id is None:
        raise resource_not_found("request", "link_id", link_id)
    app = app_of_link(link, link.partner_id, now_ms)
    try:
        decided = await context.database.write(
            partial(
                stored.decide_link,
                link_id=link.id,
                partner_id=link.partner_id,
                action=decision.action,
                app=app,
                token_hash=hash_secret(context.secret_box.app_token(app.id, app.token_serial)),
                decided_by=ADMIN_ACTOR,
                now_ms=now_ms,
            )
        )
    except stored.LinkIsDecided as error:
        text = f"The request is {error}, and no longer PENDING."
        raise ApiError(ErrorCode.ALREADY_EXISTS, text, field="link_id") from error
    except stored.LinkNameInUse as error:
        raise ApiError(
            ErrorCode.ALREADY_EXISTS, f"The partner has an app with the name {error}.", field="name"
        ) from error
    context.directory.invalidate()
    if decided is None:
        raise resource_not_found("request", "link_id", link_id)
    return link_request(decided, now_ms)


async def _partner_of_token(context: AdminContext, token: str, now_ms: int) -> int | None:
    """Return the partner of a linking token; None if there is no token. Raises ApiError: it is not valid."""
    if not token:
        return None
    signed = read_partner_linking_token(context.secret_box, token)
    current = None if signed is None else await context.database.read(stored.linking_token, signed[0])
    if signed is None or current is None or (current.token_id != signed[1]) or current.expires_on_ms <= now_ms:
        raise invalid_field("partner_linking_token", "a partner's current linking token, which has not expired")
    return (await partner_of(context, current.partner_id)).id
