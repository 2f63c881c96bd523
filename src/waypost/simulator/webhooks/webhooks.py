"""Delivery of webhooks: the verification of callback URLs, and a loop for each outlet that sends signed batches."""

import asyncio
import hashlib
import hmac
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec
from yarl import URL

from waypost.base.clock import DAY_MS
from waypost.base.error_texts import error_text
from waypost.base.http.connection_pools import ConnectionPools
from waypost.base.http.http_client import HttpClient
from waypost.base.loops import Loop
from waypost.base.telemetry.logs import log
from waypost.simulator.state.accounts import Destination, partner_id
from waypost.simulator.state.outbox import delete_update, envelope
from waypost.simulator.state.simulator_state import POST_TIMEOUT_S, SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind
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


WEBHOOK_RETRIES: Final = StoredKind(RETRY_KIND, WebhookRetry, keys_of=lambda retry: (retry.outlet,))
"""Of an account and app, by phone number id."""


async def start_webhooks(state: SimulatorState) -> None:
    """Start a loop for each outlet, which delivers in order what is due; loops do not wait for each other."""
    faulted = await next_faulted_times(state)
    state.faulted_accounts.update(due.waba_id for due in faulted)
    for waba_id in (*state.accounts.by_id, *map(partner_id, state.accounts.apps)):
        start_loops(state, waba_id)
    state.due_times.append(partial(_next_due_ms, state))


async def stop_webhooks(state: SimulatorState) -> None:
    """Stop the loops; updates without a response of 200 stay in the file."""
    delivery = state.webhooks
    loops = list(delivery.loops.values())
    delivery.loops.clear()
    await asyncio.gather(*(loop.stop() for loop in loops))
    await delivery.client.close()


def start_loops(state: SimulatorState, waba_id: str) -> None:
    """Start the loops of the account's outlets that do not run yet."""
    loops = state.webhooks.loops
    for outlet in state.accounts.outlets((waba_id,)):
        if outlet not in loops:
            name = f"webhooks {waba_id} {outlet.app_id} {outlet.phone_number_id}".rstrip()
            wake = state.outbox.wake_events[waba_id].add_event()
            turn = partial(_deliver, state, outlet, wake)
            loops[outlet] = Loop(name, turn, partial(state.wait, wake), log=_SIMULATOR_LOG)
            loops[outlet].start()


async def _next_due_ms(state: SimulatorState) -> int | None:
    """Return when the next update is due, including retries; None if there is none."""
    dues: list[int] = []
    faulted = await next_faulted_times(state) if state.faulted_accounts else []
    for next_dues, next_outlet_ms in (
        (await state.outbox.next_due_times(), state.outbox.next_due_ms),
        (faulted, partial(next_faulted_ms, state)),
    ):
        for next_due in next_dues:
            outlets = state.accounts.outlets_of(next_due.waba_id, next_due.app_id)
            for outlet in outlets:
                due_ms = next_due.due_ms if len(outlets) == 1 else await next_outlet_ms(outlet)
                if due_ms is not None:
                    retry = find_retry(state, outlet)
                    dues.append(max(due_ms, retry.next_ms) if retry else due_ms)
    return min(dues, default=None)


async def retry_now(state: SimulatorState, waba_id: str) -> None:
    """Delete an account's retries and deliver now: a callback URL has changed, or its owner requested it."""
    app_ids = dict.fromkeys(outlet.app_id for outlet in state.accounts.outlets((waba_id,)))
    await state.transact(lambda transaction: delete_retries(transaction, waba_id, *app_ids))
    start_loops(state, waba_id)
    state.outbox.wake_events[waba_id].set()


def delete_retries(transaction: Transaction, waba_id: str, *app_ids: str) -> None:
    """Delete the retries of an account's outlets to some apps."""
    for app_id in app_ids:
        for number_id in transaction.values(WEBHOOK_RETRIES, f"{waba_id} {app_id}"):
            transaction.delete(WEBHOOK_RETRIES, number_id, f"{waba_id} {app_id}")


def find_retry(state: SimulatorState, outlet: Outlet) -> WebhookRetry | None:
    """Return the retry of an outlet; None if its last POST was delivered."""
    return state.cached(WEBHOOK_RETRIES).by_further_key.get(outlet)


def worst_retry(state: SimulatorState, waba_id: str) -> WebhookRetry | None:
    """Return the retry of the account's outlet with the most failures in a row; None if none has failed."""
    found = (find_retry(state, outlet) for outlet in state.accounts.outlets((waba_id,)))
    return max((retry for retry in found if retry is not None), key=lambda retry: retry.attempts, default=None)


async def _deliver(state: SimulatorState, served: Outlet, wake: asyncio.Event) -> int | None:
    """Run one turn of an outlet's loop; return until when nothing is due, or None if there may be more."""
    wake.clear()
    state.webhooks.outlets_in_delivery += 1
    try:
        return await _deliver_due(state, served)
    finally:
        state.webhooks.outlets_in_delivery -= 1


async def _deliver_due(state: SimulatorState, served: Outlet) -> int | None:
    """Deliver one batch; return until when nothing is due, or None if there may be more."""
    now_ms = state.clock.now_ms()
    outlets = state.accounts.outlets_of(served.waba_id, served.app_id)
    outlet = next((outlet for outlet in outlets if outlet == served), None)
    if outlet is None:  # its number no longer has a callback URL of its own
        return now_ms + _MAX_IDLE_MS
    retry = find_retry(state, outlet)
    if retry is not None and retry.next_ms > now_ms:
        return retry.next_ms
    settings = state.settings.value
    batch = _cut_batch(await _batch(state, outlet, now_ms, settings.batch_at_most))
    if not batch:
        dues = (await state.outbox.next_due_ms(outlet), await next_faulted_ms(state, outlet))
        return min((due_ms for due_ms in dues if due_ms is not None), default=now_ms + _MAX_IDLE_MS)
    destination = state.accounts.destination(outlet)
    unwanted_fields = destination.unwanted_fields if destination is not None else ()
    dropped = [
        update
        for update in batch
        if update.due_ms < now_ms - MAX_RETRY_AGE_MS or (update.field or MESSAGES_FIELD) in unwanted_fields
    ]
    if destination is None or dropped:
        await state.transact(partial(_delete_updates, batch if destination is None else dropped, None))
        return None
    failure = await _post(state, outlet.waba_id, batch, destination)
    if failure is None:
        await state.transact(partial(_delete_updates, batch, retry))
    else:
        await state.transact(partial(_store_failure, outlet, destination, retry, failure))
    await asyncio.sleep(settings.gather_ms / 1000)
    return None


async def _batch(state: SimulatorState, outlet: Outlet, now_ms: int, limit: int) -> list[PendingUpdate]:
    """Return the updates of the next POST; none if nothing is due."""
    if not may_be_faulted(state, outlet.waba_id):
        updates = await state.outbox.due_updates(outlet, now_ms=now_ms, limit=limit)
        if not may_be_faulted(state, outlet.waba_id):  # none was armed while these were read
            return [build_pending_update(update) for update in updates]
    await apply_due_faults(state, outlet, now_ms=now_ms, limit=limit)
    return await next_faulted_batch(state, outlet, now_ms=now_ms, limit=limit)


def _cut_batch(batch: list[PendingUpdate]) -> list[PendingUpdate]:
    """Return the updates of one POST: up to the first that is sent alone."""
    first = next((index for index, update in enumerate(batch) if update.is_alone), len(batch))
    return batch[: max(first, 1)]


def _delete_updates(batch: Sequence[PendingUpdate], retry: WebhookRetry | None, transaction: Transaction) -> None:
    """Delete updates that have been delivered, or will not be; if they were delivered, their retry too."""
    for update in batch:
        drop = FAULTED_UPDATES.delete(position=update.position) if update.position else delete_update(update)
        transaction.run(drop)
    if retry is not None:
        transaction.delete(WEBHOOK_RETRIES, retry.outlet.phone_number_id, _retry_owner(retry.outlet))


def _store_failure(
    outlet: Outlet, destination: Destination, retry: WebhookRetry | None, failure: str, transaction: Transaction
) -> None:
    """Store an outlet's retry after a POST that failed.

    If its retry was deleted or its callback URL changed during the POST, nothing is stored:
    what failed says nothing about the new URL, which must not wait.
    """
    state, key, owner = transaction.state, outlet.phone_number_id, _retry_owner(outlet)
    is_same_retry = transaction.find(WEBHOOK_RETRIES, key, owner) == retry
    if is_same_retry and state.accounts.destination(outlet) == destination:
        attempts = retry.attempts + 1 if retry else 1
        next_ms = state.clock.now_ms() + round(RETRY_AFTER_S[min(attempts, len(RETRY_AFTER_S)) - 1] * 1000)
        transaction.save(WEBHOOK_RETRIES, WebhookRetry(outlet, attempts, next_ms, failure), key, owner)


async def _post(state: SimulatorState, waba_id: str, updates: Sequence[Update], destination: Destination) -> str | None:
    """Send updates in one POST; return what went wrong, or None after a 200."""
    body = envelope(waba_id, updates, state.accounts.numbers)
    secret = destination.app_secret
    signature: str | None = sign_body(secret, body)
    match await find_post_fault(state, updates):
        case "garbage":
            await _post_once(state, destination.uri, GARBAGE_BODY, sign_body(secret, GARBAGE_BODY))
        case "wrong_signature":
            signature = sign_body(f"not {secret}", body)
        case "unsigned":
            signature = None
        case _:
            pass
    return await _post_once(state, destination.uri, body, signature)


async def _post_once(state: SimulatorState, uri: str, body: bytes, signed: str | None) -> str | None:
    delivery = state.webhooks
    headers = {"Content-Type": "application/json", "User-Agent": "facebookexternalua"}
    if signed is not None:
        headers["X-Hub-Signature-256"] = signed
    delivery.posts_begun += 1
    delivery.posts_in_flight[uri] += 1
    try:
        response = await delivery.client.post(uri, body, headers, timeout_s=POST_TIMEOUT_S)
    except (OSError, ValueError) as error:
        cause = error.__cause__
        return error_text(cause if isinstance(cause, OSError) and cause.errno else error)
    else:
        return None if response.status == 200 else f"status {response.status}"
    finally:
        delivery.posts_in_flight[uri] -= 1
        if not delivery.posts_in_flight[uri]:
            del delivery.posts_in_flight[uri]


def _retry_owner(outlet: Outlet) -> str:
    return f"{outlet.waba_id} {outlet.app_id}"


def sign_body(app_secret: str, body: bytes) -> str:
    """Return the value of `X-Hub-Signature-256`. Source: facts 7.1."""
    return "sha256=" + hmac.new(app_secret.encode(), body, hashlib.sha256).hexdigest()
