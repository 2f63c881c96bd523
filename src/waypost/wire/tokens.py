"""Tokens that are signed JWTs: the partner token (decision 0063), and linking tokens (decision 0126)."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from waypost.base.encryption import SecretBox
from waypost.base.json_values import object_or_none, text_or_none
from waypost.domain.app_links import AppLink, PartnerLinkingToken
from waypost.domain.partner import PARTNER_TOKEN_LIFE_MS, Partner

if TYPE_CHECKING:
    from jwt import PyJWS

ALGORITHM: Final = "HS256"
ISSUER: Final = "auth0"  # as in the public service. Source: ledger 1.1
_HEADER: Final = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
"""The beginning of every token of ours: `{"alg":"HS256","typ":"JWT"}`, and no other member."""
_APP_CLAIMS: Final = ("appId", "app_id", "sub")  # Source: ledger 1.11


def issue_partner_token(secret_box: SecretBox, partner: Partner, *, jti: str, now_ms: int) -> str:
    """Return a partner token with the documented claims, signed with a key derived from the instance key.

    Args:
        jti: makes each token unique, also within one second.

    Source: ledger 1.1: `payload` (JSON text), `iss`, `iat`, `exp` = `iat` + 24 hours.
    """
    issued_s = now_ms // 1000
    payload = {"id": partner.id, "admin": partner.admin, "email": partner.email}
    claims = {
        "payload": json.dumps(payload, separators=(",", ":")),
        "iss": ISSUER,
        "iat": issued_s,
        "exp": issued_s + PARTNER_TOKEN_LIFE_MS // 1000,
        "jti": jti,
    }
    return _sign(claims, secret_box.partner_token_key())


def is_partner_token(secret_box: SecretBox, token: str) -> bool:
    """True if a text is a token of `issue_partner_token`; the store knows if it is still valid."""
    return _verify(token, secret_box.partner_token_keys()) is not None


def partner_linking_token(secret_box: SecretBox, token: PartnerLinkingToken) -> str:
    """Return the text of a partner's linking token, the same on every call."""
    claims = {
        "partnerId": token.partner_id,
        "iat": token.issued_on_ms // 1000,
        "exp": token.expires_on_ms // 1000,
        "jti": token.token_id,
    }
    return _sign(claims, secret_box.linking_token_keys()[0])


def read_partner_linking_token(secret_box: SecretBox, token: str) -> tuple[int, str] | None:
    """Return the partner and the id of a linking token that we have signed, or None; the store knows if it is valid."""
    match _verify(token, secret_box.linking_token_keys()):
        case {"partnerId": int(partner_id), "jti": str(token_id)}:
            return partner_id, token_id
        case _:
            return None


def app_linking_token(secret_box: SecretBox, link: AppLink) -> str:
    """Return the token that links an app of a customer to the partner that uses it, the same on every call."""
    claims = {
        "appId": link.app_id,
        "iat": link.requested_on_ms // 1000,
        "exp": link.expires_on_ms // 1000,
        "jti": link.id,
    }
    return _sign(claims, secret_box.linking_token_keys()[0])


def read_app_claim(token: str) -> str | None:
    """Return the app that a JWT of anyone names, unverified: empty if it names none; None if it is no JWT."""
    from jwt import PyJWTError

    try:
        payload = json.loads(_jws().decode_complete(token, options={"verify_signature": False})["payload"])
    except (PyJWTError, ValueError, RecursionError):
        return None
    claims = object_or_none(payload)
    if claims is None:
        return None
    return next(filter(None, (text_or_none(claims.get(name)) for name in _APP_CLAIMS)), "")


def is_app_linking_token(secret_box: SecretBox, token: str) -> bool:
    """True if we have signed an app linking token; the store knows if it is still valid."""
    claims = _verify(token, secret_box.linking_token_keys())
    return claims is not None and "appId" in claims


def _sign(claims: Mapping[str, Any], key: bytes) -> str:
    return _jws().encode(json.dumps(claims, separators=(",", ":")).encode(), key, ALGORITHM)


def _verify(token: str, keys: Sequence[bytes]) -> dict[str, Any] | None:
    """Return the claims of a token that one of the keys has signed, or None.

    A token with another header is rejected before it is decoded, so that it can name neither another
    algorithm nor another key.
    """
    if not token.startswith(_HEADER):
        return None
    from jwt import PyJWTError

    for key in keys:
        try:
            return json.loads(_jws().decode_complete(token, key, [ALGORITHM])["payload"])
        except (PyJWTError, ValueError):  # or text that is not UTF-8
            continue
    return None


@cache
def _jws() -> "PyJWS":
    from jwt import PyJWS  # here, because it takes 25 ms, which only a process with logins needs

    return PyJWS([ALGORITHM])
