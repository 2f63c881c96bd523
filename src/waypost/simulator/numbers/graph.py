"""Graph API calls for a number: its block list, and changes of its PIN, name and callback URI."""

from typing import Any, Final

from waypost.base.json_values import list_or_none, object_or_none, text_or_none
from waypost.simulator.apis.errors import bad_parameter, trace_id
from waypost.simulator.apis.parameters import ProductParameters, read_parameters
from waypost.simulator.apis.requests import Call
from waypost.simulator.numbers.model import BLOCKS, block_phones, unblock_phones
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.nodes import page
from waypost.simulator.state.phones.phones import phone_digits
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.state.tokens import MESSAGING

operation = GraphOperations()

_MAX_BLOCKED_USERS: Final = 1000  # Source: the operator's page "Block users"


@operation("blocks.create", "POST", Number, "block_users", permission=MESSAGING)
async def block_users(state: SimulatorState, call: Call, number: Number) -> dict[str, Any]:
    """Block phones. Source: the operator's page "Block users"."""
    users = _requested_users(state, call)
    phones = dict.fromkeys(phone for phone in users.values() if phone is not None)
    failed = await block_phones(state, number.phone_number_id, phones)
    return _block_response(state, users, failed, "added_users")


@operation("blocks.delete", "DELETE", Number, "block_users", permission=MESSAGING)
async def unblock_users(state: SimulatorState, call: Call, number: Number) -> dict[str, Any]:
    """Unblock phones."""
    users = _requested_users(state, call)
    await unblock_phones(state, number.phone_number_id, [phone for phone in users.values() if phone is not None])
    return _block_response(state, users, {}, "removed_users")


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
            users[user] = digits and state.phones.find_number(digits)
        elif user_id:
            phone = state.phones.find_by_user_id(user_id)
            users[user_id] = phone.phone if phone is not None else None
        else:
            raise bad_parameter("Param block_users must be an array of {user} or {user_id}.")
    return users


def _whatsapp_id(state: SimulatorState, phone: str) -> str:
    return state.phones.find_or_default(phone).whatsapp_id


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
