"""Telling the business: the handshake, and a loop for each account that delivers signed batches."""

import asyncio
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import aiohttp

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.logs import log
from waypost.simulator.accounts import Accounts, Destination
from waypost.simulator.judged_updates import JudgedUpdates, Parcel
from waypost.simulator.live_settings import LiveSettings
from waypost.simulator.outbox import Outbox, Update, envelope
from waypost.simulator.store import Store
from waypost.simulator.webhook_faults import WebhookFaults

_LOG = log("simulator")
_TIMEOUT: Final = aiohttp.ClientTimeout(total=20)
_HANDSHAKE_TIMEOUT: Final = aiohttp.ClientTimeout(total=10)
# Source: facts 7.1: at once, then less and less often, for 7 days. The steps are ours; the last repeats.
RETRY_AFTER_S: Final = (0, 0.5, 1, 2, 5, 10, 20, 60, 300, 900, 3600)
HORIZON_MS: Final = 7 * 24 * 3600 * 1000
_FAR_MS: Final = 3_600_000
NO_JSON: Final = b'{"object":"whatsapp_business_account","entry":[{"id":'
"""What a POST carries that is garbage."""
_KEEP_RETRY: Final = "INSERT OR REPLACE INTO retries VALUES (?,?,?,?)"
_DROP_RETRY: Final = "DELETE FROM retries WHERE waba_id=?"


class HandshakeFailed(Exception):
    """The address did not prove that it wants our webhooks; says what it did instead."""


@dataclass(frozen=True)
class Retry:
    """How an account's delivery is doing after failures: how many in a row, when the next, why."""

    attempts: int
    next_ms: int
    reason: str


class Webhooks:
    """Delivers what is due: in order for one account, side by side for different ones."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        settings: LiveSettings,
        accounts: Accounts,
        outbox: Outbox,
        judged: JudgedUpdates,
        faults: WebhookFaults,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._accounts = accounts
        self._outbox = outbox
        self._judged = judged
        self._faults = faults
        self._session: aiohttp.ClientSession | None = None
        self._loops: dict[str, asyncio.Task[None]] = {}
        self.retries: dict[str, Retry] = {}
        self.posts = 0
        self._delivering = 0

    async def open(self) -> None:
        """Take up the retries of before, and start a loop for each account."""
        for waba_id, attempts, next_ms, reason in await self._store.rows("SELECT * FROM retries"):
            self.retries[waba_id] = Retry(attempts, next_ms, reason)
        # An idle connection is kept for less time than any server keeps it, so that none is used
        # in the moment in which the other side closes it.
        connector = aiohttp.TCPConnector(keepalive_timeout=2)
        self._session = aiohttp.ClientSession(connector=connector, trust_env=False)
        for waba_id in self._accounts.by_id:
            self.serve(waba_id)

    async def close(self) -> None:
        """Stop the loops; what was not answered with 200 stays in the file."""
        loops = list(self._loops.values())
        self._loops.clear()
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    def serve(self, waba_id: str) -> None:
        """Start the account's loop, unless it runs."""
        if waba_id not in self._loops:
            self._loops[waba_id] = asyncio.create_task(
                self._run(waba_id), name=f"webhooks {waba_id}"
            )

    @property
    def busy(self) -> bool:
        """Whether anything is being delivered."""
        return self._delivering > 0

    async def next_due_ms(self) -> int | None:
        """When the next update will be told, retries included; None when there is nothing to tell."""
        dues: list[int] = []
        for waba_id in tuple(self._loops):  # others may be made meanwhile
            due_ms = await self._account_due_ms(waba_id)
            retry = self.retries.get(waba_id)
            if due_ms is not None:
                dues.append(max(due_ms, retry.next_ms) if retry else due_ms)
        return min(dues, default=None)

    async def retry_now(self, waba_id: str) -> None:
        """Forget earlier failures: the address has changed, or its owner says that it is well."""
        self.retries.pop(waba_id, None)
        await self._store.run([(_DROP_RETRY, (waba_id,))])
        self._outbox.wake_of(waba_id).set()

    async def shake_hands(self, uri: str, verify_token: str) -> None:
        """Ask an address whether it wants our webhooks.

        Raises:
            HandshakeFailed: says what is wrong with the answer.

        Source: facts 7.1.
        """
        if not uri.startswith(("http://", "https://")):
            raise HandshakeFailed(f"{uri!r} is not an address: it begins with http:// or https://")
        challenge = self._ids.digits(10)
        query = {
            "hub.mode": "subscribe",
            "hub.challenge": challenge,
            "hub.verify_token": verify_token,
        }
        try:
            async with self._http().get(
                uri, params=query, timeout=_HANDSHAKE_TIMEOUT, allow_redirects=False
            ) as answer:
                text = (await answer.content.read(4096)).decode(errors="replace").strip()
                status = answer.status
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise HandshakeFailed(f"the address could not be asked: {error!r}") from error
        if status != 200:
            raise HandshakeFailed(
                f"the address answered {status}, not 200 (is its verify token the same?): {text[:200]!r}"
            )
        if text != challenge:
            raise HandshakeFailed(
                f"the address did not answer with the bare challenge {challenge} but with {text[:200]!r}"
            )

    async def _run(self, waba_id: str) -> None:
        wake = self._outbox.wake_of(waba_id)
        while True:
            wake.clear()
            self._delivering += 1
            try:
                until_ms = await self._deliver_due(waba_id)
            except Exception as error:  # noqa: BLE001  a defect is reported and must not end the loop
                _LOG.error("webhook delivery failed", waba_id=waba_id, error=repr(error))
                until_ms = self._clock.now_ms() + 1000
                await asyncio.sleep(0.1)
            finally:
                self._delivering -= 1
            if until_ms is not None:
                await self._clock.wait(wake, until_ms=until_ms)

    async def _deliver_due(self, waba_id: str) -> int | None:
        """Deliver one batch; say until when there is nothing to do, None when there may be more."""
        now_ms = self._clock.now_ms()
        retry = self.retries.get(waba_id)
        if retry is not None and retry.next_ms > now_ms:
            return retry.next_ms
        settings = self._settings.value
        batch = await self._batch(waba_id, now_ms, settings.batch_at_most)
        if not batch:
            due_ms = await self._account_due_ms(waba_id)
            return now_ms + _FAR_MS if due_ms is None else due_ms
        # One POST goes to one address: what goes to others has its turn right after it.
        destination = self._destination(batch[0])
        batch = [one for one in batch if self._destination(one) == destination]
        dropped = [one for one in batch if one.update.due_ms < now_ms - HORIZON_MS]
        if destination is None or dropped:
            await self._drop(batch if destination is None else dropped)
            return None
        failure = await self._post(waba_id, [one.update for one in batch], destination)
        if failure is None:
            await self._drop(batch)
            if retry is not None:
                await self.retry_now(waba_id)
        else:
            await self._keep_retry(waba_id, retry.attempts + 1 if retry else 1, failure)
        await asyncio.sleep(settings.gather_ms / 1000)
        return None

    async def _batch(self, waba_id: str, now_ms: int, at_most: int) -> list[Parcel]:
        """What the next POST carries; nothing where nothing is due."""
        if not self._faults.may_spoil(waba_id):
            updates = await self._outbox.due(waba_id, now_ms=now_ms, at_most=at_most)
            return [Parcel(update) for update in updates]
        await self._faults.judge(waba_id, now_ms=now_ms, at_most=at_most)
        return await self._judged.ready(waba_id, now_ms=now_ms, at_most=at_most)

    def _destination(self, parcel: Parcel) -> Destination | None:
        update = parcel.update
        return self._accounts.destination(update.waba_id, update.phone_number_id)

    async def _account_due_ms(self, waba_id: str) -> int | None:
        """When an account's next update is to be told, retries left aside."""
        dues = (await self._outbox.next_due_ms(waba_id), await self._judged.next_due_ms(waba_id))
        return min((due_ms for due_ms in dues if due_ms is not None), default=None)

    async def _drop(self, batch: Sequence[Parcel]) -> None:
        """Take updates out: they were delivered, or nobody will hear them."""
        judged = [one for one in batch if one.position]
        if judged:
            await self._judged.drop(judged)
        await self._outbox.drop(one.update for one in batch if not one.position)

    async def _post(
        self, waba_id: str, updates: Sequence[Update], destination: Destination
    ) -> str | None:
        """Tell updates in one POST; gives what went wrong, or None after a 200."""
        body = envelope(waba_id, updates, self._accounts.numbers)
        secret = destination.app_secret
        match await self._faults.spoil_post(updates):
            case "garbage":
                await self._post_once(destination.uri, NO_JSON, signature(secret, NO_JSON))
            case "wrong_signature":
                wrong = signature(f"not {secret}", body)
                return await self._post_once(destination.uri, body, wrong)
            case "unsigned":
                return await self._post_once(destination.uri, body, None)
            case _:
                pass
        return await self._post_once(destination.uri, body, signature(secret, body))

    async def _post_once(self, uri: str, body: bytes, signed: str | None) -> str | None:
        headers = {"Content-Type": "application/json", "User-Agent": "facebookexternalua"}
        if signed is not None:
            headers["X-Hub-Signature-256"] = signed
        self.posts += 1
        try:
            async with self._http().post(
                uri, data=body, headers=headers, timeout=_TIMEOUT, allow_redirects=False
            ) as answer:
                await answer.read()
                return None if answer.status == 200 else f"status {answer.status}"
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return repr(error)

    async def _keep_retry(self, waba_id: str, attempts: int, reason: str) -> None:
        wait_s = RETRY_AFTER_S[min(attempts, len(RETRY_AFTER_S)) - 1]
        retry = Retry(attempts, self._clock.now_ms() + round(wait_s * 1000), reason)
        self.retries[waba_id] = retry
        await self._store.run([(_KEEP_RETRY, (waba_id, attempts, retry.next_ms, reason))])

    def _http(self) -> aiohttp.ClientSession:
        assert self._session is not None, "the webhooks are not open"  # noqa: S101  a defect, not an input
        return self._session


def signature(app_secret: str, body: bytes) -> str:
    """The value of `X-Hub-Signature-256`. Source: facts 7.1."""
    return "sha256=" + hmac.new(app_secret.encode(), body, hashlib.sha256).hexdigest()
