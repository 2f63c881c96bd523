"""The Graph API's calls edge of a number: accepting, rejecting and ending a call from a phone.

Calls from a business to a phone (action `connect`) are not simulated.
"""

from typing import Any, Final

from waypost.base.json_values import object_of, text_or_none
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.accounts.records import SETTINGS
from waypost.simulator.calling.calls import call_error
from waypost.simulator.calling.settings import is_calling_enabled, is_sip_enabled
from waypost.simulator.errors import bad_parameter, message_error
from waypost.simulator.requests import GRAPH_SUCCESS, Call
from waypost.simulator.services import SimulatorServices

_ACTIONS: Final = ("pre_accept", "accept", "reject", "terminate")
_MAX_CALLBACK_DATA_CHARS: Final = 512


async def act_on_call(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Pre-accept, accept, reject or end a call.

    Source: the operator's page "Calling API", Calls and error codes.
    """
    settings = services.records.get(number.phone_number_id, SETTINGS)
    if not is_calling_enabled(settings):
        raise message_error(138000, "Calling APIs are not enabled for this phone number")
    if is_sip_enabled(settings):
        raise message_error(131055, "Graph API calls are not allowed for SIP enabled numbers")
    fields = call.fields
    if fields.get("messaging_product") != "whatsapp":
        raise bad_parameter("The parameter messaging_product is required.")
    action = fields.get("action")
    if action not in _ACTIONS:
        raise bad_parameter(f"Param action must be one of {{{', '.join(_ACTIONS)}}}.")
    phone_call = services.calls.by_id.get(text_or_none(fields.get("call_id")) or "")
    if phone_call is None or phone_call.phone_number_id != number.phone_number_id:
        raise call_error("The call_id is not that of a call of this phone number.")
    match action:
        case "pre_accept":
            await services.calls.pre_accept(phone_call, _read_sdp(fields))
        case "accept":
            await services.calls.accept(phone_call, _read_sdp(fields), _read_callback_data(fields))
        case "reject":
            await services.calls.reject(phone_call)
        case _:
            await services.calls.terminate(phone_call)
    return {"messaging_product": "whatsapp", **GRAPH_SUCCESS}


def _read_sdp(fields: dict[str, Any]) -> str:
    """Return the SDP of a request, whose text is not checked. Source: RFC 8866."""
    session = object_of(fields.get("session"))
    sdp = text_or_none(session.get("sdp"))
    if session.get("sdp_type") != "answer" or not sdp:
        raise call_error("The session must have the sdp_type answer, and an sdp.")
    return sdp


def _read_callback_data(fields: dict[str, Any]) -> str | None:
    data = fields.get("biz_opaque_callback_data")
    if data is not None and not (isinstance(data, str) and len(data) <= _MAX_CALLBACK_DATA_CHARS):
        rule = f"must be a text of at most {_MAX_CALLBACK_DATA_CHARS} characters."
        raise bad_parameter(f"Param biz_opaque_callback_data {rule}")
    return data
