"""Records requests in the request log: every failed one, and one of some successful ones.

An endpoint redacts the request and appends it to a queue in memory; a task writes what is there in batches, about
once a second. What waits holds no request, no body and no exception: the traceback of one would keep all three.
Source: decision 0108.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from typing import Final

from waypost.api.access_log import TrustedProxies, rate_limit_address
from waypost.api.logged_requests import RecordedRequest, describe_request, make_entry
from waypost.api.requests import UNCOUNTED, Request, Scope
from waypost.api.route import RouteRow
from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.throttled_logging import ThrottledLog
from waypost.domain.errors import ApiError
from waypost.store.contract import StoreUnavailable
from waypost.store.database import Database
from waypost.store.requests.request_log import CallerNames, add_request_entries, read_caller_names, trim_request_log

MAX_QUEUED: Final = 2_000
"""Requests that wait to be written; further ones are counted and not logged."""
MAX_QUEUED_OF_PARTNER: Final = 500
"""Of these, those of one partner, so that none takes the place of all others."""
MAX_UNAUTHENTICATED_OF_ADDRESS: Final = 20
"""Requests without a valid credential that are logged in a minute, of one address."""
MAX_UNAUTHENTICATED: Final = 200
"""Likewise, of all addresses: nobody can fill the log without a credential."""
BATCH_ENTRIES: Final = 100
"""Of one transaction."""
FLUSH_EVERY_S: Final = 1.0
_MINUTE_MS: Final = 60_000
_defects: Final = log("api")
_log: Final = ThrottledLog(_defects)


class RequestRecorder:
    """The log of requests of one process.

    Args:
        database: stores the entries.
        clock: provides their times.
        ids: makes their ids.
        proxies: those in front of the service.
        sample: one of how many successful requests is logged; 0: none.
        max_rows: how many entries a partner has at most.
        show_text: True if texts are stored, without secrets and one-time codes.

    Attributes:
        show_text: as given.
        counts: entries written, and those that were not, by reason.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        ids: Ids,
        proxies: TrustedProxies,
        *,
        sample: int,
        max_rows: int,
        show_text: bool = False,
    ) -> None:
        self.show_text = show_text
        self._database = database
        self._clock = clock
        self._ids = ids
        self._proxies = proxies
        self._sample = sample
        self._max_rows = max_rows
        self._successes = 0
        self._queue: list[RecordedRequest] = []
        self._queued_by_partner: Counter[int] = Counter()
        self._unauthenticated: Counter[str] = Counter()  # by address, within this minute
        self._minute = 0
        self._untrimmed: Counter[int | None] = Counter()
        self._stopped = asyncio.Event()
        self.counts: Counter[str] = Counter()

    def is_sampled(self) -> bool:
        """Count a successful request; return True if it is to be logged."""
        if not self._sample:
            return False
        self._successes += 1
        return self._successes % self._sample == 0

    def record(
        self,
        scope: Scope,
        request: Request | None,
        row: RouteRow,
        status: int,
        error: ApiError | None,
        *,
        headers: Sequence[tuple[bytes, bytes]],
        body: bytes | None,
        took_s: float,
        request_id: str,
    ) -> None:
        """Queue one request to be written; count it if there is no room. The arguments are `describe_request`'s."""
        if UNCOUNTED in scope:
            return
        partner_id = None if request is None else request.partner_id
        reason = self._reason_against(scope, partner_id, status)
        if reason:
            self.counts[reason] += 1
            return
        self._queue.append(
            describe_request(
                request,
                row,
                status,
                error,
                headers=headers,
                body=body,
                id=self._ids.new(),
                at_ms=self._clock.now_ms(),
                took_s=took_s,
                request_id=request_id,
                show_text=self.show_text,
            )
        )

    async def run(self) -> None:
        """Write what is queued, about once a second, until `stop`; then write the rest."""
        while not self._stopped.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), FLUSH_EVERY_S)
            await self.flush()

    def stop(self) -> None:
        """Make `run` write the rest and return."""
        self._stopped.set()

    async def flush(self) -> None:
        """Write what is queued; entries that cannot be written are counted and dropped."""
        queued, self._queue = self._queue, []
        self._queued_by_partner.clear()
        for start in range(0, len(queued), BATCH_ENTRIES):
            batch = queued[start : start + BATCH_ENTRIES]
            try:
                await self._write(batch)
            except StoreUnavailable as error:
                self.counts["store unavailable"] += len(batch)
                _log.warning(str(error), entries=len(batch))
            except Exception:  # noqa: BLE001  the log of requests must not stop for one of them
                self.counts["defect"] += len(batch)
                _defects.exception("the request log could not be written")
        await self._trim()

    def _reason_against(self, scope: Scope, partner_id: int | None, status: int) -> str:
        """Return why a request is not logged; empty if it is."""
        if len(self._queue) >= MAX_QUEUED:
            return "queue full"
        if partner_id is not None:
            if self._queued_by_partner[partner_id] >= MAX_QUEUED_OF_PARTNER:
                return "partner"
            self._queued_by_partner[partner_id] += 1
            return ""
        minute = self._clock.now_ms() // _MINUTE_MS
        if minute != self._minute:
            self._minute = minute
            self._unauthenticated.clear()
        if self._unauthenticated.total() >= MAX_UNAUTHENTICATED:
            return "unauthenticated"
        address = rate_limit_address(self._proxies.client_address(scope))
        if self._unauthenticated[address] >= MAX_UNAUTHENTICATED_OF_ADDRESS:
            return "address"
        self._unauthenticated[address] += 1
        return ""

    async def _write(self, batch: Sequence[RecordedRequest]) -> None:
        app_ids = {one.entry.app_id for one in batch if one.entry.app_id}
        numbers = {one.source for one in batch if one.source}
        hashes = {token_hash for one in batch for token_hash in one.token_hashes}
        template_ids = {one.template_id for one in batch if one.content_with_params}
        names = CallerNames({}, {}, {}, ())
        if app_ids or numbers or hashes or template_ids:
            names = await self._database.read(read_caller_names, app_ids, numbers, hashes, template_ids)
        entries = [make_entry(one, names) for one in batch]
        await self._database.write_in_background(add_request_entries, entries)
        self.counts["written"] += len(entries)
        self._untrimmed.update(entry.partner_id for entry in entries)

    async def _trim(self) -> None:
        """Delete the oldest entries of partners that have got many new ones."""
        limit = max(self._max_rows // 10, 1)
        for partner_id in [one for one, count in self._untrimmed.items() if count >= limit]:
            try:
                while await self._database.write_in_background(trim_request_log, partner_id, self._max_rows):
                    pass
            except StoreUnavailable:
                return
            del self._untrimmed[partner_id]
