"""Graph API calls that set up a number: registration, verification codes, PIN, callback URI, official account, username."""

from typing import Any, Final

from waypost.base.json_values import object_or_none, text_or_none
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.errors import GraphApiError, bad_parameter
from waypost.simulator.graph_operations import GraphOperations
from waypost.simulator.requests import GRAPH_SUCCESS, Call
from waypost.simulator.services import SimulatorServices
from waypost.simulator.webhooks.webhooks import EndpointVerificationFailed, verify_endpoint

operation = GraphOperations()

_METHODS: Final = ("SMS", "VOICE")
_SYNC_TYPES: Final = ("smb_app_state_sync", "history")
_TRANSFER_ACTIONS: Final = ("none", "force_transfer")


@operation("numbers.register", "POST", Number, "register")
async def register_number(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Register a number with its PIN. Source: the operator's page "Registration"."""
    if call.fields.get("messaging_product") != "whatsapp":
        raise bad_parameter("The parameter messaging_product is required.")
    await services.registrations.register(number, call.fields.get("pin"))
    return GRAPH_SUCCESS


@operation("numbers.deregister", "POST", Number, "deregister")
async def deregister_number(services: SimulatorServices, _call: Call, number: Number) -> dict[str, Any]:
    """Deregister a number.

    Raises:
        GraphApiError: 100, the number is on the app, where alone it can be disconnected.

    Source: the operator's page "Registration"; ledger, coexistence; the operator documents no code for it.
    """
    if number.is_on_business_app:
        raise bad_parameter("The phone number is on the WhatsApp Business app; disconnect it there.")
    await services.registrations.deregister(number)
    return GRAPH_SUCCESS


@operation("numbers.smb_app_data", "POST", Number, "smb_app_data")
async def request_sync(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Accept a request for the contacts or the messages of the app on a phone: each once, within a day.

    The day begins with the first request, because a simulated number is not onboarded from a phone.

    Raises:
        GraphApiError: 100, the number is not on the app, or the request comes again or too late.

    Source: ledger 1.3, `coex/sync`; the operator documents no code for it.
    """
    if call.fields.get("messaging_product") != "whatsapp":
        raise bad_parameter("The parameter messaging_product is required.")
    sync_type = call.fields.get("sync_type")
    if sync_type not in _SYNC_TYPES:
        raise bad_parameter(f"Param sync_type must be one of {{{', '.join(_SYNC_TYPES)}}}.")
    if not number.is_on_business_app:
        raise bad_parameter("The phone number is not on the WhatsApp Business app; it has no data to synchronize.")
    request_id = await services.registrations.request_sync(number, str(sync_type))
    return {"messaging_product": "whatsapp", "request_id": request_id}


@operation("numbers.request_code", "POST", Number, "request_code")
async def request_code(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Send a code to the number. Source: the operator's page "Phone numbers"."""
    if str(call.fields.get("code_method", "")).upper() not in _METHODS:
        raise bad_parameter(f"Param code_method must be one of {{{', '.join(_METHODS)}}}.")
    if not text_or_none(call.fields.get("language")):
        raise bad_parameter("The parameter language is required.")
    await services.registrations.send_code(number)
    return GRAPH_SUCCESS


@operation("numbers.verify_code", "POST", Number, "verify_code")
async def verify_code(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Verify the number by the code that was sent. Source: the operator's page "Phone numbers"."""
    await services.registrations.verify_code(number, call.fields.get("code"))
    return GRAPH_SUCCESS


@operation("numbers.change", "POST", Number)
async def change_number(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Set the number's PIN, a callback URI of its own, or request a display name; an empty URI removes it.

    Source: facts 7.1, "override"; the operator's page "Display names".
    """
    webhook = call.fields.get("webhook_configuration")
    name = call.fields.get("new_display_name", call.query.get("new_display_name"))
    if webhook is None and name is None and "pin" not in call.fields:
        raise bad_parameter("The parameter pin, new_display_name or webhook_configuration is required.")
    if name is not None:
        await services.names.request_display_name(number, name)
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
        check_override(services, app_id, number.waba_id)
        await shake_hands(services, uri, text_or_none(configuration.get("verify_token")) or "")
    await services.accounts.set_number_override(app_id, number, uri)
    await services.webhooks.retry_now(number.waba_id)


def check_override(services: SimulatorServices, app_id: str, waba_id: str) -> None:
    """Check that an app may override the callback URI of an account or of one of its numbers.

    Raises:
        GraphApiError: 100, it has no subscription that could be overridden: to messages, and to the account.

    Source: the operator's page "Override webhooks".
    """
    app = services.accounts.apps.get(app_id)
    if app is None or not app.gets_messages or services.accounts.subscription(waba_id, app_id) is None:
        raise bad_parameter(
            "Before override the current callback uri, your app must be subscribed to receive messages for WhatsApp "
            "Business Account"
        )


async def shake_hands(services: SimulatorServices, uri: str, verify_token: str) -> None:
    """Verify a callback URI by the handshake.

    Raises:
        GraphApiError: 2200, the handshake failed.
    """
    try:
        await verify_endpoint(uri, verify_token, services.ids.digits(10))
    except EndpointVerificationFailed as failure:
        message = f"(#2200) Callback verification failed with the following errors: {failure}"
        error = {"message": message, "type": "OAuthException", "code": 2200}
        raise GraphApiError(400, error) from failure


@operation("numbers.official_business_account", "POST", Number, "official_business_account")
async def request_official_account(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Request an official account; the response says that it was submitted. Source: the operator's page "Official business accounts"."""
    await services.names.request_official_account(number, call.fields)
    return GRAPH_SUCCESS


@operation("username.read", "GET", Number, "username")
async def show_username(services: SimulatorServices, _call: Call, number: Number) -> dict[str, Any]:
    """Return the number's username and its status; nothing if it has none. Source: the operator's page "Business usernames"."""
    record = services.names.record_of(number)
    if "username" not in record:
        return {}
    return {"username": record["username"], "status": record["username_status"]}


@operation("username.change", "POST", Number, "username")
async def change_username(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Reserve a username, or take it from another number of the business. Source: the operator's page "Business usernames"."""
    action = call.fields.get("transfer_action", "none")
    if action not in _TRANSFER_ACTIONS:
        raise bad_parameter(f"Param transfer_action must be one of {', '.join(_TRANSFER_ACTIONS)}.")
    username = call.fields.get("username")
    status = await services.names.set_username(number, username, takes_over=action == "force_transfer")
    return {"status": status}


@operation("username.delete", "DELETE", Number, "username")
async def delete_username(services: SimulatorServices, _call: Call, number: Number) -> dict[str, Any]:
    """Delete the number's username. Source: the operator's page "Business usernames"."""
    await services.names.delete_username(number)
    return GRAPH_SUCCESS


@operation("username.suggestions", "GET", Number, "username_suggestions")
async def list_username_suggestions(services: SimulatorServices, _call: Call, number: Number) -> dict[str, Any]:
    """Return suggested usernames. Source: the operator's page "Business usernames"."""
    return {"data": [{"username_suggestions": services.names.suggest_usernames(number)}]}
