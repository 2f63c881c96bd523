"""Mistakes of endpoints in the encryption of responses: each is tried, and the one that fits is named.

Source: the operator's page "Implementing endpoint for Flows".
"""

import base64
import binascii
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES128
from cryptography.hazmat.primitives.ciphers.modes import CBC

_TAG_BYTES: Final = 16
_SHORT_VECTOR_BYTES: Final = 12
_BLOCK_BYTES: Final = 16
_URL_ALPHABET: Final = re.compile(rb"[A-Za-z0-9_=-]+")
_HEX: Final = re.compile(rb"(?:[0-9a-fA-F]{2})+")
_BODY_MUST: Final = "it must be the encrypted response in base64"


def _flip(vector: bytes) -> bytes:
    return bytes(byte ^ 0xFF for byte in vector)


def _move_tag(data: bytes) -> bytes:
    return data[_TAG_BYTES:] + data[:_TAG_BYTES]


@dataclass(frozen=True)
class _Mistake:
    """A way to encrypt that is not the documented one."""

    vector: Callable[[bytes, bytes], bytes]  # of the request's vector and the data of the response
    data: Callable[[bytes], bytes]
    text: str


# fmt: off
_MISTAKES: Final[tuple[_Mistake, ...]] = (
    #        initial vector                     data                 what the endpoint did
    _Mistake(lambda vector, _: vector,          lambda data: data,
             "The endpoint did not flip the bits of the initial vector."),
    _Mistake(lambda vector, _: _flip(vector),   _move_tag,
             "The endpoint put the tag before the encrypted data; it must follow it."),
    _Mistake(lambda vector, _: vector,          _move_tag,
             "The endpoint put the tag before the encrypted data, and did not flip the bits of the initial vector."),
    _Mistake(lambda vector, _: _flip(vector)[:_SHORT_VECTOR_BYTES], lambda data: data,
             "The endpoint used an initial vector of 12 bytes; it must be all 16 of the request's, flipped."),
    _Mistake(lambda vector, _: vector[:_SHORT_VECTOR_BYTES], lambda data: data,
             "The endpoint used an initial vector of 12 bytes and did not flip it; it must be all 16, flipped."),
    _Mistake(lambda _, data: data[:_BLOCK_BYTES], lambda data: data[_BLOCK_BYTES:],
             "The endpoint chose an initial vector of its own and put it before the data; it must be the request's, "
             "flipped."),
    _Mistake(lambda _, data: data[:_SHORT_VECTOR_BYTES], lambda data: data[_SHORT_VECTOR_BYTES:],
             "The endpoint chose an initial vector of 12 bytes and put it before the data; it must be the request's, "
             "flipped."),
    _Mistake(lambda _, _data: bytes(_BLOCK_BYTES), lambda data: data,
             "The endpoint used an initial vector of zeros; it must be the request's, flipped."),
    _Mistake(lambda vector, _: vector[::-1],    lambda data: data,
             "The endpoint reversed the bytes of the initial vector; it must flip their bits."),
)
# fmt: on


def describe_undecryptable(key: bytes, vector: bytes, data: bytes, body: bytes) -> str:
    """Return what an endpoint probably did wrong, as a sentence.

    Args:
        key, vector: of the request.
        data: the decoded response.
        body: the response as it came.
    """
    cipher = AESGCM(key)
    for mistake in _MISTAKES:
        if _can_decrypt(cipher, mistake.vector(vector, data), mistake.data(data)):
            return mistake.text
    for tried, also in ((_flip(vector), ""), (vector, " It also did not flip the bits of the initial vector.")):
        plain = _apply_keystream(cipher, tried, data)
        if _is_json(plain):
            return f"The endpoint left out the tag of AES-GCM: its 16 bytes must follow the encrypted data.{also}"
        if _is_json(plain[:-_TAG_BYTES]):
            return (
                "The tag of AES-GCM is wrong, although the data is right: it was cut or changed, or the endpoint used "
                f"additional authenticated data.{also}"
            )
    if _apply_keystream(cipher, _flip(vector), data)[:2] == b'{"':
        return "The response was cut off, or its end was changed: only its beginning can be decrypted."
    if any(_is_cbc(key, tried, data) for tried in (vector, _flip(vector))):
        return "The endpoint encrypted with AES-CBC; it must be AES-GCM."
    if (inner := _decode(data)) is not None and len(inner) > _TAG_BYTES and _is_encrypted(key, vector, inner):
        return "The response is encoded in base64 twice; it must be once."
    if _HEX.fullmatch(text := body.strip()) and _is_encrypted(key, vector, bytes.fromhex(text.decode())):
        return "The body is hexadecimal; it must be base64."
    if _is_json(data):
        return "The body is JSON in base64 that was not encrypted; it must be encrypted first."
    return (
        "The response cannot be decrypted: the endpoint used another key than that of the request, or changed the data."
    )


def describe_unencoded(key: bytes, vector: bytes, body: bytes) -> str:
    """Return what a body is that is no base64, as a sentence. The arguments are those of `describe_undecryptable`."""
    text = body.strip()
    if text.startswith(b"<"):
        return f"The body is no base64 text but an HTML page; {_BODY_MUST}."
    try:
        content: object = json.loads(text)
    except (ValueError, RecursionError):
        pass
    else:
        return _describe_json(content)
    if _URL_ALPHABET.fullmatch(text) and re.search(rb"[-_]", text):
        return "The body is base64 of the alphabet for URLs (- and _); it must be the usual one (+ and /)."
    if len(body) > _TAG_BYTES and _is_encrypted(key, vector, body):
        return "The body is the encrypted response as bytes; it must be encoded in base64."
    return f"The body is no base64 text; {_BODY_MUST}."


def _describe_json(content: object) -> str:
    if isinstance(content, str):
        return "The body is base64 in quotes, a JSON text; it must be the base64 text itself, without quotes."
    members = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    holder = next((name for name, value in members.items() if isinstance(value, str) and len(value) > 40), "")
    if holder and "screen" not in members and "data" not in members:
        return f"The body is JSON with the encrypted text in {holder[:40]}; it must be that text alone."
    return f"The body is JSON that is not encrypted; {_BODY_MUST}, as plain text."


def _can_decrypt(cipher: AESGCM, vector: bytes, data: bytes) -> bool:
    try:
        cipher.decrypt(vector, data, None)
    except (InvalidTag, ValueError):  # ValueError: the vector is too short
        return False
    return True


def _is_encrypted(key: bytes, vector: bytes, data: bytes) -> bool:
    cipher = AESGCM(key)
    return _can_decrypt(cipher, _flip(vector), data) or _can_decrypt(cipher, vector, data)


def _apply_keystream(cipher: AESGCM, vector: bytes, data: bytes) -> bytes:
    """Return the decrypted data without a check of its tag: GCM encrypts by a key stream."""
    keystream = cipher.encrypt(vector, bytes(len(data)), None)[: len(data)]
    return (int.from_bytes(data) ^ int.from_bytes(keystream)).to_bytes(len(data))


def _is_cbc(key: bytes, vector: bytes, data: bytes) -> bool:
    if len(data) % _BLOCK_BYTES:
        return False
    decryptor = Cipher(AES128(key), CBC(vector)).decryptor()
    plain = decryptor.update(data) + decryptor.finalize()
    return _is_json(plain[: -plain[-1]] if plain[-1] <= _BLOCK_BYTES else plain)


def _is_json(text: bytes) -> bool:
    if text[:1] not in (b"{", b"["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _decode(text: bytes) -> bytes | None:
    try:
        return base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        return None
