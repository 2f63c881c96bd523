"""Graph API calls for groups. Source: the operator's page "Groups"."""

import base64
import hashlib
from collections.abc import Sequence
from typing import Annotated, Any, Final

from msgspec.structs import asdict, replace

from waypost.base.ids import Ids
from waypost.base.json_values import list_or_none, object_of, text_or_none, texts_in
from waypost.simulator.apis.errors import TITLES, bad_parameter, message_error
from waypost.simulator.apis.parameters import ProductParameters, check_text, is_missing, one_of, read_parameters
from waypost.simulator.apis.requests import Call, open_form, parse_parameter
from waypost.simulator.groups.model import (
    APPROVAL_REQUIRED,
    AUTO_APPROVE,
    GROUPS,
    MAX_PARTICIPANTS,
    GroupParticipant,
    JoinRequest,
    SimulatedGroup,
    drop_phones,
    drop_requests,
    find_group,
    identity,
    make_group_id,
    send,
)
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.nodes import page, requested_fields, unknown_field
from waypost.simulator.state.phones import find_phone_by_user_id, phone_digits
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.state.tokens import MESSAGING

operation = GraphOperations()

_MAX_PICTURE_BYTES: Final = 5 * 1024 * 1024  # ours; the operator documents a limit without its size
_PICTURE_TYPE: Final = "image/jpeg"
_MAX_FIELD_BYTES: Final = 64 * 1024


def _check_subject(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise is_missing(name)
    return _check_length(name, value.strip(), 128)


def _check_description(name: str, value: Any) -> str:
    return "" if value is None else _check_length(name, check_text(name, value), 2048)


def _check_length(name: str, text: str, max_chars: int) -> str:
    if len(text) > max_chars:
        raise bad_parameter(f"Param {name} must have at most {max_chars} characters.")
    return text


class NewGroupParameters(ProductParameters, frozen=True):
    """The parameters of a new group."""

    subject: Annotated[str, _check_subject]
    description: Annotated[str, _check_description] = ""
    join_approval_mode: Annotated[str, one_of(AUTO_APPROVE, APPROVAL_REQUIRED)] = AUTO_APPROVE


class GroupChangeParameters(ProductParameters, frozen=True):
    """The texts of a group to be changed."""

    subject: Annotated[str | None, _check_subject] = None
    description: Annotated[str | None, _check_description] = None


def _read_request_ids(name: str, value: Any) -> list[str]:
    request_ids = list(dict.fromkeys(texts_in(value)))
    if not request_ids:
        raise bad_parameter(f"Param {name} must be a list of ids of join requests.")
    return request_ids


class JoinRequestParameters(ProductParameters, frozen=True):
    """The join requests that are decided."""

    join_requests: Annotated[list[str], _read_request_ids]


@operation("groups.create", "POST", Number, "groups", permission=MESSAGING)
def create_group(transaction: Transaction, call: Call, number: Number) -> dict[str, Any]:
    """Create a group without participants; the webhook about it has the id of the request, and its invite link."""
    new, ids = read_parameters(NewGroupParameters, call.fields), transaction.state.ids
    group = SimulatedGroup(
        group_id=make_group_id(number.phone_number, ids.digits(18)),
        phone_number_id=number.phone_number_id,
        subject=new.subject,
        description=new.description,
        invite_code=_new_invite_code(ids),
        created_ms=transaction.state.clock.now_ms(),
        join_approval_mode=new.join_approval_mode,
    )
    transaction.save(GROUPS, group, group.group_id)
    details = {
        "subject": new.subject,
        **({"description": new.description} if new.description else {}),
        "invite_link": group.invite_link,
        "join_approval_mode": new.join_approval_mode,
    }
    return _accept(transaction, group, "group_create", details)


def list_groups(state: SimulatorState, call: Call, number: Number) -> dict[str, Any]:
    """Return a number's groups, oldest first."""
    return page(
        call,
        [group for group in state.values(GROUPS).values() if group.phone_number_id == number.phone_number_id],
        lambda group: f"{group.created_ms:015d} {group.group_id}",
        lambda group: _select_members(state, call, group, ("subject", "creation_timestamp")),
    )


def show_group(state: SimulatorState, call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Return a group with the requested fields."""
    return {"messaging_product": "whatsapp", **_select_members(state, call, group, ("subject",))}


@operation("groups.change", "POST", SimulatedGroup, permission=MESSAGING, is_streamed=True)
async def change_group(state: SimulatorState, call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Change a group's subject, description or picture, by JSON or by a form with the file."""
    fields, picture = (call.fields, None) if call.body is None else await _read_form(call)
    given = asdict(read_parameters(GroupChangeParameters, fields))
    texts = {name: given[name] for name in ("subject", "description") if given[name] is not None}
    if picture is None and not texts:
        raise bad_parameter("One of the parameters subject, description and profile_picture_file is required.")
    details = {f"group_{name}": {"text": text, "update_successful": True} for name, text in texts.items()}
    if picture is not None:
        details["profile_picture"] = {**picture, "update_successful": True}

    def write(transaction: Transaction) -> dict[str, Any]:
        changed = replace(find_group(transaction, group), **texts)
        transaction.save(GROUPS, changed, group.group_id)
        return _accept(transaction, changed, "group_settings_update", details)

    return await state.transact(write)


@operation("groups.delete", "DELETE", SimulatedGroup, permission=MESSAGING)
def delete_group(transaction: Transaction, _call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Delete a group."""
    known = find_group(transaction, group)
    transaction.delete(GROUPS, group.group_id)
    return _accept(transaction, known, "group_delete", {})


def show_invite_link(_state: SimulatorState, _call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Return a group's invite link."""
    return {"messaging_product": "whatsapp", "invite_link": group.invite_link}


@operation("groups.invite_link", "POST", SimulatedGroup, "invite_link", permission=MESSAGING)
def reset_invite_link(transaction: Transaction, call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Replace a group's invite link, which invalidates the old one, and return the new one."""
    read_parameters(ProductParameters, call.fields)
    changed = replace(find_group(transaction, group), invite_code=_new_invite_code(transaction.state.ids))
    transaction.save(GROUPS, changed, group.group_id)
    return {"messaging_product": "whatsapp", "invite_link": changed.invite_link}


@operation("groups.delete_participants", "DELETE", SimulatedGroup, "participants", permission=MESSAGING)
def remove_participants(transaction: Transaction, call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Remove participants; raises 131202 if a phone is named twice, 131212 if one is not in the group."""
    read_parameters(ProductParameters, call.fields)
    state = transaction.state
    phones = _requested_phones(state, call)
    if len(set(phones)) < len(phones):
        raise message_error(131202, "participants: a participant is named twice")
    known = find_group(transaction, group)
    for phone in phones:
        if known.find_participant(phone) is None:
            raise message_error(131212, f"participants: {phone} is not in the group")
    transaction.save(GROUPS, drop_phones(known, phones), group.group_id)
    removed = [{"input": phone, **identity(state, phone)} for phone in phones]
    details = {"initiated_by": "business", "removed_participants": removed}
    return _accept(transaction, known, "group_participants_remove", details)


def list_join_requests(state: SimulatorState, call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Return a group's open join requests, oldest first."""

    def view(request: JoinRequest) -> dict[str, Any]:
        members = {"join_request_id": request.request_id, "creation_timestamp": request.created_ms // 1000}
        return members | identity(state, request.phone)

    return page(call, group.join_requests, lambda request: f"{request.created_ms:015d} {request.request_id}", view)


@operation("groups.approve_join_requests", "POST", SimulatedGroup, "join_requests", permission=MESSAGING)
def approve_join_requests(transaction: Transaction, call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Let the phones of join requests join, as far as there is room."""
    request_ids = read_parameters(JoinRequestParameters, call.fields).join_requests
    state, known = transaction.state, find_group(transaction, group)
    requests = [request for request in known.join_requests if request.request_id in request_ids]
    room = MAX_PARTICIPANTS - len(known.participants)
    if approved := requests[:room]:
        joined = [GroupParticipant(request.phone, state.clock.now_ms()) for request in approved]
        changed = drop_requests(known, [request.request_id for request in approved])
        changed = replace(changed, participants=(*known.participants, *joined))
        transaction.save(GROUPS, changed, group.group_id)
        added = [{"input": request.phone, **identity(state, request.phone)} for request in approved]
        send(transaction, changed, "group_participants_add", {"reason": "invite_link", "added_participants": added})
    return _decided(transaction, known, "approved_join_requests", request_ids, requests[room:])


@operation("groups.reject_join_requests", "DELETE", SimulatedGroup, "join_requests", permission=MESSAGING)
def reject_join_requests(transaction: Transaction, call: Call, group: SimulatedGroup) -> dict[str, Any]:
    """Reject join requests, without a webhook; their phones can request it again."""
    request_ids = read_parameters(JoinRequestParameters, call.fields).join_requests
    known = find_group(transaction, group)
    transaction.save(GROUPS, drop_requests(known, request_ids), group.group_id)
    return _decided(transaction, known, "rejected_join_requests", request_ids, ())


def _decided(
    transaction: Transaction,
    group: SimulatedGroup,
    member: str,
    request_ids: Sequence[str],
    without_room: Sequence[JoinRequest],
) -> dict[str, Any]:
    """Return the join requests that were decided, and the errors of those that are unknown or find no room.

    No page shows `request_id`, but a public client needs it.
    """
    known = {request.request_id for request in group.join_requests}
    failed = {request_id: 131213 for request_id in request_ids if request_id not in known}
    failed |= {request.request_id: 131204 for request in without_room}
    response: dict[str, Any] = {
        "messaging_product": "whatsapp",
        "request_id": transaction.state.ids.new(),
        member: [request_id for request_id in request_ids if request_id not in failed],
    }
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
    state: SimulatorState, call: Call, group: SimulatedGroup, defaults: Sequence[str]
) -> dict[str, Any]:
    """Return a group's id and the fields that the request names; by default these."""
    names = [name for name in requested_fields(call) if name != "id"]
    identities = [identity(state, participant.phone) for participant in group.participants]
    members = {
        "join_approval_mode": group.join_approval_mode,
        "subject": group.subject,
        "description": group.description,
        "suspended": False,
        "creation_timestamp": group.created_ms // 1000,
        "total_participant_count": len(identities),
        "participants": identities,
    }
    for name in names:
        if name not in members:
            raise unknown_field(name, "WhatsAppBusinessGroup")
    return {"id": group.group_id, **{name: members[name] for name in names or defaults}}


def _accept(transaction: Transaction, group: SimulatedGroup, kind: str, details: dict[str, Any]) -> dict[str, Any]:
    """Send the webhook about a requested change, and return the response; both have the id of the request."""
    request_id = transaction.state.ids.new().replace("-", "").upper()
    send(transaction, group, kind, {"request_id": request_id, **details})
    return {"messaging_product": "whatsapp", "request_id": request_id}


def _new_invite_code(ids: Ids) -> str:
    return ids.secret()[:22]


def _requested_phones(state: SimulatorState, call: Call) -> list[str]:
    """Return the phones that a request names by number or by user id."""
    items = list_or_none(call.fields.get("participants"))
    if not items:
        raise is_missing("participants")
    phones: list[str] = []
    for item in map(object_of, items):
        user, user_id = text_or_none(item.get("user")), text_or_none(item.get("user_id"))
        known = find_phone_by_user_id(state, user_id) if user_id else None
        phone = phone_digits(user) if user else known.phone if known is not None else None
        if phone is None:
            raise bad_parameter("Param participants must have objects with user, a phone number, or a known user_id.")
        phones.append(phone)
    return phones


async def _read_form(call: Call) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the plain fields of a form, and the type and hash of its picture."""
    form = open_form(call, max_bytes=_MAX_PICTURE_BYTES + _MAX_FIELD_BYTES)
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
