"""A receiver of callbacks that refuses, is away, is slow, or points elsewhere."""

import asyncio
from typing import Any

import pytest

from tests.support.builders import ANN, APP, BEN
from tests.support.callback_sink import Try, always, in_turn
from tests.support.pipeline import PipelineHarness
from tests.support.waiting import HANGS_AFTER_S, patiently
from waypost.base.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def patient(make_pipeline: Any, clock: ManualClock) -> PipelineHarness:
    """A pipeline on which time passes when the test says so."""
    return await make_pipeline(clock=clock)


async def test_refused_callback_comes_again_with_the_same_bytes_and_the_same_id(patient: PipelineHarness) -> None:
    patient.sink.answers = in_turn(500, 503, 404, 200)
    await patient.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": "Hello?"})

    await patient.pass_time_until(lambda: len(patient.sink.taken) == 1)

    assert [one.status for one in patient.sink.tries] == [500, 503, 404, 200]
    assert len({(one.body, one.callback_id, one.sequence) for one in patient.sink.tries}) == 1


async def test_callbacks_behind_a_refused_one_wait_and_come_in_order(patient: PipelineHarness) -> None:
    await patient.open_window()
    patient.sink.answers = in_turn(500, 500, 200)
    message_id = await patient.send_text()
    await patient.wait_for_state(message_id, "delivered")

    await patient.pass_time_until(lambda: len(patient.sink.taken) == 4)

    assert [one.sequence for one in patient.sink.taken] == [1, 2, 3, 4]
    kinds = [callback["payload"]["type"] for callback in patient.callbacks]
    assert kinds == ["text", "enqueued", "sent", "delivered"]
    refused = [one.sequence for one in patient.sink.tries if one.status == 500]
    assert refused == [2, 2]


async def test_callbacks_wait_for_a_receiver_that_is_away(patient: PipelineHarness) -> None:
    await patient.open_window()
    await patient.sink.close()
    message_id = await patient.send_text()
    trace = await patient.wait_for_state(message_id, "delivered")
    assert all(one["delivered"] is None for one in trace["callbacks"])
    await patient.sink.open()

    await patient.pass_time_until(lambda: len(patient.sink.taken) == 4)

    assert [one.sequence for one in patient.sink.taken] == [1, 2, 3, 4]


async def test_refused_recipient_holds_up_no_other(patient: PipelineHarness) -> None:
    patient.sink.answers = lambda one: 500 if one.value["payload"]["source"] == ANN else 200
    await patient.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": "refused"})

    callback = await patient.reply(BEN, "taken")

    assert callback["payload"]["payload"] == {"text": "taken"}


async def test_callback_that_alone_is_refused_lets_the_next_ones_go_after_the_order_hold(
    make_pipeline: Any, clock: ManualClock
) -> None:
    pipeline: PipelineHarness = await make_pipeline(clock=clock, changes={"order_hold_s": 60})

    def is_refused(one: Try) -> int:
        return 500 if one.value["payload"]["payload"] == {"text": "poison"} else 200

    pipeline.sink.answers = is_refused
    for text in ("poison", "after"):
        await pipeline.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": text})
    await pipeline.sink.wait_until(lambda: len(pipeline.sink.tries) > 0)
    await pipeline.reply(BEN, "another phone")  # the address does take others

    def has_come(text: str) -> bool:
        return any(one["payload"]["payload"] == {"text": text} for one in pipeline.callbacks)

    clock.advance(ms=30_000)
    assert not has_come("after")
    async with asyncio.timeout(HANGS_AFTER_S):
        while not has_come("after"):
            clock.advance(ms=5_000)
            await pipeline.reply(BEN, "and again")

    assert [one.sequence for one in pipeline.sink.taken if _source(one) == ANN] == [2]
    pipeline.sink.answers = always(200)
    await pipeline.pass_time_until(lambda: has_come("poison"), step_ms=30_000)
    assert [one.sequence for one in pipeline.sink.taken if _source(one) == ANN] == [2, 1]


@pytest.mark.parametrize("status", [201, 202, 204, 299])
async def test_any_2xx_takes_a_callback(pipeline: PipelineHarness, status: int) -> None:
    pipeline.sink.answers = always(status)

    await pipeline.reply(ANN, "Hello?")
    await pipeline.reply(ANN, "Still there?")

    assert [one.status for one in pipeline.sink.tries] == [status, status]


async def test_redirect_of_a_receiver_is_not_followed(patient: PipelineHarness) -> None:
    patient.sink.answers = in_turn(307, 200)
    await patient.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": "Hello?"})

    await patient.pass_time_until(lambda: len(patient.sink.taken) == 1)

    assert [one.path for one in patient.sink.tries] == ["/callbacks", "/callbacks"]


async def test_callback_says_what_it_is_in_its_headers(pipeline: PipelineHarness) -> None:
    await pipeline.reply(ANN, "Hello?")

    [one] = pipeline.sink.tries

    assert one.headers["Content-Type"] == "application/json; charset=utf-8"
    assert one.headers["User-Agent"].startswith("Waypost/")
    assert one.callback_id
    assert one.sequence == 1


async def test_attempts_of_a_callback_are_shown_in_the_trace(patient: PipelineHarness) -> None:
    await patient.open_window()
    patient.sink.answers = in_turn(500, 200)
    message_id = await patient.send_text()
    await patient.wait_for_state(message_id, "delivered")

    await patient.pass_time_until(lambda: len(patient.sink.taken) == 4)

    trace = await patiently(lambda: patient.trace(message_id), lambda one: one["callbacks"][0]["delivered"])
    [enqueued, *rest] = trace["callbacks"]
    assert [one["news"] for one in (enqueued, *rest)] == ["enqueued", "sent", "delivered"]
    assert [one["status"] for one in enqueued["attempts"]] == [500, 200]


async def test_callbacks_of_a_deleted_subscription_go_nowhere(patient: PipelineHarness, clock: ManualClock) -> None:
    patient.sink.answers = always(500)
    await patient.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": "Hello?"})
    await patient.sink.wait_until(lambda: len(patient.sink.tries) == 1)
    path = f"/partner/app/{APP.id}/subscription"

    await patient.ask("DELETE", path, headers={"Authorization": patient.app_token})

    async with asyncio.timeout(HANGS_AFTER_S):
        while any((await patient.queue_depths()).values()):
            clock.advance(ms=1000)
            await asyncio.sleep(0.01)
    assert len(patient.sink.tries) == 1


def _source(one: Try) -> str:
    return one.value["payload"]["source"]
