"""The registration of an app's number at the operator, and its data of the app on a phone."""

import re
from functools import partial
from typing import Annotated, Any, Final

from msgspec import Struct

from waypost.api.apps.apps import read_region
from waypost.api.direct_calls import call_operator
from waypost.api.fields import Field
from waypost.api.operation import APP, AppCall, Operations
from waypost.api.responses import success
from waypost.domain.direct_calls.onboarding import DeregisterNumber, RegisterNumber, RequestSync, SyncType
from waypost.domain.errors import ApiError, ErrorCode, invalid_field

_PIN: Final = re.compile(r"[0-9]{6}", re.ASCII)


operation = Operations("ledger 1.3")
_registration = partial(
    operation,
    "POST",
    returns=success(success=bool),
    wrong_credential=ErrorCode.UNAUTHORIZED_ACCESS,
    other_app=ErrorCode.FORBIDDEN_ACCESS,
)


class Registration(Struct):
    """The registration of a number."""

    region: Annotated[
        str,
        Field(
            "The code of the country where the operator stores messages; not changed when absent.",
            "IN",
            read=read_region,
            errors=(ErrorCode.INVALID_REGION,),
        ),
    ] = ""
    pin: Annotated[str, Field("The number's PIN, if it was registered elsewhere: 6 digits.")] = ""


class RequestedSync(Struct, rename="camel"):
    """The data to request."""

    sync_type: Annotated[
        str,
        Field(
            "The data to request: smb_app_state_sync (contacts) or history, in any case.", "history", is_required=True
        ),
    ] = ""


@_registration(path=f"{APP}/onboarding/register", errors=(ErrorCode.FIELD_BROKEN,))
async def register_number(call: AppCall, fields: Registration) -> dict[str, Any]:
    """Register the app's number for sending.

    Its PIN is derived from the instance key, so that repeated registrations send the same one. A number that was
    registered with another PIN is registered with the field `pin`, which is ours. The region is passed on only if
    the request names one: the documented default, IN, would move the data of every number there.

    Errors in this order: 401, 429, 400 an invalid field, 400 no number yet, 400 the operator's error, 503.

    Source: ledger 1.3, `onboarding/register`; the operator's page "Registration".
    """
    services, _, app = call
    pin = fields.pin or services.secret_box.number_pin(call.number)
    if not _PIN.fullmatch(pin):
        raise invalid_field("pin", "6 digits")
    result = await call_operator(services, app, RegisterNumber(call.number, pin, fields.region))
    return {"status": "success", "success": result.success}


@_registration(path=f"{APP}/onboarding/deregister")
async def deregister_number(call: AppCall) -> dict[str, Any]:
    """Deregister the app's number: it can send nothing until it is registered again.

    Errors in this order: 401, 429, 400 no number yet, 400 the operator's error, 503.

    Source: ledger 1.3, `onboarding/deregister`; the operator's page "Registration".
    """
    result = await call_operator(call.services, call.app, DeregisterNumber(call.number))
    return {"status": "success", "success": result.success}


@operation(
    "POST", f"{APP}/coex/sync", success(data=dict[str, Any]), rate="app_token", errors=(ErrorCode.INVALID_SYNC_TYPE,)
)
async def request_sync(call: AppCall, fields: RequestedSync) -> dict[str, Any]:
    """Request the contacts or the messages of a number that a person also uses in the WhatsApp Business app.

    They arrive as callbacks of the mode COEXISTENCE. Each may be requested once, within 24 hours of onboarding.

    Errors in this order: 401, 429, 400 no such type, 400 no number yet, 400 the operator's error, 503.

    Source: ledger 1.3, `coex/sync`.
    """
    text = fields.sync_type.strip().lower()
    if text not in list(SyncType):
        raise ApiError(ErrorCode.INVALID_SYNC_TYPE, f"syncType must be one of {', '.join(SyncType)}, in any case.")
    response = await call_operator(call.services, call.app, RequestSync(call.number, SyncType(text)))
    return {"status": "success", "data": response.raw}
