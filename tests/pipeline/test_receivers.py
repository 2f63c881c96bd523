"""A receiver of callbacks that rejects them, is down, is slow, or redirects."""

import asyncio
from typing import Any

import pytest

from tests.support.builders import ANN, APP, BEN
from tests.support.callback_sink import ReceivedCallback, respond_always, respond_in_turn
from tests.support.manual_clock import ManualClock, ServiceClock
from tests.support.pipeline import PipelineHarness
from tests.support.polling import HANGS_AFTER_S, poll_until


@pytest.fixture
def clock() -> ManualClock:
    return ServiceClock()


@pytest.fixture
async def manual_pipeline(make_pipeline: Any, clock: ManualClock) -> PipelineHarness:
    """A pipeline whose clock only the test advances."""
    return await make_pipeline(clock=clock)


async def test_rejected_callback_is_retried_with_the_same_bytes_and_the_same_id(
    manual_pipeline: PipelineHarness,
) -> None:
    manual_pipeline.sink.choose_status = respond_in_turn(500, 503, 404, 200)
    await manual_pipeline.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": "Hello?"})

    await manual_pipeline.pass_time_until(lambda: len(manual_pipeline.sink.accepted) == 1)

    assert [attempt.status for attempt in manual_pipeline.sink.requests] == [500, 503, 404, 200]
    assert (
        len({(attempt.body, attempt.callback_id, attempt.sequence) for attempt in manual_pipeline.sink.requests}) == 1
    )


async def test_callbacks_behind_a_rejected_one_wait_and_are_delivered_in_order(
    manual_pipeline: PipelineHarness,
) -> None:
    await manual_pipeline.open_window()
    manual_pipeline.sink.choose_status = respond_in_turn(500, 500, 200)
    message_id = await manual_pipeline.send_text()
    await manual_pipeline.wait_for_state(message_id, "delivered")

    await manual_pipeline.pass_time_until(lambda: len(manual_pipeline.sink.accepted) == 4)

    assert [attempt.sequence for attempt in manual_pipeline.sink.accepted] == [1, 2, 3, 4]
    kinds = [callback["payload"]["type"] for callback in manual_pipeline.callbacks]
    assert kinds == ["text", "enqueued", "sent", "delivered"]
    rejected = [attempt.sequence for attempt in manual_pipeline.sink.requests if attempt.status == 500]
    assert rejected == [2, 2]


async def test_callbacks_wait_for_a_receiver_that_is_down(manual_pipeline: PipelineHarness) -> None:
    await manual_pipeline.open_window()
    await manual_pipeline.sink.close()
    message_id = await manual_pipeline.send_text()
    trace = await manual_pipeline.wait_for_state(message_id, "delivered")
    assert all(callback["delivered"] is None for callback in trace["callbacks"])
    await manual_pipeline.sink.open()

    await manual_pipeline.pass_time_until(lambda: len(manual_pipeline.sink.accepted) == 4)

    assert [attempt.sequence for attempt in manual_pipeline.sink.accepted] == [1, 2, 3, 4]


async def test_rejected_callback_of_one_recipient_blocks_no_other(manual_pipeline: PipelineHarness) -> None:
    manual_pipeline.sink.choose_status = lambda attempt: 500 if attempt.value["payload"]["source"] == ANN else 200
    await manual_pipeline.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": "rejected"})

    callback = await manual_pipeline.reply(BEN, "accepted")

    assert callback["payload"]["payload"] == {"text": "accepted"}


async def test_callback_that_alone_is_rejected_blocks_the_next_ones_only_for_the_order_hold(
    make_pipeline: Any, clock: ManualClock
) -> None:
    pipeline: PipelineHarness = await make_pipeline(clock=clock, changes={"order_hold_s": 60})

    def choose_status(attempt: ReceivedCallback) -> int:
        return 500 if attempt.value["payload"]["payload"] == {"text": "poison"} else 200

    pipeline.sink.choose_status = choose_status
    for text in ("poison", "after"):
        await pipeline.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": text})
    await pipeline.sink.wait_until(lambda: len(pipeline.sink.requests) > 0)
    await pipeline.reply(BEN, "another phone")  # the receiver accepts others

    def is_delivered(text: str) -> bool:
        return any(callback["payload"]["payload"] == {"text": text} for callback in pipeline.callbacks)

    clock.advance(ms=30_000)
    assert not is_delivered("after")
    async with asyncio.timeout(HANGS_AFTER_S):
        while not is_delivered("after"):
            clock.advance(ms=5_000)
            await pipeline.reply(BEN, "and again")

    assert [attempt.sequence for attempt in pipeline.sink.accepted if _source(attempt) == ANN] == [2]
    pipeline.sink.choose_status = respond_always(200)
    await pipeline.pass_time_until(lambda: is_delivered("poison"), step_ms=30_000)
    assert [attempt.sequence for attempt in pipeline.sink.accepted if _source(attempt) == ANN] == [2, 1]


@pytest.mark.parametrize("status", [201, 202, 204, 299])
async def test_any_2xx_response_accepts_a_callback(pipeline: PipelineHarness, status: int) -> None:
    pipeline.sink.choose_status = respond_always(status)

    await pipeline.reply(ANN, "Hello?")
    await pipeline.reply(ANN, "Still there?")

    assert [attempt.status for attempt in pipeline.sink.requests] == [status, status]


async def test_redirect_of_a_receiver_is_not_followed(manual_pipeline: PipelineHarness) -> None:
    manual_pipeline.sink.choose_status = respond_in_turn(307, 200)
    await manual_pipeline.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": "Hello?"})

    await manual_pipeline.pass_time_until(lambda: len(manual_pipeline.sink.accepted) == 1)

    assert [attempt.path for attempt in manual_pipeline.sink.requests] == ["/callbacks", "/callbacks"]


async def test_callback_has_content_type_user_agent_id_and_sequence_in_its_headers(pipeline: PipelineHarness) -> None:
    await pipeline.reply(ANN, "Hello?")

    [attempt] = pipeline.sink.requests

    assert attempt.headers["Content-Type"] == "application/json; charset=utf-8"
    assert attempt.headers["User-Agent"].startswith("Waypost/")
    assert attempt.callback_id
    assert attempt.sequence == 1


async def test_attempts_of_a_callback_are_shown_in_the_trace(manual_pipeline: PipelineHarness) -> None:
    await manual_pipeline.open_window()
    manual_pipeline.sink.choose_status = respond_in_turn(500, 200)
    message_id = await manual_pipeline.send_text()
    await manual_pipeline.wait_for_state(message_id, "delivered")

    await manual_pipeline.pass_time_until(lambda: len(manual_pipeline.sink.accepted) == 4)

    trace = await poll_until(
        lambda: manual_pipeline.trace(message_id), lambda trace: trace["callbacks"][0]["delivered"]
    )
    [enqueued, *rest] = trace["callbacks"]
    assert [callback["event"] for callback in (enqueued, *rest)] == ["enqueued", "sent", "delivered"]
    assert [attempt["status"] for attempt in enqueued["attempts"]] == [500, 200]


async def test_callbacks_of_a_deleted_subscription_are_not_delivered(
    manual_pipeline: PipelineHarness, clock: ManualClock
) -> None:
    manual_pipeline.sink.choose_status = respond_always(500)
    await manual_pipeline.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": "Hello?"})
    await manual_pipeline.sink.wait_until(lambda: len(manual_pipeline.sink.requests) == 1)
    path = f"/partner/app/{APP.id}/subscription"

    await manual_pipeline.send_request("DELETE", path, headers={"Authorization": manual_pipeline.app_token})

    async with asyncio.timeout(HANGS_AFTER_S):
        while any((await manual_pipeline.queue_depths()).values()):
            clock.advance(ms=1000)
            await asyncio.sleep(0.01)
    assert len(manual_pipeline.sink.requests) == 1


def _source(attempt: ReceivedCallback) -> str:
    return attempt.value["payload"]["source"]
