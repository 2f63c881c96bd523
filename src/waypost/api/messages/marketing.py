"""Endpoints of MM Lite: marketing templates that go through the operator's API for marketing messages.

An app sends that way once its business account has accepted the operator's terms and `mmlite/msg/enable` was called.
"""

from dataclasses import replace

from waypost.api.apps.apps import update_app
from waypost.api.auth.authorisation import authorise_app
from waypost.api.direct_calls import account_of, call_operator
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.messages.passthrough import accept_passthrough
from waypost.api.services import Services
from waypost.domain.app import App, Hosting
from waypost.domain.direct_calls.account import GetBusinessStatus
from waypost.domain.direct_calls.marketing import GetMarketingTerms
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.wire.messages.passthrough import ReadReceipt, read_passthrough

_ONBOARDED = "ONBOARDED"  # Source: ledger 1.9, `mmLiteStatus`


async def send_marketing_message(services: Services, request: Request) -> ApiResponse:
    """Accept a marketing template in the operator's own format; 200 means that it is on disk.

    Errors in this order: 401 wrong token, 429 too many, 400 the app is not enabled, 400 as for `v3/message`, 400
    another type than template. The operator rejects a template of another category.

    Source: ledger 1.7, `onboarding/marketing/msg`; facts 9.3, MM Lite.
    """
    app = await authorise_app(services, request)
    check_enabled(app)
    parsed = read_passthrough(request.members())
    if isinstance(parsed, ReadReceipt) or parsed.content.type != "template":
        raise invalid_field("type", "template: marketing templates only")
    content = replace(parsed.content, is_marketing=True)
    return await accept_passthrough(services, request, app, replace(parsed, content=content))


async def enable_marketing_messages(services: Services, request: Request) -> ApiResponse:
    """Send the app's marketing templates through the operator's API for them from now on.

    Errors in this order: 401 wrong token, 429 third in an hour, 400 no business account, 400 its owner has not accepted
    the operator's terms, 503 the operator does not respond.

    Source: ledger 1.7, `mmlite/msg/enable`; facts 11.
    """
    app = await authorise_app(services, request)
    status = await call_operator(services, app, GetBusinessStatus(account_of(app)))
    if status.marketing_messages != _ONBOARDED:
        raise ApiError(
            ErrorCode.MM_LITE_OFF,
            "The owner of the business account first accepts the operator's terms for marketing messages: "
            "GET /partner/app/{appId}/mmlite/link returns the page for it.",
        )

    def apply(stored: App) -> App:
        return replace(stored, preferences=replace(stored.preferences, marketing_messages=True))

    await update_app(services, app, apply)
    return ApiResponse({"status": "success"})


async def show_marketing_link(services: Services, request: Request) -> ApiResponse:
    """Return the link to the operator's page where the owner accepts the terms for marketing messages.

    Errors in this order: 401 wrong token, 429 too many, 400 a sandbox app or one of another hosting, 400 no business
    account.

    Source: ledger 1.7, `mmlite/link`.
    """
    app = await authorise_app(services, request)
    if not app.live or app.hosting is not Hosting.CLOUD:
        raise ApiError(
            ErrorCode.MM_LITE_NOT_LIVE,
            "The app must be live; the administrator makes it live with `waypost app connect`.",
        )
    terms = GetMarketingTerms(account_of(app), (request.query("lang") or "").strip())
    return ApiResponse({"link": await call_operator(services, app, terms), "status": "success"})


def check_enabled(app: App) -> None:
    """Check that the app sends through the operator's API for marketing messages."""
    if not app.preferences.marketing_messages:
        raise ApiError(ErrorCode.MM_LITE_OFF, "POST /partner/app/{appId}/mmlite/msg/enable enables it.")
