"""Endpoints for payments of orders, and for the payment configurations of an app's business account.

The operator stores both, and its responses are passed on.
"""

from typing import Any, Final

from waypost.api.auth.authorisation import authorise_app
from waypost.api.direct_calls import account_of, call_operator, number_of
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.direct_calls.payments import (
    CreatePaymentConfiguration,
    GetPayment,
    GetPaymentConfiguration,
    ListPaymentConfigurations,
    RefundPayment,
    RemovePaymentConfiguration,
    RenewPaymentLink,
)
from waypost.domain.errors import ApiError, ErrorCode
from waypost.wire.payments import CONFIGURATION_FIELDS, read_refund

_NAME: Final = "the name of a payment configuration"
_URL: Final = "the URL to which the gateway sends the merchant back"


async def show_payment(services: Services, request: Request) -> ApiResponse:
    """Return the payment of an order, by its payment configuration and its reference. Source: ledger 1.10."""
    app = await authorise_app(services, request)
    call = GetPayment(number_of(app), request.path["payment_configuration"], request.path["reference_id"])
    return ApiResponse((await call_operator(services, app, call)).raw)


async def refund_payment(services: Services, request: Request) -> ApiResponse:
    """Refund a payment, whole or in part; a callback reports the result.

    Errors in this order: 401, 429, 400 an amount that cannot be read, 409 the same request was begun before under its
    key, 400 the operator's error, also for a missing parameter, 503.

    Source: ledger 1.10.
    """
    app = await authorise_app(services, request)
    members = read_refund(request.form_or_json())
    if request.idempotency is not None and request.idempotency.begun_before:
        raise ApiError(ErrorCode.KEY_IN_USE, "The payment may have been refunded: look it up before you try again.")
    return ApiResponse((await call_operator(services, app, RefundPayment(number_of(app), members))).raw)


async def list_payment_configurations(services: Services, request: Request) -> ApiResponse:
    """Return the payment configurations of the app's business account. Source: ledger 1.10."""
    app = await authorise_app(services, request)
    return ApiResponse((await call_operator(services, app, ListPaymentConfigurations(account_of(app)))).raw)


async def show_payment_configuration(services: Services, request: Request) -> ApiResponse:
    """Return one payment configuration. Source: ledger 1.10."""
    app = await authorise_app(services, request)
    call = GetPaymentConfiguration(account_of(app), request.path["configuration_name"])
    return ApiResponse((await call_operator(services, app, call)).raw)


async def create_payment_configuration(services: Services, request: Request) -> ApiResponse:
    """Create a payment configuration, and return the link that connects it to its gateway. Source: ledger 1.10."""
    app = await authorise_app(services, request)
    form = request.form_or_json()
    members: dict[str, str] = {
        "configuration_name": form.required("configuration_name", _NAME),
        "provider_name": form.required("provider_name", "the name of a payment gateway"),
    }
    members |= {name: text for name in CONFIGURATION_FIELDS if (text := form.text(name))}
    response = await call_operator(services, app, CreatePaymentConfiguration(account_of(app), members))
    return ApiResponse(response.raw)


async def renew_payment_link(services: Services, request: Request) -> ApiResponse:
    """Return a new link that connects a payment configuration to its gateway. Source: ledger 1.10."""
    app = await authorise_app(services, request)
    form = request.form_or_json()
    name, redirect_url = form.required("configuration_name", _NAME), form.required("redirect_url", _URL)
    call = RenewPaymentLink(account_of(app), name, redirect_url)
    return ApiResponse((await call_operator(services, app, call)).raw)


async def remove_payment_configuration(services: Services, request: Request) -> ApiResponse:
    """Remove a payment configuration. Source: ledger 1.10."""
    app = await authorise_app(services, request)
    name = request.form_or_json().required("configuration_name", _NAME)
    response: dict[str, Any] = (
        await call_operator(services, app, RemovePaymentConfiguration(account_of(app), name))
    ).raw
    return ApiResponse(response)
