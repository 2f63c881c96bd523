"""Further credentials of one app: second keys, and app tokens that expire."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MOST_SECOND_KEYS: Final = 2  # Source: facts 1.4, beside the app token itself; decision 0024
MOST_MINTED: Final = 3  # active at once; source: facts 1.5
SHORTEST_LIFE_MS: Final = 60 * 60 * 1000
LONGEST_LIFE_MS: Final = 24 * 60 * 60 * 1000


class KeyStatus(StrEnum):
    """Whether a credential opens anything. Source: facts 1.5."""

    ACTIVE = "ACTIVE"
    EXPIRED = "EXPIRED"
    REVOKED = "REVOKED"


@dataclass(frozen=True, slots=True)
class AppKey:
    """One credential beside the app token.

    Attributes:
        expires_on_ms: of a minted token; None is a second key, which does not expire.
    """

    id: str
    partner_id: int
    app_id: str
    name: str
    created_on_ms: int
    expires_on_ms: int | None = None
    revoked_on_ms: int | None = None

    def status(self, now_ms: int) -> KeyStatus:
        """What it is worth now."""
        if self.revoked_on_ms is not None:
            return KeyStatus.REVOKED
        if self.expires_on_ms is not None and self.expires_on_ms <= now_ms:
            return KeyStatus.EXPIRED
        return KeyStatus.ACTIVE
