"""Direct calls about a number's profile, blocked users, chat components and read messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from waypost.domain.direct_calls.call import CallResult, OperatorCall, RawObject


@dataclass(frozen=True, slots=True)
class BusinessProfile:
    """The business profile of a number; empty: not set."""

    about: str = ""
    address: str = ""
    description: str = ""
    email: str = ""
    vertical: str = ""
    websites: Sequence[str] = ()
    picture_url: str = ""


@dataclass(frozen=True, slots=True)
class GetProfile(OperatorCall[BusinessProfile]):
    """Get the business profile of a number."""

    number_id: str


@dataclass(frozen=True, slots=True)
class SetProfile(OperatorCall[CallResult]):
    """Change the business profile of a number; None leaves a field as it is.

    Attributes:
        picture: the handle of an uploaded sample; empty: no picture.
    """

    number_id: str = ""
    about: str | None = None
    address: str | None = None
    websites: Sequence[str] | None = None
    description: str | None = None
    email: str | None = None
    vertical: str | None = None
    picture: str | None = None


@dataclass(frozen=True, slots=True)
class BlockResult:
    """The users that the operator has blocked or unblocked.

    Attributes:
        users: their phone numbers, in digits.
        failure: the operator's error text for the first user that failed; None: none failed.
        raw: for the partner.
    """

    users: frozenset[str]
    failure: str | None
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Block(OperatorCall[BlockResult]):
    """Block users of a number."""

    number_id: str
    users: Sequence[str]


@dataclass(frozen=True, slots=True)
class Unblock(OperatorCall[BlockResult]):
    """Unblock users of a number."""

    number_id: str
    users: Sequence[str]


@dataclass(frozen=True, slots=True)
class ListBlocked(OperatorCall[RawObject]):
    """List one page of a number's block list; the cursors are the operator's."""

    number_id: str
    limit: str = ""
    after: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class GetComponents(OperatorCall[RawObject]):
    """Get ice breakers, commands and welcome message of a number."""

    number_id: str


@dataclass(frozen=True, slots=True)
class SetComponents(OperatorCall[CallResult]):
    """Change ice breakers, commands or welcome message of a number; None leaves one as it is.

    Attributes:
        commands: name and description of each.
        prompts: the ice breakers.
    """

    number_id: str
    enable_welcome_message: bool | None = None
    commands: Sequence[tuple[str, str]] | None = None
    prompts: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class MarkRead(OperatorCall[CallResult]):
    """Mark a received message as read, optionally with a typing indicator."""

    number_id: str
    message_id: str
    typing: bool = False
