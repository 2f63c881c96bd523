"""Declares an operation of the partner API beside the function that carries it out.

An operation is one declaration: method, path, credential, the structs of its fields and of its response. Routing, the
reading and checking of fields, statuses, error codes and the OpenAPI document follow from it. Direct calls, which only
read or set something at the operator, share one time limit.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import wraps
from types import GenericAlias, UnionType
from typing import Any, Final, NamedTuple, Protocol, Self, TypeVar, get_type_hints

from msgspec import Struct

from waypost.api.authorisation import Credential, authorise_app, authorise_partner
from waypost.api.fields import describe_fields, read_fields, request_fields
from waypost.api.requests import ApiResponse, Request
from waypost.api.route import BodyFormat, IdempotencyMode, RouteRow, error_codes_of
from waypost.api.services import Services
from waypost.base.telemetry.logs import log
from waypost.domain.app import App, OperatorAccount
from waypost.domain.direct_calls import CallFailure, CallNotOffered, OperatorCall, Response
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable, OutcomeUncertain
from waypost.operators.contract import GraphClient, GraphFile, GraphRequest
from waypost.wire.errors import ERRORS
from waypost.wire.responses import Success, schema_of

RETRY_AFTER_S: Final = 10
NO_ACCOUNT: Final = "The app has no business account yet; the administrator connects one with `waypost app connect`."
_NONE_YET: Final = "The app has no number at the operator yet; its administrator connects one."
_log = log("api")


DIRECT_CALL_TIMEOUT_S: Final = 10
"""For all direct calls of one request together. Source: decision 0026."""

APP: Final = "/partner/app/{app_id}"
KEY_APP: Final = "/wa/app/{app_id}"
OLDER_API_ENDED_S: Final = 1_751_241_600  # 30 June 2025. Source: facts 9.2: `/sm/api/v1` ended then
_ANY_ROUTE: Final = frozenset({413, 429, 500})
OPERATOR_ERRORS: Final = (ErrorCode.APP_NOT_APPROVED, ErrorCode.OPERATOR_REJECTED, ErrorCode.OPERATOR_UNAVAILABLE)

Returned = type[Struct] | type[bytes] | UnionType | GenericAlias | None
"""The type of a response: a struct, one of several, a list, a file, or nothing with status 204."""
Function = TypeVar("Function", bound=Callable[..., Awaitable[Struct | dict[str, Any] | list[Any] | ApiResponse | None]])


class AppCall(NamedTuple):
    """A call about one app, whose caller is authorised; it reaches the operator behind the app."""

    services: Services
    request: Request
    app: App

    @classmethod
    async def authorise(cls, services: Services, request: Request) -> Self:
        """Return the call."""
        return cls(services, request, await authorise_app(services, request))

    @property
    def number(self) -> str:
        """The operator's id of the app's number.

        Raises:
            ApiError: the app has no number yet.
        """
        if not self.app.phone_number_id:
            raise ApiError(ErrorCode.APP_NOT_APPROVED, _NONE_YET)
        return self.app.phone_number_id

    @property
    def account(self) -> str:
        """The id of the app's business account.

        Raises:
            ApiError: the app has no business account yet.
        """
        if not self.app.business_account_id:
            raise ApiError(ErrorCode.APP_NOT_APPROVED, _NONE_YET)
        return self.app.business_account_id

    @property
    def was_begun_before(self) -> bool:
        """True if the same request was begun before under its idempotency key, and may have been carried out."""
        return self.request.idempotency is not None and self.request.idempotency.begun_before

    async def operator_account(self) -> OperatorAccount:
        """Return the operator account behind the app.

        Raises:
            ApiError: the app has no business account yet.
        """
        account = await self.services.directory.operator_account_of(self.app)
        if account is None:
            raise ApiError(ErrorCode.APP_NOT_APPROVED, _NONE_YET)
        return account

    async def operator(self, request: OperatorCall[Response]) -> Response:
        """Make a direct call to the operator.

        Raises:
            ApiError: the app has no business account; the operator returns an error, whose text is passed on; or
                503, it sends no response, because then it is unknown whether it carried out the call.

        Source: decision 0026.
        """
        account = await self.operator_account()
        response = await self.services.operators.adapter(account).call(account, request)
        return self._response_or_error(type(request).__name__, response)

    async def graph_client(self) -> tuple[OperatorAccount, GraphClient]:
        """Return the operator account behind the app, and the Graph API there.

        Raises:
            ApiError: the app has no business account; or the operator has no Graph API.
        """
        account = await self.operator_account()
        graph = self.services.operators.adapter(account).graph
        if graph is None:
            raise ApiError(ErrorCode.OPERATOR_REJECTED, "This operator does not offer this operation.")
        return account, graph

    async def graph(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        files: Mapping[str, GraphFile] | None = None,
        is_message: bool = False,
    ) -> dict[str, Any]:
        """Call the operator's Graph API, and return the object of its response.

        Raises:
            ApiError: as `operator`; or the operator has no Graph API.
        """
        account, graph = await self.graph_client()
        request = GraphRequest(method, path, body, query, files, self._business(path), is_message)
        return self._response_or_error(f"{method} {path}", await graph.request(account, request))

    async def graph_list(self, path: str, name: str) -> list[Any]:
        """Return all pages of a list as one; `name` is what the log calls it.

        Raises:
            ApiError: as `graph`.
        """
        account, graph = await self.graph_client()
        items = await graph.list_all(account, GraphRequest("GET", path, business=self._business(path)), name)
        return self._response_or_error(f"GET {path}", items)

    async def graph_page(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Return one page of a list.

        Raises:
            ApiError: as `graph`; or the response has no list, which proves nothing, least of all an empty one.
        """
        page = await self.graph("GET", path, query=query)
        if not isinstance(page.get("data"), list):
            raise self.unavailable(path, "the operator's response has no list")
        return page

    def unavailable(self, call_name: str, reason: str) -> ApiError:
        """Return the error for a call without a useful response; the reason goes to our log, not to the partner."""
        _log.warning("a direct call got no response", call=call_name, app=self.app.id, reason=reason)
        return ApiError(
            ErrorCode.OPERATOR_UNAVAILABLE,
            "The operator is unavailable now; try again later.",
            retry_after_s=RETRY_AFTER_S,
        )

    @asynccontextmanager
    async def deadline(self, call_name: str) -> AsyncGenerator[None]:
        """Limit the time of all direct calls in the block; `call_name` is what the log calls them.

        Raises:
            ApiError: 503, as if the operator had sent no response.
        """
        try:
            async with asyncio.timeout(DIRECT_CALL_TIMEOUT_S):
                yield
        except TimeoutError as error:
            raise self.unavailable(call_name, f"it took longer than {DIRECT_CALL_TIMEOUT_S} s in all") from error

    def _business(self, path: str) -> str:
        """Return the business account that a path names, whose limits the call counts toward; empty if none."""
        owner = path.partition("/")[0]
        return owner if owner == self.app.business_account_id else ""

    def _response_or_error(self, call_name: str, response: Response | CallFailure) -> Response:
        match response:
            case OperatorRejected(text=text, code=code):
                raise ApiError(ErrorCode.OPERATOR_REJECTED, text, operator_code=code)
            case CallNotOffered(text=text):
                raise ApiError(ErrorCode.OPERATOR_REJECTED, text)
            case OperatorUnavailable(text=text) | OutcomeUncertain(text=text):
                raise self.unavailable(call_name, text)
            case _:
                return response


class PartnerCall(NamedTuple):
    """A call about a partner, whose token or API key it has."""

    services: Services
    request: Request
    partner_id: int

    @classmethod
    async def authorise(cls, services: Services, request: Request) -> Self:
        """Return the call."""
        return cls(services, request, await authorise_partner(services, request))

    def check_path(self) -> None:
        """Check that the path names the partner.

        Raises:
            ApiError: it names another one.
        """
        if self.request.path["partner_id"] != str(self.partner_id):
            raise ApiError(ErrorCode.FORBIDDEN_PARTNER, "The path must name the partner of the credential.")


class OwnPartnerCall(PartnerCall):
    """A call about the partner that its path names."""

    @classmethod
    async def authorise(cls, services: Services, request: Request) -> Self:
        """Return the call."""
        call = await super().authorise(services, request)
        call.check_path()
        return call


class AuthorisedCall(Protocol):
    """A call that an operation's function takes."""

    @classmethod
    async def authorise(cls, services: Services, request: Request) -> Self:
        """Return the call of a request whose caller may make it.

        Raises:
            ApiError: the credential is wrong, or the rate is used up.
        """
        ...


class Operations:
    """The operations of one subject, in order; calling it declares the next one.

    Args:
        source: of all of them.
        credential: that each requires, unless it says otherwise.
        at_operator: likewise.
        operator_errors: likewise.
    """

    def __init__(
        self,
        source: str,
        credential: Credential = Credential.APP_TOKEN,
        *,
        at_operator: bool = True,
        operator_errors: tuple[ErrorCode, ...] = OPERATOR_ERRORS,
    ) -> None:
        self._source = source
        self._credential = credential
        self._at_operator = at_operator
        self._operator_errors = operator_errors
        self.rows: list[RouteRow] = []

    def __call__(
        self,
        method: str,
        path: str,
        returns: Returned,
        *,
        source: str = "",
        credential: Credential | None = None,
        rate: str = "partner_call",
        errors: tuple[ErrorCode, ...] = (),
        at_operator: bool | None = None,
        operator_errors: tuple[ErrorCode, ...] | None = None,
        deadline: str = "",
        body: type[Struct] | None = None,
        query: type[Struct] | None = None,
        body_format: BodyFormat = BodyFormat.FORM_OR_JSON,
        by_key: bool = False,
        key_errors: tuple[ErrorCode, ...] = (),
        status: int | None = None,
        wrong_credential: ErrorCode = ErrorCode.AUTHENTICATION_FAILED,
        other_app: ErrorCode = ErrorCode.NOT_FOR_THIS_APP,
        rejection: Callable[[Request, ApiError], ApiError] | None = None,
        deprecated_s: int | None = None,
        idempotency: IdempotencyMode = IdempotencyMode.NO_KEY,
    ) -> Callable[[Function], Function]:
        """Declare an operation.

        Its function takes a call, whose type says how it is authorised, and `fields` (of the body) or `query`,
        whose structs are read and checked before it is called. It returns the struct of the response, or the operator's
        object if that is passed on; nothing for the usual `Success`.

        Args:
            method: of HTTP.
            path: below the host.
            returns: the type of its response.
            source: if it is another one than the subject's.
            credential: likewise.
            rate: its row in the table of rates.
            errors: its error codes besides those that follow from its fields, its path and the operator.
            at_operator: False if it calls nobody.
            operator_errors: the codes of failed calls, if they are not the usual ones.
            deadline: the name, in our log, of the calls that share one time limit; empty: each has its own.
            body: the fields of a body that the function reads itself, for the reference.
            query: the parameters of a query that it reads itself, likewise.
            body_format: of a body.
            status: of its response, unless that names another; if it is absent: 200, or 204 without a struct. Of an
                operation that always fails, its error's.
            wrong_credential: as of `RouteRow`.
            other_app: likewise.
            rejection: returns the error of a call that is not authorised, if it has a form of its own.
            deprecated_s: as of `RouteRow`.
            by_key: True if it has the same path below `/wa` for an API key, too, as public clients call it.
            key_errors: the further error codes of that path.
            idempotency: its handling of an idempotency key.
        """

        def declare(function: Function) -> Function:
            hints = get_type_hints(function)
            fields: type[Struct] | None = hints.get("fields")
            read_query: type[Struct] | None = hints.get("query")
            parameters = read_query or query
            call_type: type[AuthorisedCall] = hints["call"]
            documented = fields or body
            calls_operator = self._at_operator if at_operator is None else at_operator
            failures = self._operator_errors if operator_errors is None else operator_errors
            success = status or (204 if returns is None else 200)

            @wraps(function)
            async def endpoint(services: Services, request: Request) -> ApiResponse:
                try:
                    call = await call_type.authorise(services, request)
                except ApiError as error:
                    if rejection is None:
                        raise
                    raise rejection(request, error) from None
                arguments: dict[str, Struct] = {}
                if read_query is not None:
                    arguments["query"] = read_fields(read_query, request.query)
                if fields is not None:
                    form = request.form() if body_format is BodyFormat.FORM else request.form_or_json()
                    arguments["fields"] = read_fields(fields, form.text)
                if deadline and isinstance(call, AppCall):
                    async with call.deadline(deadline):
                        value = await function(call, **arguments)
                else:
                    value = await function(call, **arguments)
                if value is None and returns is Success:
                    value = Success()
                return value if isinstance(value, ApiResponse) else ApiResponse(value, success)

            row = RouteRow(
                method,
                path,
                endpoint,
                credential or self._credential,
                rate,
                (),
                None if returns is None else schema_of(returns),
                source or self._source,
                body_format if documented else BodyFormat.NOTHING,
                describe_fields(documented, is_json=body_format is BodyFormat.JSON) if documented else (),
                describe_fields(parameters) if parameters else (),
                calls_operator,
                (*_field_errors(documented, parameters), *errors, *(failures if calls_operator else ())),
                idempotency,
                wrong_credential,
                other_app,
                deprecated_s,
            )
            self._append(row, success)
            if by_key:
                self._append(
                    replace(
                        row,
                        path=path.replace(APP, KEY_APP),
                        credential=Credential.API_KEY,
                        source=f"{row.source}; by API key as public clients call it",
                        errors=(*row.errors, *key_errors),
                    ),
                    success,
                )
            return function

        return declare

    def _append(self, row: RouteRow, success: int) -> None:
        """Add a row, with the statuses of its response and of its errors."""
        codes = error_codes_of(replace(row, idempotency=IdempotencyMode.NO_KEY))
        statuses = {ERRORS[code].status for code in codes} - _ANY_ROUTE
        self.rows.append(replace(row, statuses=tuple(sorted({success, *statuses}))))


def _field_errors(*structs: type[Struct] | None) -> tuple[ErrorCode, ...]:
    fields = [field for struct in structs if struct is not None for field in request_fields(struct)]
    missing = (ErrorCode.FIELD_MISSING,) if any(field.is_checked for field in fields) else ()
    return missing + tuple(code for field in fields for code in field.errors)
