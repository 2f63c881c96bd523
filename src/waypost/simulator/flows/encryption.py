"""Encryption between a handset and a Flow's endpoint, from the handset's side.

Source: the operator's page "Implementing endpoint for Flows".
"""

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from waypost.base.ids import Ids
from waypost.base.json_values import object_or_none

KEY_BITS: Final = 2048
_TAG_BYTES: Final = 16
_PADDING: Final = OAEP(mgf=MGF1(algorithm=hashes.SHA256()), algorithm=hashes.SHA256(), label=None)


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


def read_public_key(pem: object) -> RSAPublicKey | None:
    """Return a business's public key; None if it is no RSA key of 2,048 bits in PEM."""
    try:
        key = load_pem_public_key(str(pem).strip().encode())
    except ValueError:
        return None
    return key if isinstance(key, RSAPublicKey) and key.key_size == KEY_BITS else None


def encrypt_request(key: RSAPublicKey, request: dict[str, Any], ids: Ids) -> EncryptedRequest:
    """Return a request encrypted for the owner of a public key."""
    secret = bytes.fromhex(ids.secret())
    aes_key, vector = secret[:16], secret[16:]
    data = AESGCM(aes_key).encrypt(vector, json.dumps(request).encode(), None)
    members = {
        "encrypted_flow_data": data,
        "encrypted_aes_key": key.encrypt(aes_key, _PADDING),
        "initial_vector": vector,
    }
    texts = {name: base64.b64encode(value).decode() for name, value in members.items()}
    return EncryptedRequest(json.dumps(texts).encode(), aes_key, vector)


def decrypt_response(sent: EncryptedRequest, body: bytes) -> dict[str, Any]:
    """Return the content of a response.

    Raises:
        UndecryptableResponse: it is not what the endpoint must send.
    """
    try:
        data = base64.b64decode(body.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise UndecryptableResponse(_not_base64(body)) from None
    if len(data) <= _TAG_BYTES:
        raise UndecryptableResponse("The response is shorter than the tag of AES-GCM, which has 16 bytes.")
    cipher = AESGCM(sent.key)
    flipped = bytes(byte ^ 0xFF for byte in sent.vector)
    try:
        text = cipher.decrypt(flipped, data, None)
    except InvalidTag:
        raise UndecryptableResponse(_why_undecryptable(cipher, sent.vector, data)) from None
    try:
        content = object_or_none(json.loads(text))
    except (ValueError, RecursionError):
        content = None
    if content is None:
        raise UndecryptableResponse("The decrypted response is no JSON object.")
    return content


def _not_base64(body: bytes) -> str:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return "The body is no base64 text."
    return "The body is JSON; it must be the encrypted response in base64, as plain text."


def _why_undecryptable(cipher: AESGCM, vector: bytes, data: bytes) -> str:
    """Return what the endpoint probably did wrong."""
    tag_moved = data[_TAG_BYTES:] + data[:_TAG_BYTES]
    flipped = bytes(byte ^ 0xFF for byte in vector)
    mistakes = (
        (vector, data, "The endpoint did not flip the bits of the initial vector."),
        (flipped, tag_moved, "The endpoint put the tag before the encrypted data; it must follow it."),
    )
    for tried, content, reason in mistakes:
        try:
            cipher.decrypt(tried, content, None)
        except InvalidTag:
            continue
        return reason
    return (
        "The response cannot be decrypted: the endpoint used another key than that of the request, left out the tag of"
        " AES-GCM, or changed the data."
    )
