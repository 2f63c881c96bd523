"""The registration of an app's number at the operator, and data of a number that is on the WhatsApp Business app."""

import re
from functools import partial
from typing import Annotated, Any, Final

from msgspec import Struct

from waypost.api.apps.apps import read_region
from waypost.api.fields import Field, omit_empty
from waypost.api.operation import APP, AppCall, Operations
from waypost.base.json_values import boolean_of
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.store.apps.onboarding import set_shared
from waypost.wire.responses import success

SYNC_TYPES: Final = ("smb_app_state_sync", "history")  # contacts, and messages. Source: ledger 1.3
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
    pin = fields.pin or call.services.secret_box.number_pin(call.number)
    if not _PIN.fullmatch(pin):
        raise invalid_field("pin", "6 digits")
    body = {"messaging_product": "whatsapp", "pin": pin, "data_localization_region": fields.region}
    response = await call.graph("POST", f"{call.number}/register", omit_empty(body))
    await _set_shared(call, is_shared=False)  # the operator registers no number that is in the app on a phone
    return _registration_response(response)


@_registration(path=f"{APP}/onboarding/deregister")
async def deregister_number(call: AppCall) -> dict[str, Any]:
    """Deregister the app's number: it can send nothing until it is registered again.

    Errors in this order: 401, 429, 400 no number yet, 400 the operator's error, 503.

    Source: ledger 1.3, `onboarding/deregister`; the operator's page "Registration".
    """
    return _registration_response(await call.graph("POST", f"{call.number}/deregister"))


def _registration_response(response: dict[str, Any]) -> dict[str, Any]:
    return {"status": "success", "success": boolean_of(response.get("success"), default=True)}


@operation(
    "POST", f"{APP}/coex/sync", success(data=dict[str, Any]), rate="app_token", errors=(ErrorCode.INVALID_SYNC_TYPE,)
)
async def request_synchronisation_of_contacts(call: AppCall, fields: RequestedSync) -> dict[str, Any]:
    """Request the contacts or the messages of a number that a person also uses in the WhatsApp Business app.

    They arrive as callbacks of the mode COEXISTENCE. Each may be requested once, within 24 hours of onboarding.

    Errors in this order: 401, 429, 400 no such type, 400 no number yet, 400 the operator's error, 503.
    """
    text = fields.sync_type.strip().lower()
    if text not in SYNC_TYPES:
        raise ApiError(ErrorCode.INVALID_SYNC_TYPE, f"syncType must be one of {', '.join(SYNC_TYPES)}, in any case.")
    body = {"messaging_product": "whatsapp", "sync_type": text}
    requested = await call.graph("POST", f"{call.number}/smb_app_data", body)
    await _set_shared(call, is_shared=True)
    return {"status": "success", "data": requested}


async def _set_shared(call: AppCall, *, is_shared: bool) -> None:
    if call.app.preferences.is_shared != is_shared:
        now_ms = call.services.clock.now_ms()
        await call.services.database.write(partial(set_shared, app_id=call.app.id, is_shared=is_shared, at_ms=now_ms))
        call.services.directory.invalidate()
