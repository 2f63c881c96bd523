"""Requests to a Flow's endpoint as a handset sends them, and what came of them, with a diagnosis in words.

`call_endpoint` is the entry of whatever plays a Flow, `ping_endpoint` that of publishing and of the monitor.

Source: the operator's pages "Implementing endpoint for Flows" and "Error codes".
"""

import asyncio
import base64
import hashlib
import hmac
import json
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from msgspec.structs import replace

from waypost.base.error_texts import error_text
from waypost.base.http.connections import HttpResponse
from waypost.base.json_values import object_of, text_or_none
from waypost.flow_json.versions import read_version
from waypost.simulator.flows.encryption import (
    EncryptedRequest,
    UndecryptableResponse,
    decrypt_response,
    encrypt_request,
    read_content,
)
from waypost.simulator.flows.endpoint_faults import (
    EXPECTED_STATUSES,
    ExchangeFault,
    make_stale_key,
    select_exchange_fault,
)
from waypost.simulator.flows.endpoint_keys import find_endpoint_key, find_key_problem, find_padding_mistake
from waypost.simulator.flows.endpoint_responses import INVALID_PAYLOAD, INVALID_TRANSITION, check_response
from waypost.simulator.flows.exchanges import EndpointExchange
from waypost.simulator.flows.measurement import record_exchange
from waypost.simulator.flows.model import BLOCKED, DEPRECATED, Flow, content_of, find_flow_app
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.simulator_state import SimulatorState

SIGNATURE_HEADER: Final = "X-Hub-Signature-256"
MAX_NOTICE_CHARS: Final = 1000
DECRYPTION_ERROR: Final = "response-decryption-error"
NOTICED_ERRORS: Final = frozenset({DECRYPTION_ERROR, INVALID_PAYLOAD, INVALID_TRANSITION})
"""The errors of which handsets tell the endpoint. Source: public page "Flow preview page"."""
_OK: Final = 200
_KEY_CHANGED: Final = 421
_TOKEN_INVALID: Final = 427
_MAX_USER_MESSAGE_CHARS: Final = 1000
_LARGE_ASSET_CHARS: Final = 200_000
_SIGNED_FROM: Final = ((7, 3), (4, 0))
"""Versions of Flow JSON and of the Data API from which flow tokens are signed."""

# fmt: off
_STATUSES: Final = {  # Source: the operator's page "Error codes", endpoint error codes
    # status  operator's name                 what it means
    421:     ("business-decryption-error",
              "The endpoint could not decrypt the request, also not with the key fetched again (421): its private key is "
              "not that of the uploaded public key, or it decrypts otherwise than documented."),
    427:     ("unexpected_http_status_code",  "The endpoint says by 427 that the flow token is no longer valid."),
    432:     ("unexpected_http_status_code",
              "The endpoint says by 432 that the signature is wrong: it knows another app secret than that of the "
              "Flow's app, or it signs another text than the body as it was sent."),
    404:     ("unexpected_http_status_code",  "The endpoint responded with status 404: is the path of endpoint_uri right?"),
    405:     ("unexpected_http_status_code",  "The endpoint responded with status 405: it must accept POST."),
    413:     ("unexpected_http_status_code",
              "The endpoint responded with status 413: its limit for bodies is smaller than this request."),
    415:     ("unexpected_http_status_code",
              "The endpoint responded with status 415: it must accept application/json."),
}
# fmt: on


@dataclass
class _Call:
    """One exchange while it runs: the request, who sends it, and what was learned on the way."""

    state: SimulatorState
    flow: Flow
    name: str
    request: dict[str, Any]
    secret: str
    number: Number | None
    fault: ExchangeFault | None
    content: dict[str, Any]
    until_s: float = 0
    attempts: int = 0
    warnings: list[str] = field(default_factory=list[str])

    @property
    def left_s(self) -> float:
        """The time that is left for the response."""
        return self.until_s - asyncio.get_running_loop().time()


async def call_endpoint(
    state: SimulatorState,
    flow: Flow,
    key: RSAPublicKey | None,
    request: dict[str, Any],
    *,
    phone_number_id: str = "",
    phone: str = "",
    wamid: str = "",
) -> EndpointExchange:
    """Send a request to a Flow's endpoint; return what came of it, which is never an exception.

    After a 421 the key is fetched again, and the request sent once more. The handset checks a response against the Flow
    JSON, and tells the endpoint of an invalid one in the background. The exchange is kept, and counted.

    Args:
        flow: with the asset that is played: of a message, the version with which it was sent.
        key: the public key that the handset knows; None if it found none.
        request: `action`, and whatever of `screen`, `data` and `flow_token` it has; `version` and
            `flow_token_signature` are added.
        phone_number_id: of the number that sent the message; empty: any of the account.
        phone: the user's digits.
        wamid: of the message.
    """
    name = _name_request(request)
    exchange = await _exchange(state, flow, key, name, request, phone_number_id, phone, wamid)
    if exchange.error_type in NOTICED_ERRORS and name not in ("ping", "error_notice"):
        notice = build_error_notice(exchange.request, exchange.error_type, exchange.diagnosis)
        state.endpoints.start(_send_notice(state, flow, key, notice, phone_number_id, phone, wamid))
    return exchange


def _name_request(request: dict[str, Any]) -> str:
    """Return the name of a request by which faults are armed; see `ENDPOINT_REQUESTS`."""
    is_notice = object_of(request.get("data")).keys() == {"error", "error_message"}
    return "error_notice" if is_notice else str(request.get("action"))


async def ping_endpoint(state: SimulatorState, flow: Flow, key: RSAPublicKey | None) -> EndpointExchange:
    """Send the health check; its response must be `{"data": {"status": "active"}}`."""
    return await call_endpoint(state, flow, key, {"action": "ping"})


def build_error_notice(request: dict[str, Any], error_type: str, message: str) -> dict[str, Any]:
    """Return the notice of an invalid response to a request.

    The documentation's table calls the member `error_key`, its sample `error`; the operator's examples read `error`.
    """
    action = "INIT" if request.get("action") == "INIT" else "data_exchange"
    named = {
        name: request[name] for name in ("version", "flow_token", "flow_token_signature", "screen") if name in request
    }
    return {**named, "action": action, "data": {"error": error_type, "error_message": message[:MAX_NOTICE_CHARS]}}


async def _send_notice(
    state: SimulatorState,
    flow: Flow,
    key: RSAPublicKey | None,
    notice: dict[str, Any],
    phone_number_id: str,
    phone: str,
    wamid: str,
) -> None:
    await _exchange(state, flow, key, "error_notice", notice, phone_number_id, phone, wamid)


async def _exchange(
    state: SimulatorState,
    flow: Flow,
    key: RSAPublicKey | None,
    name: str,
    request: dict[str, Any],
    phone_number_id: str,
    phone: str,
    wamid: str,
) -> EndpointExchange:
    """Run one exchange, and record it."""
    is_large = len(flow.asset) > _LARGE_ASSET_CHARS
    content = await asyncio.to_thread(content_of, flow.asset) if is_large else content_of(flow.asset)
    app = find_flow_app(state, flow)
    secret = app.app_secret if app is not None else ""
    complete = _complete_request(state, content, request, secret)
    number = state.accounts.numbers.get(phone_number_id)
    app_id = app.app_id if app is not None else ""
    fault = await select_exchange_fault(state, flow, name, app_id=app_id, number=number, phone=phone)
    call = _Call(state, flow, name, complete, secret, number, fault, content)
    at_ms, began_ms = state.clock.now_ms(), state.clock.real_ms()
    problem = _find_obstacle(state, flow, key, number, has_app=app is not None)
    result = problem or await _run(call, key)
    exchange = replace(
        result,
        request=complete,
        warnings=[*result.warnings, *call.warnings],
        endpoint_uri=flow.endpoint_uri,
        at_ms=at_ms,
        duration_ms=state.clock.real_ms() - began_ms,
        attempts=call.attempts,
        fault=fault.text if fault is not None else "",
        wamid=wamid,
        phone=phone,
    )
    await record_exchange(state, flow, name, exchange)
    return exchange


def _complete_request(
    state: SimulatorState, content: dict[str, Any], request: dict[str, Any], secret: str
) -> dict[str, Any]:
    """Return a request with its version, and the signature of its flow token if the versions have one."""
    version = text_or_none(content.get("data_api_version")) or ""
    complete = {"version": version, **request}
    token = text_or_none(request.get("flow_token"))
    versions = (read_version(str(content.get("version"))) or (0, 0), read_version(version) or (0, 0))
    is_signed = all(one >= least for one, least in zip(versions, _SIGNED_FROM, strict=True))
    if token is not None and is_signed and state.settings.value.flow_token_signature:
        complete["flow_token_signature"] = sign_flow_token(token, secret)
    return complete


def sign_flow_token(token: str, secret: str) -> str:
    """Return a JSON Web Token, HS256 by the app secret, with the flow token in its payload."""
    parts = ({"alg": "HS256", "typ": "JWT"}, {"flow_token": token})
    text = ".".join(_encode_url(json.dumps(part, separators=(",", ":")).encode()) for part in parts)
    return f"{text}.{_encode_url(hmac.digest(secret.encode(), text.encode(), 'sha256'))}"


def _encode_url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _find_obstacle(
    state: SimulatorState, flow: Flow, key: RSAPublicKey | None, number: Number | None, *, has_app: bool
) -> EndpointExchange | None:
    """Return the failed exchange if no request can be sent."""
    if flow.status in (BLOCKED, DEPRECATED) or not flow.endpoint_uri:
        why = f"it is {flow.status}" if flow.endpoint_uri else "it has no endpoint_uri"
        return EndpointExchange({}, error_type="cannot_be_served", diagnosis=f"The Flow cannot be served: {why}.")
    if not has_app:
        text = "No app is connected to the Flow, so its requests cannot be signed."
        return EndpointExchange({}, error_type="missing_capability", diagnosis=text)
    if key is None:
        error_type, text = find_key_problem(state, flow.waba_id, number)
        return EndpointExchange({}, error_type=error_type, diagnosis=text)
    return None


async def _run(call: _Call, key: RSAPublicKey | None) -> EndpointExchange:
    """Send the request, once more after a 421, and read the response."""
    fault, exchange = call.fault, EndpointExchange({})
    assert key is not None  # noqa: S101  see `_find_obstacle`
    number_id = call.number.phone_number_id if call.number is not None else ""
    for attempt in (1, 2):
        changes_request = fault is not None and fault.changes_request and attempt == 1
        used_key = (
            await make_stale_key() if changes_request and fault is not None and fault.kind == "stale_key" else key
        )
        sent = encrypt_request(used_key, call.request, call.state.ids)
        exchange = await _send(call, sent, changes_request=changes_request)
        if fault is not None and changes_request:
            _judge_status(call, fault, exchange.status)
        if exchange.status != _KEY_CHANGED or attempt == 2:
            break
        key = find_endpoint_key(call.state, call.flow.waba_id, number_id) or key
    if exchange.status == _KEY_CHANGED and fault is None:
        exchange = await _find_mistake(call, key, exchange)
    if fault is not None and exchange.error_type:
        exchange = replace(exchange, diagnosis=f"By {fault.text}. {exchange.diagnosis}")
    return exchange


def _judge_status(call: _Call, fault: ExchangeFault, status: int) -> None:
    """Add how the endpoint took a request that a fault has changed."""
    expected = EXPECTED_STATUSES[fault.kind]
    if status == expected:
        call.warnings.append(f"The endpoint responded {status} to what {fault.text} sent, as it must.")
    elif status:
        call.warnings.append(f"The endpoint responded {status} to what {fault.text} sent; it must respond {expected}.")


async def _send(call: _Call, sent: EncryptedRequest, *, changes_request: bool) -> EndpointExchange:
    """Send an encrypted request and read the response, as the fault lets it arrive."""
    fault, timeout_s = call.fault, call.state.settings.value.endpoint_timeout_ms / 1000
    call.attempts += 1
    call.until_s = asyncio.get_running_loop().time() + timeout_s
    try:
        if fault is not None:
            fault.check_connection(is_received=False)
        body = fault.change_body(sent) if fault is not None and changes_request else sent.body
        response = fault.response_in_place if fault is not None else None
        if response is None or (fault is not None and fault.is_processed):
            received = await _post(call, body, changes_request=changes_request)
            response = response or received
        if fault is not None:
            fault.check_connection(is_received=True)
            await fault.delay(call.left_s)
            response = fault.change_response(sent, response)
    except TimeoutError:
        text = f"The endpoint did not respond within {timeout_s:g} s."
        return EndpointExchange({}, error_type="timeout_error", diagnosis=text)
    except (OSError, ValueError) as error:
        text = f"The endpoint cannot be reached, or sent no whole response: {error_text(error)}."
        return EndpointExchange({}, error_type="no_http_response_error", diagnosis=text)
    return _read_response(call, sent, response)


async def _post(call: _Call, body: bytes, *, changes_request: bool) -> HttpResponse:
    fault = call.fault
    headers = {"Content-Type": "application/json"}
    kind = fault.kind if fault is not None and changes_request else ""
    if kind != "unsigned":
        secret = call.secret[::-1] + "." if kind == "wrong_signature" else call.secret
        headers[SIGNATURE_HEADER] = f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"
    post = call.state.endpoints.post
    response = await post(call.flow.endpoint_uri, headers, body, timeout_s=call.left_s)
    if fault is not None and fault.kind == "replay":
        again = await post(call.flow.endpoint_uri, headers, body, timeout_s=max(0.001, call.left_s))
        call.warnings.append(
            f"The endpoint responded {again.status} to the same request sent again, after {response.status}."
        )
    return response


def _read_response(call: _Call, sent: EncryptedRequest, response: HttpResponse) -> EndpointExchange:
    status = response.status
    if status == _TOKEN_INVALID:
        return _read_invalid_token(call, sent, response)
    if status != _OK:
        text = f"The endpoint responded with status {status}, not 200."
        if 300 <= status < 400:
            text = f"The endpoint responded with status {status}, a redirect; handsets follow none."
        error_type, text = _STATUSES.get(status, ("unexpected_http_status_code", text))
        return EndpointExchange({}, status, error_type=error_type, diagnosis=text)
    content_type = dict(response.headers).get("content-type", "").partition(";")[0].strip()
    if content_type != "text/plain":
        named = f"is {content_type[:100]}" if content_type else "is missing"
        call.warnings.append(f"The Content-Type of the response {named}; documented is text/plain.")
    try:
        content = decrypt_response(sent, response.body)
    except UndecryptableResponse as reason:
        return EndpointExchange({}, status, error_type=DECRYPTION_ERROR, diagnosis=str(reason))
    check = check_response(call.content, call.name, call.request, content)
    call.warnings.extend(check.warnings)
    return EndpointExchange({}, status, content, check.error_type, check.problem)


def _read_invalid_token(call: _Call, sent: EncryptedRequest, response: HttpResponse) -> EndpointExchange:
    """Return the exchange of a 427, with the endpoint's own text if it has one: plain, or encrypted.

    Source: decision 0130.
    """
    error_type, diagnosis = _STATUSES[_TOKEN_INVALID]
    content: dict[str, Any] = {}
    if response.body.strip():
        try:
            content = read_content(response.body)
        except UndecryptableResponse:
            try:
                content = decrypt_response(sent, response.body)
            except UndecryptableResponse as reason:
                call.warnings.append(f'The body of the 427 is not {{"error_msg": "…"}}, plain or encrypted: {reason}')
    message = (text_or_none(content.get("error_msg")) or "")[:_MAX_USER_MESSAGE_CHARS]
    return EndpointExchange({}, _TOKEN_INVALID, content, error_type, diagnosis, user_message=message)


async def _find_mistake(call: _Call, key: RSAPublicKey, exchange: EndpointExchange) -> EndpointExchange:
    """Return an exchange that ended by 421 with the mistake of the endpoint, if health checks show one."""

    async def is_decrypted(request: EncryptedRequest) -> bool:
        try:
            response = await _post(call, request.body, changes_request=False)
        except (TimeoutError, OSError, ValueError):
            return False
        return response.status == _OK

    call.until_s = asyncio.get_running_loop().time() + call.state.settings.value.endpoint_timeout_ms / 1000
    ping = {"version": call.request["version"], "action": "ping"}
    mistake = await find_padding_mistake(
        is_decrypted, lambda padding: encrypt_request(key, ping, call.state.ids, padding)
    )
    return replace(exchange, diagnosis=f"{mistake} The endpoint responded with status 421.") if mistake else exchange
