"""Direct calls, which only read or set something at the operator, and their time limit."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from waypost.api.services import Services
from waypost.base.telemetry.logs import log
from waypost.domain.app import App, OperatorAccount
from waypost.domain.direct_calls import CallFailure, CallNotOffered, OperatorCall, Response
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable, OutcomeUncertain
from waypost.operators.contract import GraphClient, GraphRequest

RETRY_AFTER_S: Final = 10
_NONE_YET: Final = "The app has no number at the operator yet; its administrator connects one."
_log = log("api")


def number_of(app: App) -> str:
    """Return the operator's id of the app's number.

    Raises:
        ApiError: the app has no number yet.
    """
    if not app.phone_number_id:
        raise ApiError(ErrorCode.APP_NOT_APPROVED, _NONE_YET)
    return app.phone_number_id


def account_of(app: App) -> str:
    """Return the id of the app's business account.

    Raises:
        ApiError: the app has no business account yet.
    """
    if not app.business_account_id:
        raise ApiError(ErrorCode.APP_NOT_APPROVED, _NONE_YET)
    return app.business_account_id


async def call_operator(services: Services, app: App, request: OperatorCall[Response]) -> Response:
    """Make a direct call to the operator behind an app.

    Raises:
        ApiError: the app has no business account; the operator returns an error, whose text is passed on; or
            503, it sends no response, because then it is unknown whether it carried out the call.

    Source: decision 0026.
    """
    account = await _operator_account_of(services, app)
    response = await services.operators.adapter(account).call(account, request)
    return _response_or_error(app, type(request).__name__, response)


async def request_graph(services: Services, app: App, request: GraphRequest) -> dict[str, Any]:
    """Make a request of the operator's Graph API, and return the object of its response.

    Raises:
        ApiError: as `call_operator`.
    """
    account, graph = await graph_of(services, app)
    response = await graph.request(account, _add_business(app, request))
    return _response_or_error(app, f"{request.method} {request.path}", response)


async def list_graph(services: Services, app: App, request: GraphRequest, name: str) -> list[Any]:
    """Return all items of a list of the operator's Graph API; `name` is what our log calls them.

    Raises:
        ApiError: as `call_operator`.
    """
    account, graph = await graph_of(services, app)
    items = await graph.list_all(account, _add_business(app, request), name)
    return _response_or_error(app, f"{request.method} {request.path}", items)


async def _operator_account_of(services: Services, app: App) -> OperatorAccount:
    account = await services.directory.operator_account_of(app)
    if account is None:
        raise ApiError(ErrorCode.APP_NOT_APPROVED, _NONE_YET)
    return account


async def graph_of(services: Services, app: App) -> tuple[OperatorAccount, GraphClient]:
    """Return the operator account behind an app, and the Graph API there.

    Raises:
        ApiError: the app has no business account; or the operator has no Graph API.
    """
    account = await _operator_account_of(services, app)
    graph = services.operators.adapter(account).graph
    if graph is None:
        raise ApiError(ErrorCode.OPERATOR_REJECTED, "This operator does not offer this operation.")
    return account, graph


def _add_business(app: App, request: GraphRequest) -> GraphRequest:
    """Return the request with the business account that it calls itself, whose limits it counts toward."""
    owner = request.path.partition("/")[0]
    return request._replace(business=owner) if owner == app.business_account_id else request


def _response_or_error(app: App, call_name: str, response: Response | CallFailure) -> Response:
    match response:
        case OperatorRejected(text=text, code=code):
            raise ApiError(ErrorCode.OPERATOR_REJECTED, text, operator_code=code)
        case CallNotOffered(text=text):
            raise ApiError(ErrorCode.OPERATOR_REJECTED, text)
        case OperatorUnavailable(text=text) | OutcomeUncertain(text=text):
            raise unavailable_error(app, call_name, text)
        case _:
            return response


def unavailable_error(app: App, call_name: str, reason: str) -> ApiError:
    """Return the error for a direct call without a response; the reason goes to our log, not to the partner."""
    _log.warning("a direct call got no response", call=call_name, app=app.id, reason=reason)
    return ApiError(
        ErrorCode.OPERATOR_UNAVAILABLE, "The operator is unavailable now; try again later.", retry_after_s=RETRY_AFTER_S
    )


DIRECT_CALL_TIMEOUT_S: Final = 10
"""For all direct calls of one request together. Source: decision 0026."""


@asynccontextmanager
async def direct_call_deadline(app: App, call_name: str) -> AsyncGenerator[None]:
    """Limit the time of the direct calls made inside the `async with` block.

    Args:
        app: the app whose request it is.
        call_name: the call's name, for our log.

    Raises:
        ApiError: 503, as if the operator had sent no response.
    """
    try:
        async with asyncio.timeout(DIRECT_CALL_TIMEOUT_S):
            yield
    except TimeoutError as error:
        raise unavailable_error(app, call_name, f"it took longer than {DIRECT_CALL_TIMEOUT_S} s in all") from error
