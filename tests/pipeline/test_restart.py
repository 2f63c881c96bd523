"""The service stops and starts again on the same folder: pending work is continued."""

from typing import Any

from tests.support.builders import APP
from tests.support.callback_sink import respond_always
from tests.support.manual_clock import ServiceClock
from tests.support.operator_proxy import OperatorProxy
from tests.support.pipeline import PipelineHarness


async def test_message_accepted_before_a_restart_is_sent_after_it(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(clock=ServiceClock())
    await pipeline.open_window()
    await pipeline.close_operator()
    message_id = await pipeline.send_text()
    await pipeline.close_service()
    await pipeline.open_operator()

    await pipeline.open_service()
    await pipeline.pass_time_until(lambda: is_called_back(pipeline, message_id, "delivered"))

    events = await pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert len(await pipeline.deliveries(message_id)) == 1


async def test_message_that_was_uncertain_before_a_restart_fails_after_it(make_pipeline: Any) -> None:
    clock = ServiceClock()
    between = OperatorProxy()
    pipeline: PipelineHarness = await make_pipeline(clock=clock, operator_proxy=between)
    await pipeline.open_window()
    between.let_webhooks_pass = False
    between.lose_responses = 1
    message_id = await pipeline.send_text()
    await pipeline.wait_for_state(message_id, "uncertain")
    await pipeline.close_service()

    await pipeline.open_service()
    clock.advance(ms=900_001)

    [failed] = await pipeline.events_of(message_id, until="failed")
    assert failed["payload"]["code"] == 4002
    assert between.sends == 1


async def test_callback_rejected_before_a_restart_is_retried_after_it_with_the_same_bytes(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(clock=ServiceClock())
    await pipeline.open_window()
    pipeline.sink.choose_status = respond_always(500)
    message_id = await pipeline.send_text()
    await pipeline.wait_for_state(message_id, "delivered")
    await pipeline.sink.wait_until(lambda: len(pipeline.sink.requests) == 2)
    await pipeline.close_service()
    pipeline.sink.choose_status = respond_always(200)

    await pipeline.open_service()
    await pipeline.pass_time_until(lambda: len(pipeline.sink.accepted) == 4)

    _, rejected, *rest = pipeline.sink.requests
    assert (rejected.body, rejected.callback_id) == (rest[0].body, rest[0].callback_id)
    assert [attempt.sequence for attempt in pipeline.sink.accepted] == [1, 2, 3, 4]


async def test_webhook_posted_while_the_service_was_stopped_is_called_back_after_its_start(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(clock=ServiceClock())
    await pipeline.open_window()
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    await pipeline.close_service()
    await pipeline.read()

    await pipeline.open_service()
    await pipeline.pass_time_until(lambda: is_called_back(pipeline, message_id, "read"))

    events = await pipeline.events_of(message_id, until="read")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered", "read"]


async def test_credentials_templates_and_subscriptions_survive_a_restart(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    template_id = await pipeline.approved_template()
    path = f"/partner/app/{APP.id}/subscription"
    headers = {"Authorization": pipeline.app_token}
    before = await pipeline.send_request("GET", path, headers=headers)
    await pipeline.close_service()

    await pipeline.open_service()

    assert (await pipeline.send_request("GET", path, headers=headers)).raw == before.raw
    message_id = await pipeline.send(template_id)
    await pipeline.events_of(message_id, until="delivered")


def is_called_back(pipeline: PipelineHarness, message_id: str, event: str) -> bool:
    """Return True if the partner has got the callback of an event."""
    return any(
        callback["payload"]["type"] == event
        and message_id in (callback["payload"]["id"], callback["payload"].get("gsId"))
        for callback in pipeline.callbacks
    )
