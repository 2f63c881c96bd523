"""A person retries what waits for a receiver now: no clock is waited for, the order is kept, and nothing is lost."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection, update

from tests.callbacks.conftest import MakeCallbackService
from tests.support.callback_service import CallbackService
from tests.support.callback_sink import CallbackSink, respond_always
from tests.support.manual_clock import ManualClock
from tests.support.polling import poll_until
from tests.support.store_locations import StoreLocation
from waypost.client.api_client import ApiResponseError
from waypost.store.tables import subscriptions

HOUR_MS = 3_600_000
Wait = Callable[[CallbackService, CallbackSink], Awaitable[int]]


async def fail_for_hours(service: CallbackService, sink: CallbackSink) -> int:
    """Let two callbacks to one recipient wait for hours: nothing is due, and no other callback tests the receiver."""
    sink.choose_status = respond_always(503)
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann", times=2)
    await service.pass_time_until(lambda: len(sink.requests) >= 9, step_ms=HOUR_MS)
    await poll_until(service.is_idle)
    return subscription


async def want_no_requests(service: CallbackService, sink: CallbackSink) -> int:
    """Let a receiver answer once with `Retry-After` of two hours, with callbacks to two recipients behind it."""
    sink.choose_status, sink.choose_headers = respond_always(503), lambda _: {"Retry-After": "7200"}
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await poll_until(
        lambda: service.subscription_health(subscription), lambda status: status["retry_after_until_ms"] is not None
    )
    await service.emit_callbacks("ann", "ben", times=2)
    await poll_until(service.is_idle)
    return subscription


def sequences(sink: CallbackSink, about: str) -> list[int]:
    return [request.sequence for request in sink.accepted if request.value["about"] == about]


async def test_callbacks_whose_next_attempt_is_hours_away_are_delivered_now_in_order(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    subscription = await fail_for_hours(service, sink)
    sink.choose_status = respond_always(200)
    at_ms = clock.now_ms()

    shown = await service.admin("POST", f"subscriptions/{subscription}/retry", {})
    await sink.wait_until(lambda: len(sink.accepted) == 2)

    assert (shown["id"], shown["next_attempt_ms"]) == (subscription, None)
    assert (sequences(sink, "ann"), clock.now_ms()) == ([1, 2], at_ms)
    await poll_until(lambda: service.subscription_health(subscription), lambda status: status["state"] == "active")


async def test_receiver_that_requested_a_delay_is_called_now(service: CallbackService, sink: CallbackSink) -> None:
    subscription = await want_no_requests(service, sink)
    sink.choose_status = respond_always(200)

    shown = await service.admin("POST", f"subscriptions/{subscription}/retry", {})
    await sink.wait_until(lambda: len(sink.accepted) == 5)

    assert shown["retry_after_until_ms"] is None
    assert (sequences(sink, "ann"), sequences(sink, "ben")) == ([1, 2, 3], [1, 2])


async def test_replays_that_wait_for_another_attempt_are_due_too(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await poll_until(lambda: service.subscription_health(subscription), lambda status: not status["waiting"])
    sink.choose_status = respond_always(503)
    await service.admin("POST", "callbacks/replay", {"subscription_id": subscription})
    await service.pass_time_until(lambda: len(sink.requests) >= 9, step_ms=HOUR_MS)
    await poll_until(service.is_idle)
    sink.choose_status = respond_always(200)
    at_ms = clock.now_ms()

    await service.admin("POST", f"subscriptions/{subscription}/retry", {})
    await sink.wait_until(lambda: len(sink.accepted) == 2)

    assert clock.now_ms() == at_ms


async def test_receiver_that_still_fails_gets_one_request_and_loses_nothing(
    service: CallbackService, sink: CallbackSink
) -> None:
    subscription = await want_no_requests(service, sink)
    sink.choose_headers = lambda _: {}

    await service.admin("POST", f"subscriptions/{subscription}/retry", {})
    await sink.wait_until(lambda: len(sink.requests) == 2)
    status = await poll_until(
        lambda: service.subscription_health(subscription), lambda status: status["next_attempt_ms"] is not None
    )

    assert (len(sink.requests), status["waiting"], status["state"]) == (2, 5, "failing")
    sink.choose_status = respond_always(200)
    await service.pass_time_until(lambda: len(sink.accepted) == 5, step_ms=1_000)
    assert (sequences(sink, "ann"), sequences(sink, "ben")) == ([1, 2, 3], [1, 2])


@pytest.mark.parametrize("waits", [fail_for_hours, want_no_requests])
async def test_request_is_kept_for_the_process_that_calls_the_receiver_next(
    service: CallbackService, sink: CallbackSink, waits: Wait
) -> None:
    """As after a kill between its commit and the first attempt: no process that knows of it is left."""
    subscription = await waits(service, sink)
    sink.choose_status = respond_always(200)
    waiting = (await service.subscription_health(subscription))["waiting"]
    await service.close()
    service.changes["stages"] = ("api",)
    await service.open()
    await service.admin("POST", f"subscriptions/{subscription}/retry", {})
    await service.close()
    del service.changes["stages"]

    await service.open()
    await sink.wait_until(lambda: len(sink.accepted) == waiting)


async def test_request_whose_notification_was_lost_is_followed_within_the_hour(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    await want_no_requests(service, sink)
    sink.choose_status = respond_always(200)

    def request_unnoticed(connection: Connection) -> None:
        connection.execute(update(subscriptions).values(retry_requests=1, retry_after_until_ms=None))

    await service.waypost.database.write(request_unnoticed)
    clock.advance(ms=HOUR_MS)

    await sink.wait_until(lambda: len(sink.accepted) == 5)


async def test_paused_subscription_is_not_retried_but_resumed(service: CallbackService, sink: CallbackSink) -> None:
    sink.choose_status = respond_always(410)
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await poll_until(lambda: service.subscription_health(subscription), lambda status: status["state"] == "paused")

    with pytest.raises(ApiResponseError, match="paused: resume it") as rejected:
        await service.admin("POST", f"subscriptions/{subscription}/retry", {})
    with pytest.raises(ApiResponseError) as unknown:
        await service.admin("POST", "subscriptions/99/retry", {})

    assert (rejected.value.status, unknown.value.status) == (400, 404)
    await asyncio.sleep(0.05)
    assert len(sink.requests) == 1


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
@pytest.mark.parametrize("waits", [fail_for_hours, want_no_requests])
async def test_request_to_one_process_reaches_the_one_that_holds_the_jobs(
    make_service: MakeCallbackService,
    tmp_path: Path,
    store_location: StoreLocation,
    sink: CallbackSink,
    clock: ManualClock,
    waits: Wait,
) -> None:
    sender = await make_service()
    subscription = await waits(sender, sink)
    waiting = (await sender.subscription_health(subscription))["waiting"]
    other = CallbackService(tmp_path, store_location, clock, {"stages": ("api",)}, token=sender.token)
    await other.open()
    try:
        sink.choose_status = respond_always(200)
        at_ms = clock.now_ms()

        await other.admin("POST", f"subscriptions/{subscription}/retry", {})
        await sink.wait_until(lambda: len(sink.accepted) == waiting)

        assert clock.now_ms() == at_ms
    finally:
        await other.close()
