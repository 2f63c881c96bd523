"""The Graph API's calls edge of a number: accepting, rejecting and ending a call from a phone.

Calls from a business to a phone (action `connect`) are not simulated. Source: the operator's page "Calling API".
"""

from typing import Annotated, Any, Final

from msgspec.structs import replace

from waypost.base.json_values import object_of, text_or_none
from waypost.simulator.apis.errors import bad_parameter, message_error
from waypost.simulator.apis.parameters import ProductParameters, one_of, read_parameters
from waypost.simulator.apis.requests import GRAPH_SUCCESS, Call
from waypost.simulator.calling.model import CALLS, CallState, call_error, end_call, save_call, unschedule_end
from waypost.simulator.numbers.calling_settings import is_calling_enabled, is_sip_enabled
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.records import SETTINGS
from waypost.simulator.state.simulator_state import Transaction
from waypost.simulator.state.tokens import MESSAGING

operation = GraphOperations()

_MAX_CALLBACK_DATA_CHARS: Final = 512


class CallActionParameters(ProductParameters, frozen=True):
    """The action on a call."""

    action: Annotated[str, one_of("pre_accept", "accept", "reject", "terminate")]


@operation("calls.change", "POST", Number, "calls", permission=MESSAGING)
def act_on_call(transaction: Transaction, call: Call, number: Number) -> dict[str, Any]:
    """Pre-accept, accept, reject or end a call."""
    settings = transaction.record(number.phone_number_id, SETTINGS)
    if not is_calling_enabled(settings):
        raise message_error(138000, "Calling APIs are not enabled for this phone number")
    if is_sip_enabled(settings):
        raise message_error(131055, "Graph API calls are not allowed for SIP enabled numbers")
    fields, action = call.fields, read_parameters(CallActionParameters, call.fields).action
    calls = transaction.values(CALLS, number.phone_number_id).values()
    current = next((known for known in calls if known.call_id == fields.get("call_id")), None)
    if current is None:
        raise call_error("The call_id is not that of a call of this phone number.")
    sdp = _read_sdp(fields) if action in ("pre_accept", "accept") else None
    callback_data = _read_callback_data(fields) if action == "accept" else None
    now_ms = transaction.state.clock.now_ms()
    if current.state_at(now_ms) is CallState.ENDED:
        raise call_error("The call has ended.")
    if action != "terminate" and current.connected_ms is not None:
        raise call_error("The call has been accepted already.")
    if sdp is None:
        end_call(transaction, current)
    elif current.business_sdp not in ("", sdp):
        raise call_error("SDP Validation error: the SDP differs from that of the pre_accept.")
    elif action == "pre_accept":
        save_call(transaction, replace(current, business_sdp=sdp))
    else:
        connected = replace(current, business_sdp=sdp, connected_ms=now_ms, callback_data=callback_data)
        save_call(transaction, connected)
        unschedule_end(transaction, connected)
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
