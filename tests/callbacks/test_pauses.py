"""After days of nothing but failures a subscription is paused; nothing is lost, and one call lets it go on."""

import asyncio

from tests.callbacks.conftest import MakeTeller
from tests.support.callback_service import Teller
from tests.support.callback_sink import CallbackSink, always
from tests.support.waiting import patiently
from waypost.base.clock import ManualClock

HOUR_MS = 3_600_000


async def paused(teller: Teller, subscription: int) -> None:
    await patiently(lambda: teller.standing(subscription), lambda one: one["state"] == "paused")


async def test_what_waited_and_what_came_meanwhile_is_delivered_in_order_after_a_resume(
    make_teller: MakeTeller, sink: CallbackSink, clock: ManualClock
) -> None:
    teller = await make_teller(pause_callbacks_after_s=5 * 86_400)
    sink.answers = always(500)
    subscription = await teller.subscribe(sink.url)
    await teller.tell("ann", "ben", "cem", times=2)
    await teller.pass_time_until(lambda: len(sink.tries) > 6, step_ms=HOUR_MS)
    assert (await teller.standing(subscription))["state"] == "failing"
    clock.advance(ms=5 * 24 * HOUR_MS)
    await paused(teller, subscription)
    await patiently(teller.is_still)  # what was on its way when it was paused has been answered

    tries = len(sink.tries)
    sink.answers = always(200)
    await teller.tell("ann", "ben", "cem")
    clock.advance(ms=50 * HOUR_MS)
    await asyncio.sleep(0.05)
    assert len(sink.tries) == tries
    told = await teller.admin("POST", f"subscriptions/{subscription}/resume", {})
    assert told["was_paused"] is True
    assert told["waiting"] == 9
    await teller.pass_time_until(lambda: len(sink.taken) == 9, step_ms=HOUR_MS)
    for about in ("ann", "ben", "cem"):
        mine = [one.sequence for one in sink.taken if one.value["about"] == about]
        assert mine == [1, 2, 3]
    assert (await teller.standing(subscription))["state"] == "active"


async def test_pause_is_told_to_the_apps_other_subscriptions_and_to_the_doctor(
    make_teller: MakeTeller, sink: CallbackSink, other: CallbackSink, clock: ManualClock
) -> None:
    teller = await make_teller(pause_callbacks_after_s=86_400)
    sink.answers = always(500)
    subscription = await teller.subscribe(sink.url, "failing")
    await teller.subscribe(other.url, "account", modes="ACCOUNT")
    await teller.tell("ann")
    standing = await patiently(lambda: teller.standing(subscription), lambda one: one["state"] == "failing")

    clock.advance(ms=25 * HOUR_MS)
    [event] = await other.wait_for(lambda one: one["type"] == "account-event")

    payload = event["payload"]
    assert payload["type"] == "subscription-paused"
    assert payload["payload"] == {
        "id": str(subscription),
        "tag": "failing",
        "url": sink.url,
        "since": standing["failing_since_ms"],
        "reason": "its receiver has taken nothing for 25 hours: it answers 500",
    }
    told = await teller.admin("GET", "doctor")
    [line] = [one for one in told["findings"] if one["about"] == f"subscription {subscription}"]
    assert line["state"] == "wrong"
    assert f"waypost callbacks resume {subscription}" in line["remedy"]


async def test_receiver_that_is_gone_is_paused_at_once(teller: Teller, sink: CallbackSink) -> None:
    sink.answers = always(410)
    subscription = await teller.subscribe(sink.url)

    await teller.tell("ann", "ben", times=2)
    await paused(teller, subscription)

    standing = await teller.standing(subscription)
    assert standing["pause_reason"] == "its receiver answered 410, Gone"
    assert standing["waiting"] == 4


async def test_partner_sees_the_pause_and_ends_it_by_setting_active(
    teller: Teller, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.answers = always(410)
    subscription = await teller.subscribe(sink.url)
    await teller.tell("ann")
    await paused(teller, subscription)
    path = f"subscription/{subscription}"
    assert (await teller.partner("GET", path, {}))["subscription"]["active"] is False
    sink.answers = always(200)

    changed = await teller.partner("PUT", path, {"active": "true", "doCheck": "false"})

    assert changed["subscription"]["active"] is True
    await teller.pass_time_until(lambda: len(sink.taken) == 1, step_ms=1_000)


async def test_change_of_something_else_does_not_end_a_pause(teller: Teller, sink: CallbackSink) -> None:
    sink.answers = always(410)
    subscription = await teller.subscribe(sink.url)
    await teller.tell("ann")
    await paused(teller, subscription)

    await teller.partner("PUT", f"subscription/{subscription}", {"tag": "renamed"})

    assert (await teller.standing(subscription))["state"] == "paused"


async def test_pause_outlives_a_restart(teller: Teller, sink: CallbackSink) -> None:
    sink.answers = always(410)
    subscription = await teller.subscribe(sink.url)
    await teller.tell("ann", "ben")
    await paused(teller, subscription)
    await teller.close()
    tries = len(sink.tries)

    await teller.open()
    await teller.tell("cem")
    await asyncio.sleep(0.1)

    assert len(sink.tries) == tries
    assert (await teller.standing(subscription))["waiting"] == 3
