"""What was told can be told again: the same bytes, id and sequence number, beside what is told now."""

from typing import Any

import pytest
from sqlalchemy import Connection, update

from tests.callbacks.conftest import MakeTeller
from tests.support.callback_service import Teller
from tests.support.callback_sink import CallbackSink, always, in_turn
from tests.support.waiting import patiently
from waypost.base.clock import ManualClock
from waypost.client.api_client import ApiResponseError
from waypost.store.tables import attempts


async def delivered(teller: Teller, sink: CallbackSink, *abouts: str, times: int = 1) -> None:
    """Tell, and return once it is all written down."""
    count = len(sink.taken) + len(abouts) * times
    await teller.tell(*abouts, times=times)
    await sink.wait_until(lambda: len(sink.taken) == count)
    await quiet(teller)


async def quiet(teller: Teller) -> None:
    await patiently(lambda: teller.admin("GET", "queues"), lambda queues: not queues["callbacks"])


async def replay(teller: Teller, **wanted: Any) -> dict[str, Any]:
    return await teller.admin("POST", "callbacks/replay", wanted)


async def test_replay_of_one_sends_the_same_bytes_under_the_same_id_and_number(
    teller: Teller, sink: CallbackSink
) -> None:
    await teller.subscribe(sink.url)
    await delivered(teller, sink, "ann", times=2)
    first = sink.tries[0]

    told = await replay(teller, callback_id=first.callback_id)

    assert told == {"replayed": 1, "still_waiting": 0}
    await sink.wait_until(lambda: len(sink.tries) == 3)
    again = sink.tries[2]
    assert (again.body, again.callback_id, again.sequence) == (first.body, first.callback_id, first.sequence)
    await quiet(teller)
    shown = await teller.admin("POST", f"callbacks/{first.callback_id}/reveal")
    assert shown["body"].encode() == first.body
    assert [one["status"] for one in shown["attempts"]] == [200, 200]
    assert shown["delivered"] is True


async def test_replay_of_a_filter_takes_what_fits_all_of_it(
    teller: Teller, sink: CallbackSink, clock: ManualClock
) -> None:
    subscription = await teller.subscribe(sink.url)
    await delivered(teller, sink, "ann", "ben")
    clock.advance(ms=60_000)
    from_ms = clock.now_ms()
    await delivered(teller, sink, "ann", "ben", times=2)
    clock.advance(ms=60_000)
    to_ms = clock.now_ms()
    await delivered(teller, sink, "ann")
    wanted = {"subscription_id": subscription, "recipient": "ann", "from_ms": from_ms}

    counted = await replay(teller, **wanted, to_ms=to_ms, dry_run=True)
    assert counted == {"would_replay": 2, "still_waiting": 0}
    assert len(sink.tries) == 7
    await replay(teller, **wanted, to_ms=to_ms)

    await sink.wait_until(lambda: len(sink.tries) == 9)
    assert [(one.value, one.sequence) for one in sink.tries[7:]] == [
        ({"about": "ann", "turn": 0}, 2),
        ({"about": "ann", "turn": 1}, 3),
    ]
    assert (await replay(teller, **wanted, news="read", dry_run=True))["would_replay"] == 0
    assert (await replay(teller, **wanted, delivered=False, dry_run=True))["would_replay"] == 0
    assert (await replay(teller, **wanted, partner_id=99, dry_run=True))["would_replay"] == 0


async def test_replay_must_say_whose(teller: Teller) -> None:
    with pytest.raises(ApiResponseError):
        await replay(teller, recipient="ann")


async def test_replay_of_many_holds_up_no_live_callback_of_the_same_recipients(
    teller: Teller, sink: CallbackSink
) -> None:
    subscription = await teller.subscribe(sink.url)
    abouts = [f"recipient {number}" for number in range(40)]
    await delivered(teller, sink, *abouts, times=30)
    sink.gate.clear()

    told = await replay(teller, subscription_id=subscription)
    await sink.wait_until(lambda: len(sink.tries) == 1200 + 8)  # as many as replays may at once
    await teller.tell(*abouts)

    assert told["replayed"] == 1200
    sink.gate.set()
    await sink.wait_until(lambda: len(sink.tries) == 2440)
    assert max(i for i, one in enumerate(sink.tries) if one.sequence == 31) < 1800


async def test_callback_that_was_given_up_is_delivered_by_a_replay(
    make_teller: MakeTeller, sink: CallbackSink, clock: ManualClock
) -> None:
    teller = await make_teller(pause_callbacks_after_s=0)
    sink.answers = always(400)
    subscription = await teller.subscribe(sink.url)
    await teller.tell("ann")
    await teller.pass_time_until(lambda: len(sink.tries) == 14, step_ms=3_600_000)
    await quiet(teller)
    sink.answers = always(200)

    await replay(teller, subscription_id=subscription, delivered=False)

    await teller.pass_time_until(lambda: len(sink.taken) == 1, step_ms=60_000)
    await quiet(teller)
    shown = await teller.admin("GET", f"callbacks/{sink.tries[0].callback_id}")
    assert [one["status"] for one in shown["attempts"]] == [400] * 14 + [200]
    assert shown["delivered"] is True


async def test_replay_in_vain_changes_nothing_of_what_was_delivered(teller: Teller, sink: CallbackSink) -> None:
    await teller.subscribe(sink.url)
    await delivered(teller, sink, "ann")
    sink.answers = always(500)

    await replay(teller, callback_id=sink.tries[0].callback_id)

    await sink.wait_until(lambda: len(sink.tries) == 2)
    shown = await patiently(
        lambda: teller.admin("GET", f"callbacks/{sink.tries[0].callback_id}"), lambda one: len(one["attempts"]) == 2
    )
    assert shown["delivered"] is True


async def test_replay_leaves_the_time_of_the_first_delivery_and_is_labelled(
    teller: Teller, sink: CallbackSink, clock: ManualClock
) -> None:
    await teller.subscribe(sink.url)
    sink.answers = in_turn(500, 200)
    await teller.tell("ann")
    await teller.pass_time_until(lambda: len(sink.taken) == 1, step_ms=1_000)
    await quiet(teller)
    callback_id = sink.taken[0].callback_id
    before = await teller.admin("GET", f"callbacks/{callback_id}")
    clock.advance(ms=60_000)

    await replay(teller, callback_id=callback_id)
    await sink.wait_until(lambda: len(sink.taken) == 2)
    await quiet(teller)

    after = await teller.admin("GET", f"callbacks/{callback_id}")
    assert [one["kind"] for one in after["attempts"]] == ["initial", "retry", "replay"]
    assert (after["ended_on_ms"], after["delivered"]) == (before["ended_on_ms"], True)


async def test_replay_that_fails_leaves_a_delivered_callback_delivered(
    teller: Teller, sink: CallbackSink, clock: ManualClock
) -> None:
    await teller.subscribe(sink.url)
    await delivered(teller, sink, "ann")
    callback_id = sink.taken[0].callback_id
    before = await teller.admin("GET", f"callbacks/{callback_id}")
    sink.answers = always(500)

    await replay(teller, callback_id=callback_id)
    await teller.pass_time_until(lambda: len(sink.tries) >= 3, step_ms=10_000)

    after = await teller.admin("GET", f"callbacks/{callback_id}")
    assert {one["kind"] for one in after["attempts"][1:]} == {"replay"}
    assert (after["ended_on_ms"], after["delivered"]) == (before["ended_on_ms"], True)


async def test_attempts_of_before_revision_6_are_labelled_by_their_order(teller: Teller, sink: CallbackSink) -> None:
    await teller.subscribe(sink.url)
    await delivered(teller, sink, "ann")
    callback_id = sink.taken[0].callback_id
    await replay(teller, callback_id=callback_id)
    await sink.wait_until(lambda: len(sink.taken) == 2)
    await quiet(teller)

    await teller.waypost.database.write(_forget_kinds)

    shown = await teller.admin("GET", f"callbacks/{callback_id}")
    assert [one["kind"] for one in shown["attempts"]] == ["initial", "retry"]


def _forget_kinds(connection: Connection) -> None:
    connection.execute(update(attempts).values(kind=""))
