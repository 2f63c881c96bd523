"""What an administrator sends: a JSON body of a known shape, and numbers in the path."""

from typing import TypeVar

import msgspec
from starlette.requests import Request

from waypost.domain.refusals import Reason, Refused
from waypost.wire.forms import read_json

Shape = TypeVar("Shape")


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a call that takes no fields."""


async def read_body(request: Request, shape: type[Shape]) -> Shape:
    """The request's body.

    Raises:
        Refused: it is not of the shape.
    """
    body = await request.body()
    text = body.decode("utf-8", "replace") or "{}"
    return read_json(text, msgspec.json.Decoder(shape), name="The body", accepted="a JSON object of the call's fields")


def number_in(request: Request, name: str) -> int:
    """A number that is part of the path.

    Raises:
        Refused: it is none.
    """
    text = str(request.path_params[name])
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise Refused(Reason.NOT_FOUND, f"{name} must be a number.")
    return int(text)


def flag_in(request: Request, name: str) -> bool:
    """A yes or no of the query; no where it is missing.

    Raises:
        Refused: it is neither.
    """
    text = request.query_params.get(name, "false")
    if text not in ("true", "false"):
        raise Refused(Reason.FIELD_BROKEN, f"{name} must be true or false.")
    return text == "true"
