"""One simulated group of a business number, and the limits of its settings."""

import base64
from typing import Any, Final

import msgspec

from waypost.simulator.errors import bad_parameter

# Source: the operator's page "Groups"
MAX_SUBJECT_CHARS: Final = 128
MAX_DESCRIPTION_CHARS: Final = 2048
MAX_PARTICIPANTS: Final = 8
MAX_PICTURE_BYTES: Final = 5 * 1024 * 1024  # ours; the operator documents a limit without its size
AUTO_APPROVE: Final = "auto_approve"
APPROVAL_REQUIRED: Final = "approval_required"
INVITE_LINK_PREFIX: Final = "https://chat.whatsapp.com/"


class GroupParticipant(msgspec.Struct, frozen=True):
    """A phone in a group, without the business.

    Args:
        phone: its digits.
        joined_ms: it shows what was written from then on.
    """

    phone: str
    joined_ms: int


class JoinRequest(msgspec.Struct, frozen=True):
    """A phone's request to join a group that approves each.

    Args:
        request_id: unique in the group.
        phone: its digits.
    """

    request_id: str
    phone: str
    created_ms: int


class SimulatedGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """One group.

    Args:
        phone_number_id: of the business number that created it, its only administrator.
        invite_code: the last part of its invite link; a new one invalidates the link.
        participants: in the order in which they joined.
        join_requests: those that wait for the business, oldest first.
    """

    group_id: str
    phone_number_id: str
    subject: str
    description: str
    invite_code: str
    created_ms: int
    participants: tuple[GroupParticipant, ...] = ()
    join_approval_mode: str = AUTO_APPROVE
    join_requests: tuple[JoinRequest, ...] = ()

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
    """Return a group's id in the operator's format. Source: the operator's page "Groups", samples decoded."""
    text = f"capi_group:{business_digits}:{number}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def make_join_request_id(group_id: str, phone: str) -> str:
    """Return a join request's id in the operator's format. Source: the operator's page "Groups", samples decoded."""
    padded = group_id + "=" * (-len(group_id) % 4)
    number = base64.urlsafe_b64decode(padded).decode().rpartition(":")[2]
    return base64.urlsafe_b64encode(f"{phone}:{number}".encode()).decode().rstrip("=")


def read_approval_mode(fields: dict[str, Any]) -> str:
    """Return whether those who open the invite link join at once or request it.

    Raises:
        GraphApiError: 100, it is another value.
    """
    mode = fields.get("join_approval_mode", AUTO_APPROVE)
    if mode not in (AUTO_APPROVE, APPROVAL_REQUIRED):
        raise bad_parameter(f"Param join_approval_mode must be one of {{{AUTO_APPROVE}, {APPROVAL_REQUIRED}}}.")
    return mode


def read_subject(fields: dict[str, Any]) -> str:
    """Return the subject of a request, without white space around it.

    Raises:
        GraphApiError: 100, it is missing or too long.
    """
    subject = fields.get("subject")
    if not isinstance(subject, str) or not subject.strip():
        raise bad_parameter("The parameter subject is required.")
    return _check_length("subject", subject.strip(), MAX_SUBJECT_CHARS)


def read_description(fields: dict[str, Any]) -> str:
    """Return the description of a request; empty if it has none.

    Raises:
        GraphApiError: 100, it is no text or too long.
    """
    description = fields.get("description")
    if description is None:
        return ""
    if not isinstance(description, str):
        raise bad_parameter("Param description must be a string.")
    return _check_length("description", description, MAX_DESCRIPTION_CHARS)


def _check_length(name: str, text: str, max_chars: int) -> str:
    if len(text) > max_chars:
        raise bad_parameter(f"Param {name} must have at most {max_chars} characters.")
    return text
