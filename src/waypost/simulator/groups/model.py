"""Groups of business numbers: creating, changing and deleting them, phones that join and leave, and the webhooks.

Source: the operator's page "Groups"; ledger rows 74 and 75.
"""

import base64
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from waypost.simulator.apis.errors import message_error
from waypost.simulator.state.phones import fill_user_id, find_phone
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind

MAX_PARTICIPANTS: Final = 8
AUTO_APPROVE: Final = "auto_approve"
APPROVAL_REQUIRED: Final = "approval_required"
INVITE_LINK_PREFIX: Final = "https://chat.whatsapp.com/"


class GroupParticipant(msgspec.Struct, frozen=True):
    """A phone in a group, without the business."""

    phone: str  # its digits
    joined_ms: int  # it shows what was written from then on


class JoinRequest(msgspec.Struct, frozen=True):
    """A phone's request to join a group that approves each."""

    request_id: str  # unique in the group
    phone: str  # its digits
    created_ms: int


class SimulatedGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """One group."""

    group_id: str
    phone_number_id: str  # of the business number that created it, its only administrator
    subject: str
    description: str
    invite_code: str  # the last part of its invite link; a new one invalidates the link
    created_ms: int
    participants: tuple[GroupParticipant, ...] = ()  # in the order in which they joined
    join_approval_mode: str = AUTO_APPROVE
    join_requests: tuple[JoinRequest, ...] = ()  # those that wait for the business, oldest first

    @property
    def invite_link(self) -> str:
        """The link with which phones join."""
        return INVITE_LINK_PREFIX + self.invite_code

    def find_participant(self, phone: str) -> GroupParticipant | None:
        """Return a phone's participation; None if it is not in the group."""
        return next((participant for participant in self.participants if participant.phone == phone), None)

    def find_join_request(self, phone: str) -> JoinRequest | None:
        """Return a phone's request to join; None if it has none."""
        return next((request for request in self.join_requests if request.phone == phone), None)


def make_group_id(business_digits: str, number: str) -> str:
    """Return a group's id in the operator's format, which is that of its samples."""
    text = f"capi_group:{business_digits}:{number}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def make_join_request_id(group_id: str, phone: str) -> str:
    """Return a join request's id in the operator's format, which is that of its samples."""
    padded = group_id + "=" * (-len(group_id) % 4)
    number = base64.urlsafe_b64decode(padded).decode().rpartition(":")[2]
    return base64.urlsafe_b64encode(f"{phone}:{number}".encode()).decode().rstrip("=")


GROUPS: Final = StoredKind("group", SimulatedGroup)


def find_group(transaction: Transaction, group: SimulatedGroup) -> SimulatedGroup:
    """Return the group as it is now. Raises GraphApiError: 131041, it has been deleted meanwhile."""
    known = transaction.find(GROUPS, group.group_id)
    if known is None:
        raise message_error(131041, "The group was not found")
    return known


_WEBHOOK_FIELDS: Final = {
    "group_create": "group_lifecycle_update",
    "group_delete": "group_lifecycle_update",
    "group_settings_update": "group_settings_update",
}
"""The webhook field of each kind of change; all others are about participants."""


def send(transaction: Transaction, group: SimulatedGroup, kind: str, details: dict[str, Any]) -> None:
    """Send the webhook about a change of a group."""
    number, now_ms = transaction.state.accounts.numbers[group.phone_number_id], transaction.state.clock.now_ms()
    change = {"timestamp": now_ms // 1000, "group_id": group.group_id, "type": kind, **details}
    field = _WEBHOOK_FIELDS.get(kind, "group_participants_update")
    transaction.notify(number.waba_id, field, number.webhook_value(groups=[change]), subject=group.group_id)


def request_members(state: SimulatorState, request: JoinRequest) -> dict[str, Any]:
    """Return the members of the webhook about a join request."""
    return {"reason": "invite_link", "join_request_id": request.request_id, **identity(state, request.phone)}


def identity(state: SimulatorState, phone: str) -> dict[str, str]:
    """Return a phone as businesses see it."""
    return fill_user_id(state, find_phone(state, phone)).identity_members("wa_id", "user_id")


def drop_phones(group: SimulatedGroup, phones: Sequence[str]) -> SimulatedGroup:
    """Return a group without some participants."""
    return replace(group, participants=tuple(item for item in group.participants if item.phone not in phones))


def drop_requests(group: SimulatedGroup, request_ids: Sequence[str]) -> SimulatedGroup:
    """Return a group without some join requests."""
    kept = tuple(request for request in group.join_requests if request.request_id not in request_ids)
    return replace(group, join_requests=kept)
