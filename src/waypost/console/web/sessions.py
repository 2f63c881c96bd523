"""Who is signed in: rows of the store, found by the hash of what the cookie holds.

Their times are the machine's: whoever moves the service's clock by a day stays signed in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from waypost.base.clock import machine_ms
from waypost.base.encryption import hash_of
from waypost.base.ids import Ids
from waypost.domain.partner import Partner
from waypost.store.accounts.console_sessions import (
    SessionRow,
    add_session,
    carry_sessions,
    drop_session,
    drop_sessions_of,
    put_administration,
    session_with_partner,
    sessions_of,
    sessions_to_carry,
)
from waypost.store.database import Database

LIFE_MS: Final = 12 * 60 * 60 * 1000
ADMINISTERS_MS: Final = 60 * 60 * 1000
_CSRF: Final = "csrf\0"

Carried = tuple[SessionRow, str]
"""A session, and the e-mail address of its partner."""


@dataclass(frozen=True, slots=True)
class Session:
    """One person's sign-in.

    Attributes:
        token: what the cookie holds.
        administers_until_ms: None: it does not.
    """

    token: str
    partner: Partner
    expires_on_ms: int
    administers_until_ms: int | None = None

    @property
    def csrf(self) -> str:
        """What every form sends along: from the token, which no other site can read."""
        return hash_of(_CSRF + self.token)


class Sessions:
    """Begins, finds and ends them.

    Args:
        now_ms: the machine's time.
    """

    def __init__(self, database: Database, ids: Ids, *, now_ms: Callable[[], int] = machine_ms) -> None:
        self._database = database
        self._ids = ids
        self._now_ms = now_ms

    async def begin(self, partner: Partner) -> Session:
        """Sign a partner in."""
        token, now_ms = self._ids.secret(), self._now_ms()
        row = SessionRow(hash_of(token), partner.id, now_ms, now_ms + LIFE_MS)
        await self._database.write(add_session, row, now_ms)
        return Session(token, partner, row.expires_on_ms)

    async def find(self, token: str) -> Session | None:
        """The session of a cookie; None where it has ended, or there never was one."""
        if not token or len(token) > 200:
            return None
        found = await self._database.read(session_with_partner, hash_of(token), self._now_ms())
        if found is None:
            return None
        row, partner = found
        until_ms = row.administers_until_ms
        is_over = until_ms is None or until_ms <= self._now_ms()
        return Session(token, partner, row.expires_on_ms, None if is_over else until_ms)

    async def let_administrate(self, session: Session | None) -> None:
        """Have a session administrate for an hour."""
        if session is not None:
            until_ms = self._now_ms() + ADMINISTERS_MS
            await self._database.write(put_administration, hash_of(session.token), until_ms)

    async def stop_administrating(self, session: Session | None) -> None:
        """Have it administrate no more."""
        if session is not None:
            await self._database.write(put_administration, hash_of(session.token), None)

    async def end(self, token: str) -> None:
        """Sign out."""
        await self._database.write(drop_session, hash_of(token))

    async def end_all_of(self, partner_id: int, *, but: str = "") -> int:
        """Sign a partner out everywhere, but for one token; says how many sessions ended."""
        return await self._database.write(drop_sessions_of, partner_id, hash_of(but) if but else "")

    async def of(self, partner_id: int) -> list[SessionRow]:
        """A partner's sessions, the newest first."""
        return await self._database.read(sessions_of, partner_id, self._now_ms())

    async def alive(self) -> list[Carried]:
        """Those that have not expired: so that whoever resets a demonstration stays signed in."""
        return await self._database.read(sessions_to_carry, self._now_ms())

    async def keep(self, carried: list[Carried]) -> None:
        """Put sessions back that were alive before the store was exchanged, and drop what it brought."""
        await self._database.write(carry_sessions, carried, self._now_ms())
