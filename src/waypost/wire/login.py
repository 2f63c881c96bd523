"""The partner token, which is a signed JWT (decision 0063)."""

import json
from functools import cache
from typing import TYPE_CHECKING, Final

from waypost.base.encryption import SecretBox
from waypost.domain.partner import PARTNER_TOKEN_LIFE_MS, Partner

if TYPE_CHECKING:
    from jwt import PyJWS

ALGORITHM: Final = "HS256"
ISSUER: Final = "auth0"  # as in the public service. Source: ledger 1.1
_HEADER: Final = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
"""The beginning of every token of ours: `{"alg":"HS256","typ":"JWT"}`, and no other member."""


def issue_partner_token(secret_box: SecretBox, partner: Partner, *, jti: str, now_ms: int) -> str:
    """Return a partner token with the documented claims, signed with a key derived from the instance key.

    Args:
        secret_box: derives the key.
        partner: owner of the token.
        jti: makes each token unique, also within one second.
        now_ms: time of issue.

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
    text = json.dumps(claims, separators=(",", ":"))
    return _jws().encode(text.encode(), secret_box.partner_token_key(), ALGORITHM)


def is_partner_token(secret_box: SecretBox, token: str) -> bool:
    """True if a text is a token of `issue_partner_token`; the store knows if it is still valid.

    A token with another header is rejected before it is decoded, so that it can name neither another
    algorithm nor another key.
    """
    if not token.startswith(_HEADER):
        return False
    from jwt import PyJWTError

    for key in secret_box.partner_token_keys():
        try:
            _jws().decode_complete(token, key, [ALGORITHM])
        except (PyJWTError, ValueError):  # or text that is not UTF-8
            continue
        return True
    return False


@cache
def _jws() -> "PyJWS":
    from jwt import PyJWS  # here, because it takes 25 ms, which only a process with logins needs

    return PyJWS([ALGORITHM])
