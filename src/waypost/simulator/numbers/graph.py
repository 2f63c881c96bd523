"""Graph API calls for a number: its block list, and changes of its PIN, name and callback URI."""

from typing import Any, Final, NamedTuple

from waypost.base.json_values import integer_or_none, list_or_none, object_or_none, text_or_none
from waypost.simulator.apis.errors import bad_parameter, trace_id
from waypost.simulator.apis.parameters import ProductParameters, read_parameters
from waypost.simulator.apis.requests import Call
from waypost.simulator.numbers.model import BLOCKS, UNREGISTERED, block_phones, find_restriction, find_restriction_name
from waypost.simulator.state.accounts import Account, Number
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.nodes import NodeKind, health_status, page, show_time
from waypost.simulator.state.phones import find_number, find_phone, find_phone_by_user_id, phone_digits
from waypost.simulator.state.records import (
    ALLOWED,
    AUTOMATION,
    NAMES,
    NUMBER_STATUS,
    ONBOARDED,
    REGISTRATION,
    SENDING_RESTRICTION,
)
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.state.tokens import MESSAGING

operation = GraphOperations()

_MAX_BLOCKED_USERS: Final = 1000  # Source: the operator's page "Block users"


@operation("blocks.create", "POST", Number, "block_users", permission=MESSAGING)
def block_users(transaction: Transaction, call: Call, number: Number) -> dict[str, Any]:
    """Block phones. Source: the operator's page "Block users"."""
    users = _requested_users(transaction.state, call)
    phones = dict.fromkeys(phone for phone in users.values() if phone is not None)
    failed = block_phones(transaction, number.phone_number_id, phones)
    return _block_response(transaction.state, users, failed, "added_users")


@operation("blocks.delete", "DELETE", Number, "block_users", permission=MESSAGING)
def unblock_users(transaction: Transaction, call: Call, number: Number) -> dict[str, Any]:
    """Unblock phones; those that are not blocked are ignored."""
    users = _requested_users(transaction.state, call)
    for phone in users.values():
        if phone is not None:
            transaction.delete(BLOCKS, phone, number.phone_number_id)
    return _block_response(transaction.state, users, {}, "removed_users")


@operation("blocks.list", "GET", Number, "block_users", permission=MESSAGING)
async def list_blocked(state: SimulatorState, call: Call, number: Number) -> dict[str, Any]:
    """Return a number's block list."""
    return page(
        call,
        list(state.values(BLOCKS, number.phone_number_id)),
        lambda phone: phone,
        # No documented response has `input`; a client from the time of user ids reads it.
        lambda phone: {"messaging_product": "whatsapp", "input": phone, "wa_id": _whatsapp_id(state, phone)},
    )


def _requested_users(state: SimulatorState, call: Call) -> dict[str, str | None]:
    """Return the numbers or user ids of the request, each with the digits of its phone; None if unknown."""
    read_parameters(ProductParameters, call.fields)
    items = list_or_none(call.fields.get("block_users"))
    if not items or len(items) > _MAX_BLOCKED_USERS:
        raise bad_parameter(f"Param block_users must have 1 to {_MAX_BLOCKED_USERS} users.")
    users: dict[str, str | None] = {}
    for item in items:
        members = object_or_none(item) or {}
        user, user_id = text_or_none(members.get("user")), text_or_none(members.get("user_id"))
        if user:
            digits = phone_digits(user)
            users[user] = digits and find_number(state, digits)
        elif user_id:
            phone = find_phone_by_user_id(state, user_id)
            users[user_id] = phone.phone if phone is not None else None
        else:
            raise bad_parameter("Param block_users must be an array of {user} or {user_id}.")
    return users


def _whatsapp_id(state: SimulatorState, phone: str) -> str:
    return find_phone(state, phone).whatsapp_id


def _block_response(
    state: SimulatorState, users: dict[str, str | None], failed: dict[str, tuple[int, str]], success_member: str
) -> dict[str, Any]:
    results: dict[str, list[dict[str, Any]]] = {success_member: []}
    for user, phone in users.items():
        reason = (100, "This is no phone number.") if phone is None else failed.get(phone)
        # Source: facts 7.5: the user id if the request had it
        is_user_id = user[:1].isalpha()
        identifier = {"user_id": user} if is_user_id else {"wa_id": phone and _whatsapp_id(state, phone)}
        view: dict[str, Any] = {"input": user, **identifier}
        if reason is None:
            results[success_member].append(view)
        else:
            code, details = reason
            error = {"message": "Failed to block the user", "code": code, "error_data": {"details": details}}
            results.setdefault("failed_users", []).append({**view, "errors": [error]})
    response: dict[str, Any] = {"messaging_product": "whatsapp", "block_users": results}
    if "failed_users" in results:
        response["errors"] = {
            "message": "(#139100) Failed to block/unblock some users",
            "type": "OAuthException",
            "code": 139100,
            "error_data": {"details": "Failed to block some users, see failed_users for details"},
            "fbtrace_id": trace_id(state.ids),
        }
    return response


class _NumberView(NamedTuple):
    """A number as one app sees it, and the state that its fields are made of."""

    state: SimulatorState
    number: Number
    app_id: str

    def record(self, kind: str) -> dict[str, Any]:
        """Return a record of the number."""
        return self.state.record(self.number.phone_number_id, kind)

    def status(self, name: str, usual: str) -> str:
        """Return a status that the control API has set, or the default."""
        return str(self.record(NUMBER_STATUS).get(name, usual))


def _display(number: Number) -> str:
    # Imported on first use: the tables of the world's numbering plans are large.
    import phonenumbers

    try:
        parsed = phonenumbers.parse("+" + number.phone_number)
    except phonenumbers.NumberParseException:
        return "+" + number.phone_number
    return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.INTERNATIONAL)


def _country(number: Number) -> tuple[str, str] | tuple[None, None]:
    """Return the calling code and the code of a number's country."""
    import phonenumbers

    try:
        code = phonenumbers.parse("+" + number.phone_number).country_code or 0
    except phonenumbers.NumberParseException:
        return None, None
    return str(code), phonenumbers.region_code_for_country_code(code)


def _webhooks(view: _NumberView) -> dict[str, str] | None:
    """Return the callback URIs of a number, by their source. Source: facts 7.1, "One callback per app"."""
    accounts, number = view.state.accounts, view.number
    subscription, app = accounts.subscription(number.waba_id, view.app_id), accounts.apps.get(view.app_id)
    uris = {
        "phone_number": accounts.number_override(view.app_id, number.phone_number_id),
        "whatsapp_business_account": subscription.override_uri if subscription is not None else "",
        "application": app.callback_uri if app is not None else "",
    }
    return {name: uri for name, uri in uris.items() if uri} or None


def _number_status(view: _NumberView) -> str:
    restriction = find_restriction(view.state, view.number.phone_number_id)
    if restriction is not None and view.record(SENDING_RESTRICTION).get("is_new"):
        return "PENDING"
    return (restriction.status if restriction is not None else "") or view.status("status", "CONNECTED")


def _platform_type(view: _NumberView) -> str:
    """Return where a number is registered, by which clients decide whether to register it."""
    is_registered = find_restriction_name(view.state, view.number.phone_number_id) != UNREGISTERED
    return "CLOUD_API" if is_registered else "NOT_APPLICABLE"


def _last_onboarded(view: _NumberView) -> str | None:
    """Return when a number was last chosen in a signup."""
    return show_time(integer_or_none(view.record(ONBOARDED).get("at_ms")))


_NUMBER_NODE: Final = NodeKind[_NumberView](  # Source: facts 1, "Phone node"
    "WhatsAppBusinessPhoneNumber",
    (
        "verified_name",
        "code_verification_status",
        "display_phone_number",
        "quality_rating",
        "platform_type",
        "throughput",
        "webhook_configuration",
        "id",
    ),
    {
        "id": lambda view: view.number.phone_number_id,
        "display_phone_number": lambda view: _display(view.number),
        "verified_name": lambda view: view.number.name,
        "quality_rating": lambda view: view.status("quality_rating", "GREEN"),
        "quality_score": lambda view: {"score": view.status("quality_rating", "GREEN")},
        "throughput": lambda view: {"level": "STANDARD" if view.number.max_per_second <= 80 else "HIGH"},
        "status": _number_status,
        "code_verification_status": lambda view: (
            "NOT_VERIFIED" if view.record(REGISTRATION).get("needs_code") else "VERIFIED"
        ),
        "name_status": lambda view: view.status("name_status", "APPROVED"),
        "platform_type": _platform_type,
        "account_mode": lambda view: "LIVE" if view.record(ALLOWED).get("phones") is None else "SANDBOX",
        "is_pin_enabled": lambda view: bool(view.record(REGISTRATION).get("pin")),
        "is_official_business_account": lambda view: view.record(NAMES).get("oba_status") == "APPROVED",
        "whatsapp_business_manager_messaging_limit": lambda view: view.status("messaging_limit", "TIER_UNLIMITED"),
        "messaging_limit_tier": lambda view: view.status("messaging_limit", "TIER_UNLIMITED"),
        "webhook_configuration": _webhooks,
        "conversational_automation": lambda view: {
            "prompts": [],
            "commands": [],
            "enable_welcome_message": False,
            **view.record(AUTOMATION),
            "id": view.number.phone_number_id,
        },
        "health_status": lambda view: health_status("PHONE_NUMBER", view.number.phone_number_id),
        "country_dial_code": lambda view: _country(view.number)[0],
        "country_code": lambda view: _country(view.number)[1],
        "is_on_biz_app": lambda view: view.number.is_on_business_app,
        "is_preverified_number": False,
        "search_visibility": "NON_VISIBLE",
        "eligibility_for_api_business_global_search": "NON_ELIGIBLE_UNDEFINED_COUNTRY",
        "last_onboarded_time": _last_onboarded,
        "new_name_status": lambda view: view.record(NAMES).get("requested_status", "NONE"),
        "new_display_name": lambda view: view.record(NAMES).get("requested_name"),
        "official_business_account": lambda view: {"oba_status": view.record(NAMES).get("oba_status", "NOT_STARTED")},
        "certificate": None,
        "new_certificate": None,
    },
)


def show_number(state: SimulatorState, call: Call, number: Number) -> dict[str, Any]:
    """Return a business phone number as the operator shows it to an app. Source: facts 1, "Phone node"."""
    return _NUMBER_NODE.show(_NumberView(state, number, call.app_id), call.query.get("fields"))


def show_automation(state: SimulatorState, call: Call, number: Number) -> dict[str, Any]:
    """Return a number's conversational components."""
    return _NUMBER_NODE.show(_NumberView(state, number, call.app_id), "conversational_automation")


def list_numbers(state: SimulatorState, call: Call, account: Account) -> dict[str, Any]:
    """Return an account's numbers. Source: facts 1, "Phone list"."""
    numbers = state.accounts.numbers_of(account.waba_id)
    return page(call, numbers, lambda number: number.phone_number_id, lambda number: show_number(state, call, number))
