"""Files that a person uploads in a Flow: encrypted for the endpoint, and media of the number in the answers.

Source: public page "Media upload components": AES-256-CBC with PKCS7, followed by the first 10 bytes of HMAC-SHA256 of
initial vector and ciphertext; kept for 20 days.
"""

import asyncio
import base64
import hashlib
import hmac
from typing import Any, Final

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7
from msgspec import Struct

from waypost.base.clock import DAY_MS
from waypost.flow_player.play_state import UploadedFile
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.errors import GraphApiError, no_such_object
from waypost.simulator.apis.links import is_valid_link, signed_link
from waypost.simulator.apis.requests import Call, Download
from waypost.simulator.media.model import add_inbound_media
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.storage.keyed_store import StoredKind

operation = GraphOperations()

FLOW_MEDIA: Final = "flow_media"
"""The first path segment of `cdn_url`; the endpoint needs no token."""
FLOW_FILE_PREFIX: Final = "flow-"
FLOW_FILE_LIFETIME_MS: Final = 20 * DAY_MS
MAX_FLOW_FILES: Final = 1_000
"""The oldest are deleted."""
_MAC_BYTES: Final = 10
_BLOCK_BITS: Final = 128


class FlowUpload(Struct, frozen=True, kw_only=True):
    """An uploaded file; the stored content is ciphertext, keys and hashes are in base64."""

    media_id: str
    file_name: str
    mime_type: str
    size_bytes: int
    stored_bytes: int
    link_key: str
    iv: str
    encryption_key: str
    hmac_key: str
    encrypted_hash: str
    plaintext_hash: str
    expires_ms: int

    @property
    def content_name(self) -> str:
        """The name of the file that holds its ciphertext."""
        return FLOW_FILE_PREFIX + self.media_id


FLOW_UPLOADS: Final = StoredKind("flow_upload", FlowUpload)


async def store_upload(state: SimulatorState, file: UploadedFile, content: bytes) -> None:
    """Encrypt and store a file.

    Raises:
        ControlApiError: 507, the disk is full.
    """
    secrets = bytes.fromhex(state.ids.secret() + state.ids.secret() + state.ids.secret())
    key, hmac_key, vector = secrets[:32], secrets[32:64], secrets[64:80]
    stored = await asyncio.to_thread(encrypt_file, content, key, hmac_key, vector)
    upload = FlowUpload(
        media_id=file.media_id,
        file_name=file.file_name,
        mime_type=file.mime_type,
        size_bytes=len(content),
        stored_bytes=len(stored),
        link_key=state.ids.secret(),
        iv=_base64(vector),
        encryption_key=_base64(key),
        hmac_key=_base64(hmac_key),
        encrypted_hash=_base64(hashlib.sha256(stored).digest()),
        plaintext_hash=_base64(hashlib.sha256(content).digest()),
        expires_ms=state.clock.now_ms() + FLOW_FILE_LIFETIME_MS,
    )
    try:
        await state.files.write(upload.content_name, stored)
    except GraphApiError as error:
        rule = str(error.error.get("message", error))
        raise ControlApiError("upload", rule, "a file when there is room", status=507) from None
    await state.cached(FLOW_UPLOADS).save(upload, upload.media_id)
    known = list(state.values(FLOW_UPLOADS).values())
    for oldest in known[: max(0, len(known) - MAX_FLOW_FILES)]:
        await state.cached(FLOW_UPLOADS).delete(oldest.media_id)
        await state.files.remove(oldest.content_name)


def encrypt_file(content: bytes, key: bytes, hmac_key: bytes, vector: bytes) -> bytes:
    """Return a file as it lies at `cdn_url`."""
    padder = PKCS7(_BLOCK_BITS).padder()
    encryptor = Cipher(AES(key), CBC(vector)).encryptor()
    data = encryptor.update(padder.update(content) + padder.finalize()) + encryptor.finalize()
    return data + hmac.new(hmac_key, vector + data, hashlib.sha256).digest()[:_MAC_BYTES]


async def _read_upload(state: SimulatorState, upload: FlowUpload) -> bytes:
    stored = await state.files.read(upload.content_name)
    cipher = Cipher(AES(base64.b64decode(upload.encryption_key)), CBC(base64.b64decode(upload.iv)))
    decryptor, unpadder = cipher.decryptor(), PKCS7(_BLOCK_BITS).unpadder()
    padded = decryptor.update(stored[:-_MAC_BYTES]) + decryptor.finalize()
    return unpadder.update(padded) + unpadder.finalize()


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _find_upload(state: SimulatorState, media_id: str) -> FlowUpload:
    upload = state.values(FLOW_UPLOADS).get(media_id)
    if upload is None or upload.expires_ms <= state.clock.now_ms():
        raise ControlApiError("upload", f"the file {media_id} has expired", "upload it again", status=409)
    return upload


def show_to_endpoint(state: SimulatorState, media_id: str, origin: str) -> dict[str, Any]:
    """Return a file as the endpoint gets it."""
    upload = _find_upload(state, media_id)
    path = f"/{FLOW_MEDIA}/{media_id}"
    names = ("encrypted_hash", "iv", "encryption_key", "hmac_key", "plaintext_hash")
    return {
        "media_id": media_id,
        "cdn_url": signed_link(origin, path, upload.link_key, media_id, upload.expires_ms),
        "file_name": upload.file_name,
        "encryption_metadata": {name: getattr(upload, name) for name in names},
    }


async def show_in_reply(state: SimulatorState, media_id: str, phone_number_id: str) -> dict[str, Any]:
    """Return a file as the answers have it, stored as media that the phone sends to a number; a preview has no number."""
    upload = _find_upload(state, media_id)
    shown = {"file_name": upload.file_name, "mime_type": upload.mime_type, "sha256": upload.plaintext_hash}
    if not phone_number_id:
        return {**shown, "id": media_id}
    content = await _read_upload(state, upload)
    media = await add_inbound_media(state, phone_number_id, upload.mime_type, upload.file_name, content)
    return {**shown, "id": media.media_id}


@operation("flow_media.download", "GET", FLOW_MEDIA, is_open=True)
async def download_flow_media(state: SimulatorState, call: Call) -> Download:
    """Return the encrypted file at a `cdn_url`."""
    upload = state.values(FLOW_UPLOADS).get(call.edge)
    if upload is None or not is_valid_link(call.query, upload.link_key, upload.media_id, state.clock.now_ms()):
        raise no_such_object(call.method, call.edge)
    return Download("application/octet-stream", upload.stored_bytes, state.files.path(upload.content_name))
