"""Graph API calls for a number: fields, profile, block list, conversational components."""

from typing import Any, Final

from waypost.base.json_values import list_or_none, object_or_none, text_or_none
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.accounts.records import (
    ALLOWED,
    AUTOMATION,
    NAMES,
    NUMBER_STATUS,
    PICTURE_PREFIX,
    PROFILE,
    REGISTRATION,
)
from waypost.simulator.accounts.tokens import MESSAGING
from waypost.simulator.errors import bad_parameter, no_such_object, trace_id
from waypost.simulator.graph.apps import check_override, shake_hands
from waypost.simulator.graph.node_tables import NumberView, number_node
from waypost.simulator.graph_operations import GraphOperations
from waypost.simulator.links import is_valid_link, signed_link
from waypost.simulator.lists import page
from waypost.simulator.media.uploads import find_by_handle
from waypost.simulator.messages.limits import find_restriction
from waypost.simulator.numbers.names import change_names, check_display_name
from waypost.simulator.numbers.profile import PROFILE_FIELDS, SHOWN_PROFILE_FIELDS, automation_changes, profile_changes
from waypost.simulator.numbers.registration import change_registration, read_pin
from waypost.simulator.phones.phones import BlockFailure, phone_digits
from waypost.simulator.requests import GRAPH_SUCCESS, Call, Download
from waypost.simulator.services import SimulatorServices

operation = GraphOperations()

PICTURES: Final = "profile_pictures"
"""The first path segment of the URLs of profile pictures; they need no token."""

_MAX_BLOCKED_USERS: Final = 1000  # Source: the operator's page "Block users"
_PICTURE_TYPES: Final = ("image/jpeg", "image/jpg", "image/png")


def number_view(services: SimulatorServices, number: Number, app_id: str) -> NumberView:
    """Return a number with the data of its fields, as an app sees it."""
    number_id = number.phone_number_id
    subscription = services.accounts.subscription(number.waba_id, app_id)
    restriction = find_restriction(services, number_id)
    registration = services.records.get(number_id, REGISTRATION)
    return NumberView(
        number=number,
        account=services.accounts.by_id[number.waba_id],
        app=services.accounts.apps.get(app_id),
        status_record=services.records.get(number_id, NUMBER_STATUS),
        automation=services.records.get(number_id, AUTOMATION),
        names=services.records.get(number_id, NAMES),
        status=restriction.status if restriction is not None else "",
        override_uri=services.accounts.number_override(app_id, number_id) or "",
        account_uri=subscription.override_uri if subscription is not None else "",
        is_limited=services.records.get(number_id, ALLOWED).get("phones") is not None,
        has_pin=bool(registration.get("pin")),
        needs_code=bool(registration.get("needs_code")),
    )


@operation("profile.read", "GET", Number, "whatsapp_business_profile", permission=MESSAGING)
async def show_profile(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Return a number's business profile. Source: the operator's page "Business profiles"."""
    profile = services.records.get(number.phone_number_id, PROFILE)
    view: dict[str, Any] = {name: profile[name] for name in PROFILE_FIELDS if name in profile}
    if "picture" in profile:
        key = services.accounts.by_id[number.waba_id].token
        view["profile_picture_url"] = signed_link(
            call.origin, f"/{PICTURES}/{number.phone_number_id}", key, profile["picture"]["name"]
        )
    view["messaging_product"] = "whatsapp"
    names = [name.strip() for name in call.query.get("fields", "").split(",") if name.strip()]
    for name in names:
        if name not in (*SHOWN_PROFILE_FIELDS, "id"):
            raise bad_parameter(f"Tried accessing nonexisting field ({name}) on node type (WhatsAppBusinessProfile)")
    if names:
        names.append("messaging_product")
        view = {name: value for name, value in view.items() if name in names}
    return {"data": [view]}


@operation("profile.change", "POST", Number, "whatsapp_business_profile", permission=MESSAGING)
async def change_profile(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Change a number's business profile; absent members stay, and an empty handle removes the picture."""
    changes = profile_changes(call.fields)
    profile = services.records.get(number.phone_number_id, PROFILE)
    old_picture = profile.get("picture", {}).get("name")
    handle = call.fields.get("profile_picture_handle")
    if handle == "":
        profile = {name: value for name, value in profile.items() if name != "picture"}
    elif handle is not None:
        upload = find_by_handle(services, handle) if isinstance(handle, str) else None
        if upload is None or upload.file_type not in _PICTURE_TYPES:
            raise bad_parameter("Param profile_picture_handle must be the handle of an image.")
        # A copy, because the upload expires.
        name = f"{PICTURE_PREFIX}{number.phone_number_id}-{upload.upload_id}"
        await services.files.write(name, await services.files.read(upload.content_name))
        changes["picture"] = {"name": name, "mime_type": upload.file_type, "size_bytes": upload.file_length}
    changed = {**profile, **changes}
    await services.records.save(number.phone_number_id, PROFILE, changed)
    if old_picture not in (None, changed.get("picture", {}).get("name")):
        await services.files.remove(old_picture)
    return GRAPH_SUCCESS


@operation("profile_pictures.read", "GET", "profile_pictures", is_open=True)
async def download_picture(services: SimulatorServices, call: Call) -> Download:
    """Return the picture behind a link of `show_profile`."""
    number = services.accounts.numbers.get(call.edge)
    account = services.accounts.by_id.get(number.waba_id) if number is not None else None
    picture = services.records.get(call.edge, PROFILE).get("picture")
    if (
        account is None
        or picture is None
        or not is_valid_link(call.query, account.token, picture["name"], services.clock.now_ms())
    ):
        raise no_such_object(call.method, call.edge)
    path = services.files.path(picture["name"])
    return Download(picture["mime_type"], picture["size_bytes"], path)


@operation("blocks.create", "POST", Number, "block_users", permission=MESSAGING)
async def block_users(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Block phones. Source: the operator's page "Block users"."""
    users = _requested_users(services, call)
    phones = dict.fromkeys(phone for phone in users.values() if phone is not None)
    failed = await services.blocks.add(number.phone_number_id, list(phones))
    return _block_response(services, users, failed, "added_users")


@operation("blocks.delete", "DELETE", Number, "block_users", permission=MESSAGING)
async def unblock_users(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Unblock phones."""
    users = _requested_users(services, call)
    await services.blocks.remove(number.phone_number_id, [phone for phone in users.values() if phone is not None])
    return _block_response(services, users, {}, "removed_users")


@operation("blocks.list", "GET", Number, "block_users", permission=MESSAGING)
async def list_blocked(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Return a number's block list."""
    return page(
        call,
        services.blocks.blocked_phones(number.phone_number_id),
        lambda phone: phone,
        # No documented response has `input`; a client from the time of user ids reads it.
        lambda phone: {"messaging_product": "whatsapp", "input": phone, "wa_id": _whatsapp_id(services, phone)},
    )


@operation("automation.read", "GET", Number, "conversational_automation")
async def show_automation(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Return a number's conversational components."""
    return number_node(number_view(services, number, call.app_id), "conversational_automation")


@operation("automation.change", "POST", Number, "conversational_automation")
async def change_automation(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Change a number's conversational components; absent ones stay unchanged."""
    changes = automation_changes(call.fields)
    automation = services.records.get(number.phone_number_id, AUTOMATION)
    await services.records.save(number.phone_number_id, AUTOMATION, {**automation, **changes})
    return GRAPH_SUCCESS


def _requested_users(services: SimulatorServices, call: Call) -> dict[str, str | None]:
    """Return the numbers or user ids of the request, each with the digits of its phone; None if unknown."""
    if call.fields.get("messaging_product") != "whatsapp":
        raise bad_parameter("The parameter messaging_product is required.")
    items = list_or_none(call.fields.get("block_users"))
    if not items or len(items) > _MAX_BLOCKED_USERS:
        raise bad_parameter(f"Param block_users must have 1 to {_MAX_BLOCKED_USERS} users.")
    users: dict[str, str | None] = {}
    for item in items:
        members = object_or_none(item) or {}
        user, user_id = text_or_none(members.get("user")), text_or_none(members.get("user_id"))
        if user:
            digits = phone_digits(user)
            users[user] = digits and services.phones.find_number(digits)
        elif user_id:
            phone = services.phones.find_by_user_id(user_id)
            users[user_id] = phone.phone if phone is not None else None
        else:
            raise bad_parameter("Param block_users must be an array of {user} or {user_id}.")
    return users


def _user_identifier(services: SimulatorServices, user: str, phone: str | None) -> dict[str, str | None]:
    """Return a user's identifier for the response: the user id if the request had it. Source: facts 7.5."""
    is_user_id = user[:1].isalpha()
    return {"user_id": user} if is_user_id else {"wa_id": phone and _whatsapp_id(services, phone)}


def _whatsapp_id(services: SimulatorServices, phone: str) -> str:
    return services.phones.find_or_default(phone).whatsapp_id


def _block_response(
    services: SimulatorServices, users: dict[str, str | None], failed: dict[str, BlockFailure], success_member: str
) -> dict[str, Any]:
    results: dict[str, list[dict[str, Any]]] = {success_member: []}
    for user, phone in users.items():
        reason = BlockFailure(100, "This is no phone number.") if phone is None else failed.get(phone)
        view: dict[str, Any] = {"input": user, **_user_identifier(services, user, phone)}
        if reason is None:
            results[success_member].append(view)
        else:
            details = {"details": reason.details}
            error = {"message": "Failed to block the user", "code": reason.code, "error_data": details}
            results.setdefault("failed_users", []).append({**view, "errors": [error]})
    response: dict[str, Any] = {"messaging_product": "whatsapp", "block_users": results}
    if "failed_users" in results:
        response["errors"] = {
            "message": "(#139100) Failed to block/unblock some users",
            "type": "OAuthException",
            "code": 139100,
            "error_data": {"details": "Failed to block some users, see failed_users for details"},
            "fbtrace_id": trace_id(services.ids),
        }
    return response


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
        await change_names(
            services,
            number,
            requested_name=check_display_name("new_display_name", name),
            requested_status="PENDING_REVIEW",
        )
    if webhook is not None:
        configuration = object_or_none(webhook)
        if configuration is None:
            raise bad_parameter("Param webhook_configuration must be an object.")
        await _change_webhook(services, call.app_id, number, configuration)
    if "pin" in call.fields:
        await change_registration(services, number, pin=read_pin("pin", call.fields["pin"]), guesses=0)
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
