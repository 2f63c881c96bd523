"""Access tokens: their accounts, permissions and expiry; stored in the file."""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from waypost.simulator.apis.errors import TITLES, GraphApiError, authorisation_error, coded_error
from waypost.simulator.state.embedded_signup import ASSET_SCOPES
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.storage.keyed_store import StoredKind

MESSAGING: Final = "whatsapp_business_messaging"
MANAGEMENT: Final = "whatsapp_business_management"
PERMISSIONS: Final = (MANAGEMENT, MESSAGING)  # Source: facts 1, "Permissions"
_OF_ACCOUNTS: Final = "whatsapp_"
EXPIRED: Final = 463  # Source: facts 5.2, code 190

# fmt: off
_MISSING_PERMISSION_CODES: Final = {  # Source: facts 1, "Permissions" (200), and 5.2 (10); the wording is ours
    # permission  code
    MANAGEMENT: 200,
    MESSAGING:  10,
}
# fmt: on


class Token(msgspec.Struct, frozen=True):
    """An access token.

    `waba_ids` are the accounts that it gives access to. `expires_ms` is None for a token that does not
    expire. `app_id` is the app that it belongs to; empty: the app of the first of its accounts. `scopes` are what
    the operator says about it in place of its permissions; `user_id` is the system user of one from embedded signup, and
    `assets` what it shares besides accounts.
    """

    token: str
    waba_ids: tuple[str, ...]
    permissions: tuple[str, ...] = PERMISSIONS
    issued_ms: int = 0
    expires_ms: int | None = None
    is_revoked: bool = False
    app_id: str = ""
    scopes: tuple[str, ...] = ()
    user_id: str = ""
    assets: dict[str, tuple[str, ...]] = {}

    def is_valid(self, now_ms: int) -> bool:
        """True if it is valid at this time."""
        return not self.is_revoked and (self.expires_ms is None or self.expires_ms > now_ms)

    def grants_access(self, waba_ids: Sequence[str]) -> bool:
        """True if it gives access to one of these accounts."""
        return any(waba_id in self.waba_ids for waba_id in waba_ids)


TOKENS: Final = StoredKind("token", Token)
"""The created tokens. An account's own token needs no row: it has all permissions and does not expire until the control
API changes it; an app's own needs none either."""


def find_token(state: SimulatorState, text: str) -> Token | None:
    """Return a token, valid or not; None if it is unknown."""
    known = state.values(TOKENS).get(text)
    if known is not None:
        return known
    waba_ids = state.accounts.accounts_with_token(text)
    if waba_ids:
        return Token(text, waba_ids)
    app = state.accounts.apps.get(text.partition("|")[0])
    if app is None or text != app.token:
        return None
    accounts = state.accounts.accounts_of_app(app.app_id)
    waba_ids = tuple(account.waba_id for account in accounts)
    return Token(text, waba_ids, permissions=(), app_id=app.app_id)


def token_app(state: SimulatorState, token: Token) -> str:
    """Return the id of the app that a token belongs to; empty if there is none."""
    if token.app_id or not token.waba_ids:
        return token.app_id
    account = state.accounts.by_id.get(token.waba_ids[0])
    return account.app_id if account is not None else ""


def all_tokens(state: SimulatorState) -> list[Token]:
    """Return every token, those of the accounts first."""
    own = [account.token for account in state.accounts.by_id.values()]
    tokens = [find_token(state, text) for text in dict.fromkeys((*own, *state.values(TOKENS)))]
    return [token for token in tokens if token is not None]


def check_token(state: SimulatorState, text: str) -> Token:
    """Return the token of a call.

    Raises:
        GraphApiError: 190; with the subcode 463 if it has expired.

    Source: facts 5.2, code 190.
    """
    if not text:
        raise authorisation_error("An access token is required to request this resource.")
    token = find_token(state, text)
    if token is None:
        raise authorisation_error("Invalid OAuth access token - Cannot parse access token")
    now_ms = state.clock.now_ms()
    if not token.is_valid(now_ms):
        raise GraphApiError(401, _token_error(token, now_ms))
    return token


def debug_view(state: SimulatorState, text: str) -> Mapping[str, Any]:
    """Return the operator's debug data of a token; of an unknown one only an error.

    Source: the operator's page "Debug-Token".
    """
    token = find_token(state, text)
    if token is None:
        error = {"code": 190, "message": "Invalid OAuth access token."}
        return {"error": error, "is_valid": False, "scopes": []}
    now_ms = state.clock.now_ms()
    account = state.accounts.by_id.get(token.waba_ids[0]) if token.waba_ids else None
    scopes = token.scopes or token.permissions
    flaw = {} if token.is_valid(now_ms) else _token_error(token, now_ms)
    error = {"code": 190, "message": flaw.get("message", "")}
    if "error_subcode" in flaw:
        error["subcode"] = flaw["error_subcode"]
    return {
        "app_id": token_app(state, token),
        "type": "SYSTEM_USER",
        "application": account.name if account is not None else "",
        "expires_at": 0 if token.expires_ms is None else token.expires_ms // 1000,
        "data_access_expires_at": 0,
        "issued_at": token.issued_ms // 1000,
        "is_valid": not flaw,
        "scopes": list(scopes),
        "granular_scopes": [
            {"scope": scope, **({"target_ids": targets} if (targets := _list_targets(token, scope)) else {})}
            for scope in scopes
        ],
        **({"user_id": token.user_id} if token.user_id else {}),
    } | ({"error": error} if flaw else {})


def _list_targets(token: Token, scope: str) -> list[str]:
    """Return the ids of the objects that a scope is granted for; none: it is not granted for single objects."""
    return list(token.waba_ids if scope.startswith(_OF_ACCOUNTS) else token.assets.get(ASSET_SCOPES.get(scope, ""), ()))


async def save_token(state: SimulatorState, token: Token) -> Token:
    """Create or update a token."""
    await state.cached(TOKENS).save(token, token.token)
    return token


def check_permission(token: Token, permission: str | None) -> None:
    """Check that the token has a permission; None needs none.

    Raises:
        GraphApiError: 200 without the management permission, 10 without the messaging one.

    Source: facts 1, "Permissions".
    """
    if permission is None or permission in token.permissions:
        return
    code = _MISSING_PERMISSION_CODES[permission]
    raise coded_error(code, f"{TITLES[code][1]}: the access token lacks the permission {permission}.")


def _token_error(token: Token, now_ms: int) -> dict[str, Any]:
    error: dict[str, Any] = {"type": "OAuthException", "code": 190}
    if token.is_revoked or token.expires_ms is None:
        return error | {
            "message": "Error validating access token: The session has been invalidated because the token was revoked."
        }
    return error | {
        "message": "Error validating access token: Session has expired on "
        f"{_format_time(token.expires_ms)}. The current time is {_format_time(now_ms)}.",
        "error_subcode": EXPIRED,
    }


def _format_time(at_ms: int) -> str:
    at = datetime.datetime.fromtimestamp(at_ms // 1000, tz=datetime.UTC)
    return at.strftime("%A, %d-%b-%y %H:%M:%S UTC")
