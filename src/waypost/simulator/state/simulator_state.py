"""The state that every function of the simulator works on, and its transactions.

A function reads memory by `SimulatorState.values`. What it changes it changes in a plain function that
`SimulatorState.transact` runs: reads, checks, writes and webhooks, in one transaction.
"""

import asyncio
import itertools
import sqlite3
import traceback
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from waypost.base.clock import Clock
from waypost.base.http.connection_pools import ConnectionPools
from waypost.base.http.post_client import PostClient
from waypost.base.ids import Ids
from waypost.base.loops import Loop
from waypost.base.time_travel import TimeTravel
from waypost.simulator.apis.dev_partners import DevPartners
from waypost.simulator.apis.dev_snapshots import SnapshotStore
from waypost.simulator.apis.endpoint_client import EndpointClient
from waypost.simulator.apis.files import Files
from waypost.simulator.apis.link_fetches import MediaLinkFetcher
from waypost.simulator.state.accounts import Accounts
from waypost.simulator.state.delivery_signals import DeliverySignals
from waypost.simulator.state.outbox import Outbox
from waypost.simulator.state.records import RECORDS
from waypost.simulator.state.settings import SimulatorSettings, SimulatorSettingsStore
from waypost.simulator.storage.keyed_store import KINDS_IN_MEMORY, CachedKeyedValues, StoredKind
from waypost.simulator.storage.store import Statement, Store, Values
from waypost.simulator.storage.tables import SCHEMA
from waypost.simulator.storage.tables.updates import FIELD_PREFIX, Outlet, Update, add_update

POST_TIMEOUT_S: Final = 20
_IDLE_S: Final = 2
"""An idle connection is closed sooner than any server closes it, so that none is used at the moment in which the
other side closes it."""
_CONNECTIONS_PER_ADDRESS: Final = 100
_MAX_RESPONSE_BYTES: Final = 64 * 1024

StoredValue = TypeVar("StoredValue")
WorkResult = TypeVar("WorkResult")


class Transaction:
    """One transaction: it sees what others before it in the same commit have written, and memory follows the commit.

    Its functions run on the writer's thread: of `state` they only read memory.
    """

    def __init__(self, state: "SimulatorState", connection: sqlite3.Connection) -> None:
        self.state = state
        self._connection = connection
        self._rows: dict[str, list[Values | tuple[Any, ...]]] = {}
        self.effects: dict[Callable[[], object], None] = {}
        """What follows the commit, in order, each once."""

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, after the added rows."""
        for statement, rows in self._rows.items():
            self._connection.executemany(statement, rows)
        self._rows.clear()
        return self._connection

    def add(self, statement: Statement) -> None:
        """Add a row that no other added row depends on: those of many functions are written at once."""
        self._rows.setdefault(statement[0], []).append(statement[1])

    def follow(self, effect: Callable[[], object]) -> None:
        """Call a function after the commit; an equal one only once."""
        self.effects[effect] = None

    def run(self, *statements: Statement) -> None:
        """Execute statements in order."""
        for statement, values in statements:
            self.connection.execute(statement, values)

    def values(self, kind: StoredKind[StoredValue], owner: str = "") -> dict[str, StoredValue]:
        """Return an owner's values by key, in order of creation."""
        return kind.values_on(self.connection, owner)

    def find_by_member(self, kind: StoredKind[StoredValue], name: str, value: str) -> list[StoredValue]:
        """Return the values with this text as a member, in order of creation."""
        return kind.find_by_member_on(self.connection, name, value)

    def find(self, kind: StoredKind[StoredValue], key: str, owner: str = "") -> StoredValue | None:
        """Return a value; None if there is none."""
        return kind.find_on(self.connection, key, owner)

    def save(self, kind: StoredKind[StoredValue], value: StoredValue, key: str, owner: str = "") -> None:
        """Insert or update a value, also in memory."""
        self.run(kind.save_statement(value, key, owner))
        self.follow(lambda: self.state.cached(kind).put(value, key, owner))

    def delete(self, kind: StoredKind[Any], key: str, owner: str = "") -> None:
        """Delete a value, also from memory."""
        self.run(kind.delete_statement(key, owner))
        self.follow(lambda: self.state.cached(kind).pop(key, owner))

    def delete_owner(self, kind: StoredKind[Any], owner: str) -> None:
        """Delete all values of an owner, also from memory."""
        self.run(kind.delete_owner_statement(owner))
        self.follow(lambda: self.state.cached(kind).pop_owner(owner))

    def delete_range(self, kind: StoredKind[Any], first: str, last: str) -> None:
        """Delete the values with keys of one length from the first to the last, also from memory."""
        self.run(kind.delete_range_statement(first, last))
        self.follow(lambda: self.state.cached(kind).pop_range(first, last))

    def record(self, node_id: str, kind: str) -> dict[str, Any]:
        """Return the record of a number or account; empty if there is none."""
        return self.find(RECORDS, kind, node_id) or {}

    def save_record(self, node_id: str, kind: str, record: dict[str, Any]) -> None:
        """Store the record of a number or account, also in memory."""
        self.save(RECORDS, record, kind, node_id)

    def change_record(self, node_id: str, kind: str, **members: Any) -> None:
        """Change members of a record; the others stay."""
        self.save_record(node_id, kind, {**self.record(node_id, kind), **members})

    def send(self, *updates: Update) -> None:
        """Send webhooks, each if its account has a receiver of its field."""
        outbox = self.state.outbox
        for (waba_id, webhook_field), same in itertools.groupby(updates, lambda update: (update.waba_id, update.field)):
            if self.state.accounts.has_receiver(waba_id, webhook_field):
                for update in same:
                    self.add(add_update(update, next(outbox.ids)))
            self.effects[outbox.wake_events[waba_id].set] = None

    def notify(
        self, waba_id: str, field: str, value: dict[str, Any], *, at_ms: int | None = None, subject: str = ""
    ) -> None:
        """Send the webhook with this field and value about an account; by default now."""
        due_ms = self.state.clock.now_ms() if at_ms is None else at_ms
        self.send(Update(waba_id, due_ms, FIELD_PREFIX + field, "", subject, value))

    def wake_phone(self, phone: str) -> None:
        """Wake those who wait for something on a phone."""
        self.follow(lambda: self.state.delivery_signals.wake(phone))


@dataclass
class WebhookDelivery:
    """The running delivery of webhooks: its loops and POSTs; see `webhooks`."""

    client: PostClient
    loops: dict[Outlet, Loop] = field(default_factory=dict[Outlet, Loop])
    posts_begun: int = 0
    outlets_in_delivery: int = 0
    posts_in_flight: Counter[str] = field(default_factory=Counter[str])
    """How many POSTs are in flight, by URL."""


class SimulatorState:
    """The file with the values that it holds in memory; clock, ids and settings; what is in memory only.

    Args:
        travel: advances the clock; None if it cannot be advanced.
        snapshots: None if the simulator runs alone, and so of `partners`.
    """

    def __init__(
        self,
        settings: SimulatorSettings,
        clock: Clock,
        ids: Ids,
        travel: TimeTravel | None = None,
        snapshots: SnapshotStore | None = None,
        partners: DevPartners | None = None,
    ) -> None:
        self.clock = clock
        self.ids = ids
        self.travel = travel
        self.snapshots = snapshots
        self.partners = partners
        self.store = store = Store(settings.path, SCHEMA)
        for kind in KINDS_IN_MEMORY:
            CachedKeyedValues(store, kind)
        self.settings = SimulatorSettingsStore(settings, store)
        folder = settings.path.with_name(settings.path.name + ".files")
        self.files = Files(folder, reserved_bytes=settings.least_free_mb * 1_000_000)
        self.accounts = Accounts(store)
        self.outbox = Outbox(store)
        self.delivery_signals = DeliverySignals(store, clock)
        pools = ConnectionPools(max_per_address=_CONNECTIONS_PER_ADDRESS, idle_s=_IDLE_S, connect_s=POST_TIMEOUT_S)
        self.link_fetcher = MediaLinkFetcher(settings.media_networks)
        self.webhooks = WebhookDelivery(PostClient(pools, max_body_bytes=_MAX_RESPONSE_BYTES))
        self.endpoints = EndpointClient()
        self.loops: list[Loop] = []
        self.due_times: list[Callable[[], Awaitable[int | None]]] = []
        """Functions that return when scheduled work is due; None if there is none."""
        self.templates_changed = asyncio.Event()
        self.business_apps_changed = asyncio.Event()
        self.endpoints_changed = asyncio.Event()
        """A Flow was changed, or an exchange with its endpoint measured."""
        self.endpoint_measurements: defaultdict[str, deque[Any]] = defaultdict(deque)
        """What was measured of the exchanges with the endpoints of Flows, oldest first; see `flows.alerts`."""
        self.active_uploads: set[str] = set()
        """The ids of upload sessions that a request is uploading to."""
        self.active_flow_sessions: set[str] = set()
        """The sessions of flows that a request is playing, by phone and id."""
        self.faulted_accounts: set[str] = set()
        """The accounts that may have updates changed by faults."""
        self.held_template_ids: set[str] = set()
        """The templates that have held messages."""
        self.received_counts: dict[str, int] = {}
        """How many messages each scripted phone has received."""
        self.management_calls: defaultdict[str, deque[int]] = defaultdict(deque)
        """The times of the last hour's management calls, by account."""
        self.sends: defaultdict[str, deque[int]] = defaultdict(deque)
        """The times of the last second's accepted messages, by number."""
        self.pairs_used_until_ms: dict[tuple[str, str], int] = {}
        """Until when a pair of a number and a phone has used its rate."""
        self.error_counts: Counter[int] = Counter()
        """Number of Graph error responses by code, since the start."""
        for values in (
            self.faulted_accounts,
            self.held_template_ids,
            self.received_counts,
            self.management_calls,
            self.sends,
            self.pairs_used_until_ms,
            self.endpoint_measurements,
        ):
            store.register_reset(values.clear)

    def start_loop(self, loop: Loop, next_due_ms: Callable[[], Awaitable[int | None]]) -> None:
        """Start a loop whose work is due at these times."""
        self.loops.append(loop)
        self.due_times.append(next_due_ms)
        loop.start()

    @property
    def failing_loop(self) -> str:
        """The error of a failing loop, or the damage of the file; an empty text while all work."""
        if self.store.damage:
            return f"its file is damaged: {self.store.damage}"
        loops = (*self.loops, *self.webhooks.loops.values())
        return next((loop.failure_text for loop in loops if loop.failure_text), "")

    def cached(self, kind: StoredKind[StoredValue]) -> CachedKeyedValues[StoredValue]:
        """Return the values of a kind that are held in memory."""
        return kind.cached_in(self.store)

    def values(self, kind: StoredKind[StoredValue], owner: str = "") -> Mapping[str, StoredValue]:
        """Return an owner's values by key, in order of creation, as of the last commit."""
        return self.cached(kind).values_of(owner)

    def record(self, node_id: str, kind: str) -> dict[str, Any]:
        """Return the record of a number or account as of the last commit; empty if there is none."""
        return dict(self.values(RECORDS, node_id).get(kind, {}))

    async def save_record(self, node_id: str, kind: str, record: dict[str, Any]) -> None:
        """Store the record of a number or account."""
        await self.cached(RECORDS).save(record, kind, node_id)

    async def transact(self, work: Callable[[Transaction], WorkResult]) -> WorkResult:
        """Run a function in one transaction on the writer's thread, and return its result; on disk when this returns.

        What it raises is raised here, and nothing of it is written; others in the same commit are not affected.
        Memory and wake-ups follow the commit, even if this caller is cancelled.
        """
        outcome: tuple[WorkResult, Exception | None] = await self.store.write(self._run_works, work)
        result, error = outcome
        if error is not None:
            traceback.clear_frames(error.__traceback__)  # those of the writer's thread have ended
            raise error
        return result

    def _run_works(
        self, connection: sqlite3.Connection, works: Sequence[Callable[[Transaction], Any]]
    ) -> Sequence[tuple[Any, Exception | None]]:
        """Run functions in one commit; one that raises is undone alone. An error of the file is that of all."""
        transaction = Transaction(self, connection)
        connection.execute("SAVEPOINT works")
        try:
            results = [work(transaction) for work in works]
            transaction.connection.execute("RELEASE works")
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001  it is the caller's, or is found again below
            connection.execute("ROLLBACK TO works")
            connection.execute("RELEASE works")
            return [(None, error)] if len(works) == 1 else [self._run_works(connection, [work])[0] for work in works]
        self.store.effects.update(transaction.effects)
        return [(result, None) for result in results]

    async def wait(self, wake: asyncio.Event, until_ms: int | None) -> None:
        """Wait for an event or a time; do not wait if the time is None."""
        if until_ms is not None:
            await self.clock.wait(wake, until_ms=until_ms)
