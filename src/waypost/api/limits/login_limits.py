"""How many wrong passwords, and wrong admin tokens, are checked within a minute. No setting turns this off.

Failures count for an e-mail address together with the client's address, so that nobody can lock a
partner out who sits at another address; for the client's address, whatever e-mail it tries; and, much
wider, for the e-mail address alone, which many addresses together may guess at.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from waypost.api.limits.rate_limits import Limiter
from waypost.domain.errors import ApiError

_WINDOWS: Final = ("login_failures", "login_failures_address", "login_failures_email")


@dataclass(frozen=True, slots=True)
class LoginAttempt:
    """One attempt, which counts as a failure until it is given back."""

    limiter: Limiter
    spent: tuple[tuple[str, str, int], ...]

    async def give_back(self) -> None:
        """It was no failure."""
        for name, key, at_ms in self.spent:
            await self.limiter.give_back(name, key, at_ms)


class LoginLimits:
    """Counts failed attempts at the API and in the console together.

    Args:
        limiter: one that is on whatever the settings say of rates.
    """

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter

    async def spend(self, email: str, address: str) -> LoginAttempt:
        """Count an attempt as failed before it is checked, so that many at once are no way around.

        Args:
            email: in lower case.
            address: what the client is counted by.

        Raises:
            Refused: there were too many failures; nothing is counted then.
        """
        return await self._spend(zip(_WINDOWS, (f"{email} {address}", address, email), strict=True))

    async def check_admin(self, address: str) -> None:
        """Return when an admin token from this address may be looked at.

        Raises:
            Refused: there were too many wrong ones; then the right one is refused too.
        """
        await self._limiter.check("admin_failures", address)

    async def may_audit_refusal(self) -> bool:
        """True where a rejected request without a valid credential gets an entry of the audit log.

        Their number has a bound, so that nobody fills the log from outside.
        """
        try:
            await self._limiter.spend("audited_refusals", "")
        except ApiError:
            return False
        return True

    async def spend_admin(self, address: str) -> LoginAttempt:
        """The same of an attempt to use the admin API.

        Raises:
            Refused: there were too many failures.
        """
        return await self._spend([("admin_failures", address)])

    async def _spend(self, windows: Iterable[tuple[str, str]]) -> LoginAttempt:
        spent: tuple[tuple[str, str, int], ...] = ()
        for name, key in windows:
            try:
                spent = (*spent, (name, key, await self._limiter.spend(name, key)))
            except ApiError:
                await LoginAttempt(self._limiter, spent).give_back()
                raise
        return LoginAttempt(self._limiter, spent)
