"""Control API calls for groups on a phone: reading and writing."""

from typing import Annotated

from msgspec import Meta

from waypost.base.json_values import text_or_none
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlOperations, view_of
from waypost.simulator.apis.field_types import Position, WaitMs, accepts
from waypost.simulator.groups.control import GroupView, PathGroup, check_participant, group_view
from waypost.simulator.handsets.control_actions import PhoneMessageBody, send_content
from waypost.simulator.handsets.group_chats import list_group_messages, wait_for_group_messages
from waypost.simulator.handsets.group_chats import read_group as read_group_messages
from waypost.simulator.handsets.inboxes import MessageView
from waypost.simulator.messages.message_checks import GROUP_PREFIX
from waypost.simulator.state.control_parameters import PathPhone, check_online
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.storage.tables.messages import MESSAGES

operation = ControlOperations()


class GroupChat(GroupView):
    """A group with its messages as a phone shows them."""

    messages: list[MessageView]


@operation("GET", "/control/phones/{phone}/groups/{group_id}")
async def show_phone_group(
    state: SimulatorState,
    phone: PathPhone,
    group: PathGroup,
    *,
    after: Annotated[Position | None, accepts("0 to 4611686018427387904")] = None,
    limit: Annotated[int, Meta(ge=0, le=1000)] = 100,
    wait_ms: WaitMs = 0,
) -> GroupChat:
    """Return a group and its messages as a phone shows them, newest last: those since it joined.

    A message from a phone has `from`. With `wait_ms` the response waits for a message after `after`; without `after`,
    for an unread or a new one.
    """
    participant = check_participant(phone, group)
    if wait_ms:
        shown = await wait_for_group_messages(state, group, participant, wait_ms=wait_ms, after=after, limit=limit)
    else:
        shown = await list_group_messages(state, group, participant, after=after or 0, limit=limit)
    return view_of(GroupChat, group_view(group), messages=shown)


@operation("POST", "/control/phones/{phone}/groups/{group_id}/messages", wamid=str)
async def write_to_group(
    state: SimulatorState, phone: PathPhone, group: PathGroup, body: PhoneMessageBody
) -> dict[str, str]:
    """Send a message from a phone to a group; reads what has arrived there, and opens no window."""
    check_participant(phone, group)
    check_online(state, phone)
    recipient = GROUP_PREFIX + group.group_id
    reaction = body.reaction if body.type == "reaction" and body.reaction else {}
    for field, wamid in (
        ("context_id", body.context_id),
        ("reaction.message_id", text_or_none(reaction.get("message_id"))),
    ):
        if wamid is not None and not await MESSAGES.find(state.store, wamid=wamid, phone=recipient):
            raise ControlApiError(field, "is not in the group", "a wamid of the group's messages", status=404)
    await state.transact(lambda transaction: read_group_messages(transaction, phone, group))
    wamid = await send_content(state, phone, state.accounts.numbers[group.phone_number_id], body, group)
    for participant in group.participants:
        state.delivery_signals.wake(participant.phone)
    return {"wamid": wamid}


@operation("POST", "/control/phones/{phone}/groups/{group_id}/read", read=int)
async def read_group(state: SimulatorState, phone: PathPhone, group: PathGroup) -> dict[str, int]:
    """Mark all messages of a group as read on a phone."""
    check_participant(phone, group)
    check_online(state, phone)
    return {"read": await state.transact(lambda transaction: read_group_messages(transaction, phone, group))}
