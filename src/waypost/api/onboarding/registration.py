"""Endpoints that register an app's number at the operator, deregister it, and request its data of the app on a phone."""

import re
from typing import Final

from waypost.api.auth.authorisation import authorise_app
from waypost.api.direct_calls import call_operator, number_of
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.app import STORAGE_REGIONS
from waypost.domain.direct_calls.call import CallResult
from waypost.domain.direct_calls.onboarding import DeregisterNumber, RegisterNumber, RequestSync, SyncType
from waypost.domain.errors import ApiError, ErrorCode, invalid_field

_PIN: Final = re.compile(r"[0-9]{6}", re.ASCII)


async def register_number(services: Services, request: Request) -> ApiResponse:
    """Register the app's number for sending.

    Its PIN is derived from the instance key, so that repeated registrations send the same one. A number that was
    registered with another PIN is registered with the field `pin`, which is ours. The region is passed on only if
    the request names one: the documented default, IN, would move the data of every number there.

    Errors in this order: 401, 429, 400 an invalid field, 400 no number yet, 400 the operator's error, 503.

    Source: ledger 1.3, `onboarding/register`; the operator's page "Registration".
    """
    app = await authorise_app(services, request)
    form = request.form_or_json()
    region = (form.text("region") or "").strip().upper()
    if region and region not in STORAGE_REGIONS:
        raise ApiError(ErrorCode.INVALID_REGION, f"region must be one of {', '.join(STORAGE_REGIONS)}.")
    number_id = number_of(app)
    pin = form.text("pin") or services.secret_box.number_pin(number_id)
    if not _PIN.fullmatch(pin):
        raise invalid_field("pin", "6 digits")
    return _response(await call_operator(services, app, RegisterNumber(number_id, pin, region)))


async def deregister_number(services: Services, request: Request) -> ApiResponse:
    """Deregister the app's number: it can send nothing until it is registered again.

    Errors in this order: 401, 429, 400 no number yet, 400 the operator's error, 503.

    Source: ledger 1.3, `onboarding/deregister`; the operator's page "Registration".
    """
    app = await authorise_app(services, request)
    return _response(await call_operator(services, app, DeregisterNumber(number_of(app))))


async def request_sync(services: Services, request: Request) -> ApiResponse:
    """Request the contacts or the messages of a number that a person also uses in the WhatsApp Business app.

    They arrive as callbacks of the mode COEXISTENCE. Each may be requested once, within 24 hours of onboarding.

    Errors in this order: 401, 429, 400 no such type, 400 no number yet, 400 the operator's error, 503.

    Source: ledger 1.3, `coex/sync`.
    """
    app = await authorise_app(services, request)
    text = (request.form_or_json().text("syncType") or "").strip().lower()
    if text not in list(SyncType):
        raise ApiError(ErrorCode.INVALID_SYNC_TYPE, f"syncType must be one of {', '.join(SyncType)}, in any case.")
    response = await call_operator(services, app, RequestSync(number_of(app), SyncType(text)))
    return ApiResponse({"status": "success", "data": response.raw})


def _response(result: CallResult) -> ApiResponse:
    return ApiResponse({"status": "success", "success": result.success})
