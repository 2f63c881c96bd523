"""Payments of orders, and the payment configurations of an app's business account: the operator stores both."""

from typing import Annotated, Any, Final
from urllib.parse import quote

from msgspec import Struct

from waypost.api.authorisation import Credential
from waypost.api.fields import Field, omit_empty
from waypost.api.operation import APP, AppCall, Operations
from waypost.api.route import IdempotencyMode
from waypost.domain.errors import ApiError, ErrorCode
from waypost.wire.responses import passed_on

Name = Annotated[
    str,
    Field(
        "The name of the payment configuration, unique within the business account.",
        "shop-gateway",
        "the name of a payment configuration",
    ),
]

operation = Operations("ledger 1.10")
_CONFIGURATIONS: Final = passed_on(data=list[dict[str, Any]])
_LINK: Final = passed_on(oauth_url=str, expiration=int)
"""The link that connects a configuration to its gateway, and when it expires."""


class PaymentAmount(Struct):
    """An amount of money: the value divided by the offset, in the currency."""

    currency: str
    value: int
    offset: int


class Refund(Struct):
    """A refund; the operator reports a missing member in the documented words."""

    reference_id: Annotated[
        str, Field("The reference of the order; without it the operator returns an error.", "order-7")
    ] = ""
    speed: Annotated[str, Field("How fast the refund is: instant or normal.", "normal")] = ""
    payment_config_id: Annotated[
        str, Field("The name of the order's payment configuration; required by the operator.", "shop-gateway")
    ] = ""
    amount: Annotated[
        PaymentAmount | None,
        Field(
            "The amount to refund, as a JSON object; required by the operator.",
            '{"currency":"INR","value":12000,"offset":100}',
            "an object with currency, value and offset",
        ),
    ] = None


class NewConfiguration(Struct):
    """A payment configuration to create."""

    configuration_name: Name
    provider_name: Annotated[str, Field("The payment gateway.", "razorpay", "the name of a payment gateway")]
    purpose_code: Annotated[str, Field("The purpose of the payments, as a code.", "00")] = ""
    merchant_category_code: Annotated[str, Field("The category of the merchant, as a code.", "5411")] = ""
    redirect_url: Annotated[
        str, Field("Where the gateway sends the merchant after the connection.", "https://shop.example/connected")
    ] = ""
    merchant_vpa: Annotated[str, Field("The merchant's payment address.", "shop@upi")] = ""


class NewLink(Struct):
    """A request for a new link of a configuration."""

    configuration_name: Name
    redirect_url: Annotated[
        str,
        Field(
            "Where the gateway sends the merchant after the connection.",
            "https://shop.example/connected",
            "the URL to which the gateway sends the merchant back",
        ),
    ]


class ConfigurationName(Struct):
    """A configuration to remove."""

    configuration_name: Name


@operation(
    "GET",
    f"{APP}/payments/{{payment_configuration}}/{{reference_id}}",
    passed_on(payments=list[dict[str, Any]]),
    credential=Credential.PARTNER_TOKEN,
)
async def show_payment(call: AppCall) -> dict[str, Any]:
    """Return the payment of an order, by its payment configuration and its reference."""
    names = (quote(call.request.path[name], safe="") for name in ("payment_configuration", "reference_id"))
    return await call.graph("GET", f"{call.number}/payments/{'/'.join(names)}")


@operation(
    "POST",
    f"{APP}/payments/refund",
    passed_on(id=str, status=str),
    credential=Credential.PARTNER_TOKEN,
    idempotency=IdempotencyMode.MARKED_FIRST,
)
async def refund_payment(call: AppCall, fields: Refund) -> dict[str, Any]:
    """Refund a payment, whole or in part; a callback reports the result.

    Under a key, 409 if the same request was begun before: the payment may have been refunded.
    """
    if call.was_begun_before:
        raise ApiError(ErrorCode.KEY_IN_USE, "The payment may have been refunded: look it up before you try again.")
    return await call.graph("POST", f"{call.number}/payments_refund", omit_empty(fields))


@operation("GET", f"{APP}/payment/configurations", _CONFIGURATIONS)
async def list_payment_configurations(call: AppCall) -> dict[str, Any]:
    """Return the payment configurations of the app's business account."""
    return await call.graph("GET", f"{call.account}/payment_configurations")


@operation("GET", f"{APP}/payment/configurations/{{configuration_name}}", _CONFIGURATIONS)
async def show_payment_configuration(call: AppCall) -> dict[str, Any]:
    """Return one payment configuration."""
    name = quote(call.request.path["configuration_name"], safe="")
    return await call.graph("GET", f"{call.account}/payment_configuration/{name}")


@operation("POST", f"{APP}/payment/configuration", _LINK, idempotency=IdempotencyMode.MARKED_FIRST)
async def create_payment_configuration(call: AppCall, fields: NewConfiguration) -> dict[str, Any]:
    """Create a payment configuration, and return the link that connects it to its gateway."""
    return await call.graph("POST", f"{call.account}/payment_configuration", omit_empty(fields))


@operation("POST", f"{APP}/payment/configuration/regenerate", _LINK)
async def renew_payment_link(call: AppCall, fields: NewLink) -> dict[str, Any]:
    """Return a new link that connects a payment configuration to its gateway."""
    return await call.graph("POST", f"{call.account}/generate_payment_configuration_oauth_link", omit_empty(fields))


@operation("POST", f"{APP}/payment/configuration/remove", passed_on(success=bool))
async def remove_payment_configuration(call: AppCall, fields: ConfigurationName) -> dict[str, Any]:
    """Remove a payment configuration."""
    return await call.graph("DELETE", f"{call.account}/payment_configuration", omit_empty(fields))
