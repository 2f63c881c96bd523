"""Callbacks can be replayed: the same bytes, id and sequence number, beside the live callbacks."""

from typing import Any

import pytest

from tests.callbacks.conftest import MakeCallbackService
from tests.support.callback_service import CallbackService
from tests.support.callback_sink import CallbackSink, respond_always, respond_in_turn
from tests.support.manual_clock import ManualClock
from tests.support.polling import poll_until
from waypost.client.api_client import ApiResponseError


async def deliver(service: CallbackService, sink: CallbackSink, *abouts: str, times: int = 1) -> None:
    """Emit callbacks, and return when their deliveries are stored."""
    count = len(sink.accepted) + len(abouts) * times
    await service.emit_callbacks(*abouts, times=times)
    await sink.wait_until(lambda: len(sink.accepted) == count)
    await wait_until_idle(service)


async def wait_until_idle(service: CallbackService) -> None:
    await poll_until(lambda: service.admin("GET", "queues"), lambda queues: not queues["callbacks"])


async def replay(service: CallbackService, **query: Any) -> dict[str, Any]:
    return await service.admin("POST", "callbacks/replay", query)


async def test_replay_of_a_callback_sends_the_same_bytes_id_and_sequence_number(
    service: CallbackService, sink: CallbackSink
) -> None:
    await service.subscribe(sink.url)
    await deliver(service, sink, "ann", times=2)
    first = sink.requests[0]

    result = await replay(service, callback_id=first.callback_id)

    assert result == {"replayed": 1, "still_waiting": 0}
    await sink.wait_until(lambda: len(sink.requests) == 3)
    replayed = sink.requests[2]
    assert (replayed.body, replayed.callback_id, replayed.sequence) == (first.body, first.callback_id, first.sequence)
    await wait_until_idle(service)
    shown = await service.admin("POST", f"callbacks/{first.callback_id}/reveal")
    assert shown["body"].encode() == first.body
    assert [attempt["status"] for attempt in shown["attempts"]] == [200, 200]
    assert shown["delivered"] is True


async def test_replay_by_filter_selects_the_callbacks_that_match_all_of_it(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    subscription = await service.subscribe(sink.url)
    await deliver(service, sink, "ann", "ben")
    clock.advance(ms=60_000)
    from_ms = clock.now_ms()
    await deliver(service, sink, "ann", "ben", times=2)
    clock.advance(ms=60_000)
    to_ms = clock.now_ms()
    await deliver(service, sink, "ann")
    query = {"subscription_id": subscription, "recipient": "ann", "from_ms": from_ms}

    counted = await replay(service, **query, to_ms=to_ms, dry_run=True)
    assert counted == {"would_replay": 2, "still_waiting": 0}
    assert len(sink.requests) == 7
    await replay(service, **query, to_ms=to_ms)

    await sink.wait_until(lambda: len(sink.requests) == 9)
    assert [(attempt.value, attempt.sequence) for attempt in sink.requests[7:]] == [
        ({"about": "ann", "turn": 0}, 2),
        ({"about": "ann", "turn": 1}, 3),
    ]
    assert (await replay(service, **query, event="read", dry_run=True))["would_replay"] == 0
    assert (await replay(service, **query, delivered=False, dry_run=True))["would_replay"] == 0
    with pytest.raises(ApiResponseError, match="There is no partner 99"):
        await replay(service, **query, partner_id=99, dry_run=True)


async def test_replay_of_more_messages_than_one_call_may_name_is_an_error(service: CallbackService) -> None:
    subscription = await service.subscribe("http://127.0.0.1:9/callbacks")

    with pytest.raises(ApiResponseError, match="at most 200 ids"):
        await replay(service, subscription_id=subscription, message_ids=["x"] * 201)


async def test_replay_without_an_owner_is_an_error(service: CallbackService) -> None:
    with pytest.raises(ApiResponseError):
        await replay(service, recipient="ann")


async def test_replay_of_many_delays_no_live_callback_of_the_same_recipients(
    service: CallbackService, sink: CallbackSink
) -> None:
    subscription = await service.subscribe(sink.url)
    abouts = [f"recipient {number}" for number in range(40)]
    await deliver(service, sink, *abouts, times=30)
    sink.gate.clear()

    result = await replay(service, subscription_id=subscription)
    await sink.wait_until(lambda: len(sink.requests) == 1200 + 8)  # the slots of replays
    await service.emit_callbacks(*abouts)

    assert result["replayed"] == 1200
    sink.gate.set()
    await sink.wait_until(lambda: len(sink.requests) == 2440)
    assert max(i for i, attempt in enumerate(sink.requests) if attempt.sequence == 31) < 1800


async def test_callback_that_was_abandoned_is_delivered_by_a_replay(
    make_service: MakeCallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    service = await make_service(pause_callbacks_after_s=0)
    sink.choose_status = respond_always(400)
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await service.pass_time_until(lambda: len(sink.requests) == 14, step_ms=3_600_000)
    await wait_until_idle(service)
    sink.choose_status = respond_always(200)

    await replay(service, subscription_id=subscription, delivered=False)

    await service.pass_time_until(lambda: len(sink.accepted) == 1, step_ms=5_000)
    await wait_until_idle(service)
    shown = await service.admin("GET", f"callbacks/{sink.requests[0].callback_id}")
    assert [attempt["status"] for attempt in shown["attempts"]] == [400] * 14 + [200]
    assert shown["delivered"] is True


async def test_failed_attempt_of_a_replay_leaves_a_delivered_callback_delivered(
    service: CallbackService, sink: CallbackSink
) -> None:
    await service.subscribe(sink.url)
    await deliver(service, sink, "ann")
    sink.choose_status = respond_always(500)

    await replay(service, callback_id=sink.requests[0].callback_id)

    await sink.wait_until(lambda: len(sink.requests) == 2)
    shown = await poll_until(
        lambda: service.admin("GET", f"callbacks/{sink.requests[0].callback_id}"),
        lambda callback: len(callback["attempts"]) == 2,
    )
    assert shown["delivered"] is True


async def test_replay_keeps_the_time_of_the_first_delivery_and_is_labelled(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    await service.subscribe(sink.url)
    sink.choose_status = respond_in_turn(500, 200)
    await service.emit_callbacks("ann")
    await service.pass_time_until(lambda: len(sink.accepted) == 1, step_ms=1_000)
    await wait_until_idle(service)
    callback_id = sink.accepted[0].callback_id
    before = await service.admin("GET", f"callbacks/{callback_id}")
    clock.advance(ms=60_000)

    await replay(service, callback_id=callback_id)
    await sink.wait_until(lambda: len(sink.accepted) == 2)
    await wait_until_idle(service)

    after = await service.admin("GET", f"callbacks/{callback_id}")
    assert [attempt["kind"] for attempt in after["attempts"]] == ["initial", "retry", "replay"]
    assert (after["ended_on_ms"], after["delivered"]) == (before["ended_on_ms"], True)


async def test_retries_of_a_failed_replay_leave_a_delivered_callback_delivered(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    await service.subscribe(sink.url)
    await deliver(service, sink, "ann")
    callback_id = sink.accepted[0].callback_id
    before = await service.admin("GET", f"callbacks/{callback_id}")
    sink.choose_status = respond_always(500)

    await replay(service, callback_id=callback_id)
    await service.pass_time_until(lambda: len(sink.requests) >= 3, step_ms=10_000)

    after = await service.admin("GET", f"callbacks/{callback_id}")
    assert {attempt["kind"] for attempt in after["attempts"][1:]} == {"replay"}
    assert (after["ended_on_ms"], after["delivered"]) == (before["ended_on_ms"], True)
