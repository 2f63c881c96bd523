"""Functions of the Graph API calls for groups."""

import base64
import hashlib
from collections.abc import Sequence
from typing import Any, Final

from waypost.base.json_values import list_or_none, object_or_none, text_or_none, texts_in
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.errors import TITLES, bad_parameter
from waypost.simulator.groups.group import MAX_PICTURE_BYTES, JoinRequest, SimulatedGroup
from waypost.simulator.lists import page
from waypost.simulator.phones.phones import phone_digits
from waypost.simulator.requests import Call, open_form, parse_parameter
from waypost.simulator.services import SimulatorServices

_LISTED_FIELDS: Final = ("subject", "creation_timestamp")
_DEFAULT_FIELDS: Final = ("subject",)
_PICTURE_TYPE: Final = "image/jpeg"
_MAX_FIELD_BYTES: Final = 64 * 1024


async def create_group(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Create a group; the webhook about it has its invite link."""
    _check_product(call.fields)
    return _accepted(await services.groups.create(number, call.fields))


async def list_groups(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Return a number's groups, oldest first."""
    return page(
        call,
        services.groups.number_groups(number.phone_number_id),
        lambda group: f"{group.created_ms:015d} {group.group_id}",
        lambda group: _select_members(services, call, group, _LISTED_FIELDS),
    )


async def show_group(services: SimulatorServices, call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Return a group with the requested fields."""
    return {"messaging_product": "whatsapp", **_select_members(services, call, group, _DEFAULT_FIELDS)}


async def change_group(services: SimulatorServices, call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Change a group's subject, description or picture, by JSON or by a form with the file."""
    fields, picture = call.fields, None
    if call.body is not None:
        fields, picture = await _read_form(call)
    _check_product(fields)
    if picture is None and "subject" not in fields and "description" not in fields:
        raise bad_parameter("One of the parameters subject, description and profile_picture_file is required.")
    return _accepted(await services.groups.change(group, fields, picture))


async def delete_group(services: SimulatorServices, _call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Delete a group."""
    return _accepted(await services.groups.delete(group))


async def show_invite_link(_services: SimulatorServices, _call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Return a group's invite link."""
    return {"messaging_product": "whatsapp", "invite_link": group.invite_link}


async def reset_invite_link(services: SimulatorServices, call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Replace a group's invite link, and return the new one."""
    _check_product(call.fields)
    changed = await services.groups.reset_invite_link(group)
    return {"messaging_product": "whatsapp", "invite_link": changed.invite_link}


async def remove_participants(services: SimulatorServices, call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Remove participants from a group."""
    _check_product(call.fields)
    return _accepted(await services.groups.remove(group, _requested_phones(services, call)))


async def list_join_requests(services: SimulatorServices, call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Return a group's open join requests, oldest first."""

    def view(request: JoinRequest) -> dict[str, Any]:
        phone = services.phones.fill_user_id(services.phones.find_or_default(request.phone))
        members = {"join_request_id": request.request_id, "creation_timestamp": request.created_ms // 1000}
        return members | phone.identity_members("wa_id", "user_id")

    return page(call, group.join_requests, lambda request: f"{request.created_ms:015d} {request.request_id}", view)


async def approve_join_requests(services: SimulatorServices, call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Let the phones of join requests join."""
    request_ids = _requested_ids(call)
    failed = await services.groups.approve_join_requests(group, request_ids)
    return _decided(services, "approved_join_requests", request_ids, failed)


async def reject_join_requests(services: SimulatorServices, call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Reject join requests; their phones can request it again."""
    request_ids = _requested_ids(call)
    failed = await services.groups.reject_join_requests(group, request_ids)
    return _decided(services, "rejected_join_requests", request_ids, failed)


def _requested_ids(call: Call) -> list[str]:
    _check_product(call.fields)
    request_ids = list(dict.fromkeys(texts_in(call.fields.get("join_requests"))))
    if not request_ids:
        raise bad_parameter("Param join_requests must be a list of ids of join requests.")
    return request_ids


def _decided(
    services: SimulatorServices, member: str, request_ids: Sequence[str], failed: dict[str, int]
) -> dict[str, Any]:
    """Return the join requests that were decided, and the errors of the others.

    No page shows `request_id`, but a public client needs it.
    """
    done = [request_id for request_id in request_ids if request_id not in failed]
    response: dict[str, Any] = {"messaging_product": "whatsapp", "request_id": services.ids.new(), member: done}
    if failed:
        response["failed_join_requests"] = [
            {"join_request_id": request_id, "errors": [_error_object(code)]} for request_id, code in failed.items()
        ]
        response["errors"] = [_error_object(131201)]
    return response


def _error_object(code: int) -> dict[str, Any]:
    title = TITLES[code][1]
    return {"code": code, "message": title, "title": title, "error_data": {"details": title}}


def _select_members(
    services: SimulatorServices, call: Call, group: SimulatedGroup, defaults: Sequence[str]
) -> dict[str, Any]:
    """Return a group's id and the fields that the request names; by default these."""
    names = [name.strip() for name in call.query.get("fields", "").split(",") if name.strip() not in ("", "id")]
    members = _group_members(services, group)
    for name in names:
        if name not in members:
            raise bad_parameter(f"Tried accessing nonexisting field ({name}) on node type (WhatsAppBusinessGroup)")
    return {"id": group.group_id, **{name: members[name] for name in names or defaults}}


def _group_members(services: SimulatorServices, group: SimulatedGroup) -> dict[str, Any]:
    """Return all fields of a group. Source: the operator's page "Groups"."""
    phones = [services.phones.find_or_default(participant.phone) for participant in group.participants]
    identities = [services.phones.fill_user_id(phone).identity_members("wa_id", "user_id") for phone in phones]
    return {
        "join_approval_mode": group.join_approval_mode,
        "subject": group.subject,
        "description": group.description,
        "suspended": False,
        "creation_timestamp": group.created_ms // 1000,
        "total_participant_count": len(identities),
        "participants": identities,
    }


def _check_product(fields: dict[str, Any]) -> None:
    if fields.get("messaging_product") != "whatsapp":
        raise bad_parameter("The parameter messaging_product is required.")


def _accepted(request_id: str) -> dict[str, Any]:
    return {"messaging_product": "whatsapp", "request_id": request_id}


def _requested_phones(services: SimulatorServices, call: Call) -> list[str]:
    """Return the phones that a request names by number or by user id."""
    items = list_or_none(call.fields.get("participants"))
    if not items:
        raise bad_parameter("The parameter participants is required.")
    phones: list[str] = []
    for item in items:
        members = object_or_none(item) or {}
        user, user_id = text_or_none(members.get("user")), text_or_none(members.get("user_id"))
        known = services.phones.find_by_user_id(user_id) if user_id else None
        phone = phone_digits(user) if user else known.phone if known is not None else None
        if phone is None:
            raise bad_parameter("Param participants must have objects with user, a phone number, or a known user_id.")
        phones.append(phone)
    return phones


async def _read_form(call: Call) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the plain fields of a form, and the type and hash of its picture."""
    form = open_form(call, max_bytes=MAX_PICTURE_BYTES + _MAX_FIELD_BYTES)
    fields, picture = dict(call.fields), None
    while (head := await form.next_part()) is not None:
        if head.file_name is None:
            fields[head.name] = parse_parameter(await form.text(max_bytes=_MAX_FIELD_BYTES))
        elif head.name == "profile_picture_file":
            if head.content_type != _PICTURE_TYPE:
                raise bad_parameter(f"Param profile_picture_file must be of type {_PICTURE_TYPE}.")
            digest = hashlib.sha256()
            async for chunk in form.chunks():
                digest.update(chunk)
            picture = {"mime_type": _PICTURE_TYPE, "sha256": base64.b64encode(digest.digest()).decode()}
    return fields, picture
