"""Binding of requests of the control API to functions: each parameter is read by its name and type.

`body` and `query` are read as the struct of their annotation; every other parameter has a row in `_READERS`.
They are read in order, and the error response names the first invalid one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from inspect import signature
from itertools import islice
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from waypost.base.exceptions import release_frames
from waypost.base.http.connection_scope import mark_rejected
from waypost.base.time_travel import TimeTravel
from waypost.base.written_numbers import encode_json
from waypost.simulator.accounts.accounts import Account, GraphApp, Number
from waypost.simulator.accounts.flow import Flow
from waypost.simulator.calling.call import SimulatedCall
from waypost.simulator.control.request_structs import ControlBody, read_body, read_bytes, read_members
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.dev_partners import DevPartners
from waypost.simulator.faults.fault import ArmedFault
from waypost.simulator.groups.group import SimulatedGroup
from waypost.simulator.media.media import SimulatedMedia
from waypost.simulator.phones.fleets import Fleet
from waypost.simulator.phones.phones import phone_digits
from waypost.simulator.services import SimulatorServices
from waypost.simulator.snapshots import SnapshotStore
from waypost.simulator.templates.template import SimulatedTemplate

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
    ("flow", Flow): _object_reader("flow_id", lambda services: services.flows.by_id, "is no flow"),
    ("fleet", Fleet): _object_reader("name", lambda services: services.fleets.by_name, "is no fleet"),
    ("group", SimulatedGroup): _object_reader(
        "group_id", lambda services: services.groups.by_id, "is no group", "an id of GET /control/groups"
    ),
    ("phone_call", SimulatedCall): _object_reader(
        "call_id", lambda services: services.calls.by_id, "is no call", "an id of GET /control/phones/{phone}/calls"
    ),
    ("fault", ArmedFault): _object_reader("fault_id", lambda services: services.faults.by_id, "is no fault"),
    ("template", SimulatedTemplate): _object_reader(
        "template_id", lambda services: services.templates.by_id, "is no template", "an id from GET /control/templates"
    ),
    ("media", SimulatedMedia): _object_reader(
        "media_id", lambda services: services.media.by_id, "is no media", "an id of GET /control/media"
    ),
}


def declared_struct(function: Endpoint) -> type[Struct] | None:
    """Return the struct of a function's body or query; None if it has neither."""
    return next((type_ for name, type_ in _parameters(function) if name in _DECLARED), None)


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
            result = await function(*values[: len(parameters)])
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
