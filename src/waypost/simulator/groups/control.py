"""Control API calls for groups: listing, joining and leaving as a phone's owner."""

from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import replace

from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlOperations, path_object, view_of
from waypost.simulator.apis.field_types import Name
from waypost.simulator.groups.model import (
    APPROVAL_REQUIRED,
    GROUPS,
    INVITE_LINK_PREFIX,
    MAX_PARTICIPANTS,
    GroupParticipant,
    JoinRequest,
    SimulatedGroup,
    drop_phones,
    drop_requests,
    find_group,
    identity,
    make_join_request_id,
    request_members,
    send,
)
from waypost.simulator.state.control_parameters import PathPhone
from waypost.simulator.state.phones import find_or_create_phone
from waypost.simulator.state.simulator_state import SimulatorState, Transaction

PathGroup = Annotated[
    SimulatedGroup,
    path_object("group_id", lambda state: state.values(GROUPS), "is no group", "an id of GET /control/groups"),
]

operation = ControlOperations()


class GroupView(Struct):
    """A group with its invite link, participants and requests to join: phones."""

    group_id: str
    phone_number_id: str
    subject: str
    description: str
    invite_link: str
    created_ms: int
    participants: list[str]
    join_approval_mode: str
    join_requests: list[str]


@operation("GET", "/control/groups", groups=list[GroupView])
async def list_groups(state: SimulatorState) -> dict[str, Any]:
    """Return all groups with their invite links and participants, oldest first."""
    return {"groups": [group_view(group) for group in state.values(GROUPS).values()]}


@operation("GET", "/control/phones/{phone}/groups", phone=str, groups=list[GroupView])
async def list_phone_groups(state: SimulatorState, phone: PathPhone) -> dict[str, Any]:
    """Return the groups that a phone is in, oldest first."""
    groups = [group for group in state.values(GROUPS).values() if group.find_participant(phone) is not None]
    return {"phone": phone, "groups": [group_view(group) for group in groups]}


@operation("POST", "/control/phones/{phone}/groups")
async def join_group(state: SimulatorState, phone: PathPhone, *, invite_link: Name) -> GroupView:
    """Join a group by its invite link, or request it where the group approves that; the business receives a webhook."""
    find_or_create_phone(state, phone)
    code, now_ms = invite_link.removeprefix(INVITE_LINK_PREFIX), state.clock.now_ms()

    def write(transaction: Transaction) -> SimulatedGroup:
        group = next((each for each in transaction.values(GROUPS).values() if each.invite_code == code), None)
        if group is None:
            raise ControlApiError("invite_link", "opens no group", "a link of GET /control/groups", status=404)
        if group.find_participant(phone) is not None or group.find_join_request(phone) is not None:
            return group
        if group.join_approval_mode == APPROVAL_REQUIRED:
            request = JoinRequest(make_join_request_id(group.group_id, phone), phone, now_ms)
            changed = replace(group, join_requests=(*group.join_requests, request))
            send(transaction, changed, "group_join_request_created", request_members(state, request))
        elif len(group.participants) < MAX_PARTICIPANTS:
            changed = replace(group, participants=(*group.participants, GroupParticipant(phone, now_ms)))
            details = {"reason": "invite_link", "added_participants": [identity(state, phone)]}
            send(transaction, changed, "group_participants_add", details)
        else:
            rule = f"the group has {MAX_PARTICIPANTS} participants already"
            raise ControlApiError("invite_link", rule, "a group with room", status=409)
        transaction.save(GROUPS, changed, group.group_id)
        return changed

    return group_view(await state.transact(write))


@operation("DELETE", "/control/phones/{phone}/groups/{group_id}", phone=str, left=str)
async def leave_group(state: SimulatorState, phone: PathPhone, group: PathGroup) -> dict[str, str]:
    """Leave a group, or take back a request to join it; the business receives a webhook."""

    def write(transaction: Transaction) -> None:
        known = find_group(transaction, group)
        if request := known.find_join_request(phone):
            transaction.save(GROUPS, drop_requests(known, [request.request_id]), group.group_id)
            send(transaction, known, "group_join_request_revoked", request_members(state, request))
        else:
            check_participant(phone, known)
            transaction.save(GROUPS, drop_phones(known, [phone]), group.group_id)
            details = {"initiated_by": "participant", "removed_participants": [identity(state, phone)]}
            send(transaction, known, "group_participants_remove", details)

    await state.transact(write)
    return {"phone": phone, "left": group.group_id}


def check_participant(phone: str, group: SimulatedGroup) -> GroupParticipant:
    """Return a phone's participation in a group.

    Raises:
        ControlApiError: 404, it is not.
    """
    participant = group.find_participant(phone)
    if participant is None:
        accepted = f"a group of GET /control/phones/{phone}/groups"
        raise ControlApiError("group_id", "the phone is not in the group", accepted, status=404)
    return participant


def group_view(group: SimulatedGroup) -> GroupView:
    """Return a group with its participants and requests to join."""
    participants = [participant.phone for participant in group.participants]
    return view_of(
        GroupView, group, participants=participants, join_requests=[one.phone for one in group.join_requests]
    )
