"""The Graph side's calls that set a number up: registration, codes, its PIN, its webhook address."""

from typing import Any, Final

from waypost.base.json_values import object_or_none, text_or_none
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.errors import GraphRefused, bad_parameter
from waypost.simulator.requests import Call
from waypost.simulator.services import Parts
from waypost.simulator.webhooks.webhooks import HandshakeFailed

_METHODS: Final = ("SMS", "VOICE")
_SUCCESS: Final = {"success": True}


async def register_number(parts: Parts, call: Call, number: Number) -> dict[str, Any]:
    """Register a number with its PIN. Source: the operator's page "Registration"."""
    if call.fields.get("messaging_product") != "whatsapp":
        raise bad_parameter("The parameter messaging_product is required.")
    await parts.registrations.register(number, call.fields.get("pin"))
    return _SUCCESS


async def deregister_number(parts: Parts, _call: Call, number: Number) -> dict[str, Any]:
    """Take a number out of use. Source: the operator's page "Registration"."""
    await parts.registrations.deregister(number)
    return _SUCCESS


async def request_code(parts: Parts, call: Call, number: Number) -> dict[str, Any]:
    """Send a code to the number. Source: the operator's page "Phone numbers"."""
    if str(call.fields.get("code_method", "")).upper() not in _METHODS:
        raise bad_parameter(f"Param code_method must be one of {{{', '.join(_METHODS)}}}.")
    if not text_or_none(call.fields.get("language")):
        raise bad_parameter("The parameter language is required.")
    await parts.registrations.ask_code(number)
    return _SUCCESS


async def verify_code(parts: Parts, call: Call, number: Number) -> dict[str, Any]:
    """Take the code back. Source: the operator's page "Phone numbers"."""
    await parts.registrations.verify_code(number, call.fields.get("code"))
    return _SUCCESS


async def change_number(parts: Parts, call: Call, number: Number) -> dict[str, Any]:
    """Set the number's PIN, or an address of its own for its webhooks; an empty one takes it away.

    Source: facts 7.1, "override".
    """
    webhook = call.fields.get("webhook_configuration")
    if webhook is None and "pin" not in call.fields:
        raise bad_parameter("The parameter pin or webhook_configuration is required.")
    if webhook is not None:
        wish = object_or_none(webhook)
        if wish is None:
            raise bad_parameter("Param webhook_configuration must be an object.")
        await _change_webhook(parts, call.app_id, number, wish)
    if "pin" in call.fields:
        await parts.registrations.change_pin(number, call.fields["pin"])
    return _SUCCESS


async def _change_webhook(parts: Parts, app_id: str, number: Number, wish: dict[str, Any]) -> None:
    uri = text_or_none(wish.get("override_callback_uri")) or ""
    if uri:
        await shake_hands(parts, uri, text_or_none(wish.get("verify_token")) or "")
    await parts.accounts.override(app_id, number, uri)
    await parts.webhooks.retry_now(number.waba_id)


async def shake_hands(parts: Parts, uri: str, verify_token: str) -> None:
    """Ask an address whether it wants our webhooks.

    Raises:
        GraphRefused: 2200, it does not.
    """
    try:
        await parts.webhooks.shake_hands(uri, verify_token)
    except HandshakeFailed as failed:
        message = f"(#2200) Callback verification failed with the following errors: {failed}"
        error = {"message": message, "type": "OAuthException", "code": 2200}
        raise GraphRefused(400, error) from failed
