"""The connection to the operator breaks at the worst moment: a message is sent once, or becomes uncertain."""

import asyncio
from typing import Any

from sqlalchemy import Connection, delete

from tests.support.builders import ANN, OPERATOR, is_event
from tests.support.manual_clock import ManualClock, ServiceClock
from tests.support.operator_proxy import OperatorProxy
from tests.support.pipeline import PipelineHarness
from tests.support.polling import HANGS_AFTER_S, poll_until
from waypost.simulator.webhooks.webhooks import sign_body
from waypost.store.queue.job_subjects import JobState, QueueName
from waypost.store.queue.jobs import count_jobs_by_state
from waypost.store.tables import messages


async def test_status_before_the_response_to_a_send_is_called_back_after_enqueued(
    proxied_pipeline: PipelineHarness,
) -> None:
    between = proxy_of(proxied_pipeline)
    await proxied_pipeline.open_window()
    between.hold_response = lambda wamid: between.wait_until_forwarded("delivered", wamid)

    message_id = await proxied_pipeline.send_text()

    await proxied_pipeline.events_of(message_id, until="delivered")
    await wait_until_idle(proxied_pipeline)
    events = await proxied_pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert len(await proxied_pipeline.deliveries(message_id)) == 1


async def test_lost_response_makes_a_message_uncertain_and_it_is_not_sent_again(
    proxied_pipeline: PipelineHarness,
) -> None:
    between = proxy_of(proxied_pipeline)
    await proxied_pipeline.open_window()
    between.let_webhooks_pass = False
    between.lose_responses = 1

    message_id = await proxied_pipeline.send_text()

    trace = await proxied_pipeline.wait_for_state(message_id, "uncertain")
    assert trace["callbacks"] == []
    assert between.sends == len(await proxied_pipeline.deliveries(message_id)) == 1


async def test_status_updates_an_uncertain_message_as_if_it_had_been_enqueued(
    proxied_pipeline: PipelineHarness,
) -> None:
    between = proxy_of(proxied_pipeline)
    await proxied_pipeline.open_window()
    between.let_webhooks_pass = False
    between.lose_responses = 1
    message_id = await proxied_pipeline.send_text()
    await proxied_pipeline.wait_for_state(message_id, "uncertain")

    between.let_webhooks_pass = True

    events = await proxied_pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert events[0]["id"] == events[1]["gsId"] == message_id
    assert events[0]["payload"]["whatsappMessageId"] == events[1]["id"]
    assert between.sends == len(await proxied_pipeline.deliveries(message_id)) == 1


async def test_uncertain_message_does_not_block_the_next_one(proxied_pipeline: PipelineHarness) -> None:
    between = proxy_of(proxied_pipeline)
    await proxied_pipeline.open_window()
    between.let_webhooks_pass = False
    between.lose_responses = 1
    await proxied_pipeline.send_text("uncertain text")

    message_id = await proxied_pipeline.send_text("next")

    await proxied_pipeline.wait_for_state(message_id, "enqueued")
    assert [shown["text"] for shown in await proxied_pipeline.inbox()] == ["Hello?", "uncertain text", "next"]


async def send_uncertain(make_pipeline: Any) -> tuple[PipelineHarness, ManualClock, str]:
    """Send a message whose response is lost, and that waits 900 s for its status; return its id, too."""
    clock = ServiceClock()
    pipeline: PipelineHarness = await make_pipeline(
        operator_proxy=OperatorProxy(), clock=clock, changes={"uncertain_for_s": 900}
    )
    between = proxy_of(pipeline)
    await pipeline.open_window()
    between.let_webhooks_pass = False
    between.lose_responses = 1
    message_id = await pipeline.send_text()
    await pipeline.wait_for_state(message_id, "uncertain")
    return pipeline, clock, message_id


async def test_uncertain_message_fails_in_the_end_and_a_later_status_still_updates_it(make_pipeline: Any) -> None:
    pipeline, clock, message_id = await send_uncertain(make_pipeline)
    between = proxy_of(pipeline)
    clock.advance(ms=899_000)
    assert (await pipeline.trace(message_id))["state"] == "uncertain"

    clock.advance(ms=1_001)
    [failed] = await pipeline.events_of(message_id, until="failed")
    between.let_webhooks_pass = True
    await pipeline.pass_time_until(lambda: is_called_back(pipeline, message_id, "delivered"))

    assert failed["id"] == message_id
    assert failed["payload"]["code"] == 4002
    assert "may have arrived" in failed["payload"]["reason"]
    events = await pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["failed", "sent", "delivered"]
    assert between.sends == len(await pipeline.deliveries(message_id)) == 1


async def test_wait_for_the_status_of_a_message_ends_quietly_if_its_recipient_was_erased(make_pipeline: Any) -> None:
    pipeline, clock, message_id = await send_uncertain(make_pipeline)
    await pipeline.waypost.database.write(delete_message, message_id)

    clock.advance(ms=900_001)

    async def jobs_by_state() -> dict[Any, int]:
        return await pipeline.waypost.database.read(count_jobs_by_state, QueueName.UNCONFIRMED)

    assert await poll_until(jobs_by_state, lambda counts: not counts.get(JobState.OPEN)) == {}


async def test_retry_of_a_message_ends_quietly_if_its_recipient_was_erased_after_a_status(make_pipeline: Any) -> None:
    clock = ServiceClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    await pipeline.open_window()
    await pipeline.close_operator()
    message_id = await pipeline.send_text()
    await pipeline.waypost.database.write(delete_message, message_id)

    async def jobs_by_state() -> dict[Any, int]:
        return await pipeline.waypost.database.read(count_jobs_by_state, QueueName.OUTBOUND)

    async with asyncio.timeout(HANGS_AFTER_S):
        while {JobState.OPEN, JobState.IN_FLIGHT} & (await jobs_by_state()).keys():
            clock.advance(ms=500)
            await asyncio.sleep(0.01)

    assert await jobs_by_state() == {}


def delete_message(connection: Connection, message_id: str) -> None:
    """Delete a message as an erasure does."""
    connection.execute(delete(messages).where(messages.c.id == message_id))


async def test_message_is_sent_once_when_an_operator_that_was_down_is_up_again(make_pipeline: Any) -> None:
    clock = ServiceClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    await pipeline.open_window()
    await pipeline.close_operator()
    message_id = await pipeline.send_text()
    await pass_time_until_attempted(pipeline, clock, 3)

    await pipeline.open_operator()
    await pipeline.pass_time_until(lambda: is_called_back(pipeline, message_id, "delivered"))

    events = await pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert len(await pipeline.deliveries(message_id)) == 1


async def test_message_that_stays_unavailable_fails_after_its_lifetime(make_pipeline: Any) -> None:
    clock = ServiceClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock, changes={"message_ttl_s": 60})
    await pipeline.close_operator()
    message_id = await pipeline.send_text()

    await pipeline.pass_time_until(lambda: is_called_back(pipeline, message_id, "failed"), step_ms=5000)

    [failed] = await pipeline.events_of(message_id, until="failed")
    assert failed["id"] == message_id
    assert failed["payload"]["code"] == 4002
    await pipeline.open_operator()


async def test_template_is_submitted_when_an_operator_that_was_down_is_up_again(make_pipeline: Any) -> None:
    clock = ServiceClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    await pipeline.close_operator()
    template = await pipeline.create_template()
    await pass_time_until_attempted(pipeline, clock, 2)

    await pipeline.open_operator()
    await pipeline.pass_time_until(lambda: any(map(is_event("template-event"), pipeline.callbacks)))

    [callback] = pipeline.callbacks
    assert callback["payload"]["id"] == template["id"]
    assert callback["payload"]["status"] == "approved"


async def test_webhook_that_is_posted_twice_is_called_back_once(proxied_pipeline: PipelineHarness) -> None:
    between = proxy_of(proxied_pipeline)
    between.repeat_webhooks = 2
    await proxied_pipeline.open_window()
    message_id = await proxied_pipeline.send_text()
    await proxied_pipeline.events_of(message_id, until="delivered")

    await proxied_pipeline.read()

    await proxied_pipeline.events_of(message_id, until="read")
    await wait_until_idle(proxied_pipeline)
    kinds = [callback["payload"]["type"] for callback in proxied_pipeline.callbacks]
    assert kinds == ["text", "enqueued", "sent", "delivered", "read"]


async def test_webhook_with_a_wrong_signature_is_rejected_and_not_stored(pipeline: PipelineHarness) -> None:
    body = (
        b'{"object":"whatsapp_business_account","entry":[{"id":"1000000000000001","changes":['
        b'{"field":"messages","value":{"metadata":{"phone_number_id":"2000000000000002"},'
        b'"messages":[{"from":"15551234567","id":"wamid.forged","timestamp":"1760000000",'
        b'"type":"text","text":{"body":"Hi"}}]}}]}]}'
    )
    wrong = sign_body("another secret", body)
    right = sign_body(OPERATOR["app_secret"], body)

    forged = await post_webhook(pipeline, body, wrong)
    changed = await post_webhook(pipeline, body + b" ", right)
    unsigned = await post_webhook(pipeline, body, None)
    await wait_until_idle(pipeline)

    assert [forged, changed, unsigned] == [401, 401, 401]
    assert pipeline.callbacks == []
    assert await post_webhook(pipeline, body, right) == 200
    callback = await pipeline.wait_for_callback(is_event("message", id="wamid.forged"))
    assert callback["payload"]["source"] == ANN


def proxy_of(pipeline: PipelineHarness) -> OperatorProxy:
    """Return the proxy between the service and the operator."""
    assert pipeline.operator_proxy is not None
    return pipeline.operator_proxy


def is_called_back(pipeline: PipelineHarness, message_id: str, event: str) -> bool:
    """Return True if the partner has got the callback of an event."""
    return any(
        callback["payload"]["type"] == event
        and message_id in (callback["payload"]["id"], callback["payload"].get("gsId"))
        for callback in pipeline.callbacks
    )


async def wait_until_idle(pipeline: PipelineHarness) -> None:
    """Return when every queue is empty."""
    await poll_until(pipeline.queue_depths, lambda queues: not any(queues.values()))


async def pass_time_until_attempted(pipeline: PipelineHarness, clock: ManualClock, times: int) -> None:
    """Advance the clock until the only outbound job has been attempted so many times."""
    async with asyncio.timeout(HANGS_AFTER_S):
        while await pipeline.submission_attempts() < times:
            clock.advance(ms=500)
            await asyncio.sleep(0.01)


async def post_webhook(pipeline: PipelineHarness, body: bytes, signature: str | None) -> int:
    """Post a webhook; return the status of the response."""
    headers = {} if signature is None else {"X-Hub-Signature-256": signature}
    url = f"{pipeline.service_url}/operator/webhook/{OPERATOR.id}"
    async with pipeline.http.post(url, data=body, headers=headers) as response:
        return response.status
