"""Requests to a Flow's endpoint: signed, encrypted, within ten seconds, with what went wrong in words.

Source: the operator's pages "Implementing endpoint for Flows" and "Error codes".
"""

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from waypost.base.error_texts import error_text
from waypost.base.http.connection_pools import ConnectionPools
from waypost.base.http.connections import ResponseTimeout
from waypost.base.http.http_client import HttpClient
from waypost.base.json_values import object_of
from waypost.simulator.flows.encryption import UndecryptableResponse, decrypt_response, encrypt_request, read_public_key
from waypost.simulator.flows.model import Flow
from waypost.simulator.state.records import ENCRYPTION
from waypost.simulator.state.simulator_state import SimulatorState

ENDPOINT_TIMEOUT_S: Final = 10
MAX_ENDPOINT_RESPONSE_BYTES: Final = 1024 * 1024
SIGNATURE_HEADER: Final = "X-Hub-Signature-256"

# Source: the operator's page "Implementing endpoint for Flows": what a handset does with a status.
_STATUS_MEANINGS: Final = {
    421: ("business-decryption-error", "The endpoint could not decrypt the request, and said so by 421."),
    427: ("unexpected_http_status_code", "The endpoint says by 427 that the flow token is no longer valid."),
    432: ("unexpected_http_status_code", "The endpoint says by 432 that the signature is wrong."),
}


@dataclass(frozen=True)
class EndpointExchange:
    """A request to an endpoint, and what came of it.

    Attributes:
        request: as it was before encryption.
        status: of HTTP; 0 if there is no response.
        response: decrypted; empty if it failed.
        error_type: the operator's name of what failed; empty if nothing did.
        diagnosis: the same for people.
    """

    request: dict[str, Any]
    status: int = 0
    response: dict[str, Any] = field(default_factory=dict[str, Any])
    error_type: str = ""
    diagnosis: str = ""


def find_endpoint_key(state: SimulatorState, waba_id: str) -> RSAPublicKey | None:
    """Return the public key of one of an account's numbers; None if none has one."""
    for number in state.accounts.numbers_of(waba_id):
        key = read_public_key(state.record(number.phone_number_id, ENCRYPTION).get("business_public_key"))
        if key is not None:
            return key
    return None


async def call_endpoint(
    state: SimulatorState, flow: Flow, key: RSAPublicKey, request: dict[str, Any]
) -> EndpointExchange:
    """Send a request to a Flow's endpoint; return what came of it, which is never an exception."""
    app = state.accounts.apps.get(state.accounts.by_id[flow.waba_id].app_id)
    sent = encrypt_request(key, request, state.ids)
    secret = app.app_secret if app is not None else ""
    signature = hmac.new(secret.encode(), sent.body, hashlib.sha256).hexdigest()
    headers = {"Content-Type": "application/json", SIGNATURE_HEADER: f"sha256={signature}"}
    pools = ConnectionPools(max_per_address=1, idle_s=ENDPOINT_TIMEOUT_S, connect_s=ENDPOINT_TIMEOUT_S)
    client = HttpClient(pools, max_body_bytes=MAX_ENDPOINT_RESPONSE_BYTES)
    try:
        response = await client.request("POST", flow.endpoint_uri, headers, sent.body, timeout_s=ENDPOINT_TIMEOUT_S)
    except ResponseTimeout:
        text = f"The endpoint did not respond within {ENDPOINT_TIMEOUT_S} s."
        return EndpointExchange(request, error_type="timeout_error", diagnosis=text)
    except (OSError, ValueError) as error:
        text = f"The endpoint cannot be reached, or sent no whole response: {error_text(error)}."
        return EndpointExchange(request, error_type="no_http_response_error", diagnosis=text)
    finally:
        await client.close()
    if response.status != 200:
        default = ("unexpected_http_status_code", f"The endpoint responded with status {response.status}, not 200.")
        error_type, text = _STATUS_MEANINGS.get(response.status, default)
        return EndpointExchange(request, response.status, error_type=error_type, diagnosis=text)
    try:
        content = decrypt_response(sent, response.body)
    except UndecryptableResponse as reason:
        return EndpointExchange(request, 200, error_type="response-decryption-error", diagnosis=str(reason))
    return EndpointExchange(request, 200, content)


async def ping_endpoint(state: SimulatorState, flow: Flow, key: RSAPublicKey) -> EndpointExchange:
    """Send the health check; its response must be `{"data": {"status": "active"}}`."""
    exchange = await call_endpoint(state, flow, key, {"version": flow.data_api_version, "action": "ping"})
    if exchange.error_type or object_of(exchange.response.get("data")).get("status") == "active":
        return exchange
    text = 'The response to the health check must be {"data": {"status": "active"}}.'
    return EndpointExchange(exchange.request, 200, exchange.response, "payload-schema-error", text)
