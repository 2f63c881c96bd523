"""Direct calls about the groups of a number."""

from collections.abc import Sequence
from dataclasses import dataclass

from waypost.domain.direct_calls.call import OperatorCall, RawObject


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """A change of a group that the operator has accepted; a webhook with the same id reports its result."""

    request_id: str


@dataclass(frozen=True, slots=True)
class GroupPicture:
    """A new picture of a group."""

    file_name: str
    mime_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class CreateGroup(OperatorCall[GroupRequest]):
    """Create a group; a webhook reports its id and its invite link."""

    number_id: str
    subject: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class ListGroups(OperatorCall[RawObject]):
    """List one page of a number's groups; the cursors are the operator's."""

    number_id: str
    limit: str = ""
    after: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class ListGroupSubjects(OperatorCall[dict[str, str]]):
    """List the subjects of all groups of a number, by the groups' ids."""

    number_id: str


@dataclass(frozen=True, slots=True)
class GetGroup(OperatorCall[RawObject]):
    """Get fields of a group."""

    group_id: str
    fields: Sequence[str]


@dataclass(frozen=True, slots=True)
class ChangeGroup(OperatorCall[GroupRequest]):
    """Change subject, description or picture of a group; None leaves one as it is."""

    group_id: str
    subject: str | None = None
    description: str | None = None
    picture: GroupPicture | None = None


@dataclass(frozen=True, slots=True)
class DeleteGroup(OperatorCall[GroupRequest]):
    """Delete a group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class ResetInviteLink(OperatorCall[str]):
    """Replace the invite link of a group; the response is the new link."""

    group_id: str


@dataclass(frozen=True, slots=True)
class RemoveParticipants(OperatorCall[GroupRequest]):
    """Remove participants from a group, by phone number."""

    group_id: str
    users: Sequence[str]
