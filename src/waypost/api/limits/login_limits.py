"""Limits of wrong passwords and wrong admin tokens per minute. No setting disables them.

Failures count per e-mail address and client address together, so that a client elsewhere cannot lock a
partner out; per client address, whatever e-mail address it tries; and, with a much higher limit, per
e-mail address alone, because many clients together may guess its password.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from waypost.api.limits.rate_limits import Limiter
from waypost.domain.errors import ApiError

_WINDOWS: Final = ("login_failures", "login_failures_address", "login_failures_email")


@dataclass(frozen=True, slots=True)
class LoginAttempt:
    """One attempt, which counts as a failure until it is refunded."""

    limiter: Limiter
    spent: tuple[tuple[str, str, int], ...]

    async def refund(self) -> None:
        """Stop counting the attempt: it succeeded."""
        for name, key, at_ms in self.spent:
            await self.limiter.refund(name, key, at_ms)


class LoginLimits:
    """Counts failed attempts at the API and in the console together.

    Args:
        limiter: one that is always on, whatever the settings of rates.
    """

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter

    async def spend(self, email: str, address: str) -> LoginAttempt:
        """Count an attempt as failed before it is checked, so that concurrent attempts cannot exceed the limit.

        Args:
            email: in lower case.
            address: the address that the client is counted by.

        Raises:
            ApiError: too many failures; this attempt is then not counted.
        """
        return await self._spend(zip(_WINDOWS, (f"{email} {address}", address, email), strict=True))

    async def check_admin_attempts(self, address: str) -> None:
        """Check that an admin token from this address may be verified.

        Raises:
            ApiError: too many wrong tokens; the right one is then rejected too.
        """
        await self._limiter.check("admin_failures", address)

    async def may_audit_rejection(self) -> bool:
        """True if a rejected request without a valid credential gets an entry in the audit log.

        Their number is limited, so that outsiders cannot fill the log.
        """
        try:
            await self._limiter.spend("audited_rejections", "")
        except ApiError:
            return False
        return True

    async def count_wrong_admin_token(self, address: str) -> LoginAttempt:
        """Count an attempt to use the admin API as failed.

        Raises:
            ApiError: too many failures.
        """
        return await self._spend([("admin_failures", address)])

    async def _spend(self, windows: Iterable[tuple[str, str]]) -> LoginAttempt:
        spent: tuple[tuple[str, str, int], ...] = ()
        for name, key in windows:
            try:
                spent = (*spent, (name, key, await self._limiter.spend(name, key)))
            except ApiError:
                await LoginAttempt(self._limiter, spent).refund()
                raise
        return LoginAttempt(self._limiter, spent)
