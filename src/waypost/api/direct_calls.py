"""Direct calls: calls that only read or set something at the operator, and the time they may take."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from waypost.api.services import Services
from waypost.base.telemetry.logs import log
from waypost.domain.app import App
from waypost.domain.direct_calls import NotOffered, OperatorCall, Response
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.outcome import Rejected, Unavailable, Uncertain

RETRY_AFTER_S: Final = 10
_NONE_YET: Final = "The app has no number at the operator yet; its administrator connects one."
_log = log("api")


def number_of(app: App) -> str:
    """The operator's id of the app's number.

    Raises:
        Refused: it has none yet.
    """
    if not app.phone_number_id:
        raise ApiError(ErrorCode.APP_NOT_APPROVED, _NONE_YET)
    return app.phone_number_id


def account_of(app: App) -> str:
    """The id of the app's business account.

    Raises:
        Refused: it has none yet.
    """
    if not app.business_account_id:
        raise ApiError(ErrorCode.APP_NOT_APPROVED, _NONE_YET)
    return app.business_account_id


async def ask(services: Services, app: App, request: OperatorCall[Response]) -> Response:
    """Make a direct call to the operator behind an app.

    Raises:
        Refused: the app has no business account; the operator refuses, in its own words; or it does not
            answer, with 503, because then it is not known whether it has done what was asked.

    Source: decision 0026.
    """
    account = await services.directory.operator_account_of(app)
    if account is None:
        raise ApiError(ErrorCode.APP_NOT_APPROVED, _NONE_YET)
    match await services.operators.of(account).call(account, request):
        case Rejected(text=text) | NotOffered(text=text):
            raise ApiError(ErrorCode.OPERATOR_REFUSED, text)
        case Unavailable(text=text) | Uncertain(text=text):
            raise unavailable(app, type(request).__name__, text)
        case response:
            return response


def unavailable(app: App, what: str, why: str) -> ApiError:
    """The refusal of a direct call that was not answered; why is for our log, not for the partner."""
    _log.warning("a direct call was not answered", ask=what, app=app.id, why=why)
    return ApiError(
        ErrorCode.OPERATOR_UNAVAILABLE,
        "The operator cannot be asked now; try again later.",
        retry_after_s=RETRY_AFTER_S,
    )


WITHIN_S: Final = 10
"""For all that one request asks of the operator. Source: decision 0026."""


@asynccontextmanager
async def in_time(app: App, what: str) -> AsyncGenerator[None]:
    """What is asked of the operator inside is answered in time, or given up.

    Args:
        app: whose request it is.
        what: is asked, for our log.

    Raises:
        Refused: 503, as where the operator does not answer.
    """
    try:
        async with asyncio.timeout(WITHIN_S):
            yield
    except TimeoutError as late:
        raise unavailable(app, what, f"it took longer than {WITHIN_S} s in all") from late
