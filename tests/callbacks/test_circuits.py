"""An address that fails, or asks to be left alone: what waits for it is held and not tried, and nobody else waits."""

import asyncio
from collections.abc import Callable, Sequence
from email.utils import formatdate
from functools import partial

import pytest
from sqlalchemy import Connection, update

from tests.callbacks.conftest import MakeTeller
from tests.support.callback_service import Teller
from tests.support.callback_sink import CallbackSink, always, in_turn
from tests.support.waiting import HANGS_AFTER_S, patiently
from waypost.base.clock import ManualClock, machine_ms
from waypost.store.callbacks.subscriptions import live_group, replay_group
from waypost.store.queue.jobs import QueueName
from waypost.store.tables import subscriptions
from waypost.store.write_through_cache import enqueued_jobs

HOUR_MS = 3_600_000
MANY = [f"recipient {number}" for number in range(300)]


async def asked(teller: Teller, sink: CallbackSink, subscription: int) -> None:
    """Return once the receiver has asked for something, and it is written down."""
    await sink.wait_until(lambda: len(sink.tries) == 1)
    await patiently(lambda: teller.standing(subscription), lambda one: one["asked_until_ms"] is not None)


async def test_dead_address_costs_few_tries_however_many_wait(
    teller: Teller, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.answers = always(500)
    subscription = await teller.subscribe(sink.url)

    await teller.tell(*MANY)
    await patiently(lambda: teller.standing(subscription), lambda one: one["circuit"] == "open")
    for _ in range(40):  # twenty minutes
        clock.advance(ms=30_000)
        await asyncio.sleep(0.01)

    assert len(sink.tries) <= 65 + 25
    again = len(sink.tries) - len({one.callback_id for one in sink.tries})
    assert again <= 5  # a leap of the clock runs out a lease, and who is next is thought of anew
    standing = await teller.standing(subscription)
    assert standing["state"] == "failing"
    assert standing["circuit"] in ("open", "half-open")
    assert standing["waiting"] == len(MANY)


async def test_first_success_lets_everything_go_in_order(
    teller: Teller, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.answers = always(503)
    subscription = await teller.subscribe(sink.url)
    await teller.tell("ann", "ben", "cem", times=5)
    await sink.wait_until(lambda: len(sink.tries) >= 3)
    sink.answers = always(200)

    await teller.pass_time_until(lambda: len(sink.taken) >= 15, step_ms=1_000)

    for about in ("ann", "ben", "cem"):
        mine = [one.sequence for one in sink.taken if one.value["about"] == about]
        assert mine == [1, 2, 3, 4, 5]
    standing = await teller.standing(subscription)
    assert (standing["state"], standing["circuit"], standing["waiting"]) == ("active", "closed", 0)


@pytest.mark.parametrize("status", [429, 503, 500])
async def test_retry_after_in_seconds_holds_the_whole_address(
    teller: Teller, sink: CallbackSink, clock: ManualClock, status: int
) -> None:
    sink.answers = always(status)
    sink.told = lambda _: {"Retry-After": "7200"}
    subscription = await teller.subscribe(sink.url)
    await teller.tell("ann")
    await asked(teller, sink, subscription)
    sink.answers = always(200)
    await teller.tell("ben")

    for _ in range(6):
        clock.advance(ms=HOUR_MS // 4)
        await asyncio.sleep(0.02)

    assert len(sink.tries) == 1
    await teller.pass_time_until(lambda: len(sink.taken) == 2, step_ms=HOUR_MS // 4)


async def test_retry_after_as_a_date_is_read_by_the_receivers_own_clock(
    teller: Teller, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.answers = in_turn(503, 200)
    behind_s = machine_ms() / 1000 - 86_400
    sink.told = lambda _: {
        "Date": formatdate(behind_s, usegmt=True),
        "Retry-After": formatdate(behind_s + 3600, usegmt=True),
    }
    subscription = await teller.subscribe(sink.url)
    await teller.tell("ann")
    await asked(teller, sink, subscription)

    clock.advance(ms=HOUR_MS // 2)
    await asyncio.sleep(0.05)

    assert len(sink.tries) == 1
    await teller.pass_time_until(lambda: len(sink.taken) == 1, step_ms=HOUR_MS // 4)


async def test_what_a_receiver_asked_for_outlives_a_restart(
    teller: Teller, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.answers = always(429)
    sink.told = lambda _: {"Retry-After": "7200"}
    subscription = await teller.subscribe(sink.url)
    await teller.tell("ann")
    await asked(teller, sink, subscription)
    await teller.close()
    await teller.open()
    sink.answers = always(200)

    await teller.tell("ben")
    clock.advance(ms=HOUR_MS)
    await asyncio.sleep(0.1)

    assert len(sink.tries) == 1
    await teller.pass_time_until(lambda: len(sink.taken) == 2, step_ms=HOUR_MS // 2)


async def test_address_that_failed_before_a_restart_is_only_tried_after_it(
    teller: Teller, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.answers = always(500)
    subscription = await teller.subscribe(sink.url)
    await teller.tell(*MANY)
    await sink.wait_until(lambda: len(sink.tries) >= 64)
    await patiently(lambda: teller.standing(subscription), lambda one: one["state"] == "failing")
    await teller.close()
    before = len(sink.tries)
    await teller.open()

    await sink.wait_until(lambda: len(sink.tries) > before)
    await asyncio.sleep(0.1)

    assert len(sink.tries) == before + 1


async def test_address_that_does_not_answer_holds_up_no_other(
    teller: Teller, sink: CallbackSink, other: CallbackSink
) -> None:
    sink.gate.clear()
    await teller.subscribe(sink.url, "slow")
    await teller.subscribe(other.url, "quick")

    await teller.tell(*MANY)
    await other.wait_until(lambda: len(other.taken) == len(MANY))

    assert len(sink.tries) <= 64
    sink.gate.set()
    await sink.wait_until(lambda: len(sink.taken) == len(MANY))


async def test_changed_address_is_tried_at_once_though_the_old_one_asked_for_a_day(
    teller: Teller, sink: CallbackSink, other: CallbackSink, clock: ManualClock
) -> None:
    sink.answers = always(503)
    sink.told = lambda _: {"Retry-After": "86400"}
    subscription = await teller.subscribe(sink.url)
    await teller.tell("ann")
    await asked(teller, sink, subscription)
    await teller.tell("ben")  # ann's own callback waits as long as was asked

    await teller.partner("PUT", f"subscription/{subscription}", {"url": other.url, "doCheck": "false"})

    # It was looked at when ben's callback came, and is again two seconds later at the soonest.
    await teller.pass_time_until(lambda: len(other.taken) == 1, step_ms=500)
    assert other.callbacks == [{"about": "ben", "turn": 0}]


@pytest.mark.parametrize("groups", [(live_group, replay_group), (replay_group, live_group)])
async def test_change_is_heard_of_whichever_of_its_groups_is_told_of_first(
    teller: Teller, sink: CallbackSink, other: CallbackSink, groups: Sequence[Callable[[int], str]]
) -> None:
    sink.answers = always(503)
    sink.told = lambda _: {"Retry-After": "86400"}
    subscription = await teller.subscribe(sink.url)
    await teller.tell("ann")
    await asked(teller, sink, subscription)
    await teller.tell("ben")
    await patiently(lambda: teller.is_still())

    for group in groups:
        await teller.waypost.database.write(_move, subscription, other.url, group(subscription))

    await teller.pass_time_until(lambda: len(other.taken) == 1, step_ms=500)
    assert other.callbacks == [{"about": "ben", "turn": 0}]


def _move(connection: Connection, subscription: int, url: str, group: str) -> None:
    moved = update(subscriptions).where(subscriptions.c.id == subscription).values(url=url)
    connection.execute(moved)
    enqueued_jobs(connection).add_group(QueueName.CALLBACKS, group)


async def test_order_hold_goes_on_after_a_restart(
    make_teller: MakeTeller, sink: CallbackSink, clock: ManualClock
) -> None:
    teller = await make_teller(order_hold_s=600)
    poison = {"about": "ann", "turn": 0}
    sink.answers = lambda one: 500 if one.value == poison else 200
    await teller.subscribe(sink.url)
    await teller.tell("ann", times=2)
    await teller.pass_time_until(lambda: len(sink.tries) == 2, step_ms=1_000)
    first_ms = clock.now_ms()
    clock.advance(ms=590_000)
    await teller.close()
    await teller.open()

    def count(about: str) -> int:
        return sum(one["about"] == about for one in sink.callbacks)

    async with asyncio.timeout(HANGS_AFTER_S):
        while not count("ann"):
            count_before = count("ben")
            await teller.tell("ben")
            await teller.pass_time_until(partial(_more, count, count_before), step_ms=1_000)

    assert sink.callbacks[-1] in ({"about": "ann", "turn": 1}, {"about": "ben", "turn": 0})
    assert poison not in sink.callbacks
    assert clock.now_ms() - first_ms < 590_000 + 300_000  # and not 600 s after the restart


def _more(count: Callable[[str], int], than: int) -> bool:
    return count("ben") > than


async def test_open_circuit_says_since_when_it_fails_and_when_it_is_tried_next(
    teller: Teller, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.answers = always(500)
    subscription = await teller.subscribe(sink.url)
    since_ms = clock.now_ms()
    await teller.tell(*MANY[:5])

    standing = await patiently(lambda: teller.standing(subscription), lambda one: one["next_attempt_ms"] is not None)
    assert standing["failing_since_ms"] == since_ms
    assert since_ms < standing["next_attempt_ms"] <= since_ms + 2_000
    waits = await teller.admin("GET", f"callbacks/{sink.tries[0].callback_id}")
    assert waits["failing_since_ms"] == since_ms
    assert waits["next_attempt_ms"] == standing["next_attempt_ms"]

    sink.answers = always(200)
    await teller.pass_time_until(lambda: len(sink.taken) == 5, step_ms=1_000)

    well = await patiently(lambda: teller.standing(subscription), lambda one: one["failing_since_ms"] is None)
    assert well["next_attempt_ms"] is None
