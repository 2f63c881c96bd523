"""The Graph side's calls about a number: its fields, its profile, its block list, its ice breakers."""

from typing import Any, Final

from waypost.base.json_values import list_or_none, object_or_none, text_or_none
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.accounts.profiles import (
    PROFILE_FIELDS,
    SHOWN_PROFILE_FIELDS,
    automation_changes,
    profile_changes,
)
from waypost.simulator.accounts.records import ALLOWED, AUTOMATION, PICTURE_PREFIX, PROFILE, REGISTRATION, STANDING
from waypost.simulator.errors import bad_parameter, no_such_object, trace_id
from waypost.simulator.graph.links import is_good, link
from waypost.simulator.graph.lists import page
from waypost.simulator.graph.nodes import NumberView, number_node
from waypost.simulator.phones.blocks import NotBlocked
from waypost.simulator.phones.phones import phone_digits
from waypost.simulator.requests import Call, Download
from waypost.simulator.services import Parts

PICTURES: Final = "profile_pictures"
"""The first segment of the addresses of profile pictures; they need no token."""

_BLOCKS_AT_MOST: Final = 1000  # Source: the operator's page "Block users"
_PICTURE_TYPES: Final = ("image/jpeg", "image/jpg", "image/png")
_SUCCESS: Final = {"success": True}


def view_of(parts: Parts, number: Number, app_id: str) -> NumberView:
    """A number with everything its fields need, as an app sees it."""
    number_id = number.phone_number_id
    subscription = parts.accounts.subscription(number.waba_id, app_id)
    hindrance = parts.standings.hindrance_of(number_id)
    return NumberView(
        number=number,
        account=parts.accounts.by_id[number.waba_id],
        app=parts.accounts.apps.get(app_id),
        standing=parts.records.of(number_id, STANDING),
        automation=parts.records.of(number_id, AUTOMATION),
        status=hindrance.status if hindrance is not None else "",
        override_uri=parts.accounts.override_of(app_id, number_id) or "",
        account_uri=subscription.override_uri if subscription is not None else "",
        is_limited=parts.records.of(number_id, ALLOWED).get("phones") is not None,
        has_pin=bool(parts.records.of(number_id, REGISTRATION).get("pin")),
    )


async def show_profile(parts: Parts, call: Call, number: Number) -> dict[str, Any]:
    """A number's business profile. Source: the operator's page "Business profiles"."""
    profile = parts.records.of(number.phone_number_id, PROFILE)
    shown: dict[str, Any] = {name: profile[name] for name in PROFILE_FIELDS if name in profile}
    if "picture" in profile:
        key = parts.accounts.by_id[number.waba_id].token
        shown["profile_picture_url"] = link(
            call.origin, f"/{PICTURES}/{number.phone_number_id}", key, profile["picture"]["name"]
        )
    shown["messaging_product"] = "whatsapp"
    wished = [name.strip() for name in call.query.get("fields", "").split(",") if name.strip()]
    for name in wished:
        if name not in (*SHOWN_PROFILE_FIELDS, "id"):
            raise bad_parameter(f"Tried accessing nonexisting field ({name}) on node type (WhatsAppBusinessProfile)")
    if wished:
        wished.append("messaging_product")
        shown = {name: value for name, value in shown.items() if name in wished}
    return {"data": [shown]}


async def change_profile(parts: Parts, call: Call, number: Number) -> dict[str, Any]:
    """Change a number's business profile; what is absent stays, and an empty handle removes the picture."""
    changes = profile_changes(call.fields)
    profile = parts.records.of(number.phone_number_id, PROFILE)
    before = profile.get("picture", {}).get("name")
    handle = call.fields.get("profile_picture_handle")
    if handle == "":
        profile = {name: value for name, value in profile.items() if name != "picture"}
    elif handle is not None:
        upload = parts.uploads.of_handle(handle) if isinstance(handle, str) else None
        if upload is None or upload.file_type not in _PICTURE_TYPES:
            raise bad_parameter("Param profile_picture_handle must be the handle of an image.")
        # A copy: the upload goes when its time is over.
        name = f"{PICTURE_PREFIX}{number.phone_number_id}-{upload.upload_id}"
        await parts.files.keep(name, await parts.uploads.content(upload))
        changes["picture"] = {"name": name, "mime_type": upload.file_type, "size_bytes": upload.file_length}
    changed = {**profile, **changes}
    await parts.records.keep(number.phone_number_id, PROFILE, changed)
    if before not in (None, changed.get("picture", {}).get("name")):
        await parts.files.remove(before)
    return _SUCCESS


async def download_picture(parts: Parts, call: Call) -> Download:
    """The picture behind an address of `show_profile`."""
    number = parts.accounts.numbers.get(call.edge)
    account = parts.accounts.by_id.get(number.waba_id) if number is not None else None
    picture = parts.records.of(call.edge, PROFILE).get("picture")
    if (
        account is None
        or picture is None
        or not is_good(call.query, account.token, picture["name"], parts.clock.now_ms())
    ):
        raise no_such_object(call.method, call.edge)
    path = parts.files.path(picture["name"])
    return Download(picture["mime_type"], picture["size_bytes"], path)


async def block_users(parts: Parts, call: Call, number: Number) -> dict[str, Any]:
    """Block phones. Source: the operator's page "Block users"."""
    wished = _wished_users(parts, call)
    known = {given: phone for given, phone in wished.items() if phone is not None}
    failed = await parts.blocks.add(number.phone_number_id, list(dict.fromkeys(known.values())))
    return _blocked(parts, wished, failed, "added_users")


async def unblock_users(parts: Parts, call: Call, number: Number) -> dict[str, Any]:
    """Unblock phones."""
    wished = _wished_users(parts, call)
    await parts.blocks.remove(number.phone_number_id, [phone for phone in wished.values() if phone is not None])
    return _blocked(parts, wished, {}, "removed_users")


async def list_blocked(parts: Parts, call: Call, number: Number) -> dict[str, Any]:
    """A number's block list."""
    return page(
        call,
        parts.blocks.of(number.phone_number_id),
        lambda phone: phone,
        # The input is in no documented answer; a client of the time of user ids reads it.
        lambda phone: {"messaging_product": "whatsapp", "input": phone, "wa_id": phone},
    )


async def show_automation(parts: Parts, call: Call, number: Number) -> dict[str, Any]:
    """A number's conversational components."""
    return number_node(view_of(parts, number, call.app_id), "conversational_automation")


async def change_automation(parts: Parts, call: Call, number: Number) -> dict[str, Any]:
    """Change a number's conversational components; what is absent stays as it is."""
    changes = automation_changes(call.fields)
    before = parts.records.of(number.phone_number_id, AUTOMATION)
    await parts.records.keep(number.phone_number_id, AUTOMATION, {**before, **changes})
    return _SUCCESS


def _wished_users(parts: Parts, call: Call) -> dict[str, str | None]:
    """Users as the request writes them, by number or user id, and the digits of their phones."""
    if call.fields.get("messaging_product") != "whatsapp":
        raise bad_parameter("The parameter messaging_product is required.")
    given = list_or_none(call.fields.get("block_users"))
    if not given or len(given) > _BLOCKS_AT_MOST:
        raise bad_parameter(f"Param block_users must have 1 to {_BLOCKS_AT_MOST} users.")
    users: dict[str, str | None] = {}
    for one in given:
        wish = object_or_none(one) or {}
        user, user_id = text_or_none(wish.get("user")), text_or_none(wish.get("user_id"))
        if user:
            users[user] = phone_digits(user)
        elif user_id:
            phone = parts.phones.of_user_id(user_id)
            users[user_id] = phone.phone if phone is not None else None
        else:
            raise bad_parameter("Param block_users must be an array of {user} or {user_id}.")
    return users


def _who(given: str, phone: str | None) -> dict[str, str | None]:
    """Whoever was named by a user id is answered by it. Source: facts 7.5."""
    is_user_id = given[:1].isalpha()
    return {"user_id": given} if is_user_id else {"wa_id": phone}


def _blocked(parts: Parts, wished: dict[str, str | None], failed: dict[str, NotBlocked], done: str) -> dict[str, Any]:
    answer: dict[str, list[dict[str, Any]]] = {done: []}
    for given, phone in wished.items():
        why = NotBlocked(100, "This is no phone number.") if phone is None else failed.get(phone)
        if why is None:
            answer[done].append({"input": given, **_who(given, phone)})
        else:
            error = {"message": "Failed to block the user", "code": why.code, "error_data": {"details": why.details}}
            answer.setdefault("failed_users", []).append({"input": given, **_who(given, phone), "errors": [error]})
    whole: dict[str, Any] = {"messaging_product": "whatsapp", "block_users": answer}
    if "failed_users" in answer:
        whole["errors"] = {
            "message": "(#139100) Failed to block/unblock some users",
            "type": "OAuthException",
            "code": 139100,
            "error_data": {"details": "Failed to block some users, see failed_users for details"},
            "fbtrace_id": trace_id(parts.ids),
        }
    return whole
