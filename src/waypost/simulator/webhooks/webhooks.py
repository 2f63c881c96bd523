"""Delivery of webhooks: the verification of callback URLs, and a loop for each outlet that sends signed batches."""

import asyncio
import hashlib
import hmac
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec
from yarl import URL

from waypost.base.clock import DAY_MS
from waypost.base.error_texts import error_text
from waypost.base.http.connection_pools import ConnectionPools
from waypost.base.http.http_client import HttpClient
from waypost.base.http.post_client import PostClient
from waypost.base.loops import Loop
from waypost.base.telemetry.logs import log
from waypost.simulator.state.accounts import Destination
from waypost.simulator.state.outbox import delete_update, envelope
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.storage.keyed_store import CachedKeyedValues
from waypost.simulator.storage.tables.updates import (
    FAULTED_UPDATES,
    MESSAGES_FIELD,
    RETRY_KIND,
    Outlet,
    PendingUpdate,
    Update,
    build_pending_update,
)
from waypost.simulator.webhooks.webhook_faults import (
    apply_due_faults,
    find_post_fault,
    may_be_faulted,
    next_faulted_batch,
    next_faulted_ms,
    next_faulted_times,
)

HANDSHAKE_TIMEOUT_S: Final = 10
MAX_HANDSHAKE_RESPONSE_BYTES: Final = 4096


class EndpointVerificationFailed(Exception):
    """Raised if a callback URL did not pass the verification; the text explains why."""


async def verify_endpoint(uri: str, verify_token: str, challenge: str) -> None:
    """Verify that a callback URL accepts our webhooks.

    Raises:
        EndpointVerificationFailed: the URL cannot be reached, or its response is wrong.

    Source: facts 7.1.
    """
    if not uri.startswith(("http://", "https://")):
        raise EndpointVerificationFailed(f"{uri!r} is not an address: it begins with http:// or https://")
    query = {"hub.mode": "subscribe", "hub.challenge": challenge, "hub.verify_token": verify_token}
    pools = ConnectionPools(max_per_address=1, idle_s=HANDSHAKE_TIMEOUT_S, connect_s=HANDSHAKE_TIMEOUT_S)
    client = HttpClient(pools, max_body_bytes=MAX_HANDSHAKE_RESPONSE_BYTES)
    try:
        response = await client.request("GET", URL(uri).extend_query(query), {}, timeout_s=HANDSHAKE_TIMEOUT_S)
    except (OSError, ValueError) as error:
        raise EndpointVerificationFailed(f"the address could not be reached: {error_text(error)}") from error
    finally:
        await client.close()
    status, text = response.status, response.body.decode(errors="replace").strip()
    if status != 200:
        raise EndpointVerificationFailed(
            f"the address returned status {status}, not 200 (is its verify token the same?): {text[:200]!r}"
        )
    if text != challenge:
        raise EndpointVerificationFailed(
            f"the address must return the bare challenge {challenge}; it returned {text[:200]!r}"
        )


_SIMULATOR_LOG = log("simulator")
_TIMEOUT_S: Final = 20
_IDLE_S: Final = 2
"""An idle connection is closed sooner than any server closes it, so that none is used at the moment in which the
other side closes it."""
_CONNECTIONS_PER_ADDRESS: Final = 100
_MAX_RESPONSE_BYTES: Final = 64 * 1024
# Source: facts 7.1: at once, then less and less often, for 7 days. The delays are ours; the last repeats.
RETRY_AFTER_S: Final = (0, 0.5, 1, 2, 5, 10, 20, 60, 300, 900, 3600)
MAX_RETRY_AGE_MS: Final = 7 * DAY_MS
_MAX_IDLE_MS: Final = 3_600_000
GARBAGE_BODY: Final = b'{"object":"whatsapp_business_account","entry":[{"id":'
"""The body of a POST that is not valid JSON."""


class WebhookRetry(msgspec.Struct, frozen=True):
    """The retry of an outlet after failures: how many in a row, when the next attempt is due, and the last reason."""

    outlet: Outlet
    attempts: int
    next_ms: int
    reason: str


class WebhookSender:
    """Delivers updates that are due: in order within one outlet, concurrently for different ones."""

    def __init__(self, state: SimulatorState) -> None:
        self._state = state
        self._posts: PostClient | None = None
        self.loops: dict[Outlet, Loop] = {}
        # of an account and app, by phone number id
        self._retries = CachedKeyedValues(state.store, RETRY_KIND, WebhookRetry)
        self.retries = self._retries.index(lambda retry: (retry.outlet,))
        self.posts = 0
        self.outlets_in_delivery = 0
        self.posts_in_flight: Counter[str] = Counter()
        """How many POSTs are in flight, by URL."""

    async def open(self) -> None:
        """Start a loop for each outlet."""
        faulted = await next_faulted_times(self._state)
        self._state.faulted_accounts.update(due.waba_id for due in faulted)
        pools = ConnectionPools(max_per_address=_CONNECTIONS_PER_ADDRESS, idle_s=_IDLE_S, connect_s=_TIMEOUT_S)
        self._posts = PostClient(pools, max_body_bytes=_MAX_RESPONSE_BYTES)
        for waba_id in self._state.accounts.by_id:
            self.start_loops(waba_id)

    async def close(self) -> None:
        """Stop the loops; updates without a response of 200 stay in the file."""
        loops = list(self.loops.values())
        self.loops.clear()
        await asyncio.gather(*(loop.stop() for loop in loops))
        if self._posts is not None:
            await self._posts.close()

    def start_loops(self, waba_id: str) -> None:
        """Start the loops of the account's outlets that do not run yet."""
        for outlet in self._state.accounts.outlets((waba_id,)):
            if outlet not in self.loops:
                name = f"webhooks {waba_id} {outlet.app_id} {outlet.phone_number_id}".rstrip()
                wake = self._state.outbox.wake_events(waba_id).add_event()
                loop = self.loops[outlet] = Loop(
                    name, partial(self._deliver, outlet, wake), partial(self._state.wait, wake), log=_SIMULATOR_LOG
                )
                loop.start()

    async def next_due_ms(self) -> int | None:
        """Return when the next update is due, including retries; None if there is none."""
        dues: list[int] = []
        accounts, outbox = self._state.accounts, self._state.outbox
        sources = (
            (await outbox.next_due_times(), outbox.next_due_ms),
            (
                await next_faulted_times(self._state) if self._state.faulted_accounts else [],
                partial(next_faulted_ms, self._state),
            ),
        )
        for next_dues, next_outlet_ms in sources:
            for next_due in next_dues:
                outlets = accounts.outlets_of(next_due.waba_id, next_due.app_id)
                if len(outlets) == 1:
                    dues.append(self._next_try_ms(outlets[0], next_due.due_ms))
                    continue
                for outlet in outlets:
                    outlet_due_ms = await next_outlet_ms(outlet)
                    if outlet_due_ms is not None:
                        dues.append(self._next_try_ms(outlet, outlet_due_ms))
        return min(dues, default=None)

    async def retry_now(self, waba_id: str) -> None:
        """Delete an account's retries and deliver now: a callback URL has changed, or its owner requested it."""
        owners = {_retry_owner(outlet) for outlet in self.retries if outlet.waba_id == waba_id}
        for owner in owners:
            self._retries.pop_owner(owner)
        await self._state.store.run([self._retries.delete_owner_statement(owner) for owner in owners])
        self.start_loops(waba_id)
        self._state.outbox.wake_events(waba_id).set()

    def worst_retry(self, waba_id: str) -> WebhookRetry | None:
        """Return the retry of the account's outlet with the most failures in a row; None if none has failed."""
        retries = [retry for outlet, retry in self.retries.items() if outlet.waba_id == waba_id]
        return max(retries, key=lambda retry: retry.attempts, default=None)

    async def _deliver(self, served: Outlet, wake: asyncio.Event) -> int | None:
        """Run one turn of an outlet's loop; return until when nothing is due, or None if there may be more."""
        wake.clear()
        self.outlets_in_delivery += 1
        try:
            return await self._deliver_due(served)
        finally:
            self.outlets_in_delivery -= 1

    async def _deliver_due(self, served: Outlet) -> int | None:
        """Deliver one batch; return until when nothing is due, or None if there may be more."""
        now_ms = self._state.clock.now_ms()
        outlets = self._state.accounts.outlets_of(served.waba_id, served.app_id)
        outlet = next((outlet for outlet in outlets if outlet == served), None)
        if outlet is None:  # its number no longer has a callback URL of its own
            return now_ms + _MAX_IDLE_MS
        retry = self.retries.get(outlet)
        if retry is not None and retry.next_ms > now_ms:
            return retry.next_ms
        settings = self._state.settings.value
        batch = await self._batch(outlet, now_ms, settings.batch_at_most)
        if not batch:
            dues = (await self._state.outbox.next_due_ms(outlet), await next_faulted_ms(self._state, outlet))
            return min((due_ms for due_ms in dues if due_ms is not None), default=now_ms + _MAX_IDLE_MS)
        destination = self._state.accounts.destination(outlet)
        unwanted_fields = destination.unwanted_fields if destination is not None else ()
        dropped = [
            update
            for update in batch
            if update.due_ms < now_ms - MAX_RETRY_AGE_MS or (update.field or MESSAGES_FIELD) in unwanted_fields
        ]
        if destination is None or dropped:
            await self._delete_updates(batch if destination is None else dropped)
            return None
        failure = await self._post(outlet.waba_id, batch, destination)
        if failure is None:
            await self._delete_updates(batch)
            if retry is not None:
                await self._retries.delete(outlet.phone_number_id, _retry_owner(outlet))
        else:
            attempts = retry.attempts + 1 if retry else 1
            next_ms = self._state.clock.now_ms() + round(RETRY_AFTER_S[min(attempts, len(RETRY_AFTER_S)) - 1] * 1000)
            failed = WebhookRetry(outlet, attempts, next_ms, failure)
            await self._retries.save(failed, outlet.phone_number_id, _retry_owner(outlet))
        await asyncio.sleep(settings.gather_ms / 1000)
        return None

    async def _batch(self, outlet: Outlet, now_ms: int, limit: int) -> list[PendingUpdate]:
        """Return the updates of the next POST; none if nothing is due."""
        if not may_be_faulted(self._state, outlet.waba_id):
            updates = await self._state.outbox.due_updates(outlet, now_ms=now_ms, limit=limit)
            if not may_be_faulted(self._state, outlet.waba_id):  # none was armed while these were read
                return [build_pending_update(update) for update in updates]
        await apply_due_faults(self._state, outlet, now_ms=now_ms, limit=limit)
        return await next_faulted_batch(self._state, outlet, now_ms=now_ms, limit=limit)

    def _next_try_ms(self, outlet: Outlet, due_ms: int) -> int:
        retry = self.retries.get(outlet)
        return max(due_ms, retry.next_ms) if retry else due_ms

    async def _delete_updates(self, batch: Sequence[PendingUpdate]) -> None:
        """Delete updates that have been delivered, or will not be."""
        await self._state.store.run(
            [
                FAULTED_UPDATES.delete(position=update.position) if update.position else delete_update(update)
                for update in batch
            ]
        )

    async def _post(self, waba_id: str, updates: Sequence[Update], destination: Destination) -> str | None:
        """Send updates in one POST; return what went wrong, or None after a 200."""
        body = envelope(waba_id, updates, self._state.accounts.numbers)
        secret = destination.app_secret
        signature: str | None = sign_body(secret, body)
        match await find_post_fault(self._state, updates):
            case "garbage":
                await self._post_once(destination.uri, GARBAGE_BODY, sign_body(secret, GARBAGE_BODY))
            case "wrong_signature":
                signature = sign_body(f"not {secret}", body)
            case "unsigned":
                signature = None
            case _:
                pass
        return await self._post_once(destination.uri, body, signature)

    async def _post_once(self, uri: str, body: bytes, signed: str | None) -> str | None:
        headers = {"Content-Type": "application/json", "User-Agent": "facebookexternalua"}
        if signed is not None:
            headers["X-Hub-Signature-256"] = signed
        assert self._posts is not None, "the webhooks are not open"  # noqa: S101  a defect, not an input
        self.posts += 1
        self.posts_in_flight[uri] += 1
        try:
            response = await self._posts.post(uri, body, headers, timeout_s=_TIMEOUT_S)
        except (OSError, ValueError) as error:
            cause = error.__cause__
            return error_text(cause if isinstance(cause, OSError) and cause.errno else error)
        else:
            return None if response.status == 200 else f"status {response.status}"
        finally:
            self.posts_in_flight[uri] -= 1
            if not self.posts_in_flight[uri]:
                del self.posts_in_flight[uri]


def _retry_owner(outlet: Outlet) -> str:
    return f"{outlet.waba_id} {outlet.app_id}"


def sign_body(app_secret: str, body: bytes) -> str:
    """Return the value of `X-Hub-Signature-256`. Source: facts 7.1."""
    return "sha256=" + hmac.new(app_secret.encode(), body, hashlib.sha256).hexdigest()
