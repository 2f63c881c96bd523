"""Notifications and leases of several processes on one PostgreSQL, also when they are lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from typing import Any

import psycopg
import pytest

from tests.queue.conftest import OUTBOUND, QueueHarness, close_harness, crash, open_harness
from tests.support.manual_clock import ManualClock
from tests.support.polling import HANGS_AFTER_S
from tests.support.store_locations import PostgresLocation
from waypost.base.batching import GroupCommitClosed
from waypost.base.clock import SystemClock
from waypost.queue import queue
from waypost.queue.plans import shard_of
from waypost.store.callbacks.subscriptions import wake_callback_worker
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import live_group, replay_group
from waypost.store.queue.leases import SHARD_COUNT

ProcessOpener = Callable[..., Coroutine[None, None, QueueHarness]]
POLL_S = 5
"""The interval of polls; a notification is noticed sooner."""


@pytest.fixture
def engine() -> str:
    """Use the engine that several processes can share."""
    return "postgresql"


@pytest.fixture
def polls_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make polls so rare that every job that is found is found by a notification."""
    monkeypatch.setattr(queue, "POLL_MS", 60 * 60 * 1000)


@pytest.fixture
async def open_process(store_location: PostgresLocation) -> AsyncIterator[ProcessOpener]:
    """Open processes on one store that renew their leases by themselves; close them at the end."""
    harnesses: list[QueueHarness] = []

    async def open_next(holder: str, *, lease_ms: int = 60_000) -> QueueHarness:
        harness = await open_harness(store_location, SystemClock(), holder, lease_ms=lease_ms)
        harness.queue.start()
        harnesses.append(harness)
        return harness

    yield open_next
    for harness in harnesses:
        with contextlib.suppress(GroupCommitClosed):  # it has crashed
            await close_harness(harness)


@contextlib.contextmanager
def connect_as_other_process(store_location: PostgresLocation) -> Generator[psycopg.Connection[Any]]:
    """Connect as another process, which does only what the test does with the connection."""
    with psycopg.connect(store_location.url) as connection:
        yield connection


def held_shards(harness: QueueHarness, queue_name: QueueName = OUTBOUND) -> set[int]:
    """Return the shards that a process may claim from."""
    return harness.queue.shards.held[queue_name]


async def wait_until(condition: Callable[[], bool]) -> None:
    """Return when the condition is true."""
    async with asyncio.timeout(HANGS_AFTER_S):
        while not condition():  # noqa: ASYNC110  nothing notifies of it
            await asyncio.sleep(0.005)


async def wait_for_even_split(first_process: QueueHarness, second_process: QueueHarness) -> None:
    """Return when each process has half of the shards."""
    await wait_until(lambda: len(held_shards(first_process)) == len(held_shards(second_process)) == SHARD_COUNT // 2)


def group_in(shards: set[int]) -> str:
    """Return a concurrency group of one of these shards."""
    return next(f"g{n}" for n in range(10_000) if shard_of(f"g{n}") in shards)


async def claim_refs_after_wait(harness: QueueHarness) -> list[str]:
    """Claim; if nothing is due, wait once and claim again. Return the refs."""
    if refs := await harness.claim_refs():
        return refs
    await harness.queue.wait(OUTBOUND)
    return await harness.claim_refs()


async def insert(connection: psycopg.Connection[Any], ref: str) -> None:
    """Insert a job as another process would, without a notification; its transaction stays open."""
    await asyncio.to_thread(
        connection.execute,
        "INSERT INTO queue_jobs (queue, concurrency_group, ordering_key, ref, due_ms) VALUES (%s, 'g', %s, %s, 0)",
        (int(OUTBOUND), ref, ref),
    )


@pytest.mark.usefixtures("polls_disabled")
async def test_job_that_another_process_enqueues_is_noticed_at_once(open_process: ProcessOpener) -> None:
    first_process, second_process = await open_process("one"), await open_process("two")
    await wait_for_even_split(first_process, second_process)
    assert await second_process.claim() == []

    await first_process.enqueue("a", group=group_in(held_shards(second_process)))

    assert await claim_refs_after_wait(second_process) == ["a.0"]


async def test_listeners_hear_of_groups_that_another_process_works(open_process: ProcessOpener) -> None:
    """A change of a subscription is reported for the group of its replays; its callbacks may be in another shard."""
    first_process, second_process = await open_process("one"), await open_process("two")
    await wait_for_even_split(first_process, second_process)
    heard: dict[str, list[str]] = {"one": [], "two": []}
    first_process.queue.add_wake_listener(OUTBOUND, heard["one"].append)
    second_process.queue.add_wake_listener(OUTBOUND, heard["two"].append)
    own, others = group_in(held_shards(first_process)), group_in(held_shards(second_process))

    await first_process.enqueue("a", group=own)
    await first_process.enqueue("b", group=others)

    await wait_until(lambda: others in heard["two"])
    assert others in heard["one"]


async def test_change_of_a_subscription_reaches_the_process_of_its_callbacks(open_process: ProcessOpener) -> None:
    """Although the process that made the change works the group of its replays, for which it is reported."""
    callbacks = QueueName.CALLBACKS
    first_process, second_process = await open_process("one"), await open_process("two")
    await wait_for_even_split(first_process, second_process)
    shards = [held_shards(process, callbacks) for process in (first_process, second_process)]
    heard: list[str] = []
    second_process.queue.add_wake_listener(callbacks, heard.append)
    number = next(
        n for n in range(10_000) if shard_of(replay_group(n)) in shards[0] and shard_of(live_group(n)) in shards[1]
    )

    await first_process.database.write(wake_callback_worker, number)

    await wait_until(lambda: live_group(number) in heard)
    await wait_until(lambda: replay_group(number) in heard)


async def test_leases_that_are_released_are_acquired_at_once_by_another_process(open_process: ProcessOpener) -> None:
    hour_ms = 60 * 60 * 1000  # much longer than the test waits
    first_process, second_process = (
        await open_process("one", lease_ms=hour_ms),
        await open_process("two", lease_ms=hour_ms),
    )
    await wait_for_even_split(first_process, second_process)

    await first_process.queue.close()

    await wait_until(lambda: len(held_shards(second_process)) == SHARD_COUNT)


async def test_jobs_of_a_crashed_process_are_claimed_by_another_when_its_leases_expire(
    open_process: ProcessOpener,
) -> None:
    first_process, second_process = await open_process("one", lease_ms=1_000), await open_process("two", lease_ms=1_000)
    await wait_for_even_split(first_process, second_process)
    group = group_in(held_shards(first_process))
    await first_process.enqueue("a", "b", group=group)
    [job, _] = await claim_at_least(first_process, 2)
    await first_process.queue.mark_in_flight([job])

    await crash(first_process)

    await wait_until(lambda: len(held_shards(second_process)) == SHARD_COUNT)
    was_in_flight = {job.subject.ref: job.was_in_flight for job in await claim_at_least(second_process, 2)}
    assert was_in_flight == {"a.0": True, "b.1": False}


async def claim_at_least(harness: QueueHarness, count: int) -> list[Any]:
    """Claim until at least so many jobs are claimed."""
    jobs = await harness.claim()
    while len(jobs) < count:
        await harness.queue.wait(OUTBOUND)
        jobs += await harness.claim()
    return jobs


async def test_process_without_its_store_works_nothing_and_resumes_when_the_store_is_back(
    open_process: ProcessOpener, store_location: PostgresLocation
) -> None:
    first_process = await open_process("one", lease_ms=1_000)
    await wait_until(lambda: len(held_shards(first_process)) == SHARD_COUNT)
    await first_process.enqueue("a", "b")
    [job, _] = await claim_at_least(first_process, 2)

    async with store_location.make_unavailable(first_process.database):
        await wait_until(lambda: not first_process.queue.shards.are_leases_valid)
        held_meanwhile = first_process.queue.is_lease_held(job)

    assert not held_meanwhile
    await wait_until(
        lambda: len(held_shards(first_process)) >= SHARD_COUNT - 1
    )  # all but the shard of the job that is still being worked


@pytest.mark.usefixtures("polls_disabled")
async def test_job_enqueued_while_the_listener_was_disconnected_is_found_afterwards(
    open_process: ProcessOpener, store_location: PostgresLocation
) -> None:
    first_process = await open_process("one")
    await wait_until(lambda: len(held_shards(first_process)) == SHARD_COUNT)
    assert await first_process.claim() == []
    with connect_as_other_process(store_location) as other:
        other.autocommit = True
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE query LIKE 'LISTEN%' AND datname = current_database()"
        )

        await insert(other, "without a listener")

    assert await claim_refs_after_wait(first_process) == ["without a listener"]


@pytest.mark.usefixtures("polls_disabled")
async def test_job_is_notified_although_the_sending_connection_broke_while_it_was_idle(
    open_process: ProcessOpener, store_location: PostgresLocation
) -> None:
    first_process, second_process = await open_process("one"), await open_process("two")
    await wait_for_even_split(first_process, second_process)  # each has notified the other
    assert await second_process.claim() == []
    with connect_as_other_process(store_location) as other:
        other.autocommit = True
        ended = other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE query LIKE '%pg_notify%' AND datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()

    await first_process.enqueue("a", group=group_in(held_shards(second_process)))

    assert ended
    assert await claim_refs_after_wait(second_process) == ["a.0"]


async def test_job_that_is_committed_after_a_later_one_is_not_missed(store_location: PostgresLocation) -> None:
    clock = ManualClock()
    first_process = await open_harness(store_location, clock, "one")
    with connect_as_other_process(store_location) as slow:
        await insert(slow, "earlier")
        await first_process.enqueue("later")
        at_first = await first_process.claim()
        for job in at_first:
            await first_process.complete(job)
        clock.advance(ms=POLL_S * 1000)
        between = await first_process.claim_refs()
        await asyncio.to_thread(slow.commit)
    await first_process.enqueue("last")  # wakes the group: the slow transaction sent no notification

    claimed = await first_process.claim()

    assert [job.subject.ref for job in at_first] == ["later.0"]
    assert between == []
    assert [job.subject.ref for job in claimed] == ["earlier", "last.0"]
    assert claimed[0].position < at_first[0].position
    await close_harness(first_process)


async def test_job_is_found_however_late_its_transaction_ends_within_the_limit(
    store_location: PostgresLocation,
) -> None:
    """The position below which nothing is read again advances, but never past an open transaction."""
    clock = ManualClock()
    first_process = await open_harness(store_location, clock, "one")
    refs: list[str] = []
    for number in range(4):
        with connect_as_other_process(store_location) as slow:
            await insert(slow, f"slow {number}")
            for step in range(3):
                await first_process.enqueue(f"quick {number} {step}")
                refs += await first_process.work_all()
                clock.advance(ms=4_900)  # three steps take nearly as long as a transaction may last
            await asyncio.to_thread(slow.commit)
        await first_process.enqueue(f"next {number}")
        refs += await first_process.work_all()

    expected = [f"slow {number}" for number in range(4)]
    assert [ref for ref in refs if ref.startswith("slow")] == expected
    assert len(refs) == len(set(refs)) == 4 * 5
    await close_harness(first_process)


async def test_lost_notification_delays_a_job_until_the_next_poll(store_location: PostgresLocation) -> None:
    clock = ManualClock()
    first_process = await open_harness(store_location, clock, "one")
    assert await first_process.claim() == []
    with connect_as_other_process(store_location) as other:
        await insert(other, "without a notification")
        other.commit()
    at_once = await first_process.claim_refs()

    clock.advance(ms=POLL_S * 1000)

    assert at_once == []
    assert await first_process.claim_refs() == ["without a notification"]
    await close_harness(first_process)


async def test_process_that_stops_within_a_transaction_does_not_block_another(
    open_process: ProcessOpener, store_location: PostgresLocation
) -> None:
    first_process, second_process = await open_process("one", lease_ms=3_000), await open_process("two", lease_ms=3_000)
    await wait_for_even_split(first_process, second_process)
    half = set(held_shards(second_process))
    await crash(first_process)
    with connect_as_other_process(
        store_location
    ) as stopped:  # like the first process if it stopped while it renewed or marked

        def seen_ms() -> int:
            [row] = stopped.execute("SELECT seen_ms FROM processes WHERE holder = 'two'")
            return row[0]

        stopped.execute("SELECT * FROM leases WHERE holder = 'one' FOR UPDATE")
        stopped.execute("SELECT * FROM processes WHERE holder = 'one' FOR UPDATE")
        expired_ms = seen_ms() + 3_000  # then the lease of the first process has expired

        await wait_until(lambda: seen_ms() > expired_ms)
        was_valid = second_process.queue.shards.are_leases_valid
        meanwhile = set(held_shards(second_process))

    assert was_valid
    assert meanwhile == half
    await wait_until(lambda: len(held_shards(second_process)) == SHARD_COUNT)
