"""Graph API calls that set up a number: registration, verification codes, PIN, callback URI."""

from typing import Any, Final

from waypost.base.json_values import object_or_none, text_or_none
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.errors import GraphApiError, bad_parameter
from waypost.simulator.requests import GRAPH_SUCCESS, Call
from waypost.simulator.services import SimulatorServices
from waypost.simulator.webhooks.webhooks import EndpointVerificationFailed

_METHODS: Final = ("SMS", "VOICE")


async def register_number(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Register a number with its PIN. Source: the operator's page "Registration"."""
    if call.fields.get("messaging_product") != "whatsapp":
        raise bad_parameter("The parameter messaging_product is required.")
    await services.registrations.register(number, call.fields.get("pin"))
    return GRAPH_SUCCESS


async def deregister_number(services: SimulatorServices, _call: Call, number: Number) -> dict[str, Any]:
    """Deregister a number. Source: the operator's page "Registration"."""
    await services.registrations.deregister(number)
    return GRAPH_SUCCESS


async def request_code(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Send a code to the number. Source: the operator's page "Phone numbers"."""
    if str(call.fields.get("code_method", "")).upper() not in _METHODS:
        raise bad_parameter(f"Param code_method must be one of {{{', '.join(_METHODS)}}}.")
    if not text_or_none(call.fields.get("language")):
        raise bad_parameter("The parameter language is required.")
    await services.registrations.send_code(number)
    return GRAPH_SUCCESS


async def verify_code(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Verify the number by the code that was sent. Source: the operator's page "Phone numbers"."""
    await services.registrations.verify_code(number, call.fields.get("code"))
    return GRAPH_SUCCESS


async def change_number(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Set the number's PIN, or a callback URI of its own; an empty URI removes it.

    Source: facts 7.1, "override".
    """
    webhook = call.fields.get("webhook_configuration")
    if webhook is None and "pin" not in call.fields:
        raise bad_parameter("The parameter pin or webhook_configuration is required.")
    if webhook is not None:
        configuration = object_or_none(webhook)
        if configuration is None:
            raise bad_parameter("Param webhook_configuration must be an object.")
        await _change_webhook(services, call.app_id, number, configuration)
    if "pin" in call.fields:
        await services.registrations.change_pin(number, call.fields["pin"])
    return GRAPH_SUCCESS


async def _change_webhook(
    services: SimulatorServices, app_id: str, number: Number, configuration: dict[str, Any]
) -> None:
    uri = text_or_none(configuration.get("override_callback_uri")) or ""
    if uri:
        await shake_hands(services, uri, text_or_none(configuration.get("verify_token")) or "")
    await services.accounts.set_number_override(app_id, number, uri)
    await services.webhooks.retry_now(number.waba_id)


async def shake_hands(services: SimulatorServices, uri: str, verify_token: str) -> None:
    """Verify a callback URI by the handshake.

    Raises:
        GraphApiError: 2200, the handshake failed.
    """
    try:
        await services.webhooks.verify_endpoint(uri, verify_token)
    except EndpointVerificationFailed as failure:
        message = f"(#2200) Callback verification failed with the following errors: {failure}"
        error = {"message": message, "type": "OAuthException", "code": 2200}
        raise GraphApiError(400, error) from failure
