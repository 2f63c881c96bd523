"""How a request of the control API becomes a call of a function: each of its parameters is read by name and type.

`body` and `query` are read as the struct that they are annotated with; every other parameter has a row here. They
are read in their order, and the first that cannot be is what the caller is told.
"""

from collections.abc import Awaitable, Callable, Mapping
from inspect import signature
from itertools import islice
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from waypost.base.time_travel import Travel
from waypost.simulator.accounts.accounts import Account, App, Number
from waypost.simulator.accounts.flow import Flow
from waypost.simulator.control.request_structs import Body, read_body, read_members
from waypost.simulator.faults.fault import Fault
from waypost.simulator.media.media import Media
from waypost.simulator.phones.fleets import Fleet
from waypost.simulator.phones.phones import phone_digits
from waypost.simulator.services import Parts
from waypost.simulator.templates.template import Template
from waypost.simulator.violation import BrokenRule
from waypost.simulator.whole_state import Keeper

Value = TypeVar("Value")
Reader = Callable[[Parts, Request], Any]
Endpoint = Callable[..., Awaitable[Any]]
"""What it gives is answered as JSON, unless it is a response already."""

_LISTED: Final = 100
_DECLARED: Final = ("body", "query")


def find(known: Mapping[str, Value], key: str, *, field: str, rule: str, accepted: str = "") -> Value:
    """The value of a key; an unknown one is told what is accepted, or which there are.

    Raises:
        BrokenRule: 404, because there is none.
    """
    if key not in known:
        raise BrokenRule(field, rule, accepted or ", ".join(islice(known, _LISTED)) or "none yet", status=404)
    return known[key]


def business_number(parts: Parts, digits: str) -> Number:
    """The business number that has these digits.

    Raises:
        BrokenRule: there is none.
    """
    return find(parts.accounts.numbers_by_digits, digits.lstrip("+"), field="to", rule="is no business number")


def _object(name: str, known: Callable[[Parts], Mapping[str, Any]], rule: str, accepted: str = "") -> Reader:
    """Reads the object whose key the path has under a name."""
    return lambda parts, request: find(
        known(parts), request.path_params[name], field=name, rule=rule, accepted=accepted
    )


def _id(name: str) -> Reader:
    def read(_parts: Parts, request: Request) -> str:
        value: str = request.path_params[name]
        if not (value.isascii() and value.isdigit() and len(value) <= 32):
            raise BrokenRule(name, "is no id", "1 to 32 digits")
        return value

    return read


def _phone(_parts: Parts, request: Request) -> str:
    digits = phone_digits(request.path_params["phone"])
    if digits is None:
        raise BrokenRule("phone", "is not a phone number", "8 to 15 digits")
    return digits


def _travel(parts: Parts, _request: Request) -> Travel:
    if parts.travel is None:
        rule = "this simulator follows the machine's clock, which nobody moves"
        accepted = "`waypost dev` and `waypost simulator` have a clock that can be moved"
        raise BrokenRule("clock", rule, accepted, status=404)
    return parts.travel


def _keeper(parts: Parts, _request: Request) -> Keeper:
    if parts.keeper is None:
        rule = "this simulator stands alone, and a snapshot is of both sides"
        raise BrokenRule("snapshots", rule, "the control door of `waypost dev`", status=404)
    return parts.keeper


# fmt: off
_READERS: Final[dict[tuple[str, object], Reader]] = {
    # parameter                  how it is read
    ("parts", Parts):            lambda parts, _request: parts,
    ("request", Request):        lambda _parts, request: request,
    ("travel", Travel):          _travel,
    ("keeper", Keeper):          _keeper,
    ("phone", str):              _phone,
    **{(name, str):              _id(name) for name in ("waba_id", "phone_number_id", "app_id")},
    ("name", str):               lambda _parts, request: request.path_params["name"],
    ("act", str):                lambda _parts, request: request.path_params["act"],
    ("account", Account):        _object("waba_id", lambda parts: parts.accounts.by_id, "is no account"),
    ("app", App):                _object("app_id", lambda parts: parts.accounts.apps, "is no app"),
    ("number", Number):          _object("phone_number_id", lambda parts: parts.accounts.numbers, "is no number"),
    ("flow", Flow):              _object("flow_id", lambda parts: parts.flows.by_id, "is no flow"),
    ("fleet", Fleet):            _object("name", lambda parts: parts.fleets.by_name, "is no fleet"),
    ("fault", Fault):            _object("fault_id", lambda parts: parts.faults.by_id, "is no fault"),
    ("template", Template):      _object("template_id", lambda parts: parts.templates.by_id, "is no template", "an id from GET /control/templates"),
    ("media", Media):            _object("media_id", lambda parts: parts.media.all, "is no media", "an id of GET /control/media"),
}
# fmt: on


def declared_by(function: Endpoint) -> type[Struct] | None:
    """The struct of the body or query that a function takes; None where it takes neither."""
    return next((type_ for name, type_ in _parameters(function) if name in _DECLARED), None)


def bound(method: str, function: Endpoint) -> Callable[[Parts, Request], Awaitable[Response]]:
    """The function as a call of any request; the body of one that takes nothing of it must be empty.

    Raises:
        LookupError: nothing says how one of its parameters is read.
    """
    parameters = _parameters(function)
    unknown = [one for one in parameters if one not in _READERS and one[0] not in _DECLARED]
    if unknown:
        raise LookupError(f"{function.__name__} has parameters that nothing reads: {unknown}")
    takes_body = declared_by(function) or ("request", Request) in parameters
    wanted = parameters if takes_body or method not in ("POST", "PUT") else [*parameters, ("body", Body)]

    async def call(parts: Parts, request: Request) -> Response:
        try:
            values = [await _value(parts, request, name, type_) for name, type_ in wanted]
            answer = await function(*values[: len(parameters)])
        except BrokenRule as refused:
            return json_response(refused.answer(), refused.status)
        return answer if isinstance(answer, Response) else json_response(answer)

    return call


def json_response(answer: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON."""
    return Response(msgspec.json.encode(answer), status, headers, media_type="application/json")


def _parameters(function: Endpoint) -> list[tuple[str, Any]]:
    """Names and types; of `Annotated[Struct, …]` what stands second, for a struct that is made and not written."""
    types = [(one.name, one.annotation) for one in signature(function).parameters.values()]
    return [(name, get_args(one)[1] if get_origin(one) is Annotated else one) for name, one in types]


async def _value(parts: Parts, request: Request, name: str, type_: Any) -> Any:
    if name == "body":
        return read_body(type_, await request.body())
    if name != "query":
        return _READERS[name, type_](parts, request)
    query = request.query_params
    lists = {one.name for one in msgspec.structs.fields(type_) if get_origin(one.type) is tuple}
    return read_members(type_, {key: query.getlist(key) if key in lists else query[key] for key in query}, strict=False)
