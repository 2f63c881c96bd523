"""Responses of our own APIs, and their errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from waypost.base.written_numbers import json_decoder

DecodedValue = TypeVar("DecodedValue")


class _FieldError(msgspec.Struct):
    """An error as our own APIs exchange it."""

    field: str = ""
    rule: str = ""
    accepted: str = ""
    hint: str = ""


_ANY: Final = json_decoder()
_FIELD_ERROR: Final = msgspec.json.Decoder(_FieldError)


class ApiResponseError(Exception):
    """An error response of an API; the text is the API's own.

    Attributes:
        status: of the response.
        message: of the response, unchanged.
        explanation: the header `Waypost-Reason`, if present.
        field: name of the field that violates a rule; empty: none, or not known.
        rule: the violated rule: the simulator control API's text, or its name in our table of errors.
        accepted: valid values of the field; empty: not known.
        problem: the error, without the valid values if the API sends them separately.
        expected: the valid values if they are not part of the message; otherwise empty.
        request_id: the header `X-Request-Id`, which leads to the request log; empty: none.
    """

    def __init__(
        self, status: int, message: str, explanation: str = "", *, field: str = "", rule: str = "", accepted: str = "",
        is_separate: bool = False, request_id: str = "",
    ) -> None:  # fmt: skip
        explained = f"{message}: {explanation}" if explanation and explanation not in message else message
        super().__init__(f"{explained} ({status})")
        self.status = status
        self.message = message
        self.explanation = explanation
        self.field = field
        self.rule = rule
        self.accepted = accepted
        self.problem = f"{field}: {rule}" if is_separate else message
        self.expected = accepted if is_separate else ""
        self.request_id = request_id

    @property
    def top_field(self) -> str:
        """The member of the request that contains the field."""
        return self.field.partition(".")[0].partition("[")[0]


class ApiUnreachable(Exception):
    """No response from the API."""


@dataclass(frozen=True, slots=True)
class ClientResponse:
    """A response of an API; names of headers are in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


def read_json_response(response: ClientResponse, request: str = "") -> Any:
    """Return the JSON value of a response; None if there is no body or it is not JSON.

    Args:
        request: method and URL, for an error without a text.

    Raises:
        ApiResponseError: any status but 2xx.
    """
    value = _decode_or_none(response.body, _ANY)
    if 200 <= response.status < 300:
        return value
    # The simulator names the field in the body; our own APIs, whose bodies are documented, in a header.
    header = response.headers.get("waypost-error", "")
    error = _decode_or_none(header.encode() or response.body, _FIELD_ERROR) or _FieldError()
    match value:
        case (
            {"message": str(message)}
            | {"error": str(message)}
            | {"error": {"message": str(message)}}  # of the operator's interface
        ):
            pass
        case _:
            message = f"{request or 'the request'} failed without an error message"
    explanation = response.headers.get("waypost-reason", "")
    is_apart = not header and bool(error.rule) and not error.hint
    raise ApiResponseError(
        response.status,
        message,
        explanation,
        field=error.field,
        rule=error.rule,
        accepted=error.accepted,
        is_separate=is_apart,
        request_id=response.headers.get("x-request-id", ""),
    )


def _decode_or_none(text: bytes, decoder: "msgspec.json.Decoder[DecodedValue]") -> DecodedValue | None:
    """Return the value of a JSON text; None if it is invalid or of another type."""
    try:
        return decoder.decode(text)
    except msgspec.DecodeError:
        return None
