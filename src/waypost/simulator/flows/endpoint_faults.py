"""Faults between a handset and an endpoint of a Flow: changes of a request, and of its response.

They are the rows of `faults.fault_kinds` on `endpoint`.
"""

import asyncio
import base64
import json
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, generate_private_key
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from waypost.base.http.connections import HttpResponse, NotConnected, ResponseLost
from waypost.simulator.faults.model import ArmedFault, FaultSubject, armed_faults, select_fault
from waypost.simulator.flows.encryption import KEY_BITS, EncryptedRequest, decode_base64, encode_envelope
from waypost.simulator.flows.model import Flow
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.simulator_state import SimulatorState

_PUBLIC_EXPONENT: Final = 65537
_HTML_PAGE: Final = b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head></html>\n"
_stale_keys: Final[list[RSAPublicKey]] = []

# The status with which an endpoint must respond to what a fault has made of a request.
EXPECTED_STATUSES: Final = {
    "stale_key": 421,
    "wrong_tag": 421,
    "wrong_iv": 421,
    "wrong_signature": 432,
    "unsigned": 432,
}


class ExchangeFault:
    """A fault that was selected for one exchange."""

    def __init__(self, fault: ArmedFault) -> None:
        self._fault = fault
        self.kind = fault.fault_kind.name
        self.value: Any = fault.value

    @property
    def text(self) -> str:
        """Its id and kind, for people."""
        value = "" if self.value is True else f" {self.value}"
        return f"fault {self._fault.id}: {self.kind}{value}"

    @property
    def changes_request(self) -> bool:
        """True if the endpoint gets something else than the handset would send."""
        return self.kind in EXPECTED_STATUSES and self.value != "response"

    @property
    def response_in_place(self) -> HttpResponse | None:
        """The response that the handset gets without one of the endpoint; None if it gets the endpoint's."""
        if self.kind != "status":
            return None
        text = self._fault.effect.get("error_msg")
        body = json.dumps({"error_msg": text}).encode() if text else b""
        return HttpResponse(int(self.value), (("content-type", "text/plain"),), body)

    @property
    def is_processed(self) -> bool:
        """True if the endpoint gets the request, although the handset gets another response."""
        return bool(self._fault.effect.get("processed"))

    def check_connection(self, *, is_received: bool) -> None:
        """Raise OSError if the connection is refused, or broke after the endpoint had responded."""
        if self.kind == "reset" and is_received:
            raise ResponseLost("the connection was closed before the response")
        if self.kind == "reset" and self.value == "before":
            raise NotConnected("connection refused")

    def change_body(self, sent: EncryptedRequest) -> bytes:
        """Return the body that the endpoint gets."""
        if self.value != "request":
            return sent.body
        parts = {name: decode_base64(text.encode()) or b"" for name, text in json.loads(sent.body).items()}
        data, vector = parts["encrypted_flow_data"], parts["initial_vector"]
        if self.kind == "wrong_tag":
            data = _flip_last_bit(data)
        else:
            vector = _flip_last_bit(vector)
        return encode_envelope(data, parts["encrypted_aes_key"], vector)

    async def delay(self, left_s: float) -> None:
        """Wait as long as the response is late. Raises TimeoutError: longer than is left."""
        if self.kind != "slow_ms":
            return
        delay_s = self.value / 1000
        await asyncio.sleep(min(delay_s, max(0.0, left_s)))
        if delay_s >= left_s:
            raise TimeoutError

    def change_response(self, sent: EncryptedRequest, response: HttpResponse) -> HttpResponse:
        """Return the response that the handset gets."""
        body = response.body
        match self.kind, self.value:
            case "garbage", "html":
                return HttpResponse(200, (("content-type", "text/html"),), _HTML_PAGE)
            case "garbage", "truncated":
                body = body[: len(body) // 2]
            case "garbage", "empty":
                body = b""
            case "garbage", "not_json":
                body = b"{screen: NEXT}"
            case "garbage", "quoted":
                body = json.dumps(body.decode("latin-1")).encode()
            case "wrong_tag", "response":
                body = base64.b64encode(_flip_last_bit(decode_base64(body) or bytes(1)))
            case "wrong_iv", "response":
                body = _encrypt_unflipped(sent, body)
            case _:
                return response
        return response._replace(body=body)


async def select_exchange_fault(
    state: SimulatorState, flow: Flow, name: str, *, app_id: str, number: Number | None, phone: str
) -> ExchangeFault | None:
    """Return the fault that applies to a request, if any.

    Args:
        name: of the request, see `ENDPOINT_REQUESTS`.
        app_id: of the app that signs it.
        number: the business number that sent the message.
        phone: the user's digits.
    """
    if not armed_faults(state, "exchange"):
        return None
    digits = (number.phone_number_id, number.phone_number) if number is not None else ()
    subject = FaultSubject(
        name, app=app_id, waba_id=flow.waba_id, number=digits, phone=phone, flow=flow.flow_id, subject=flow.flow_id
    )
    fault = await state.transact(lambda transaction: select_fault(state, transaction, "exchange", [subject]))
    return None if fault is None else ExchangeFault(fault)


async def make_stale_key() -> RSAPublicKey:
    """Return a public key whose private one nobody has: one for all."""
    if not _stale_keys:
        private = await asyncio.to_thread(generate_private_key, _PUBLIC_EXPONENT, KEY_BITS)
        _stale_keys.append(private.public_key())
    return _stale_keys[0]


def _flip_last_bit(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def _encrypt_unflipped(sent: EncryptedRequest, body: bytes) -> bytes:
    """Return a response as if the endpoint had not flipped the vector; one that cannot be read stays."""
    cipher = AESGCM(sent.key)
    try:
        text = cipher.decrypt(sent.flipped_vector, decode_base64(body) or b"", None)
    except (InvalidTag, ValueError):
        return body
    return base64.b64encode(cipher.encrypt(sent.vector, text, None))
