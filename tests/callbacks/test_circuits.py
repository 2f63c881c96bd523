"""A receiver that fails or sends Retry-After: its callbacks wait without attempts, and no other receiver waits."""

import asyncio
from collections.abc import Callable, Sequence
from email.utils import formatdate
from functools import partial

import pytest
from sqlalchemy import Connection, update

from tests.callbacks.conftest import MakeCallbackService
from tests.support.callback_service import CallbackService
from tests.support.callback_sink import CallbackSink, respond_always, respond_in_turn
from tests.support.manual_clock import ManualClock
from tests.support.polling import HANGS_AFTER_S, poll_until
from waypost.base.clock import machine_ms
from waypost.base.time_travel import format_count
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import live_group, replay_group
from waypost.store.tables import subscriptions
from waypost.store.write_through_cache import enqueued_jobs

HOUR_MS = 3_600_000
MANY = [f"recipient {number}" for number in range(300)]


async def wait_for_retry_after(service: CallbackService, sink: CallbackSink, subscription: int) -> None:
    """Wait until the receiver has sent a Retry-After and it is stored."""
    await sink.wait_until(lambda: len(sink.requests) == 1)
    await poll_until(
        lambda: service.subscription_health(subscription), lambda status: status["retry_after_until_ms"] is not None
    )


async def test_failing_receiver_gets_few_attempts_however_many_callbacks_wait(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.choose_status = respond_always(500)
    subscription = await service.subscribe(sink.url)

    await service.emit_callbacks(*MANY)
    await poll_until(lambda: service.subscription_health(subscription), lambda status: status["circuit"] == "open")
    for _ in range(40):  # twenty minutes
        clock.advance(ms=30_000)
        await asyncio.sleep(0.01)

    assert len(sink.requests) <= 65 + 40
    repeated = len(sink.requests) - len({attempt.callback_id for attempt in sink.requests})
    assert repeated <= 5  # a jump of the clock ends a lease, and the next job is chosen again
    status = await service.subscription_health(subscription)
    assert status["state"] == "failing"
    assert status["circuit"] in ("open", "half-open")
    assert status["waiting"] == len(MANY)


async def test_first_success_releases_all_callbacks_in_order(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.choose_status = respond_always(503)
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann", "ben", "cem", times=5)
    await sink.wait_until(lambda: len(sink.requests) >= 3)
    sink.choose_status = respond_always(200)

    await service.pass_time_until(lambda: len(sink.accepted) >= 15, step_ms=1_000)

    for about in ("ann", "ben", "cem"):
        sequences = [attempt.sequence for attempt in sink.accepted if attempt.value["about"] == about]
        assert sequences == [1, 2, 3, 4, 5]
    status = await poll_until(lambda: service.subscription_health(subscription), lambda health: not health["waiting"])
    assert (status["state"], status["circuit"]) == ("active", "closed")


async def test_callback_that_failed_many_times_is_sent_when_the_receiver_is_back_however_late_its_retry_is(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.choose_status = respond_always(503)
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await service.pass_time_until(lambda: len(sink.requests) >= 6, step_ms=60_000)  # the next is due in 15 minutes
    await poll_until(lambda: service.subscription_health(subscription), lambda status: status["circuit"] == "open")
    sink.choose_status = respond_always(200)
    back_ms = clock.now_ms()

    await service.emit_callbacks("ben")
    await service.pass_time_until(lambda: len(sink.accepted) == 2, step_ms=5_000)

    assert sink.callbacks == [{"about": "ben", "turn": 0}, {"about": "ann", "turn": 0}]
    assert clock.now_ms() - back_ms < 300_000


@pytest.mark.parametrize("status", [429, 503, 500])
async def test_retry_after_in_seconds_pauses_the_whole_endpoint_url(
    service: CallbackService, sink: CallbackSink, clock: ManualClock, status: int
) -> None:
    sink.choose_status = respond_always(status)
    sink.choose_headers = lambda _: {"Retry-After": "7200"}
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await wait_for_retry_after(service, sink, subscription)
    sink.choose_status = respond_always(200)
    await service.emit_callbacks("ben")

    for _ in range(6):
        clock.advance(ms=HOUR_MS // 4)
        await asyncio.sleep(0.02)

    assert len(sink.requests) == 1
    await service.pass_time_until(lambda: len(sink.accepted) == 2, step_ms=HOUR_MS // 4)


async def test_retry_after_as_a_date_is_read_by_the_receivers_clock(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.choose_status = respond_in_turn(503, 200)
    behind_s = machine_ms() / 1000 - 86_400
    sink.choose_headers = lambda _: {
        "Date": formatdate(behind_s, usegmt=True),
        "Retry-After": formatdate(behind_s + 3600, usegmt=True),
    }
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await wait_for_retry_after(service, sink, subscription)

    clock.advance(ms=HOUR_MS // 2)
    await asyncio.sleep(0.05)

    assert len(sink.requests) == 1
    await service.pass_time_until(lambda: len(sink.accepted) == 1, step_ms=HOUR_MS // 4)


async def test_retry_after_survives_a_restart(service: CallbackService, sink: CallbackSink, clock: ManualClock) -> None:
    sink.choose_status = respond_always(429)
    sink.choose_headers = lambda _: {"Retry-After": "7200"}
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await wait_for_retry_after(service, sink, subscription)
    await service.close()
    await service.open()
    sink.choose_status = respond_always(200)

    await service.emit_callbacks("ben")
    clock.advance(ms=HOUR_MS)
    await asyncio.sleep(0.1)

    assert len(sink.requests) == 1
    await service.pass_time_until(lambda: len(sink.accepted) == 2, step_ms=HOUR_MS // 2)


@pytest.mark.parametrize("others", [(200,), (500,), (200, 500)])
async def test_responses_to_earlier_callbacks_do_not_end_a_stored_retry_after(
    service: CallbackService, sink: CallbackSink, clock: ManualClock, others: tuple[int, ...]
) -> None:
    statuses = {"ann": 429, **dict(zip(("ben", "cem"), others, strict=False))}
    sink.choose_status = lambda request: statuses.get(request.value["about"], 200)
    sink.choose_headers = lambda request: {"Retry-After": "7200"} if request.value["about"] == "ann" else {}
    subscription = await service.subscribe(sink.url)
    gates: list[asyncio.Event] = []
    for nth, name in enumerate(statuses):
        sink.gate = asyncio.Event()
        gates.append(sink.gate)
        await service.emit_callbacks(name)
        await sink.wait_until(lambda count=nth + 1: len(sink.requests) == count)
    gates[0].set()
    health = partial(service.subscription_health, subscription)
    await poll_until(health, lambda status: status["retry_after_until_ms"] is not None)
    for left, gate in zip(reversed(range(len(others))), gates[1:], strict=True):
        gate.set()
        expected = [format_count(left, "callback", " to all")] if left else []
        await poll_until(service.waypost.describe_in_flight, expected.__eq__)
    await service.close()
    await service.open()

    await service.emit_callbacks("dan")
    clock.advance(ms=HOUR_MS)
    await asyncio.sleep(0.1)

    assert len(sink.requests) == len(statuses)


async def test_receiver_that_failed_before_a_restart_gets_one_attempt_after_it(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.choose_status = respond_always(500)
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks(*MANY)
    await sink.wait_until(lambda: len(sink.requests) >= 64)
    await poll_until(lambda: service.subscription_health(subscription), lambda status: status["state"] == "failing")
    await service.close()
    before = len(sink.requests)
    await service.open()

    await sink.wait_until(lambda: len(sink.requests) > before)
    await asyncio.sleep(0.1)

    assert len(sink.requests) == before + 1


async def test_receiver_that_does_not_respond_delays_no_other(
    service: CallbackService, sink: CallbackSink, second_sink: CallbackSink
) -> None:
    sink.gate.clear()
    await service.subscribe(sink.url, "slow")
    await service.subscribe(second_sink.url, "quick")

    await service.emit_callbacks(*MANY)
    await second_sink.wait_until(lambda: len(second_sink.accepted) == len(MANY))

    assert len(sink.requests) <= 64
    sink.gate.set()
    await sink.wait_until(lambda: len(sink.accepted) == len(MANY))


async def test_new_endpoint_url_is_tried_at_once_despite_the_old_ones_retry_after(
    service: CallbackService, sink: CallbackSink, second_sink: CallbackSink, clock: ManualClock
) -> None:
    sink.choose_status = respond_always(503)
    sink.choose_headers = lambda _: {"Retry-After": "86400"}
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await wait_for_retry_after(service, sink, subscription)
    await service.emit_callbacks("ben")

    await service.partner("PUT", f"subscription/{subscription}", {"url": second_sink.url, "doCheck": "false"})

    # The circuit was read when ben's callback was enqueued; it is read again after two seconds at the earliest.
    await service.pass_time_until(lambda: len(second_sink.accepted) == 2, step_ms=500)
    assert second_sink.callbacks == [{"about": "ben", "turn": 0}, {"about": "ann", "turn": 0}]


@pytest.mark.parametrize("groups", [(live_group, replay_group), (replay_group, live_group)])
async def test_change_is_noticed_whichever_of_its_groups_is_notified_first(
    service: CallbackService, sink: CallbackSink, second_sink: CallbackSink, groups: Sequence[Callable[[int], str]]
) -> None:
    sink.choose_status = respond_always(503)
    sink.choose_headers = lambda _: {"Retry-After": "86400"}
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await wait_for_retry_after(service, sink, subscription)
    await service.emit_callbacks("ben")
    await poll_until(lambda: service.is_idle())

    for group in groups:
        await service.waypost.database.write(_move, subscription, second_sink.url, group(subscription))

    await service.pass_time_until(lambda: len(second_sink.accepted) == 2, step_ms=500)
    assert second_sink.callbacks == [{"about": "ben", "turn": 0}, {"about": "ann", "turn": 0}]


def _move(connection: Connection, subscription: int, url: str, group: str) -> None:
    moved = update(subscriptions).where(subscriptions.c.id == subscription).values(url=url)
    connection.execute(moved)
    enqueued_jobs(connection).add_group(QueueName.CALLBACKS, group)


async def test_order_hold_continues_after_a_restart(
    make_service: MakeCallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    service = await make_service(order_hold_s=600)
    poison = {"about": "ann", "turn": 0}
    sink.choose_status = lambda attempt: 500 if attempt.value == poison else 200
    await service.subscribe(sink.url)
    await service.emit_callbacks("ann", times=2)
    await service.pass_time_until(lambda: len(sink.requests) == 2, step_ms=1_000)
    first_ms = clock.now_ms()
    clock.advance(ms=590_000)
    await service.close()
    await service.open()

    def count(about: str) -> int:
        return sum(callback["about"] == about for callback in sink.callbacks)

    async with asyncio.timeout(HANGS_AFTER_S):
        while not count("ann"):
            before = count("ben")
            await service.emit_callbacks("ben")
            await service.pass_time_until(partial(_exceeds, count, before), step_ms=1_000)
            clock.advance(ms=1_000)

    assert sink.callbacks[-1] in ({"about": "ann", "turn": 1}, {"about": "ben", "turn": 0})
    assert poison not in sink.callbacks
    assert clock.now_ms() - first_ms < 590_000 + 300_000  # and not 600 s after the restart


async def test_order_hold_ends_after_a_restart_because_another_callback_was_received_before(
    make_service: MakeCallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    service = await make_service(order_hold_s=600)
    poison = {"about": "ann", "turn": 0}
    sink.choose_status = lambda attempt: 500 if attempt.value == poison else 200
    await service.subscribe(sink.url)
    await service.emit_callbacks("ann", times=2)
    await service.pass_time_until(lambda: len(sink.requests) == 2, step_ms=1_000)
    clock.advance(ms=2_000)  # an attempt takes real time, and this one must end after the first
    await service.emit_callbacks("ben")
    await sink.wait_until(lambda: sink.callbacks == [{"about": "ben", "turn": 0}])
    await service.close()
    clock.advance(ms=600_000)
    await service.open()

    await service.pass_time_until(lambda: len(sink.requests) == 5, step_ms=1_000)

    assert [request.value for request in sink.requests[3:]] == [poison, {"about": "ann", "turn": 1}]


async def test_order_is_kept_after_a_restart_if_the_others_were_received_before_the_callback_failed(
    make_service: MakeCallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    service = await make_service(order_hold_s=600)
    poison = {"about": "ann", "turn": 0}
    sink.choose_status = lambda attempt: 500 if attempt.value == poison else 200
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ben")  # the receiver is known from then on
    await poll_until(lambda: service.subscription_health(subscription), lambda health: not health["waiting"])
    clock.advance(ms=60_000)  # an attempt takes real time: the first one may have been longer than the next
    gate = sink.gate = asyncio.Event()
    await service.emit_callbacks("ann", times=2)
    await sink.wait_until(lambda: len(sink.requests) == 2)
    sink.gate = asyncio.Event()
    sink.gate.set()
    await service.emit_callbacks("ben")
    await poll_until(lambda: service.subscription_health(subscription), lambda health: health["waiting"] == 2)
    gate.set()
    await poll_until(lambda: service.subscription_health(subscription), lambda health: health["state"] == "failing")
    await service.close()
    clock.advance(ms=600_000)
    await service.open()

    await service.pass_time_until(lambda: len(sink.requests) == 6, step_ms=1_000)

    assert [request.value for request in sink.requests[3:]] == [poison] * 3


def _exceeds(count: Callable[[str], int], before: int) -> bool:
    return count("ben") > before


async def test_open_circuit_shows_since_when_it_fails_and_its_next_attempt(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.choose_status = respond_always(500)
    subscription = await service.subscribe(sink.url)
    since_ms = clock.now_ms()
    await service.emit_callbacks(*MANY[:5])

    status = await poll_until(
        lambda: service.subscription_health(subscription), lambda status: status["next_attempt_ms"] is not None
    )
    assert status["failing_since_ms"] == since_ms
    assert since_ms < status["next_attempt_ms"] <= since_ms + 2_000
    callback = await service.admin("GET", f"callbacks/{sink.requests[0].callback_id}")
    assert callback["failing_since_ms"] == since_ms
    assert callback["next_attempt_ms"] == status["next_attempt_ms"]

    sink.choose_status = respond_always(200)
    await service.pass_time_until(lambda: len(sink.accepted) == 5, step_ms=1_000)

    recovered = await poll_until(
        lambda: service.subscription_health(subscription), lambda status: status["failing_since_ms"] is None
    )
    assert recovered["next_attempt_ms"] is None
