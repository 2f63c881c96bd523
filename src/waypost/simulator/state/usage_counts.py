"""Counts of what is limited: durable ones over hours or days; those of an hour's management calls, in memory."""

from collections import deque
from collections.abc import Mapping
from operator import itemgetter
from typing import Final

from waypost.base.clock import DAY_MS, HOUR_MS
from waypost.base.written_numbers import encode_json
from waypost.simulator.apis.errors import coded_error
from waypost.simulator.state.accounts import Account
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind
from waypost.simulator.storage.store import Statement

CREATIONS: Final = "creation"
FLOW_SENDS: Final = "flow"
REACHED: Final = "reached"
REGISTRATIONS: Final = "registration"
CODE_REQUESTS: Final = "code_request"
"""The kinds: templates created, by account; messages sent, by flow; users messaged outside their window,
by account; registrations and deregistrations, and requested codes, by number."""
_USAGE: Final = StoredKind("usage_count", int)
"""The latest time of each key, of a kind and a subject; in memory in the order of time, for three days."""


async def open_usage_counts(state: SimulatorState) -> None:
    """Delete entries older than three days, and sort the rest by time."""
    old_ms = state.clock.now_ms() - 3 * DAY_MS
    usage = state.cached(_USAGE)
    seen = usage.items()
    usage.clear()
    for owner, key, at_ms in sorted(seen, key=itemgetter(2)):
        if at_ms > old_ms:
            usage.put(at_ms, key, owner)
    old = [(owner, key) for owner, key, at_ms in seen if at_ms <= old_ms]
    await state.store.run([_USAGE.delete_statement(key, owner) for owner, key in old])


def count_usage(transaction: Transaction, kind: str, subject: str, key: str) -> None:
    """Count a new key now."""
    transaction.save(_USAGE, transaction.state.clock.now_ms(), key, f"{kind} {subject}")


def times_counted(transaction: Transaction, kind: str, subject: str, *, within_ms: int) -> int:
    """Return how many keys were counted within a time of at most three days."""
    since_ms = transaction.state.clock.now_ms() - within_ms
    return sum(at_ms > since_ms for at_ms in transaction.values(_USAGE, f"{kind} {subject}").values())


def recent_usage(state: SimulatorState, kind: str, subject: str, *, within_ms: int) -> Mapping[str, int]:
    """Return the keys counted within a time, always the same for a kind, and forget the older ones."""
    owner, since_ms = f"{kind} {subject}", state.clock.now_ms() - within_ms
    usage = state.cached(_USAGE)
    for key, at_ms in list(usage.values_of(owner).items()):
        if at_ms > since_ms:
            break
        usage.pop(key, owner)
    return usage.values_of(owner)


def note_usage(state: SimulatorState, kind: str, subject: str, key: str) -> Statement:
    """Count a key in memory, new or known; return the statement, which the caller writes."""
    at_ms, owner = state.clock.now_ms(), f"{kind} {subject}"
    state.cached(_USAGE).pop(key, owner)  # keep the order by time
    state.cached(_USAGE).put(at_ms, key, owner)
    return _USAGE.save_statement(at_ms, key, owner)


_TOO_MANY: Final = 80008
_CALLS_OF_IDLE: Final = 200  # Source: facts 8, "Management calls"
_CALLS_OF_ACTIVE: Final = 5000  # Source: facts 8: an account with a registered number

COUNTED_EDGES: Final = frozenset(  # Source: facts 8, "Management calls": the edges of an account
    {"", "phone_numbers", "message_templates", "subscribed_apps", "assigned_users"}
)
Headers = tuple[tuple[bytes, bytes], ...]


def count_management_call(state: SimulatorState, account: Account) -> None:
    """Count one management call of an account, which has one app; calls over the limit do not count.

    Raises:
        GraphApiError: 80008, the hour's limit is reached.

    Source: facts 8.
    """
    calls, now_ms = recent_calls(state, account.waba_id), state.clock.now_ms()
    if state.settings.value.limits and len(calls) >= _calls_per_hour(state, account.waba_id):
        raise coded_error(_TOO_MANY, retry_after_s=-((now_ms - HOUR_MS - calls[0]) // 1000))
    calls.append(now_ms)


def usage_headers(state: SimulatorState, waba_id: str) -> Headers:
    """Return the headers with the used share of the hour's calls of account and app, in percent.

    Source: facts 1, `x-business-use-case-usage`. The used time is always 0 here.
    """
    calls, limit = recent_calls(state, waba_id), _calls_per_hour(state, waba_id)
    percent = min(100, 100 * len(calls) // limit)
    minutes = -((state.clock.now_ms() - HOUR_MS - calls[0]) // 60_000) if len(calls) >= limit else 0
    usage = {"call_count": percent, "total_cputime": 0, "total_time": 0}
    of_type = {"type": "whatsapp_business_management", **usage, "estimated_time_to_regain_access": minutes}
    return ((b"x-app-usage", encode_json(usage)), (b"x-business-use-case-usage", encode_json({waba_id: [of_type]})))


def recent_calls(state: SimulatorState, waba_id: str) -> deque[int]:
    """Return the times of the account's calls in the last hour."""
    calls = state.management_calls[waba_id]
    while calls and calls[0] <= state.clock.now_ms() - HOUR_MS:
        calls.popleft()
    return calls


def _calls_per_hour(state: SimulatorState, waba_id: str) -> int:
    operators_limit = _CALLS_OF_ACTIVE if state.accounts.numbers_of(waba_id) else _CALLS_OF_IDLE
    return state.settings.value.calls_per_hour or operators_limit
