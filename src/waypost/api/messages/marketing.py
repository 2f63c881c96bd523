"""MM Lite: marketing templates that go through the operator's API for marketing messages.

An app sends that way once its business account has accepted the operator's terms and `mmlite/msg/enable` was called.
"""

from dataclasses import replace
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlencode

from msgspec import Struct

from waypost.api.apps.apps import update_app
from waypost.api.fields import Field, omit_empty
from waypost.api.messages.passthrough import (
    PASSTHROUGH_ERRORS,
    AcceptedPassthrough,
    PassthroughFields,
    accept_passthrough,
)
from waypost.api.operation import APP, AppCall, Operations, call_operator, graph_of
from waypost.api.requests import ApiResponse
from waypost.api.route import IdempotencyMode, Success, success
from waypost.domain.app import App, Hosting
from waypost.domain.direct_calls import GetBusinessStatus
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.wire.passthrough import ReadReceipt, read_passthrough

_ONBOARDED = "ONBOARDED"  # Source: ledger 1.9, `mmLiteStatus`


operation = Operations("ledger 1.7, `mmlite/msg/enable`; facts 11")
_send_marketing = partial(
    operation,
    "POST",
    returns=AcceptedPassthrough,
    at_operator=False,
    body=PassthroughFields,
    errors=(*PASSTHROUGH_ERRORS, ErrorCode.MM_LITE_OFF),
    idempotency=IdempotencyMode.ONE_TRANSACTION,
)


class TermsLanguage(Struct):
    """The language of the terms."""

    lang: Annotated[str, Field("The language of the operator's page.", "pt_BR")] = ""


@_send_marketing(path=f"{APP}/v3/mmlite/message", source="facts 9.3, MM Lite")
@_send_marketing(path=f"{APP}/onboarding/marketing/msg", source="ledger 1.7, `onboarding/marketing/msg`")
async def send_marketing_message(call: AppCall) -> ApiResponse:
    """Accept a marketing template in the operator's own format; 200 means that it is on disk.

    Errors in this order: 401 wrong token, 429 too many, 400 the app is not enabled, 400 as for `v3/message`, 400
    another type than template. The operator rejects a template of another category.

    Source: ledger 1.7, `onboarding/marketing/msg`; facts 9.3, MM Lite.
    """
    check_enabled(call.app)
    parsed = read_passthrough(call.request.members())
    if isinstance(parsed, ReadReceipt) or parsed.content.type != "template":
        raise invalid_field("type", "template: marketing templates only")
    content = replace(parsed.content, is_marketing=True)
    return await accept_passthrough(call, replace(parsed, content=content))


@operation("POST", f"{APP}/mmlite/msg/enable", Success, rate="mmlite", errors=(ErrorCode.MM_LITE_OFF,))
async def enable_marketing_messages(call: AppCall) -> Success:
    """Send the app's marketing templates through the operator's API for them from now on.

    Errors in this order: 401 wrong token, 429 third in an hour, 400 no business account, 400 its owner has not accepted
    the operator's terms, 503 the operator does not respond.

    Source: ledger 1.7, `mmlite/msg/enable`; facts 11.
    """
    status = await call_operator(call.services, call.app, GetBusinessStatus(call.account))
    if status.marketing_messages != _ONBOARDED:
        raise ApiError(
            ErrorCode.MM_LITE_OFF,
            "The owner of the business account first accepts the operator's terms for marketing messages: "
            "GET /partner/app/{appId}/mmlite/link returns the page for it.",
        )

    def apply(stored: App) -> App:
        return replace(stored, preferences=replace(stored.preferences, marketing_messages=True))

    await update_app(call.services, call.app, apply)
    return Success()


@operation(
    "GET",
    f"{APP}/mmlite/link",
    success(link=str),
    source="ledger 1.7, `mmlite/link`",
    at_operator=False,
    errors=(ErrorCode.MM_LITE_NOT_LIVE, ErrorCode.APP_NOT_APPROVED),
)
async def show_marketing_link(call: AppCall, query: TermsLanguage) -> dict[str, Any]:
    """Return the link to the operator's page where the owner accepts the terms for marketing messages.

    Errors in this order: 401 wrong token, 429 too many, 400 a sandbox app or one of another hosting, 400 no business
    account.

    Source: ledger 1.7, `mmlite/link`.
    """
    if not call.app.live or call.app.hosting is not Hosting.CLOUD:
        raise ApiError(
            ErrorCode.MM_LITE_NOT_LIVE,
            "The app must be live; the administrator makes it live with `waypost app connect`.",
        )
    parameters = omit_empty({"asset_id": call.account, "locale": query.lang.strip()})
    _, graph = await graph_of(call.services, call.app)
    return {"link": f"{graph.marketing_terms}?{urlencode(parameters)}", "status": "success"}


def check_enabled(app: App) -> None:
    """Check that the app sends through the operator's API for marketing messages."""
    if not app.preferences.marketing_messages:
        raise ApiError(ErrorCode.MM_LITE_OFF, "POST /partner/app/{appId}/mmlite/msg/enable enables it.")
