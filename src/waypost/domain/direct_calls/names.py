"""Direct calls about a number's display name, its official account, its username and its public key."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from waypost.domain.direct_calls.call import CallResult, OperatorCall, RawObject


@dataclass(frozen=True, slots=True)
class DisplayName:
    """The display name of a number, and the one that was requested; the statuses are the operator's. Empty: none."""

    verified_name: str = ""
    verified_status: str = ""
    requested_name: str = ""
    requested_status: str = ""


@dataclass(frozen=True, slots=True)
class GetDisplayName(OperatorCall[DisplayName]):
    """Get the display name of a number."""

    number_id: str


@dataclass(frozen=True, slots=True)
class RequestDisplayName(OperatorCall[CallResult]):
    """Request another display name for a number; the operator reviews it."""

    number_id: str
    name: str


@dataclass(frozen=True, slots=True)
class GetOfficialAccount(OperatorCall[str]):
    """Get the status of a number as an official business account; empty: not given."""

    number_id: str


@dataclass(frozen=True, slots=True)
class RequestOfficialAccount(OperatorCall[CallResult]):
    """Request that a number becomes an official business account; the members are the operator's."""

    number_id: str
    members: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class GetUsername(OperatorCall[RawObject]):
    """Get the username of a number, and its status; an object without them if it has none."""

    number_id: str


@dataclass(frozen=True, slots=True)
class SetUsername(OperatorCall[RawObject]):
    """Set the username of a number.

    Attributes:
        transfer_action: none, or force_transfer to take it from another number of the business; empty: not sent.
    """

    number_id: str
    username: str
    transfer_action: str = ""


@dataclass(frozen=True, slots=True)
class DeleteUsername(OperatorCall[CallResult]):
    """Delete the username of a number."""

    number_id: str


@dataclass(frozen=True, slots=True)
class ListUsernameSuggestions(OperatorCall[Sequence[str]]):
    """List the usernames that the operator suggests for a number."""

    number_id: str


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The public key of a number, in PEM, and the operator's status of its signature; empty: none."""

    key: str = ""
    signature_status: str = ""


@dataclass(frozen=True, slots=True)
class GetPublicKey(OperatorCall[PublicKey]):
    """Get the public key with which the operator encrypts what flows exchange."""

    number_id: str


@dataclass(frozen=True, slots=True)
class SetPublicKey(OperatorCall[CallResult]):
    """Set the public key of a number."""

    number_id: str
    key: str
