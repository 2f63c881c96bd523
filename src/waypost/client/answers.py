"""What a door answered, and what it means when it was not what was asked for."""

from dataclasses import dataclass
from typing import Any, Final

import msgspec

SEE_ACCEPTED: Final = "see `accepted` for the names"
"""Ends a sentence of the simulator's control API that does not repeat its member `accepted`."""


class DoorRefused(Exception):
    """The door said no; the text is its own.

    Attributes:
        status: of the answer.
        message: as the door gave it.
        why: the explanation in the header `Waypost-Reason`, where there was one.
    """

    def __init__(self, status: int, message: str, why: str = "") -> None:
        explained = f"{message}: {why}" if why and why not in message else message
        super().__init__(f"{explained} ({status})")
        self.status = status
        self.message = message
        self.why = why


class NotReached(Exception):
    """Nobody answers at the address."""


def is_told(found: Any) -> bool:
    """Whether an exception is a door's word and no defect; then pytest need not show how it came here.

    Args:
        found: an `ExceptionInfo`. A module hands this to pytest under the name `__tracebackhide__`.
    """
    return issubclass(found.type, (DoorRefused, NotReached))


__tracebackhide__ = is_told


@dataclass(frozen=True, slots=True)
class Reply:
    """What a door answered.

    Attributes:
        why: the header `Waypost-Reason`; empty where there is none.
    """

    status: int
    body: bytes
    why: str = ""


def read_answer(reply: Reply, asked: str = "") -> Any:
    """The JSON value of an answer; None where there is no body or it is no JSON.

    Args:
        reply: the answer.
        asked: method and address, for a refusal without a text.

    Raises:
        DoorRefused: any status but 2xx.
    """
    try:
        answer = msgspec.json.decode(reply.body) if reply.body else None
    except msgspec.DecodeError:
        answer = None
    if 200 <= reply.status < 300:
        return answer
    match answer:
        case {"error": str(message), "accepted": str(accepted)} if message.endswith(SEE_ACCEPTED):
            raise DoorRefused(reply.status, f"{message}: {accepted}", reply.why)
        case (
            {"message": str(message)}
            | {"error": str(message)}
            | {"error": {"message": str(message)}}  # of the operator's interface
        ):
            raise DoorRefused(reply.status, message, reply.why)
        case _:
            said = f"{asked or 'the door'} was refused without a reason"
            raise DoorRefused(reply.status, said, reply.why)
