"""Endpoints for passthrough messages in the operator's own format: flows, templates and every other type."""

from waypost.api.auth.authorisation import authorise_app
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.idempotency import record_message
from waypost.api.messages.send import build_message, trace_accepted
from waypost.api.messages.status import mark_read
from waypost.api.services import Services
from waypost.base.telemetry.tracing import tracer
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.callbacks.subscriptions import list_app_subscriptions
from waypost.wire.messages.passthrough import PassthroughSend, ReadReceipt, passthrough_response, read_passthrough

_BILLING = frozenset({"BILLING", "ALL"})


async def send_passthrough(services: Services, request: Request) -> ApiResponse:
    """Accept a message that is sent to the operator as it is; 200 means that it is on disk.

    A read receipt in the same format is sent to the operator at once. A strict service also requires a
    billing subscription, as the documentation does. Errors in this order: 401 wrong token, 429 too
    many, 400 unreadable body, product, recipient, type or object, 400 app without a number.

    Source: spec, "Flow passthrough message"; facts 9.3.
    """
    app = await authorise_app(services, request)
    parsed = read_passthrough(request.members())
    if isinstance(parsed, ReadReceipt):
        await mark_read(services, app, parsed)
        return ApiResponse({"success": True})
    return await accept_passthrough(services, request, app, parsed)


async def accept_passthrough(services: Services, request: Request, app: App, parsed: PassthroughSend) -> ApiResponse:
    """Store a message in the operator's format with its outbound job on disk, and return a response with its id.

    Raises:
        ApiError: the app has no number, or, if the service is strict, no billing subscription.
    """
    if not app.phone_number:
        raise ApiError(
            ErrorCode.INVALID_APP_DETAILS,
            "The app has no phone number yet; the administrator connects one with `waypost app connect`.",
        )
    if services.strict and not await _has_billing_subscription(services, app):
        raise ApiError(
            ErrorCode.CALLBACK_BILLING_OFF,
            "The app needs a subscription with the mode BILLING; POST /partner/app/{appId}/subscription creates it.",
        )
    message = build_message(services, request, app, parsed.destination, parsed.content)
    response = await record_message(services, request, message, ApiResponse(passthrough_response(message.id, parsed)))
    if tracer.is_enabled:
        trace_accepted(request, message)
    return response


async def _has_billing_subscription(services: Services, app: App) -> bool:
    subscriptions = await services.database.read(
        list_app_subscriptions, app.id, app.partner_id, services.directory.unseal
    )
    return any(subscription.active and _BILLING.intersection(subscription.modes) for subscription in subscriptions)
