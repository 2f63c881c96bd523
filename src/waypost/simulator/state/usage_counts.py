"""Counts of what is limited: durable ones over hours or days; of an hour's management calls and of sends, in memory."""

from collections import deque
from itertools import takewhile
from operator import itemgetter
from typing import Final

from waypost.base.clock import DAY_MS, HOUR_MS, Clock
from waypost.simulator.apis.errors import coded_error, message_error
from waypost.simulator.state.accounts import Account, Accounts
from waypost.simulator.storage.keyed_store import CachedKeyedValues
from waypost.simulator.storage.settings import SimulatorSettingsStore
from waypost.simulator.storage.store import Statement, Store

CREATIONS: Final = "creation"
FLOW_SENDS: Final = "flow"
REACHED: Final = "reached"
REGISTRATIONS: Final = "registration"
"""The kinds: templates created, by account; messages sent, by flow; users messaged outside their window,
by account; registrations, by number."""


class UsageCounts:
    """Counts each key once, at its latest time; holds the last three days in memory."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.seen = CachedKeyedValues(store, "usage_count", int)  # by key, of a kind and a subject

    async def open(self) -> None:
        """Delete entries older than three days, and sort the rest by time."""
        old_ms = self._clock.now_ms() - 3 * DAY_MS
        seen = self.seen.items()
        self.seen.clear()
        for owner, key, at_ms in sorted(seen, key=itemgetter(2)):
            if at_ms > old_ms:
                self.seen.put(at_ms, key, owner)
        old = [(owner, key) for owner, key, at_ms in seen if at_ms <= old_ms]
        await self._store.run([self.seen.delete_statement(key, owner) for owner, key in old])

    def count(self, kind: str, subject: str, *, within_ms: int) -> int:
        """Return the number of keys counted within a time of at most three days."""
        owner, until_ms = usage_owner(kind, subject), self._clock.now_ms() - within_ms
        for key, _ in list(takewhile(lambda entry: entry[1] <= until_ms, self.seen.values_of(owner).items())):
            self.seen.pop(key, owner)
        return len(self.seen.values_of(owner))

    def has(self, kind: str, subject: str, key: str, *, within_ms: int) -> bool:
        """True if this key was counted within this time."""
        at_ms = self.seen.values_of(usage_owner(kind, subject)).get(key)
        return at_ms is not None and at_ms > self._clock.now_ms() - within_ms

    def record(self, kind: str, subject: str, key: str) -> Statement:
        """Count a key now; return the statement, which the caller writes."""
        at_ms, owner = self._clock.now_ms(), usage_owner(kind, subject)
        self.seen.pop(key, owner)  # keep the order by time
        self.seen.put(at_ms, key, owner)
        return self.seen.save_statement(at_ms, key, owner)


def usage_owner(kind: str, subject: str) -> str:
    """Return the owner of the keys of a kind and a subject."""
    return f"{kind} {subject}"


_TOO_MANY: Final = 80008
_CALLS_OF_IDLE: Final = 200  # Source: facts 8, "Management calls"
_CALLS_OF_ACTIVE: Final = 5000  # Source: facts 8: an account with a registered number

COUNTED_EDGES: Final = frozenset(  # Source: facts 8, "Management calls": the edges of an account
    {"", "phone_numbers", "message_templates", "subscribed_apps", "assigned_users"}
)
Headers = tuple[tuple[bytes, bytes], ...]


class ManagementCallUsage:
    """Counts calls per account, which has one app; calls over the limit do not count."""

    def __init__(self, clock: Clock, settings: SimulatorSettingsStore, accounts: Accounts) -> None:
        self._clock = clock
        self._settings = settings
        self._accounts = accounts
        self._calls: dict[str, deque[int]] = {}

    def count_call(self, account: Account) -> None:
        """Count one management call.

        Raises:
            GraphApiError: 80008, the hour's limit is reached.

        Source: facts 8.
        """
        now_ms = self._clock.now_ms()
        calls = self._recent(account.waba_id, now_ms)
        if self._settings.value.limits and len(calls) >= self._limit(account.waba_id):
            raise coded_error(_TOO_MANY, retry_after_s=-((now_ms - HOUR_MS - calls[0]) // 1000))
        calls.append(now_ms)

    def headers(self, waba_id: str) -> Headers:
        """Return the headers with the used share of the hour's calls of account and app, in percent.

        Source: facts 1, `x-business-use-case-usage`. The used time is always 0 here.
        """
        now_ms = self._clock.now_ms()
        calls, limit = self._recent(waba_id, now_ms), self._limit(waba_id)
        percent = min(100, 100 * len(calls) // limit)
        minutes = -((now_ms - HOUR_MS - calls[0]) // 60_000) if len(calls) >= limit else 0
        app_usage = f'{{"call_count":{percent},"total_cputime":0,"total_time":0}}'
        account_usage = (
            f'{{"{waba_id}":[{{"type":"whatsapp_business_management","call_count":{percent},'
            f'"total_cputime":0,"total_time":0,"estimated_time_to_regain_access":{minutes}}}]}}'
        )
        return ((b"x-app-usage", app_usage.encode()), (b"x-business-use-case-usage", account_usage.encode()))

    def count(self, waba_id: str) -> int:
        """Return the number of the account's calls in the last hour."""
        return len(self._recent(waba_id, self._clock.now_ms()))

    def clear(self) -> None:
        """Reset the counts."""
        self._calls.clear()

    def _recent(self, waba_id: str, now_ms: int) -> deque[int]:
        calls = self._calls.get(waba_id)
        if calls is None:
            calls = self._calls[waba_id] = deque()
        while calls and calls[0] <= now_ms - HOUR_MS:
            calls.popleft()
        return calls

    def _limit(self, waba_id: str) -> int:
        calls_per_hour = self._settings.value.calls_per_hour
        if calls_per_hour is not None:
            return calls_per_hour
        return _CALLS_OF_ACTIVE if self._accounts.numbers_of(waba_id) else _CALLS_OF_IDLE


_PAIR_INTERVAL_MS: Final = 6_000  # Source: facts 8, "Pair rate"
_PAIR_BURST: Final = 45  # Source: facts 8, "Pair rate"
_MAX_PAIRS: Final = 200_000


class ThroughputLimits:
    """Counts sent messages, per number and per pair of number and phone; rejected messages do not count."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sent: dict[str, deque[int]] = {}
        self._used_until_ms: dict[tuple[str, str], int] = {}

    def consume(self, phone_number_id: str, phone: str, throughput: int) -> None:
        """Count one message, or raise the error of an exceeded limit.

        A burst to one phone borrows from the future: every message moves the time until which the pair has used its
        rate by six seconds, and that time may be ahead of now by one burst at most.

        Args:
            phone_number_id: the sender.
            phone: the recipient.
            throughput: messages per second that the number may send.

        Raises:
            GraphApiError: 130429 for the number, 131056 for the pair.

        Source: facts 8.
        """
        now_ms = self._clock.now_ms()
        sent = self._sent.setdefault(phone_number_id, deque())
        while sent and sent[0] <= now_ms - 1000:
            sent.popleft()
        if len(sent) >= throughput:
            raise message_error(130429, "Message failed to send because there were too many messages sent in a second.")
        pair = (phone_number_id, phone)
        used_until_ms = max(self._used_until_ms.get(pair, 0), now_ms)
        ahead_ms = (_PAIR_BURST - 1) * _PAIR_INTERVAL_MS
        if used_until_ms - now_ms > ahead_ms:
            raise message_error(
                131056,
                "Message failed to send because there were too many messages sent from this phone "
                "number to the same phone number in a short period of time.",
                retry_after_s=-((now_ms + ahead_ms - used_until_ms) // 1000),
            )
        sent.append(now_ms)
        self._used_until_ms[pair] = used_until_ms + _PAIR_INTERVAL_MS
        if len(self._used_until_ms) > _MAX_PAIRS:
            ahead = ((pair, until_ms) for pair, until_ms in self._used_until_ms.items() if until_ms > now_ms)
            self._used_until_ms = dict(ahead)

    def clear(self) -> None:
        """Delete all counts."""
        self._sent.clear()
        self._used_until_ms.clear()
