"""An attempt that the end of the process cut short counts as one, and its receiver is left alone for a while."""

import asyncio
import base64
import pickle
import sys
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Connection, case, select, update

from tests.support.callback_service import CallbackService
from tests.support.callback_sink import CallbackSink, ReceivedCallback, respond_always, respond_in_turn
from tests.support.manual_clock import ManualClock
from tests.support.polling import poll_until
from tests.support.store_locations import StoreLocation
from waypost.callbacks.worker import INTERRUPTED_ERROR
from waypost.domain.callbacks import AttemptKind, CallbackAttempt
from waypost.queue.queue import STORE_RETRY_S
from waypost.queue.shards import LEASES
from waypost.store.callbacks.callbacks import AttemptRecord, record_attempts
from waypost.store.callbacks.receivers import ReceiverStatus, record_receiver_statuses
from waypost.store.queue.job_subjects import JobState, QueueName
from waypost.store.queue.jobs import count_jobs_by_state, live_group
from waypost.store.tables import leases, processes, subscriptions

LEASE_MS: Final = 16_000
_KILLED_SERVICE: Final = """
import asyncio, base64, pathlib, pickle, sys
from tests.support.callback_service import CallbackService
from tests.support.manual_clock import ServiceClock

async def main():
    location = pickle.loads(base64.b64decode(sys.argv[2]))
    service = CallbackService(pathlib.Path(sys.argv[1]), location, ServiceClock())
    await service.open()
    subscription = await service.subscribe(sys.argv[3])
    pathlib.Path(sys.argv[1], "started").write_text(f"{service.token} {subscription}")
    await service.emit_callbacks("ann", "ben", "cem")
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def attempts_of(service: CallbackService, callback_id: str) -> list[dict[str, Any]]:
    return (await service.admin("GET", f"callbacks/{callback_id}"))["attempts"]


async def wait_for_interrupted(service: CallbackService, callback_id: str, count: int = 1) -> None:
    """Wait until so many attempts of a callback have been counted as cut short."""

    async def counted() -> int:
        return [attempt["error"] for attempt in await attempts_of(service, callback_id)].count(INTERRUPTED_ERROR)

    await poll_until(counted, lambda found: found == count)


async def count_marked(service: CallbackService) -> int:
    """Return how many callbacks are marked in flight on disk."""
    states = await service.waypost.database.read(count_jobs_by_state, QueueName.CALLBACKS)
    return states.get(JobState.IN_FLIGHT, 0)


async def restart(service: CallbackService) -> None:
    await service.close()
    await service.open()


async def test_attempts_of_a_process_that_is_killed_count_and_its_receiver_is_left_alone(
    tmp_path: Path, store_location: StoreLocation, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.gate.clear()
    location = base64.b64encode(pickle.dumps(store_location)).decode()
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _KILLED_SERVICE, str(tmp_path), location, sink.url
    )
    try:
        await sink.wait_until(lambda: len(sink.requests) == 3)
    finally:
        child.kill()
        await child.wait()
    token, subscription = (tmp_path / "started").read_text().split()
    store_location.pass_lease(ms=LEASE_MS)

    service = CallbackService(tmp_path, store_location, clock, token=token)
    await service.open()
    try:
        await expect_interrupted(service, sink, int(subscription))
    finally:
        await service.close()


async def expect_interrupted(service: CallbackService, sink: CallbackSink, subscription: int) -> None:
    """Three callbacks were cut short: they have an attempt each, and the receiver gets none before its time."""
    for request in sink.requests[:3]:
        await wait_for_interrupted(service, request.callback_id)
    await service.emit_callbacks("dan")
    await poll_until(service.is_idle)
    assert len(sink.requests) == 3  # nobody is called while the receiver is left alone
    health = await service.subscription_health(subscription)
    assert (health["state"], health["circuit"]) == ("failing", "open")
    sink.gate.set()
    await service.pass_time_until(lambda: len(sink.requests) == 3 + 4, step_ms=1_000)


async def test_attempt_to_a_receiver_that_has_responded_before_counts_once_it_takes_long(
    service: CallbackService, sink: CallbackSink
) -> None:
    await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await sink.wait_until(lambda: len(sink.accepted) == 1)
    await poll_until(service.is_idle)
    sink.gate.clear()
    await service.emit_callbacks("ben")
    await sink.wait_until(lambda: len(sink.requests) == 2)
    await poll_until(partial(count_marked, service))
    await restart(service)

    await wait_for_interrupted(service, sink.requests[1].callback_id)
    assert [attempt["error"] for attempt in await attempts_of(service, sink.requests[0].callback_id)] == [None]


async def test_attempt_before_its_time_that_is_cut_short_counts_at_once_after_a_restart(
    service: CallbackService, sink: CallbackSink
) -> None:
    """The success of another callback made it due: on disk it is due minutes later."""
    sink.choose_status = respond_always(500)
    await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await service.pass_time_until(lambda: len(sink.requests) == 6, step_ms=1_000)

    def respond_to_ben(request: ReceivedCallback) -> int:
        if request.value["about"] == "ann":
            sink.gate.clear()
        return 200

    sink.choose_status = respond_to_ben
    await service.emit_callbacks("ben")
    await service.pass_time_until(lambda: len(sink.requests) == 8, step_ms=1_000)
    assert [request.value["about"] for request in sink.requests[6:]] == ["ben", "ann"]
    await poll_until(partial(count_marked, service))
    await restart(service)

    await wait_for_interrupted(service, sink.requests[0].callback_id)


async def test_each_restart_that_ends_an_attempt_doubles_the_time_to_the_next(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.gate.clear()
    await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    pauses: list[int] = []
    for interrupted in range(1, 6):
        await sink.wait_until(lambda count=interrupted: len(sink.requests) == count)
        await restart(service)
        await wait_for_interrupted(service, sink.requests[0].callback_id, interrupted)
        left_alone_ms = clock.now_ms()
        await service.pass_time_until(lambda count=interrupted: len(sink.requests) > count, step_ms=500)
        pauses.append(clock.now_ms() - left_alone_ms)

    assert all(later >= 1.5 * earlier for earlier, later in pairwise(pauses)), pauses


async def test_other_receivers_are_called_at_once_after_a_restart(
    service: CallbackService, sink: CallbackSink, second_sink: CallbackSink
) -> None:
    sink.gate.clear()
    await service.subscribe(sink.url, "hangs")
    await service.subscribe(second_sink.url, "responds")
    await service.emit_callbacks("ann")
    await sink.wait_until(lambda: len(sink.requests) == 1)
    await restart(service)
    await wait_for_interrupted(service, sink.requests[0].callback_id)

    await service.emit_callbacks("ben")

    await second_sink.wait_until(lambda: len(second_sink.accepted) == 2)
    assert len(sink.requests) == 1


async def test_replay_that_is_cut_short_counts_as_an_attempt(service: CallbackService, sink: CallbackSink) -> None:
    await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await sink.wait_until(lambda: len(sink.accepted) == 1)
    await poll_until(service.is_idle)
    callback_id = sink.requests[0].callback_id
    await restart(service)
    sink.gate.clear()
    await service.admin("POST", "callbacks/replay", {"callback_id": callback_id})
    await sink.wait_until(lambda: len(sink.requests) == 2)

    await restart(service)

    await wait_for_interrupted(service, callback_id)


async def test_attempt_that_ended_while_the_store_is_away_counts_once_and_is_not_interrupted(
    service: CallbackService, sink: CallbackSink, store_location: StoreLocation
) -> None:
    """Otherwise each further try to record it would count against the receiver, for up to 15 minutes."""
    sink.choose_status = respond_in_turn(500, 200)
    sink.gate.clear()
    await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await sink.wait_until(lambda: len(sink.requests) == 1)

    async with store_location.make_unavailable(service.waypost.database):
        sink.gate.set()
        await asyncio.sleep(3 * STORE_RETRY_S)
    await service.pass_time_until(lambda: len(sink.accepted) == 1, step_ms=1_000)
    await poll_until(service.is_idle)

    attempts = await attempts_of(service, sink.requests[0].callback_id)
    assert [(attempt["status"], attempt["error"]) for attempt in attempts] == [(500, None), (200, None)]


async def test_callback_that_another_process_has_delivered_is_not_sent_again_and_blocks_nothing(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    """A process whose lease has expired may have delivered it before that, and record it only now."""
    sink.choose_status = lambda attempt: 500 if attempt.value == {"about": "ann", "turn": 0} else 200
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann", times=2)
    await sink.wait_until(lambda: len(sink.requests) == 1)
    await poll_until(service.is_idle)
    delivered = CallbackAttempt(clock.now_ms(), 1, 200)
    record = AttemptRecord(sink.requests[0].callback_id, subscription, delivered, True, AttemptKind.RETRY)
    await service.waypost.database.join(record_attempts_of_all, record)

    await service.pass_time_until(lambda: len(sink.requests) == 2, step_ms=1_000)

    assert sink.callbacks == [{"about": "ann", "turn": 1}]


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
async def test_callback_that_another_process_has_delivered_during_an_attempt_blocks_nothing(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    database = service.waypost.database
    sink.choose_status = lambda attempt: 500 if attempt.value == {"about": "ann", "turn": 0} else 200
    sink.gate.clear()
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann", times=2)
    await sink.wait_until(lambda: len(sink.requests) == 1)
    delivered = CallbackAttempt(clock.now_ms(), 1, 200)
    record = AttemptRecord(sink.requests[0].callback_id, subscription, delivered, True, AttemptKind.RETRY)
    await database.join(record_attempts_of_all, record)

    sink.gate.set()

    await sink.wait_until(lambda: len(sink.requests) == 2)  # the clock stands still: nothing is retried
    assert sink.callbacks == [{"about": "ann", "turn": 1}]


async def test_health_of_a_receiver_is_recorded_only_by_the_process_that_has_the_lease(
    service: CallbackService, sink: CallbackSink
) -> None:
    """Recorded late by another one, it would undo a pause that the holder has learned of."""
    database = service.waypost.database
    sink.choose_status = lambda _: 500
    sink.gate.clear()
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await sink.wait_until(lambda: len(sink.requests) == 1)
    if not database.is_exclusive:
        await database.write(give_leases_away)

    sink.gate.set()
    await poll_until(lambda: attempts_of(service, sink.requests[0].callback_id))

    failing_since_ms = await database.read(read_failing_since_ms, subscription)
    assert (failing_since_ms is None) is not database.is_exclusive


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
@pytest.mark.parametrize(("error", "is_called_at_once"), [(INTERRUPTED_ERROR, True), (None, False)])
async def test_success_that_is_recorded_late_ends_the_pause_of_a_receiver_after_an_attempt_that_was_cut_short(
    service: CallbackService, sink: CallbackSink, clock: ManualClock, error: str | None, is_called_at_once: bool
) -> None:
    """A pause that the receiver has asked for since, by a response, stays."""
    database = service.waypost.database
    sink.choose_status = respond_in_turn(500, 200)
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await sink.wait_until(lambda: len(sink.requests) == 1)
    sink.gate.clear()
    await service.pass_time_until(lambda: len(sink.requests) == 2, step_ms=1_000)
    await database.write(give_leases_away)
    pause_end_ms = clock.now_ms() + 900_000
    attempt = CallbackAttempt(clock.now_ms() + 1, 0, None if error else 429, error=error)
    record = AttemptRecord(sink.requests[0].callback_id, subscription, attempt, None, AttemptKind.RETRY)
    await database.join(record_attempts_of_all, record)
    await database.write(
        record_receiver_statuses, [ReceiverStatus(subscription, clock.now_ms(), pause_end_ms, pause_end_ms)]
    )

    sink.gate.set()

    async def is_delivered() -> bool:
        return (await service.admin("GET", f"callbacks/{sink.requests[0].callback_id}"))["delivered"] is True

    await poll_until(is_delivered)
    pause = await database.read(read_pause, subscription)
    assert pause == ((1, None, None) if is_called_at_once else (0, pause_end_ms, pause_end_ms))


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
async def test_success_that_is_recorded_after_the_lease_was_lost_lets_the_followers_go(
    service: CallbackService, sink: CallbackSink, clock: ManualClock, store_location: StoreLocation, tmp_path: Path
) -> None:
    """The next holder has read the callback as one that waits for another attempt."""
    database = service.waypost.database
    sink.choose_status = respond_in_turn(500, 200)
    group = live_group(await service.subscribe(sink.url))
    await service.emit_callbacks("ann", "ann")
    await sink.wait_until(lambda: len(sink.requests) == 1)
    await service.emit_callbacks("ben")
    await sink.wait_until(lambda: len(sink.accepted) == 1)
    await poll_until(service.is_idle)
    other = CallbackService(tmp_path, store_location, clock, token=service.token)
    await other.open()
    try:
        await poll_until(partial(count_shards, service, other), lambda found: len(set(found)) == 1)
        sink.gate.clear()
        for each in (service, other):  # in the memory of the one that has the lease
            each.waypost.queue.make_retries_due(QueueName.CALLBACKS, group)
        await sink.wait_until(lambda: len(sink.requests) == 3)
        counts = await count_jobs_in_memory(service, other)
        await database.write(swap_leases)
        database.notify(LEASES, "")
        await poll_until(partial(count_jobs_in_memory, service, other), lambda now: now == counts[::-1])

        sink.gate.set()

        await sink.wait_until(lambda: len(sink.requests) == 4)  # the clock stands still
        assert [callback["about"] for callback in sink.callbacks] == ["ben", "ann", "ann"]
        assert len({request.callback_id for request in sink.accepted}) == 3
    finally:
        await other.close()


async def count_shards(*services: CallbackService) -> list[int]:
    return [len(each.waypost.queue.shards.held[QueueName.CALLBACKS]) for each in services]


async def count_jobs_in_memory(*services: CallbackService) -> list[int]:
    return [each.waypost.queue.count_jobs_in_memory(QueueName.CALLBACKS) for each in services]


def swap_leases(connection: Connection) -> None:
    [first, second] = connection.execute(select(processes.c.holder)).scalars()
    holder = case((leases.c.holder == first, second), else_=first)
    connection.execute(update(leases).values(holder=holder))


def read_pause(connection: Connection, subscription_id: int) -> tuple[int, int | None, int | None]:
    pause = (subscriptions.c[name] for name in ("retry_requests", "retry_after_until_ms", "next_attempt_ms"))
    return tuple(connection.execute(select(*pause).where(subscriptions.c.id == subscription_id)).one())


def give_leases_away(connection: Connection) -> None:
    connection.execute(update(leases).values(holder="another process"))


def read_failing_since_ms(connection: Connection, subscription_id: int) -> int | None:
    return connection.execute(
        select(subscriptions.c.failing_since_ms).where(subscriptions.c.id == subscription_id)
    ).scalar_one()


def record_attempts_of_all(connection: Connection, records: Sequence[AttemptRecord]) -> list[None]:
    record_attempts(connection, records)
    return [None] * len(records)
