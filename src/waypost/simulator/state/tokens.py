"""Access tokens: their accounts, permissions and expiry; stored in the file."""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from waypost.base.clock import Clock
from waypost.simulator.apis.errors import TITLES, GraphApiError, authorisation_error, coded_error
from waypost.simulator.state.accounts import Accounts
from waypost.simulator.storage.keyed_store import CachedKeyedValues
from waypost.simulator.storage.store import Store

MESSAGING: Final = "whatsapp_business_messaging"
MANAGEMENT: Final = "whatsapp_business_management"
PERMISSIONS: Final = (MANAGEMENT, MESSAGING)  # Source: facts 1, "Permissions"
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
    expire. `app_id` is the app that it belongs to; empty: the app of the first of its accounts.
    """

    token: str
    waba_ids: tuple[str, ...]
    permissions: tuple[str, ...] = PERMISSIONS
    issued_ms: int = 0
    expires_ms: int | None = None
    is_revoked: bool = False
    app_id: str = ""

    def is_valid(self, now_ms: int) -> bool:
        """True if it is valid at this time."""
        return not self.is_revoked and (self.expires_ms is None or self.expires_ms > now_ms)

    def grants_access(self, waba_ids: Sequence[str]) -> bool:
        """True if it gives access to one of these accounts."""
        return any(waba_id in self.waba_ids for waba_id in waba_ids)


class Tokens:
    """Every token: each account's own, each app's own, and the created ones.

    An account's own token needs no row: it has all permissions and does not expire until the control API changes it.
    """

    def __init__(self, store: Store, clock: Clock, accounts: Accounts) -> None:
        self._clock = clock
        self._accounts = accounts
        self._tokens = CachedKeyedValues(store, "token", Token)

    def find(self, text: str) -> Token | None:
        """Return a token, valid or not; None if it is unknown."""
        known = self._tokens.all.get(text)
        if known is not None:
            return known
        waba_ids = self._accounts.accounts_with_token(text)
        if waba_ids:
            return Token(text, waba_ids)
        app = self._accounts.apps.get(text.partition("|")[0])
        if app is None or text != app.token:
            return None
        accounts = self._accounts.accounts_of_app(app.app_id)
        waba_ids = tuple(account.waba_id for account in accounts)
        return Token(text, waba_ids, permissions=(), app_id=app.app_id)

    def app_of(self, token: Token) -> str:
        """Return the id of the app that a token belongs to; empty if there is none."""
        if token.app_id or not token.waba_ids:
            return token.app_id
        account = self._accounts.by_id.get(token.waba_ids[0])
        return account.app_id if account is not None else ""

    def list_tokens(self) -> list[Token]:
        """Return every token, those of the accounts first."""
        own = [account.token for account in self._accounts.by_id.values()]
        tokens = [self.find(text) for text in dict.fromkeys((*own, *self._tokens.all))]
        return [token for token in tokens if token is not None]

    def check(self, text: str) -> Token:
        """Return the token of a call.

        Raises:
            GraphApiError: 190; with the subcode 463 if it has expired.

        Source: facts 5.2, code 190.
        """
        if not text:
            raise authorisation_error("An access token is required to request this resource.")
        token = self.find(text)
        if token is None:
            raise authorisation_error("Invalid OAuth access token - Cannot parse access token")
        now_ms = self._clock.now_ms()
        if not token.is_valid(now_ms):
            raise GraphApiError(401, _token_error(token, now_ms))
        return token

    def debug_view(self, text: str) -> Mapping[str, Any]:
        """Return the operator's debug data of a token; of an unknown one only an error.

        Source: the operator's page "Debug-Token".
        """
        token = self.find(text)
        if token is None:
            error = {"code": 190, "message": "Invalid OAuth access token."}
            return {"error": error, "is_valid": False, "scopes": []}
        now_ms = self._clock.now_ms()
        account = self._accounts.by_id.get(token.waba_ids[0]) if token.waba_ids else None
        flaw = {} if token.is_valid(now_ms) else _token_error(token, now_ms)
        error = {"code": 190, "message": flaw.get("message", "")}
        if "error_subcode" in flaw:
            error["subcode"] = flaw["error_subcode"]
        return {
            "app_id": self.app_of(token),
            "type": "SYSTEM_USER",
            "application": account.name if account is not None else "",
            "expires_at": 0 if token.expires_ms is None else token.expires_ms // 1000,
            "data_access_expires_at": 0,
            "issued_at": token.issued_ms // 1000,
            "is_valid": not flaw,
            "scopes": list(token.permissions),
            "granular_scopes": [
                {"scope": permission, "target_ids": list(token.waba_ids)} for permission in token.permissions
            ],
        } | ({"error": error} if flaw else {})

    async def save(self, token: Token) -> Token:
        """Create or update a token."""
        await self._tokens.save(token, token.token)
        return token

    async def expire(self, token: Token) -> Token:
        """Expire a token now."""
        return await self.save(replace(token, expires_ms=self._clock.now_ms()))

    async def revoke(self, token: Token) -> Token:
        """Revoke a token permanently."""
        return await self.save(replace(token, is_revoked=True))


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
