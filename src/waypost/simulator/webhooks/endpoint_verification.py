"""The verification of a callback URL before webhooks are sent to it."""

from typing import Final

from yarl import URL

from waypost.base.error_texts import error_text
from waypost.base.http.connections import ConnectionPools
from waypost.base.http.http_client import HttpClient

HANDSHAKE_TIMEOUT_S: Final = 10
MAX_HANDSHAKE_RESPONSE_BYTES: Final = 4096


class EndpointVerificationFailed(Exception):
    """Raised if a callback URL did not pass the verification; the text explains why."""


async def verify_endpoint(uri: str, verify_token: str, challenge: str) -> None:
    """Verify that a callback URL accepts our webhooks.

    Args:
        uri: to be verified.
        verify_token: that its owner has chosen.
        challenge: which the response must be.

    Raises:
        EndpointVerificationFailed: the URL cannot be reached, or its response is wrong.

    Source: facts 7.1.
    """
    if not uri.startswith(("http://", "https://")):
        raise EndpointVerificationFailed(f"{uri!r} is not an address: it begins with http:// or https://")
    query = {"hub.mode": "subscribe", "hub.challenge": challenge, "hub.verify_token": verify_token}
    pools = ConnectionPools(max_per_address=1, idle_s=HANDSHAKE_TIMEOUT_S, connect_s=HANDSHAKE_TIMEOUT_S)
    client = HttpClient(pools, max_body_bytes=MAX_HANDSHAKE_RESPONSE_BYTES)
    try:
        response = await client.request("GET", URL(uri).extend_query(query), {}, timeout_s=HANDSHAKE_TIMEOUT_S)
    except (OSError, ValueError) as error:
        raise EndpointVerificationFailed(f"the address could not be reached: {error_text(error)}") from error
    finally:
        await client.close()
    status, text = response.status, response.body.decode(errors="replace").strip()
    if status != 200:
        raise EndpointVerificationFailed(
            f"the address returned status {status}, not 200 (is its verify token the same?): {text[:200]!r}"
        )
    if text != challenge:
        raise EndpointVerificationFailed(
            f"the address must return the bare challenge {challenge}; it returned {text[:200]!r}"
        )
