"""Declares an operation of the admin API beside the function that carries it out; its request is read from it."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from types import NoneType
from typing import Any, Final, Literal, TypeVar, cast, get_args, get_type_hints

import msgspec
from starlette.requests import Request

from waypost.admin.provisioning import AdminContext
from waypost.base.http.request_bodies import read_limited_body
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.wire.forms import compressed_body_error, read_json

BodyType = TypeVar("BodyType")

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""A setup of thousands of partners is a few megabytes."""
MAX_DIGITS: Final = 18
_any_decoder: Final = msgspec.json.Decoder()
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters, line breaks, and what changes the direction of a text: logs and terminals obey them."""
_PATH_PARAMETER: Final = re.compile(r"\{(\w+)(?::path)?\}")
_WITH_BODY: Final = ("POST", "PUT")

Method = Literal["GET", "POST", "PUT", "DELETE"]
AnyFields = dict[str, str | None]
"""The body of a call whose fields the operator adapter defines."""
Function = TypeVar("Function", bound=Callable[..., Awaitable[Any]])


class EmptyBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a call without fields."""


class AdminOperations:
    """The operations of one subject, in order; calling it declares the next one.

    The function's arguments are the context, at most one struct, which is read from the body, or for GET and DELETE
    from the query, and the path parameters by name. It returns the struct of its response.
    """

    def __init__(self) -> None:
        self.rows: list[AdminRoute] = []

    def __call__(
        self, method: Method, path: str, returns: type[msgspec.Struct] | None = None, *, shows_secret: bool = False
    ) -> Callable[[Function], Function]:
        """Declare an operation.

        Args:
            method: of HTTP.
            path: below the host.
            returns: the struct of its response, if the function does not say it.
            shows_secret: True if reading it is an action too, which the audit log records.

        Raises:
            TypeError: its function does not take what the path has, a field has no meaning, or the response no type.
        """

        def declare(function: Function) -> Function:
            types = get_type_hints(function)
            declared_type = types.pop("return", Any)
            response_type = returns or declared_type
            if response_type in (Any, None, NoneType):
                raise TypeError(f"{function.__name__} must say the type of its response")
            names = _PATH_PARAMETER.findall(path)
            numbers = {name: types.pop(name, None) is int for name in names}
            structs = [type_ for name, type_ in types.items() if name != "context"]
            if len(structs) > 1 or not set(names) <= signature(function).parameters.keys():
                taken = ", ".join(("the context", "one struct at most", *names))
                raise TypeError(f"{function.__name__} must take {taken}")
            request_type = structs[0] if structs else EmptyBody if method in _WITH_BODY else None
            field_meanings(request_type)  # each has one
            self.rows.append(AdminRoute(method, path, request_type, response_type, function, numbers, shows_secret))
            return function

        return declare


@dataclass(frozen=True, slots=True)
class AdminRoute:
    """One operation."""

    method: Method
    path: str
    # the struct of its body, or for GET and DELETE of its query; None: neither is read
    request_type: type[msgspec.Struct] | type[AnyFields] | None
    response_type: Any  # of what the function returns, encoded as JSON; a member with `UnsetType` may be absent
    function: Callable[..., Awaitable[Any]]  # carries it out
    path_numbers: Mapping[str, bool]  # by path parameter, whether it is a number; all others are texts
    shows_secret: bool = False  # True if reading it is an action too, which the audit log records

    @property
    def name(self) -> str:
        """Return method and path as one text."""
        return f"{self.method} {self.path}"

    @property
    def is_action(self) -> bool:
        """True if the audit log records it."""
        return self.method != "GET" or self.shows_secret

    async def respond(self, context: AdminContext, request: Request) -> Any:
        """Carry out a request and return its response.

        Raises:
            ApiError: it cannot be read, in the order body, path, query; or as the function does.
        """
        has_body = self.method in _WITH_BODY
        arguments: list[Any] = []
        if self.request_type and has_body:
            arguments.append(await _read_body(request, self.request_type))
        path: dict[str, Any] = {
            name: _parse_number(name, text, ErrorCode.NOT_FOUND) if self.path_numbers[name] else text
            for name, text in request.path_params.items()
        }
        if self.request_type and not has_body:
            arguments.append(_read_query(request, cast("type[msgspec.Struct]", self.request_type)))
        return await self.function(context, *([] if self.request_type is EmptyBody else arguments), **path)


def field_meanings(request_type: type[msgspec.Struct] | type[AnyFields] | None) -> dict[str, str]:
    """Return the meaning of each field of a struct, in its order; empty if there is none.

    Raises:
        TypeError: a field has no description.
    """
    if request_type is None or request_type == AnyFields:
        return {}
    meanings: dict[str, str] = {}
    for name, hint in get_type_hints(request_type, include_extras=True).items():
        meta = next((extra for extra in get_args(hint) if isinstance(extra, msgspec.Meta)), None)
        if meta is None or not meta.description:
            raise TypeError(f"{request_type.__name__}.{name} needs an Annotated type with a description")
        meanings[name] = meta.description
    return meanings


async def _read_body(request: Request, body_type: type[BodyType]) -> BodyType:
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() not in ("", "identity"):
        raise compressed_body_error(encoding)
    body = await read_limited_body(request.stream(), MAX_BODY_BYTES)
    if body is None:
        raise ApiError(ErrorCode.BODY_TOO_LARGE, f"The body must be at most {MAX_BODY_BYTES} bytes.")
    text = body.decode("utf-8", "replace") or "{}"
    accepted = "a JSON object of the call's fields"
    _check_texts("", read_json(text, _any_decoder, name="The body", accepted=accepted))
    return read_json(text, msgspec.json.Decoder(body_type), name="The body", accepted=accepted)


def _check_texts(path: str, value: Any) -> None:
    """Raise an error if a text of a body has a control character: no field has several lines."""
    match value:
        case str() if _CONTROL.search(value):
            raise invalid_field(path, "a text without line breaks and other control characters")
        case dict():
            for name, inner in cast("dict[str, Any]", value).items():
                _check_texts(f"{path}.{name}" if path else name[:100], inner)
        case list():
            for index, inner in enumerate(cast("list[Any]", value)):
                _check_texts(f"{path}[{index}]", inner)
        case _:
            pass


def _read_query(request: Request, struct_type: type[msgspec.Struct]) -> msgspec.Struct:
    """Return the query as a struct; numbers are read last, so that an invalid one is the last error."""
    texts, types = request.query_params, get_type_hints(struct_type)
    unknown = next((name[:100] for name in texts if name not in types), None)
    if unknown is not None and struct_type.__struct_config__.forbid_unknown_fields:
        accepted = ", ".join(types)
        text = f"{unknown} is not a filter of this list; accepted: {accepted}."
        raise ApiError(ErrorCode.FIELD_BROKEN, text, field=unknown, accepted=accepted)
    for name in texts:
        _check_texts(name[:100], texts[name])
    values = [(name, get_args(kind) or (kind,)) for name, kind in types.items() if name in texts]
    values.sort(key=lambda field: int in field[1])
    return struct_type(**{name: _parse_value(name, kinds, texts[name]) for name, kinds in values})


def _parse_value(name: str, kinds: tuple[Any, ...], text: str) -> Any:
    if int in kinds:
        return _parse_number(name, text, ErrorCode.FIELD_BROKEN)
    choices = ("true", "false") if bool in kinds else get_args(kinds[0])
    if choices and text not in choices:
        raise invalid_field(name, " or ".join(choices))
    return text == "true" if bool in kinds else text


def _parse_number(name: str, text: str, error_code: ErrorCode) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS):
        raise ApiError(error_code, f"{name} must be a number.", field=name, accepted="a number")
    return int(text)
