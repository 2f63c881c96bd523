"""Declarations of the control API's calls: one for each function, beside it, and how its parameters are read.

`state` and `request` are passed on, `body` and `query` are read as the struct of their annotation, an annotation with a
`ParameterReader` says itself how it is read, parameters after `*` are the members of the body, or of the query of a
GET, and every other parameter is the part of the path with its name. They are read in order, and the error response
names the first invalid one. A field's type is its only declaration: the check, the member `accepted` of an error and
the reference page are derived from it. `field_types.accepts` adds a text where a type does not give one.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature, unwrap
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, get_args, get_origin, is_typeddict

import msgspec
from msgspec import NODEFAULT, UNSET, Struct, UnsetType
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from waypost.base.error_texts import release_frames
from waypost.base.http.connection_scope import mark_rejected
from waypost.base.http.hosts import hostname_of, is_loopback, netloc_of
from waypost.base.http.request_bodies import has_too_many_members, read_limited_body
from waypost.base.invalid_values import accepted_by, describe_invalid_value, describe_malformed_json
from waypost.base.object_ids import describe_other_kind
from waypost.base.written_numbers import encode_json, json_decoder
from waypost.simulator.apis.control_error import ControlApiError

JSON: Final = "application/json"
BYTES: Final = "application/octet-stream"
"""Of a file's bytes. A browser sends neither type from another site without a preflight request."""
_BODY_METHODS: Final = frozenset({"POST", "PUT", "PATCH"})


MAX_BODY_BYTES: Final = 4 * 1024 * 1024


class ControlBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON body; this class itself is the empty body of calls that need only their path."""


class ControlQuery(Struct, frozen=True):
    """Parameters of a query string; unknown ones are ignored."""


Declared = TypeVar("Declared", bound=Struct)


async def read_bytes(request: Request, max_bytes: int = MAX_BODY_BYTES) -> bytes:
    """Return the bytes of a body; a `ControlApiError` of 413 if it is too large."""
    body = await read_limited_body(request.stream(), max_bytes)
    if body is None:
        raise ControlApiError("body", "is too large", f"at most {max_bytes} bytes", status=413)
    return body


def read_body(struct: type[Declared], raw: bytes) -> Declared:
    """Decode a body; an empty one counts as an object without members.

    Raises:
        ControlApiError: 400, with the path of the invalid field.
    """
    if has_too_many_members(raw):
        raise ControlApiError("body", "has too many members", accepted_by(struct))
    try:
        return json_decoder(struct).decode(raw or b"{}")
    except msgspec.ValidationError as error:
        raise _field_error(struct, error) from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ControlApiError("body", describe_malformed_json(error), accepted_by(struct)) from error


def read_members(struct: type[Declared], members: Mapping[str, Any], *, strict: bool = True) -> Declared:
    """Read a struct from members that are decoded already; unless strict, numbers may be texts.

    Raises:
        ControlApiError: 400, with the path of the invalid field.
    """
    try:
        return msgspec.convert(members, struct, strict=strict, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise _field_error(struct, error) from error


def _field_error(struct: type[Struct], error: msgspec.ValidationError) -> ControlApiError:
    invalid = describe_invalid_value(error, struct)
    return ControlApiError(invalid.path or "body", invalid.rule, invalid.accepted)


def present_members(body: Struct) -> dict[str, Any]:
    """Return the members that the request set."""
    return {name: value for name, value in asdict(body).items() if value is not UNSET}


def view_of(struct: type[Declared], source: object, /, **members: Any) -> Declared:
    """Return a struct with these members; its others are the attributes of an object that have the same names."""
    others = {name: getattr(source, name) for name in struct.__struct_fields__ if name not in members}
    return struct(**others, **members)


KnownObject = TypeVar("KnownObject")
WorkResult = TypeVar("WorkResult")
Endpoint = Callable[..., Awaitable[Any]]
"""Its result becomes a JSON response, unless it is a response already."""
Function = TypeVar("Function", bound=Endpoint)

Method = Literal["GET", "POST", "PUT", "DELETE"]

_MAX_LISTED_KEYS: Final = 100
_DECLARED: Final = ("body", "query")
_IDS: Final = ("waba_id", "phone_number_id", "app_id", "partner_id")
"""The parts of paths that are ids of the operator's form."""


class ControlCall(NamedTuple):
    """One call: its function's parameters declare the request, its docstring the effect."""

    method: Method
    path: str
    function: Endpoint


_REQUESTS: Final[dict[Endpoint, type[Struct]]] = {}
_RESPONSES: Final[dict[Endpoint, type[Struct]]] = {}


class ControlOperations:
    """The calls of one subject, in order; calling it declares the next one beside its function."""

    def __init__(self) -> None:
        self.rows: list[ControlCall] = []

    def __call__(
        self, method: Method, path: str, response: type[Struct] | None = None, /, **members: Any
    ) -> Callable[[Function], Function]:
        """Declare a call.

        Args:
            response: the struct of its response, if the function is not annotated with it.
            members: the types of the members of a response that has no struct; one with `UnsetType` may be absent.
        """

        def declare(function: Function) -> Function:
            self.rows.append(ControlCall(method, path, function))
            parameters = [
                (name, member.annotation, NODEFAULT if member.default is Parameter.empty else member.default)
                for name, member in signature(function).parameters.items()
                if member.kind is Parameter.KEYWORD_ONLY
            ]
            if parameters:
                base = ControlQuery if method == "GET" else ControlBody
                _REQUESTS[function] = msgspec.defstruct("Request", parameters, bases=(base,), kw_only=True)
            if response is not None:
                _RESPONSES[function] = response
            elif members:
                fields = [
                    (name, type_, UNSET if UnsetType in get_args(type_) else NODEFAULT)
                    for name, type_ in members.items()
                ]
                _RESPONSES[function] = msgspec.defstruct("Response", fields, forbid_unknown_fields=True, kw_only=True)
            return function

        return declare


class ParameterReader(NamedTuple):
    """Reader of a parameter, as the annotation of its type; it raises `ControlApiError`."""

    read: Callable[[Any, Request], Any]  # called with the state


def find(known: Mapping[str, KnownObject], key: str, *, field: str, rule: str, accepted: str = "") -> KnownObject:
    """Return the value of a key; a `ControlApiError` of 404 names the accepted or the known keys."""
    if key not in known:
        other = describe_other_kind(key, field)
        rule = f"{rule}: {other}" if other else rule
        accepted = accepted or ", ".join(islice(known, _MAX_LISTED_KEYS)) or "none yet"
        raise ControlApiError(field, rule, accepted, status=404)
    return known[key]


def path_object(
    name: str, known: Callable[[Any], Mapping[str, object]], rule: str, accepted: str = ""
) -> ParameterReader:
    """Return the reader of the object of the state whose key is the part of the path with this name."""

    def read(state: object, request: Request) -> object:
        return find(known(state), request.path_params[name], field=name, rule=rule, accepted=accepted)

    return ParameterReader(read)


def member_of_state(name: str, field: str, rule: str, accepted: str) -> ParameterReader:
    """Return the reader of a member of the state that only some simulators have: None stands for its absence."""

    def read(state: object, _request: Request) -> object:
        value = getattr(state, name)
        if value is None:
            raise ControlApiError(field, rule, accepted, status=404)
        return value

    return ParameterReader(read)


def declared_struct(function: Endpoint) -> type[Struct] | None:
    """Return the struct of a function's body or query; None if it has neither."""
    own = _REQUESTS.get(function)
    return own or next((type_ for name, type_ in _parameters(function) if name in _DECLARED), None)


def response_type(function: Endpoint) -> Any:
    """Return the type of a function's response, a struct or a typed dictionary; None if it is a file."""
    type_ = _RESPONSES.get(function) or _RESPONSES.get(unwrap(function)) or signature(function).return_annotation
    return type_ if msgspec.inspect.is_struct_type(type_) or is_typeddict(type_) else None


async def call_function(function: Endpoint, values: Sequence[Any]) -> Any:
    """Return the response of a function; tests compare it with its declaration here."""
    return await function(*values)


def bind_endpoint(method: str, function: Endpoint) -> Callable[[Any, Request], Awaitable[Response]]:
    """Return an endpoint that reads a request's parameters and calls the function; an undeclared body must be empty."""
    parameters, called = _parameters(function), function
    if members := _REQUESTS.get(function):
        parameters.append(("query" if method == "GET" else "body", members))
        called = _spread_members(function)
    takes_body = declared_struct(function) or ("request", Request) in parameters
    checked = parameters if takes_body or method not in ("POST", "PUT") else [*parameters, ("body", ControlBody)]

    async def call(state: object, request: Request) -> Response:
        try:
            values = [await _read_parameter(state, request, name, type_) for name, type_ in checked]
            result = await call_function(called, values[: len(parameters)])
        except ControlApiError as error:
            release_frames(error)
            mark_rejected(request.scope)
            return json_response(error.response_body(), error.status)
        return result if isinstance(result, Response) else json_response(result)

    return call


def _spread_members(function: Endpoint) -> Endpoint:
    """Return a function that calls another with the members of its last value by their names."""

    @wraps(function)
    async def called(*values: Any) -> Any:
        return await function(*values[:-1], **asdict(values[-1]))

    return called


def json_response(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    return Response(encode_json(content), status, headers, media_type="application/json")


def _parameters(function: Endpoint) -> list[tuple[str, Any]]:
    """Return names and types; of `Annotated` the second argument: a reader, or a struct created at run time."""
    parameters = signature(function).parameters.values()
    types = [(each.name, each.annotation) for each in parameters if each.kind is not Parameter.KEYWORD_ONLY]
    return [(name, get_args(type_)[1] if get_origin(type_) is Annotated else type_) for name, type_ in types]


async def _read_parameter(state: object, request: Request, name: str, type_: Any) -> Any:
    match name:
        case "state":
            return state
        case "request":
            return request
        case "body":
            return read_body(type_, await read_bytes(request))
        case "query":
            query = request.query_params
            lists = {field.name for field in msgspec.structs.fields(type_) if get_origin(field.type) is tuple}
            members = {key: query.getlist(key) if key in lists else query[key] for key in query}
            return read_members(type_, members, strict=False)
        case _ if isinstance(type_, ParameterReader):
            return type_.read(state, request)
        case _:
            value: str = request.path_params[name]
            if name in _IDS and not (value.isascii() and value.isdigit() and len(value) <= 32):
                raise ControlApiError(name, "is not an id", "1 to 32 digits")
            return value


async def file_response(request: Request, path: Path, mime_type: str, headers: Mapping[str, str]) -> Response:
    """Return a file, or the requested range of it, streamed at the client's pace.

    A client that plays a video may take minutes, and loading a snapshot must not wait for it: the
    extension `waypost.application` of the scope, if present, stops counting this request as in flight.

    Raises:
        FileNotFoundError: the file is missing.
    """
    stat = await asyncio.to_thread(path.stat)
    gate = request.scope.get("extensions", {}).get("waypost.open_request")
    if gate is not None:
        gate.exclude_from_drain()
    return FileResponse(path, headers=headers, media_type=mime_type, stat_result=stat)


class ClientLeftDuringWork(Exception):
    """The client closed the connection."""


async def run_while_connected(request: Request, work: Awaitable[WorkResult]) -> WorkResult:
    """Run work for a client whose request has been read; cancel it if the client disconnects.

    Raises:
        ClientLeftDuringWork: the work has been cancelled.
    """
    running = asyncio.ensure_future(work)
    disconnect = asyncio.ensure_future(request.receive())  # after the body, the next message is the disconnect
    try:
        await asyncio.wait((running, disconnect), return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            raise ClientLeftDuringWork
        return running.result()
    finally:
        for task in (running, disconnect):
            task.cancel()
        await asyncio.gather(running, disconnect, return_exceptions=True)


def check_caller(
    method: str,
    headers: Mapping[str, str],
    *,
    allowed_hosts: tuple[str, ...],
    control_token: str | None,
    content_types: tuple[str, ...] = (JSON,),
) -> None:
    """Reject requests without the token, and those that a page in a browser could send.

    A page of another site can make a browser send requests here, and its host name can be pointed
    here (DNS rebinding); the checks of Host, Origin and content type reject both.

    Raises:
        ControlApiError: 403, 401 or 415.
    """
    host = headers.get("host", "")
    name = hostname_of(f"//{host}")
    if not (is_loopback(name) or name in (allowed.lower() for allowed in allowed_hosts)):
        raise ControlApiError(
            "Host",
            "names neither this machine nor an allowed host",
            ", ".join(("localhost", "127.0.0.1", "[::1]", *allowed_hosts)),
            status=403,
        )
    origin = headers.get("origin")
    if origin is not None and netloc_of(origin) != host.lower():
        raise ControlApiError("Origin", "is another site", f"no Origin, or http://{host}", status=403)
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if control_token is not None and not (
        scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), control_token.encode())
    ):
        rule = "does not hold the control token"
        raise ControlApiError("Authorization", rule, "Bearer and the control token", status=401)
    if method in _BODY_METHODS and content_type(headers) not in content_types:
        raise ControlApiError("Content-Type", "is not JSON", " or ".join(content_types), status=415)


def content_type(headers: Mapping[str, str]) -> str:
    """Return the content type of a request, in lower case and without parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()
