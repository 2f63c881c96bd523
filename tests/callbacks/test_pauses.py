"""After days of failures a subscription is paused; no callback is lost, and one call resumes it."""

import asyncio

from tests.callbacks.conftest import MakeCallbackService
from tests.support.callback_service import CallbackService
from tests.support.callback_sink import CallbackSink, respond_always
from tests.support.manual_clock import ManualClock
from tests.support.polling import poll_until

HOUR_MS = 3_600_000


async def wait_until_paused(service: CallbackService, subscription: int) -> None:
    await poll_until(lambda: service.subscription_health(subscription), lambda status: status["state"] == "paused")


async def test_callbacks_from_before_and_during_a_pause_are_delivered_in_order_after_a_resume(
    make_service: MakeCallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    service = await make_service(pause_callbacks_after_s=5 * 86_400)
    sink.choose_status = respond_always(500)
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann", "ben", "cem", times=2)
    await service.pass_time_until(lambda: len(sink.requests) > 6, step_ms=HOUR_MS)
    assert (await service.subscription_health(subscription))["state"] == "failing"
    clock.advance(ms=5 * 24 * HOUR_MS)
    await wait_until_paused(service, subscription)
    await poll_until(service.is_idle)  # the attempts in flight at the pause have ended

    tries = len(sink.requests)
    sink.choose_status = respond_always(200)
    await service.emit_callbacks("ann", "ben", "cem")
    clock.advance(ms=50 * HOUR_MS)
    await asyncio.sleep(0.05)
    assert len(sink.requests) == tries
    resumed = await service.admin("POST", f"subscriptions/{subscription}/resume", {})
    assert resumed["was_paused"] is True
    assert resumed["waiting"] == 9
    await service.pass_time_until(lambda: len(sink.accepted) == 9, step_ms=HOUR_MS)
    for about in ("ann", "ben", "cem"):
        sequences = [attempt.sequence for attempt in sink.accepted if attempt.value["about"] == about]
        assert sequences == [1, 2, 3]
    assert (await service.subscription_health(subscription))["state"] == "active"


async def test_pause_is_reported_to_the_apps_other_subscriptions_and_by_the_doctor(
    make_service: MakeCallbackService, sink: CallbackSink, second_sink: CallbackSink, clock: ManualClock
) -> None:
    service = await make_service(pause_callbacks_after_s=86_400)
    sink.choose_status = respond_always(500)
    subscription = await service.subscribe(sink.url, "failing")
    await service.subscribe(second_sink.url, "account", modes="ACCOUNT")
    await service.emit_callbacks("ann")
    status = await poll_until(
        lambda: service.subscription_health(subscription), lambda status: status["state"] == "failing"
    )

    clock.advance(ms=25 * HOUR_MS)
    [event] = await second_sink.wait_for(lambda callback: callback["type"] == "account-event")

    payload = event["payload"]
    assert payload["type"] == "subscription-paused"
    assert payload["payload"] == {
        "id": str(subscription),
        "tag": "failing",
        "url": sink.url,
        "since": status["failing_since_ms"],
        "reason": "its receiver has accepted no callback for 25 hours: it returns status 500",
    }
    report = await service.admin("GET", "doctor")
    [finding] = [finding for finding in report["results"] if finding["subject"] == f"subscription {subscription}"]
    assert finding["state"] == "wrong"
    assert f"waypost callbacks resume {subscription}" in finding["fix_hint"]


async def test_receiver_that_responds_410_is_paused_at_once(service: CallbackService, sink: CallbackSink) -> None:
    sink.choose_status = respond_always(410)
    subscription = await service.subscribe(sink.url)

    await service.emit_callbacks("ann", "ben", times=2)
    await wait_until_paused(service, subscription)

    status = await service.subscription_health(subscription)
    assert status["pause_reason"] == "its receiver returned status 410, Gone"
    assert status["waiting"] == 4


async def test_partner_sees_the_pause_and_ends_it_by_setting_active(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.choose_status = respond_always(410)
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await wait_until_paused(service, subscription)
    path = f"subscription/{subscription}"
    assert (await service.partner("GET", path, {}))["subscription"]["active"] is False
    sink.choose_status = respond_always(200)

    changed = await service.partner("PUT", path, {"active": "true", "doCheck": "false"})

    assert changed["subscription"]["active"] is True
    await service.pass_time_until(lambda: len(sink.accepted) == 1, step_ms=1_000)


async def test_change_of_another_field_does_not_end_a_pause(service: CallbackService, sink: CallbackSink) -> None:
    sink.choose_status = respond_always(410)
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await wait_until_paused(service, subscription)

    await service.partner("PUT", f"subscription/{subscription}", {"tag": "renamed"})

    assert (await service.subscription_health(subscription))["state"] == "paused"


async def test_pause_survives_a_restart(service: CallbackService, sink: CallbackSink) -> None:
    sink.choose_status = respond_always(410)
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann", "ben")
    await wait_until_paused(service, subscription)
    await service.close()
    tries = len(sink.requests)

    await service.open()
    await service.emit_callbacks("cem")
    await asyncio.sleep(0.1)

    assert len(sink.requests) == tries
    assert (await service.subscription_health(subscription))["waiting"] == 3
