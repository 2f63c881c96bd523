"""The service stops and starts again on the same folder: whatever waited goes on."""

from typing import Any

from tests.support.builders import APP
from tests.support.callback_sink import always
from tests.support.operator_proxy import Between
from tests.support.pipeline import PipelineHarness
from waypost.base.clock import ManualClock


async def test_message_taken_before_a_restart_is_sent_after_it(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(clock=ManualClock())
    await pipeline.open_window()
    await pipeline.close_operator()
    message_id = await pipeline.send_text()
    await pipeline.close_service()
    await pipeline.open_operator()

    await pipeline.open_service()
    await pipeline.pass_time_until(lambda: has_come(pipeline, message_id, "delivered"))

    events = await pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert len(await pipeline.deliveries(message_id)) == 1


async def test_doubt_of_before_a_restart_ends_after_it(make_pipeline: Any) -> None:
    clock = ManualClock()
    between = Between()
    pipeline: PipelineHarness = await make_pipeline(clock=clock, between=between)
    await pipeline.open_window()
    between.let_webhooks_pass = False
    between.lose_answers = 1
    message_id = await pipeline.send_text()
    await pipeline.wait_for_state(message_id, "uncertain")
    await pipeline.close_service()

    await pipeline.open_service()
    clock.advance(ms=900_001)

    [failed] = await pipeline.events_of(message_id, until="failed")
    assert failed["payload"]["code"] == 4002
    assert between.sends == 1


async def test_callback_refused_before_a_restart_comes_after_it_with_the_same_bytes(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(clock=ManualClock())
    await pipeline.open_window()
    pipeline.sink.answers = always(500)
    message_id = await pipeline.send_text()
    await pipeline.wait_for_state(message_id, "delivered")
    await pipeline.sink.wait_until(lambda: len(pipeline.sink.tries) == 2)
    await pipeline.close_service()
    pipeline.sink.answers = always(200)

    await pipeline.open_service()
    await pipeline.pass_time_until(lambda: len(pipeline.sink.taken) == 4)

    _, refused, *rest = pipeline.sink.tries
    assert (refused.body, refused.callback_id) == (rest[0].body, rest[0].callback_id)
    assert [one.sequence for one in pipeline.sink.taken] == [1, 2, 3, 4]


async def test_news_that_came_while_the_service_was_stopped_arrives_after_it(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(clock=ManualClock())
    await pipeline.open_window()
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    await pipeline.close_service()
    await pipeline.read()

    await pipeline.open_service()
    await pipeline.pass_time_until(lambda: has_come(pipeline, message_id, "read"))

    events = await pipeline.events_of(message_id, until="read")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered", "read"]


async def test_credentials_templates_and_subscriptions_outlive_a_restart(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    template_id = await pipeline.approved_template()
    path = f"/partner/app/{APP.id}/subscription"
    headers = {"Authorization": pipeline.app_token}
    before = await pipeline.ask("GET", path, headers=headers)
    await pipeline.close_service()

    await pipeline.open_service()

    assert (await pipeline.ask("GET", path, headers=headers)).raw == before.raw
    message_id = await pipeline.send(template_id)
    await pipeline.events_of(message_id, until="delivered")


def has_come(pipeline: PipelineHarness, message_id: str, news: str) -> bool:
    """Whether the partner has been told."""
    return any(
        callback["payload"]["type"] == news
        and message_id in (callback["payload"]["id"], callback["payload"].get("gsId"))
        for callback in pipeline.callbacks
    )
