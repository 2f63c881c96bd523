"""Every try at the operator that did not end a message is a line of its trace, and moves nothing."""

from typing import Any

from tests.support.pipeline import PipelineHarness
from tests.support.waiting import patiently
from waypost.base.clock import ManualClock
from waypost.store.trace_events import SEND_ATTEMPTED

REFUSED_FOR_NOW: dict[str, Any] = {
    "on": "call",
    "call": "messages.send",
    "what": {"error": 131016},
    "when": {"next": 2},
}


async def news_of(pipeline: PipelineHarness, message_id: str) -> list[tuple[str, bool]]:
    trace = await pipeline.trace(message_id)
    return [(line["news"], line["moved"]) for line in trace["news"]]


async def test_tries_that_were_put_off_stand_in_the_trace_with_the_operators_words(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(clock=ManualClock())
    await pipeline.open_window()
    await pipeline.control("POST", "faults", {"faults": [REFUSED_FOR_NOW]})

    message_id = await pipeline.send_text()
    await pipeline.pass_time_until(
        lambda: any(
            one["type"] == "message-event" and one["payload"]["type"] == "delivered" for one in pipeline.callbacks
        )
    )

    trace = await pipeline.trace(message_id)
    tries = [line for line in trace["news"] if line["news"] == SEND_ATTEMPTED]
    assert [line["detail"].partition(":")[0] for line in tries] == ["131016", "131016"]
    assert [line["moved"] for line in tries] == [False, False]
    assert tries[0]["at_ms"] < tries[1]["at_ms"]
    moved = [line["news"] for line in trace["news"] if line["moved"]]
    assert moved[0] == "enqueued"
    told = [one["news"] for one in trace["callbacks"]]
    assert SEND_ATTEMPTED not in told


async def test_message_that_goes_through_at_once_has_no_such_line(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()

    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")

    assert SEND_ATTEMPTED not in [news for news, _ in await news_of(pipeline, message_id)]


async def test_operator_that_is_away_stands_in_the_trace(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    await pipeline.close_operator()

    message_id = await pipeline.send_text()

    await patiently(lambda: news_of(pipeline, message_id), lambda told: (SEND_ATTEMPTED, False) in told)
    [line, *_] = (await pipeline.trace(message_id))["news"]
    assert line["detail"].startswith("the operator was not reached")
