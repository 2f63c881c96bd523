"""Encryption between a handset and a Flow's endpoint, from the handset's side.

Source: the operator's page "Implementing endpoint for Flows".
"""

import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP, AsymmetricPadding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from waypost.base.ids import Ids
from waypost.base.json_values import list_of, object_of, object_or_none
from waypost.simulator.flows.encryption_mistakes import describe_undecryptable, describe_unencoded

KEY_BITS: Final = 2048
TAG_BYTES: Final = 16
MAX_DEPTH: Final = 100
REQUEST_PADDING: Final = OAEP(mgf=MGF1(algorithm=hashes.SHA256()), algorithm=hashes.SHA256(), label=None)
_WHITESPACE: Final = re.compile(rb"[\t\n\f\r ]+")


class UndecryptableResponse(Exception):
    """An endpoint's response that a handset cannot read; the text says what the endpoint did instead."""


@dataclass(frozen=True)
class EncryptedRequest:
    """A request as it is sent, and what its response needs.

    Attributes:
        body: JSON with the data, the key and the initial vector.
        key: of AES-128, for this request alone.
        vector: the initial vector, 16 bytes.
    """

    body: bytes
    key: bytes
    vector: bytes

    @property
    def flipped_vector(self) -> bytes:
        """The initial vector of the response: every bit inverted."""
        return bytes(byte ^ 0xFF for byte in self.vector)


def read_public_key(pem: object) -> RSAPublicKey | None:
    """Return a business's public key; None if it is no RSA key of 2,048 bits in PEM."""
    try:
        key = load_pem_public_key(str(pem).strip().encode())
    except ValueError:
        return None
    return key if isinstance(key, RSAPublicKey) and key.key_size == KEY_BITS else None


def encrypt_request(
    key: RSAPublicKey, request: dict[str, Any], ids: Ids, padding: AsymmetricPadding = REQUEST_PADDING
) -> EncryptedRequest:
    """Return a request encrypted for the owner of a public key; with another padding only to find a mistake."""
    secret = bytes.fromhex(ids.secret())
    aes_key, vector = secret[:16], secret[16:]
    data = AESGCM(aes_key).encrypt(vector, json.dumps(request).encode(), None)
    body = encode_envelope(data, key.encrypt(aes_key, padding), vector)
    return EncryptedRequest(body, aes_key, vector)


def encode_envelope(data: bytes, encrypted_key: bytes, vector: bytes) -> bytes:
    """Return the body of a request: its parts in base64."""
    members = {"encrypted_flow_data": data, "encrypted_aes_key": encrypted_key, "initial_vector": vector}
    return json.dumps({name: base64.b64encode(value).decode() for name, value in members.items()}).encode()


def decode_base64(text: bytes) -> bytes | None:
    """Return the bytes of a base64 text as handsets decode it: with white space, or without `=`; None if it is none.

    Source: public page "Flow preview page".
    """
    compact = _WHITESPACE.sub(b"", text)
    if len(compact) % 4 == 0:
        compact = re.sub(rb"={1,2}\Z", b"", compact)
    try:
        return base64.b64decode(compact + b"=" * (-len(compact) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def decrypt_response(sent: EncryptedRequest, body: bytes) -> dict[str, Any]:
    """Return the content of a response.

    Raises:
        UndecryptableResponse: it is not what the endpoint must send.
    """
    data = decode_base64(body)
    if data is None:
        raise UndecryptableResponse(describe_unencoded(sent.key, sent.vector, body))
    if len(data) <= TAG_BYTES:
        raise UndecryptableResponse(
            "The body is empty; it must be the encrypted response in base64."
            if not data
            else f"The response has {len(data)} bytes: no more than the tag of AES-GCM, which has 16."
        )
    try:
        text = AESGCM(sent.key).decrypt(sent.flipped_vector, data, None)
    except InvalidTag:
        raise UndecryptableResponse(describe_undecryptable(sent.key, sent.vector, data, body)) from None
    return read_content(text)


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def read_content(text: bytes) -> dict[str, Any]:
    """Return the JSON object of a decrypted text. Raises UndecryptableResponse: it is none."""
    try:
        content = object_or_none(json.loads(text, parse_constant=_reject_constant))
    except (ValueError, RecursionError):
        raise UndecryptableResponse("The decrypted response is not JSON.") from None
    if content is None:
        raise UndecryptableResponse("The decrypted response is no JSON object.")
    if _is_too_deep(content):
        raise UndecryptableResponse(f"The decrypted response is nested more than {MAX_DEPTH} levels deep.")
    return content


def _is_too_deep(content: dict[str, Any]) -> bool:
    level: list[Any] = [content]
    for _ in range(MAX_DEPTH):
        level = [member for one in level for member in (*object_of(one).values(), *list_of(one))]
        if not level:
            return False
    return True
