"""The partner token as clients read it, and forgeries that are never accepted."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import jwt
import pytest
from sqlalchemy import Connection, insert, select

from tests.support.builders import INSTANCE_KEY
from tests.support.wire_cases import Step
from waypost.base.encryption import SecretBox, hash_secret
from waypost.store.tables import partner_tokens

if TYPE_CHECKING:
    from tests.wire.conftest import WireService, WireServices

pytestmark = pytest.mark.asyncio(loop_scope="module")

DAY_S: Final = 86_400
LOGIN: Final = Step(
    method="POST", path="/partner/account/login", form={"email": "{email}", "password": "{client_secret}"}
)
FORGED: Final[dict[str, Mapping[str, Any]]] = {
    "no algorithm": {"alg": "none", "typ": "JWT"},
    "none in capitals": {"alg": "NONE", "typ": "JWT"},
    "a longer hash": {"alg": "HS512", "typ": "JWT"},
    "a public key": {"alg": "RS256", "typ": "JWT"},
    "small letters": {"alg": "hs256", "typ": "JWT"},
    "no algorithm named": {"typ": "JWT"},
    "another key's id": {"alg": "HS256", "typ": "JWT", "kid": "../../dev/null"},
    "another key's address": {"alg": "HS256", "typ": "JWT", "jku": "https://evil.example/jwks"},
    "a key of its own": {"alg": "HS256", "typ": "JWT", "jwk": {"kty": "oct", "k": "AA"}},
    "another type": {"alg": "HS256", "typ": "at+jwt"},
    "a detached payload": {"alg": "HS256", "typ": "JWT", "b64": False, "crit": ["b64"]},
}


async def token_of_login(service: "WireService", values: dict[str, str]) -> str:
    """Log in, and return the token."""
    response = await service.send_request(LOGIN, values)
    assert response.status == 200, response.raw
    return str(response.body["token"])


async def status_with(service: "WireService", values: dict[str, str], token: str) -> int:
    """Return the status of a call with this partner token."""
    step = Step(method="GET", path="/partner/account/api/partnerApps", headers={"Authorization": token})
    return (await service.send_request(step, values)).status


async def store_token(service: "WireService", values: dict[str, str], token: str) -> None:
    """Put a token's hash into the store, as a login does."""
    row = {
        "hash": hash_secret(token),
        "partner_id": int(values["partner_id"]),
        "expires_on_ms": service.clock.now_ms() + DAY_S * 1000,
    }

    def write(connection: Connection) -> None:
        connection.execute(insert(partner_tokens), row)

    await service.database.write(write)


async def test_token_of_a_login_is_a_jwt_with_the_documented_claims(services: "WireServices") -> None:
    service = services.lenient
    values = await service.values(with_other=False)

    token = await token_of_login(service, values)

    claims = jwt.decode(token, options={"verify_signature": False})
    now_s = service.clock.now_ms() // 1000
    assert jwt.get_unverified_header(token) == {"alg": "HS256", "typ": "JWT"}
    assert json.loads(claims.pop("payload")) == {
        "id": int(values["partner_id"]),
        "admin": True,
        "email": values["email"],
    }
    assert len(claims.pop("jti")) == 36
    assert claims == {"iss": "auth0", "iat": now_s, "exp": now_s + DAY_S}
    key = SecretBox(INSTANCE_KEY).partner_token_key()
    signed, _, signature = token.rpartition(".")
    assert signature == urlsafe(hmac.digest(key, signed.encode(), "sha256"))


async def test_two_public_clients_decode_the_token(services: "WireServices") -> None:
    """`jwt-decode` and `jsonwebtoken` split at the dots and decode the middle as base64url without padding."""
    service = services.lenient
    values = await service.values(with_other=False)

    token = await token_of_login(service, values)

    header, payload, signature = token.split(".")
    assert "=" not in token
    assert {"+", "/"}.isdisjoint(token)
    padded = payload.replace("-", "+").replace("_", "/") + "=" * (-len(payload) % 4)
    claims = json.loads(base64.b64decode(padded, validate=True))
    assert json.loads(base64.urlsafe_b64decode(header + "=="))["alg"] == "HS256"
    assert len(signature) == 43
    assert service.clock.now_ms() / 1000 < claims["exp"]  # both clients check this before they use a stored token
    assert json.loads(claims["payload"])["email"] == values["email"]


async def test_only_the_hash_of_a_token_is_stored(services: "WireServices") -> None:
    service = services.lenient
    values = await service.values(with_other=False)

    token = await token_of_login(service, values)

    def rows(connection: Connection) -> list[Any]:
        query = select(partner_tokens).where(partner_tokens.c.partner_id == int(values["partner_id"]))
        return [tuple(row) for row in connection.execute(query)]

    stored = await service.database.read(rows)
    assert hash_secret(token) in {row[0] for row in stored}
    assert token.rpartition(".")[2] not in repr(stored)


async def test_two_logins_of_one_moment_give_two_tokens(services: "WireServices") -> None:
    service = services.lenient
    values = await service.values(with_other=False)

    first, second = await token_of_login(service, values), await token_of_login(service, values)

    assert first != second
    assert [await status_with(service, values, token) for token in (first, second)] == [200, 200]


@pytest.mark.parametrize("header", FORGED.values(), ids=FORGED.keys())
async def test_token_with_another_header_is_never_accepted(header: Mapping[str, Any], services: "WireServices") -> None:
    """Even if the store has its hash, and whether it is signed with our key or not at all."""
    service = services.lenient
    values = await service.values(with_other=False)
    real = await token_of_login(service, values)
    payload = real.split(".")[1]
    head = urlsafe(json.dumps(header, separators=(",", ":")).encode())
    key = SecretBox(INSTANCE_KEY).partner_token_key()
    for name in ("sha256", "sha512", ""):
        signed = f"{head}.{payload}"
        signature = hmac.new(key, signed.encode(), name).digest() if name else b""
        forged = f"{signed}.{urlsafe(signature)}"
        await store_token(service, values, forged)

        assert await status_with(service, values, forged) == 401
        assert await status_with(service, values, f"Bearer {forged}") == 401
    assert await status_with(service, values, real) == 200


async def test_token_that_another_key_signed_is_not_accepted(services: "WireServices") -> None:
    service = services.lenient
    values = await service.values(with_other=False)
    real = await token_of_login(service, values)
    signed, _, signature = real.rpartition(".")
    claims = jwt.decode(real, options={"verify_signature": False})
    with_another_key = jwt.encode(claims, hashlib.sha256(b"another").digest(), algorithm="HS256")
    changed = jwt.encode({**claims, "jti": "x"}, SecretBox(INSTANCE_KEY).partner_token_key())
    for forged in (with_another_key, f"{signed}.{signature[::-1]}", f"{signed}.", signed):
        await store_token(service, values, forged)

        assert await status_with(service, values, forged) == 401
    assert await status_with(service, values, changed) == 401  # signed with our key, but not in the store


@pytest.mark.parametrize(
    "token",
    ["a.b.c", "..", "." * 200, "[" * 30_000, f"{'Ww' * 15_000}.e30.x", "eyJhbGciOiJIUzI1NiJ9.é.x"],
    ids=["letters", "dots", "many dots", "brackets", "deep", "not ASCII"],
)
async def test_malformed_token_gets_401(token: str, services: "WireServices") -> None:
    service = services.lenient
    values = await service.values(with_other=False)

    assert await status_with(service, values, token) == 401


def urlsafe(data: bytes) -> str:
    """Base64url without padding. Source: RFC 7515, section 2."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
