"""Requests of the control API: who may send them, and binding to functions, whose parameters are read by name and type.

`body` and `query` are read as the struct of their annotation; every other parameter has a row in `_READERS`. They are
read in order, and the error response names the first invalid one. A field's type is its only declaration: the check,
the member `accepted` of an error and the reference page are derived from it. `field_types.accepts` adds a text where
a type does not give one.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import signature
from itertools import islice
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from waypost.base.error_texts import release_frames
from waypost.base.http.connection_scope import mark_rejected
from waypost.base.http.hosts import hostname_of, is_loopback, netloc_of
from waypost.base.http.request_bodies import has_too_many_members, read_limited_body
from waypost.base.invalid_values import accepted_by, describe_invalid_value, describe_malformed_json
from waypost.base.time_travel import TimeTravel
from waypost.base.written_numbers import encode_json, json_decoder
from waypost.simulator.accounts.accounts import Account, GraphApp, Number
from waypost.simulator.calling.model import SimulatedCall, calls_by_id
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.dev_interfaces import DevPartners, SnapshotStore
from waypost.simulator.faults.faults import FAULTS, ArmedFault
from waypost.simulator.flows.model import FLOWS, Flow
from waypost.simulator.groups.model import GROUPS, SimulatedGroup
from waypost.simulator.media.media import MEDIA, SimulatedMedia
from waypost.simulator.phones.fleets import Fleet
from waypost.simulator.phones.phones import phone_digits
from waypost.simulator.services import SimulatorServices
from waypost.simulator.templates.template import SimulatedTemplate

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
    """Return the bytes of a body.

    Raises:
        ControlApiError: 413, it is too large.
    """
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


KnownObject = TypeVar("KnownObject")
WorkResult = TypeVar("WorkResult")
ParameterReader = Callable[[SimulatorServices, Request], Any]
Endpoint = Callable[..., Awaitable[Any]]
"""Its result becomes a JSON response, unless it is a response already."""
Function = TypeVar("Function", bound=Endpoint)

Method = Literal["GET", "POST", "PUT", "DELETE"]

_MAX_LISTED_KEYS: Final = 100
_DECLARED: Final = ("body", "query")


class ControlCall(NamedTuple):
    """One call: its function's parameters declare the request, its docstring the effect."""

    method: Method
    path: str
    function: Endpoint


class ControlOperations:
    """The calls of one subject, in order; calling it declares the next one beside its function."""

    def __init__(self) -> None:
        self.rows: list[ControlCall] = []

    def __call__(self, method: Method, path: str) -> Callable[[Function], Function]:
        """Declare a call."""

        def declare(function: Function) -> Function:
            self.rows.append(ControlCall(method, path, function))
            return function

        return declare


def find(known: Mapping[str, KnownObject], key: str, *, field: str, rule: str, accepted: str = "") -> KnownObject:
    """Return the value of a key.

    Raises:
        ControlApiError: 404, the key is unknown; names the accepted or the known keys.
    """
    if key not in known:
        raise ControlApiError(
            field, rule, accepted or ", ".join(islice(known, _MAX_LISTED_KEYS)) or "none yet", status=404
        )
    return known[key]


def business_number(services: SimulatorServices, digits: str) -> Number:
    """Return the business number that has these digits.

    Raises:
        ControlApiError: there is none.
    """
    return find(services.accounts.numbers_by_digits, digits.lstrip("+"), field="to", rule="is no business number")


def _object_reader(
    name: str, known: Callable[[SimulatorServices], Mapping[str, Any]], rule: str, accepted: str = ""
) -> ParameterReader:
    """Return a reader of the object whose key is the path parameter with this name."""
    return lambda services, request: find(
        known(services), request.path_params[name], field=name, rule=rule, accepted=accepted
    )


def _id_reader(name: str) -> ParameterReader:
    def read(_parts: SimulatorServices, request: Request) -> str:
        value: str = request.path_params[name]
        if not (value.isascii() and value.isdigit() and len(value) <= 32):
            raise ControlApiError(name, "is not an id", "1 to 32 digits")
        return value

    return read


def _read_phone(services: SimulatorServices, request: Request) -> str:
    digits = phone_digits(request.path_params["phone"])
    if digits is None:
        raise ControlApiError("phone", "is not a phone number", "8 to 15 digits, the first not 0")
    return services.phones.find_number(digits)


def _read_travel(services: SimulatorServices, _request: Request) -> TimeTravel:
    if services.travel is None:
        rule = "this simulator follows the machine's clock, which cannot be advanced"
        accepted = "`waypost dev` and `waypost simulator` have a clock that can be advanced"
        raise ControlApiError("clock", rule, accepted, status=404)
    return services.travel


def _read_snapshots(services: SimulatorServices, _request: Request) -> SnapshotStore:
    if services.snapshots is None:
        rule = "this simulator stands alone, and a snapshot is of both sides"
        raise ControlApiError("snapshots", rule, "the control API of `waypost dev`", status=404)
    return services.snapshots


def _read_partners(services: SimulatorServices, _request: Request) -> DevPartners:
    if services.partners is None:
        rule = "this simulator stands alone, and a partner is at the service"
        raise ControlApiError("partners", rule, "the control API of `waypost dev`", status=404)
    return services.partners


_READERS: Final[dict[tuple[str, object], ParameterReader]] = {
    # parameter                  how it is read
    ("services", SimulatorServices): lambda services, _request: services,
    ("request", Request): lambda _parts, request: request,
    ("travel", TimeTravel): _read_travel,
    ("snapshots", SnapshotStore): _read_snapshots,
    ("partners", DevPartners): _read_partners,
    ("phone", str): _read_phone,
    **{(name, str): _id_reader(name) for name in ("waba_id", "phone_number_id", "app_id", "partner_id")},
    ("name", str): lambda _parts, request: request.path_params["name"],
    ("wamid", str): lambda _parts, request: request.path_params["wamid"],
    ("action", str): lambda _parts, request: request.path_params["action"],
    ("account", Account): _object_reader("waba_id", lambda services: services.accounts.by_id, "is no account"),
    ("app", GraphApp): _object_reader("app_id", lambda services: services.accounts.apps, "is no app"),
    ("number", Number): _object_reader("phone_number_id", lambda services: services.accounts.numbers, "is no number"),
    ("flow", Flow): _object_reader("flow_id", lambda services: services.values(FLOWS), "is no flow"),
    ("fleet", Fleet): _object_reader("name", lambda services: services.fleets.by_name, "is no fleet"),
    ("group", SimulatedGroup): _object_reader(
        "group_id", lambda services: services.values(GROUPS), "is no group", "an id of GET /control/groups"
    ),
    ("phone_call", SimulatedCall): _object_reader(
        "call_id", calls_by_id, "is no call", "an id of GET /control/phones/{phone}/calls"
    ),
    ("fault", ArmedFault): _object_reader("fault_id", lambda services: services.values(FAULTS), "is no fault"),
    ("template", SimulatedTemplate): _object_reader(
        "template_id", lambda services: services.templates.by_id, "is no template", "an id from GET /control/templates"
    ),
    ("media", SimulatedMedia): _object_reader(
        "media_id", lambda services: services.values(MEDIA), "is no media", "an id of GET /control/media"
    ),
}


def declared_struct(function: Endpoint) -> type[Struct] | None:
    """Return the struct of a function's body or query; None if it has neither."""
    return next((type_ for name, type_ in _parameters(function) if name in _DECLARED), None)


def response_struct(function: Endpoint) -> type[Struct] | None:
    """Return the struct of a function's response; None if it declares none."""
    type_ = signature(function).return_annotation
    return type_ if msgspec.inspect.is_struct_type(type_) else None


async def call_function(function: Endpoint, values: Sequence[Any]) -> Any:
    """Return the response of a function; tests compare it with its declaration here."""
    return await function(*values)


def bind_endpoint(method: str, function: Endpoint) -> Callable[[SimulatorServices, Request], Awaitable[Response]]:
    """Return an endpoint that reads a request's parameters and calls the function; an undeclared body must be empty.

    Raises:
        LookupError: a parameter has no reader.
    """
    parameters = _parameters(function)
    unknown = [parameter for parameter in parameters if parameter not in _READERS and parameter[0] not in _DECLARED]
    if unknown:
        raise LookupError(f"{function.__name__} has parameters without a reader: {unknown}")
    takes_body = declared_struct(function) or ("request", Request) in parameters
    checked = parameters if takes_body or method not in ("POST", "PUT") else [*parameters, ("body", ControlBody)]

    async def call(services: SimulatorServices, request: Request) -> Response:
        try:
            values = [await _read_parameter(services, request, name, type_) for name, type_ in checked]
            result = await call_function(function, values[: len(parameters)])
        except ControlApiError as error:
            release_frames(error)
            mark_rejected(request.scope)
            return json_response(error.response_body(), error.status)
        return result if isinstance(result, Response) else json_response(result)

    return call


def json_response(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    return Response(encode_json(content), status, headers, media_type="application/json")


def _parameters(function: Endpoint) -> list[tuple[str, Any]]:
    """Return names and types; of `Annotated[Struct, …]` the second argument, for a struct created at run time."""
    types = [(parameter.name, parameter.annotation) for parameter in signature(function).parameters.values()]
    return [(name, get_args(type_)[1] if get_origin(type_) is Annotated else type_) for name, type_ in types]


async def _read_parameter(services: SimulatorServices, request: Request, name: str, type_: Any) -> Any:
    if name == "body":
        return read_body(type_, await read_bytes(request))
    if name != "query":
        return _READERS[name, type_](services, request)
    query = request.query_params
    lists = {field.name for field in msgspec.structs.fields(type_) if get_origin(field.type) is tuple}
    return read_members(type_, {key: query.getlist(key) if key in lists else query[key] for key in query}, strict=False)


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
    if control_token is not None and not _has_token(headers, control_token):
        raise ControlApiError(
            "Authorization", "does not hold the control token", "Bearer and the control token", status=401
        )
    if method in _BODY_METHODS and content_type(headers) not in content_types:
        raise ControlApiError("Content-Type", "is not JSON", " or ".join(content_types), status=415)


def content_type(headers: Mapping[str, str]) -> str:
    """Return the content type of a request, in lower case and without parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _has_token(headers: Mapping[str, str], control_token: str) -> bool:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), control_token.encode())
