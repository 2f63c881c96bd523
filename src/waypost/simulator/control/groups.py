"""Control API calls for groups: joining, leaving, reading and writing as a phone's owner."""

from typing import Annotated, Any

from msgspec import Meta

from waypost.simulator.control.endpoints import ControlBody, ControlOperations, ControlQuery
from waypost.simulator.control.phone_actions import PhoneMessageBody, check_online, send_content
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.field_types import Name, Position, WaitMs, accepts
from waypost.simulator.groups.group import GroupParticipant, SimulatedGroup
from waypost.simulator.services import SimulatorServices

operation = ControlOperations()


class GroupQuery(ControlQuery, frozen=True):
    """Filter of a group's messages."""

    after: Annotated[Position | None, accepts("0 to 4611686018427387904")] = None
    limit: Annotated[int, Meta(ge=0, le=1000)] = 100
    wait_ms: WaitMs = 0


class JoinBody(ControlBody, frozen=True):
    """The invite link of a group."""

    invite_link: Name


@operation("GET", "/control/groups")
async def list_groups(services: SimulatorServices) -> dict[str, Any]:
    """Return all groups with their invite links and participants, oldest first."""
    return {"groups": [group_view(group) for group in services.groups.by_id.values()]}


@operation("GET", "/control/phones/{phone}/groups")
async def list_phone_groups(services: SimulatorServices, phone: str) -> dict[str, Any]:
    """Return the groups that a phone is in, oldest first."""
    return {"phone": phone, "groups": [group_view(group) for group in services.groups.phone_groups(phone)]}


@operation("POST", "/control/phones/{phone}/groups")
async def join_group(services: SimulatorServices, phone: str, body: JoinBody) -> dict[str, Any]:
    """Join a group by its invite link, or request it where the group approves that; the business receives a webhook."""
    return group_view(await services.groups.join(phone, body.invite_link))


@operation("DELETE", "/control/phones/{phone}/groups/{group_id}")
async def leave_group(services: SimulatorServices, phone: str, group: SimulatedGroup) -> dict[str, Any]:
    """Leave a group, or take back a request to join it; the business receives a webhook."""
    if group.find_join_request(phone) is not None:
        await services.groups.cancel_join_request(phone, group)
        return {"phone": phone, "left": group.group_id}
    check_participant(phone, group)
    await services.groups.leave(phone, group)
    return {"phone": phone, "left": group.group_id}


@operation("GET", "/control/phones/{phone}/groups/{group_id}")
async def show_phone_group(
    services: SimulatorServices, phone: str, group: SimulatedGroup, query: GroupQuery
) -> dict[str, Any]:
    """Return a group and its messages as a phone shows them, newest last: those since it joined.

    A message from a phone has `from`. With `wait_ms` the response waits for a message after `after`; without `after`,
    for an unread or a new one.
    """
    participant = check_participant(phone, group)
    chats = services.group_chats
    if query.wait_ms:
        shown = await chats.wait_for_messages(
            group, participant, wait_ms=query.wait_ms, after=query.after, limit=query.limit
        )
    else:
        shown = await chats.messages(group, participant, after=query.after or 0, limit=query.limit)
    return {**group_view(group), "messages": shown}


@operation("POST", "/control/phones/{phone}/groups/{group_id}/messages")
async def write_to_group(
    services: SimulatorServices, phone: str, group: SimulatedGroup, body: PhoneMessageBody
) -> dict[str, Any]:
    """Send a message from a phone to a group; reads what has arrived there, and opens no window."""
    check_participant(phone, group)
    check_online(services, phone)
    for field, wamid in (("context_id", body.context_id), ("reaction.message_id", _reaction_to(body))):
        if wamid is not None and await services.group_chats.find_message(group, wamid) is None:
            raise ControlApiError(field, "is not in the group", "a wamid of the group's messages", status=404)
    await _read_group(services, phone, group)
    wamid = await send_content(services, phone, services.accounts.numbers[group.phone_number_id], body, group)
    services.group_chats.wake(group)
    return {"wamid": wamid}


@operation("POST", "/control/phones/{phone}/groups/{group_id}/read")
async def read_group(services: SimulatorServices, phone: str, group: SimulatedGroup) -> dict[str, Any]:
    """Mark all messages of a group as read on a phone."""
    check_participant(phone, group)
    check_online(services, phone)
    return {"read": await _read_group(services, phone, group)}


async def _read_group(services: SimulatorServices, phone: str, group: SimulatedGroup) -> int:
    handset = services.phones.fill_user_id(services.phones.find_or_default(phone))
    return await services.group_chats.read(handset, group)


def _reaction_to(body: PhoneMessageBody) -> str | None:
    """Return the message that a reaction is for."""
    message_id = body.reaction.get("message_id") if body.type == "reaction" and body.reaction is not None else None
    return message_id if isinstance(message_id, str) else None


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


def group_view(group: SimulatedGroup) -> dict[str, Any]:
    """Return a group as the control API shows it."""
    return {
        "group_id": group.group_id,
        "phone_number_id": group.phone_number_id,
        "subject": group.subject,
        "description": group.description,
        "invite_link": group.invite_link,
        "created_ms": group.created_ms,
        "participants": [participant.phone for participant in group.participants],
        "join_approval_mode": group.join_approval_mode,
        "join_requests": [request.phone for request in group.join_requests],
    }
