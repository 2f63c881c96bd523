"""Sign-in sessions: rows of the store, found by the hash of the cookie's token.

Their times are the machine's, so that moving the service's clock does not sign anyone out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from waypost.base.clock import machine_ms
from waypost.base.encryption import hash_secret
from waypost.base.ids import Ids
from waypost.domain.partner import Partner
from waypost.store.accounts.credentials import (
    SessionRow,
    add_session,
    delete_session,
    delete_sessions,
    list_sessions,
    list_sessions_with_emails,
    restore_sessions,
    session_with_partner,
    set_administration,
)
from waypost.store.database import Database

SESSION_LIFE_MS: Final = 12 * 60 * 60 * 1000
ADMINISTRATOR_LIFE_MS: Final = 60 * 60 * 1000
_CSRF: Final = "csrf\0"

CarriedSession = tuple[SessionRow, str]
"""A session and the e-mail address of its partner."""


@dataclass(frozen=True, slots=True)
class Session:
    """One person's sign-in."""

    token: str  # value of the cookie
    partner: Partner
    expires_on_ms: int
    admin_until_ms: int | None = None  # end of administrator access; None: no access

    @property
    def csrf(self) -> str:
        """The CSRF token of every form: derived from the session token, which other sites cannot read."""
        return hash_secret(_CSRF + self.token)


class Sessions:
    """Starts, finds and ends sessions.

    Args:
        now_ms: returns the machine's time.
    """

    def __init__(self, database: Database, ids: Ids, *, now_ms: Callable[[], int] = machine_ms) -> None:
        self._database = database
        self._ids = ids
        self._now_ms = now_ms

    async def start(self, partner: Partner) -> Session:
        """Start a session for a partner."""
        token, now_ms = self._ids.secret(), self._now_ms()
        row = SessionRow(hash_secret(token), partner.id, now_ms, now_ms + SESSION_LIFE_MS)
        await self._database.write(add_session, row, now_ms)
        return Session(token, partner, row.expires_on_ms)

    async def find(self, token: str) -> Session | None:
        """Return the session of a cookie; None if it has ended or never existed."""
        if not token or len(token) > 200:
            return None
        match = await self._database.read(session_with_partner, hash_secret(token), self._now_ms())
        if match is None:
            return None
        row, partner = match
        until_ms = row.admin_until_ms
        is_over = until_ms is None or until_ms <= self._now_ms()
        return Session(token, partner, row.expires_on_ms, None if is_over else until_ms)

    async def grant_administration(self, session: Session | None) -> None:
        """Give a session administrator access for an hour."""
        if session is not None:
            until_ms = self._now_ms() + ADMINISTRATOR_LIFE_MS
            await self._database.write(set_administration, hash_secret(session.token), until_ms)

    async def revoke_administration(self, session: Session | None) -> None:
        """End a session's administrator access."""
        if session is not None:
            await self._database.write(set_administration, hash_secret(session.token), None)

    async def end(self, token: str) -> None:
        """End a session."""
        await self._database.write(delete_session, hash_secret(token))

    async def end_all(self, partner_id: int, *, except_token: str = "") -> int:
        """End all sessions of a partner except that of one token; return how many ended."""
        return await self._database.write(
            delete_sessions, partner_id, hash_secret(except_token) if except_token else ""
        )

    async def list_sessions(self, partner_id: int) -> list[SessionRow]:
        """Return a partner's sessions, newest first."""
        return await self._database.read(list_sessions, partner_id, self._now_ms())

    async def list_unexpired(self) -> list[CarriedSession]:
        """Return the unexpired sessions, so that resetting a demo does not sign users out."""
        return await self._database.read(list_sessions_with_emails, self._now_ms())

    async def restore(self, carried: list[CarriedSession]) -> None:
        """Restore these sessions after the store was replaced, and delete those of the new store."""
        await self._database.write(restore_sessions, carried, self._now_ms())
