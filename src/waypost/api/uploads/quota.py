"""How many bytes of media each partner may have stored: what it has, and what is coming in just now."""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from waypost.base.clock import Clock
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.database import Database
from waypost.store.media.media import stored_bytes


class Arriving:
    """One file that is coming in."""

    def __init__(self, quota: "MediaQuota", partner_id: int) -> None:
        self._quota = quota
        self._partner_id = partner_id
        self._stored_bytes = 0
        self.size_bytes = 0

    async def look(self) -> None:
        """Read anew what the partner has stored, and check it.

        Raises:
            Refused: it would be more than the quota.
        """
        self._stored_bytes = await self._quota.stored(self._partner_id)
        self.add(0)

    def add(self, size_bytes: int) -> None:
        """Count bytes that have come.

        Raises:
            Refused: it would be more than the quota.
        """
        self.size_bytes += size_bytes
        coming = self._quota.coming
        coming[self._partner_id] += size_bytes
        self._quota.check(self._stored_bytes + coming[self._partner_id])


class MediaQuota:
    """The quota of every partner.

    Args:
        most_bytes: 0: no limit.

    Attributes:
        coming: bytes that are coming in for each partner; of this process.
    """

    def __init__(self, database: Database, clock: Clock, *, most_bytes: int) -> None:
        self._database = database
        self._clock = clock
        self._most_bytes = most_bytes
        self.coming: Counter[int] = Counter()

    @asynccontextmanager
    async def arriving(self, partner_id: int) -> AsyncGenerator[Arriving]:
        """Count a file from its first byte until its row is written or it is refused."""
        arriving = Arriving(self, partner_id)
        await arriving.look()
        try:
            yield arriving
        finally:
            self.coming[partner_id] -= arriving.size_bytes
            if not self.coming[partner_id]:
                del self.coming[partner_id]

    async def stored(self, partner_id: int) -> int:
        """What a partner has stored; nothing is read where there is no limit."""
        if not self._most_bytes:
            return 0
        return await self._database.read(stored_bytes, partner_id, self._clock.now_ms())

    def check(self, size_bytes: int) -> None:
        """Refuse more than the quota.

        Raises:
            Refused: it is more.
        """
        if self._most_bytes and size_bytes > self._most_bytes:
            raise ApiError(
                ErrorCode.MEDIA_QUOTA,
                f"The quota of stored media is {self._most_bytes} bytes for each partner, and this file "
                f"would make it {size_bytes} or more; delete media, or wait until some have expired.",
            )
