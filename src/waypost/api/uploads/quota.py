"""The quota of media bytes per partner: counts stored files and uploads in progress."""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from waypost.base.clock import Clock
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.database import Database
from waypost.store.media.media import stored_bytes


class UploadInProgress:
    """One upload in progress, as counted against the quota."""

    def __init__(self, quota: "MediaQuota", partner_id: int) -> None:
        self._quota = quota
        self._partner_id = partner_id
        self._stored_bytes = 0
        self.size_bytes = 0

    async def refresh(self) -> None:
        """Read again how much the partner has stored, and check it.

        Raises:
            ApiError: the quota would be exceeded.
        """
        self._stored_bytes = await self._quota.read_stored_bytes(self._partner_id)
        self.add(0)

    def add(self, size_bytes: int) -> None:
        """Count received bytes.

        Raises:
            ApiError: the quota would be exceeded.
        """
        self.size_bytes += size_bytes
        coming = self._quota.incoming_bytes
        coming[self._partner_id] += size_bytes
        self._quota.check(self._stored_bytes + coming[self._partner_id])


class MediaQuota:
    """The quota of every partner.

    Args:
        max_bytes: 0: no limit.

    Attributes:
        incoming_bytes: bytes of uploads in progress by partner, in this process.
    """

    def __init__(self, database: Database, clock: Clock, *, max_bytes: int) -> None:
        self._database = database
        self._clock = clock
        self._max_bytes = max_bytes
        self.incoming_bytes: Counter[int] = Counter()

    @asynccontextmanager
    async def track_upload(self, partner_id: int) -> AsyncGenerator[UploadInProgress]:
        """Count a file from its first byte until its row is written or it is rejected."""
        arriving = UploadInProgress(self, partner_id)
        await arriving.refresh()
        try:
            yield arriving
        finally:
            self.incoming_bytes[partner_id] -= arriving.size_bytes
            if not self.incoming_bytes[partner_id]:
                del self.incoming_bytes[partner_id]

    async def read_stored_bytes(self, partner_id: int) -> int:
        """Return how many bytes a partner has stored; 0 without a query if there is no limit."""
        if not self._max_bytes:
            return 0
        return await self._database.read(stored_bytes, partner_id, self._clock.now_ms())

    def check(self, size_bytes: int) -> None:
        """Check a size against the quota.

        Raises:
            ApiError: it exceeds the quota.
        """
        if self._max_bytes and size_bytes > self._max_bytes:
            raise ApiError(
                ErrorCode.MEDIA_QUOTA,
                f"The quota of stored media is {self._max_bytes} bytes for each partner, and this file "
                f"would make it {size_bytes} or more; delete media, or wait until some have expired.",
            )
