"""What a door answered, and what it means when it was not what was asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

Shape = TypeVar("Shape")


class _FieldError(msgspec.Struct):
    """An error as it travels between our own APIs."""

    field: str = ""
    rule: str = ""
    accepted: str = ""
    hint: str = ""


_ANY: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder()
_FIELD_ERROR: Final = msgspec.json.Decoder(_FieldError)


class ApiResponseError(Exception):
    """The door said no; the text is its own.

    Attributes:
        status: of the answer.
        message: as the door gave it.
        explanation: the explanation in the header `Waypost-Reason`, where there was one.
        field: name of the field that breaks a rule; empty: none, or not known.
        rule: what it breaks, in the words of the simulator's control API, or by its name in our table of errors.
        accepted: what would be accepted there; empty: not known.
        problem: what is wrong, without what would be accepted where the door says that apart.
        expected: what would be accepted; empty where the message says it in its own words, or nothing is.
    """

    def __init__(
        self, status: int, message: str, explanation: str = "", *, field: str = "", rule: str = "", accepted: str = "",
        is_apart: bool = False,
    ) -> None:  # fmt: skip
        explained = f"{message}: {explanation}" if explanation and explanation not in message else message
        super().__init__(f"{explained} ({status})")
        self.status = status
        self.message = message
        self.explanation = explanation
        self.field = field
        self.rule = rule
        self.accepted = accepted
        self.problem = f"{field}: {rule}" if is_apart else message
        self.expected = accepted if is_apart else ""

    @property
    def top_field(self) -> str:
        """The member of the request in which the field is."""
        return self.field.partition(".")[0].partition("[")[0]


class NotReached(Exception):
    """Nobody answers at the address."""


def is_told(found: Any) -> bool:
    """Whether an exception is a door's word and no defect; then pytest need not show how it came here.

    Args:
        found: an `ExceptionInfo`. A module hands this to pytest under the name `__tracebackhide__`.
    """
    return issubclass(found.type, (ApiResponseError, NotReached))


__tracebackhide__ = is_told


@dataclass(frozen=True, slots=True)
class Reply:
    """What a door answered.

    Attributes:
        headers: names in lower case.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


def read_answer(reply: Reply, asked: str = "") -> Any:
    """The JSON value of an answer; None where there is no body or it is no JSON.

    Args:
        reply: the answer.
        asked: method and address, for a refusal without a text.

    Raises:
        DoorRefused: any status but 2xx.
    """
    answer = _decoded(reply.body, _ANY)
    if 200 <= reply.status < 300:
        return answer
    # The simulator names the field in the body; our own APIs, whose bodies are documented, in a header.
    header = reply.headers.get("waypost-error", "")
    error = _decoded(header.encode() or reply.body, _FIELD_ERROR) or _FieldError()
    match answer:
        case (
            {"message": str(message)}
            | {"error": str(message)}
            | {"error": {"message": str(message)}}  # of the operator's interface
        ):
            pass
        case _:
            message = f"{asked or 'the door'} was refused without a reason"
    why = reply.headers.get("waypost-reason", "")
    is_apart = not header and bool(error.rule) and not error.hint
    raise ApiResponseError(
        reply.status, message, why, field=error.field, rule=error.rule, accepted=error.accepted, is_apart=is_apart
    )


def _decoded(text: bytes, decoder: "msgspec.json.Decoder[Shape]") -> Shape | None:
    """The value of a JSON text; None where it is none, or of another shape."""
    try:
        return decoder.decode(text)
    except msgspec.DecodeError:
        return None
