"""Public keys of businesses for Flows: the one that a handset uses, and how an endpoint may decrypt wrongly with it.

Source: the operator's pages "WhatsApp Business encryption" and "Implementing endpoint for Flows".
"""

from collections.abc import Awaitable, Callable
from typing import Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP, AsymmetricPadding, PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from waypost.simulator.flows.encryption import EncryptedRequest, read_public_key
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.records import ENCRYPTION
from waypost.simulator.state.simulator_state import SimulatorState

VALID: Final = "VALID"
MISMATCH: Final = "MISMATCH"
"""Of a key whose signature is that of an earlier registration of its number."""

# fmt: off
_PADDINGS: Final[tuple[tuple[AsymmetricPadding, str], ...]] = (
    (OAEP(MGF1(hashes.SHA1()), hashes.SHA256(), None),  # noqa: S303
     "The endpoint decrypts the key by OAEP with SHA-256, but MGF1 with SHA-1; both must be SHA-256."),
    (OAEP(MGF1(hashes.SHA1()), hashes.SHA1(), None),  # noqa: S303
     "The endpoint decrypts the key by OAEP with SHA-1; it must be SHA-256, also of MGF1."),
    (PKCS1v15(),
     "The endpoint decrypts the key by the padding of PKCS#1 1.5; it must be OAEP with SHA-256."),
)
# fmt: on


def find_endpoint_key(state: SimulatorState, waba_id: str, phone_number_id: str = "") -> RSAPublicKey | None:
    """Return the signed public key of a number, or of any number of an account; None if there is none."""
    for number in state.accounts.numbers_of(waba_id):
        if phone_number_id and number.phone_number_id != phone_number_id:
            continue
        key = read_public_key(state.record(number.phone_number_id, ENCRYPTION).get("business_public_key"))
        if key is not None and signature_status(state, number) == VALID:
            return key
    return None


def signature_status(state: SimulatorState, number: Number) -> str:
    """Return whether the signature of a number's key counts: VALID or MISMATCH."""
    return str(state.record(number.phone_number_id, ENCRYPTION).get("signature_status", VALID))


def find_key_problem(state: SimulatorState, waba_id: str, number: Number | None) -> tuple[str, str]:
    """Return the operator's name of why a handset has no key, and the same for people."""
    numbers = [number] if number is not None else state.accounts.numbers_of(waba_id)
    if any(signature_status(state, one) == MISMATCH for one in numbers):
        text = "The signature of the public key is of an earlier registration of the number; upload the key again."
        return "public-key-signiture-verification", text
    return "public-key-missing", "No public key was uploaded for the number; upload one."


async def find_padding_mistake(
    is_decrypted: Callable[[EncryptedRequest], Awaitable[bool]],
    encrypt: Callable[[AsymmetricPadding], EncryptedRequest],
) -> str:
    """Return which padding an endpoint uses in place of the documented one, as a sentence; empty if none is found.

    Args:
        is_decrypted: sends a health check; True if the endpoint could decrypt it.
        encrypt: returns the health check encrypted with a padding.
    """
    for padding, text in _PADDINGS:
        if await is_decrypted(encrypt(padding)):
            return text
    return ""
