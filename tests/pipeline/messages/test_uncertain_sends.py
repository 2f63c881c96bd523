"""Between service and operator the line breaks at the worst moment: sent once, or said so."""

import asyncio
from typing import Any

from tests.support.builders import ANN, OPERATOR, is_event
from tests.support.operator_proxy import Between
from tests.support.pipeline import PipelineHarness
from tests.support.waiting import HANGS_AFTER_S, patiently
from waypost.base.clock import ManualClock
from waypost.simulator.webhooks.webhooks import sign_body


async def test_status_that_overtakes_the_answer_is_called_back_after_enqueued(cut_pipeline: PipelineHarness) -> None:
    between = line_of(cut_pipeline)
    await cut_pipeline.open_window()
    between.hold_answer = lambda wamid: between.has_told("delivered", wamid)

    message_id = await cut_pipeline.send_text()

    await cut_pipeline.events_of(message_id, until="delivered")
    await no_more_entries(cut_pipeline)
    events = await cut_pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert len(await cut_pipeline.deliveries(message_id)) == 1


async def test_lost_answer_leaves_a_message_uncertain_and_it_is_not_sent_again(cut_pipeline: PipelineHarness) -> None:
    between = line_of(cut_pipeline)
    await cut_pipeline.open_window()
    between.let_webhooks_pass = False
    between.lose_answers = 1

    message_id = await cut_pipeline.send_text()

    trace = await cut_pipeline.wait_for_state(message_id, "uncertain")
    assert trace["callbacks"] == []
    assert between.sends == len(await cut_pipeline.deliveries(message_id)) == 1


async def test_status_moves_an_uncertain_message_on_as_if_nothing_had_happened(cut_pipeline: PipelineHarness) -> None:
    between = line_of(cut_pipeline)
    await cut_pipeline.open_window()
    between.let_webhooks_pass = False
    between.lose_answers = 1
    message_id = await cut_pipeline.send_text()
    await cut_pipeline.wait_for_state(message_id, "uncertain")

    between.let_webhooks_pass = True

    events = await cut_pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert events[0]["id"] == events[1]["gsId"] == message_id
    assert events[0]["payload"]["whatsappMessageId"] == events[1]["id"]
    assert between.sends == len(await cut_pipeline.deliveries(message_id)) == 1


async def test_uncertain_message_does_not_hold_up_the_next_one(cut_pipeline: PipelineHarness) -> None:
    between = line_of(cut_pipeline)
    await cut_pipeline.open_window()
    between.let_webhooks_pass = False
    between.lose_answers = 1
    await cut_pipeline.send_text("doubtful")

    message_id = await cut_pipeline.send_text("next")

    await cut_pipeline.wait_for_state(message_id, "enqueued")
    assert [shown["text"] for shown in await cut_pipeline.inbox()] == ["Hello?", "doubtful", "next"]


async def test_doubt_ends_as_failed_and_a_later_status_still_moves_it(make_pipeline: Any) -> None:
    clock = ManualClock()
    pipeline: PipelineHarness = await make_pipeline(between=Between(), clock=clock, changes={"uncertain_for_s": 900})
    between = line_of(pipeline)
    await pipeline.open_window()
    between.let_webhooks_pass = False
    between.lose_answers = 1
    message_id = await pipeline.send_text()
    await pipeline.wait_for_state(message_id, "uncertain")
    clock.advance(ms=899_000)
    assert (await pipeline.trace(message_id))["state"] == "uncertain"

    clock.advance(ms=1_001)
    [failed] = await pipeline.events_of(message_id, until="failed")
    between.let_webhooks_pass = True
    await pipeline.pass_time_until(lambda: heard(pipeline, message_id, "delivered"))

    assert failed["id"] == message_id
    assert failed["payload"]["code"] == 4002
    assert "may have arrived" in failed["payload"]["reason"]
    events = await pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["failed", "sent", "delivered"]
    assert between.sends == len(await pipeline.deliveries(message_id)) == 1


async def test_message_is_sent_once_when_an_operator_that_was_down_is_back(make_pipeline: Any) -> None:
    clock = ManualClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    await pipeline.open_window()
    await pipeline.close_operator()
    message_id = await pipeline.send_text()
    await pass_time_until_tried(pipeline, clock, 3)

    await pipeline.open_operator()
    await pipeline.pass_time_until(lambda: heard(pipeline, message_id, "delivered"))

    events = await pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert len(await pipeline.deliveries(message_id)) == 1


async def test_message_that_stays_unavailable_fails_after_its_lifetime(make_pipeline: Any) -> None:
    clock = ManualClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock, changes={"message_ttl_s": 60})
    await pipeline.close_operator()
    message_id = await pipeline.send_text()

    await pipeline.pass_time_until(lambda: heard(pipeline, message_id, "failed"), step_ms=5000)

    [failed] = await pipeline.events_of(message_id, until="failed")
    assert failed["id"] == message_id
    assert failed["payload"]["code"] == 4002
    await pipeline.open_operator()


async def test_template_is_handed_in_when_an_operator_that_was_down_is_back(make_pipeline: Any) -> None:
    clock = ManualClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    await pipeline.close_operator()
    template = await pipeline.create_template()
    await pass_time_until_tried(pipeline, clock, 2)

    await pipeline.open_operator()
    await pipeline.pass_time_until(lambda: any(map(is_event("template-event"), pipeline.callbacks)))

    [callback] = pipeline.callbacks
    assert callback["payload"]["id"] == template["id"]
    assert callback["payload"]["status"] == "approved"


async def test_webhook_that_comes_twice_is_called_back_once(cut_pipeline: PipelineHarness) -> None:
    between = line_of(cut_pipeline)
    between.repeat_webhooks = 2
    await cut_pipeline.open_window()
    message_id = await cut_pipeline.send_text()
    await cut_pipeline.events_of(message_id, until="delivered")

    await cut_pipeline.read()

    await cut_pipeline.events_of(message_id, until="read")
    await no_more_entries(cut_pipeline)
    kinds = [callback["payload"]["type"] for callback in cut_pipeline.callbacks]
    assert kinds == ["text", "enqueued", "sent", "delivered", "read"]


async def test_webhook_with_a_wrong_signature_is_refused_and_nothing_of_it_is_kept(pipeline: PipelineHarness) -> None:
    body = (
        b'{"object":"whatsapp_business_account","entry":[{"id":"1000000000000001","changes":['
        b'{"field":"messages","value":{"metadata":{"phone_number_id":"2000000000000002"},'
        b'"messages":[{"from":"15551234567","id":"wamid.forged","timestamp":"1760000000",'
        b'"type":"text","text":{"body":"Hi"}}]}}]}]}'
    )
    wrong = sign_body("another secret", body)
    right = sign_body(OPERATOR["app_secret"], body)

    refused = await deliver(pipeline, body, wrong)
    changed = await deliver(pipeline, body + b" ", right)
    unsigned = await deliver(pipeline, body, None)
    await no_more_entries(pipeline)

    assert [refused, changed, unsigned] == [401, 401, 401]
    assert pipeline.callbacks == []
    assert await deliver(pipeline, body, right) == 200
    callback = await pipeline.wait_for_callback(is_event("message", id="wamid.forged"))
    assert callback["payload"]["source"] == ANN


def line_of(pipeline: PipelineHarness) -> Between:
    """What stands between service and operator."""
    assert pipeline.between is not None
    return pipeline.between


def heard(pipeline: PipelineHarness, message_id: str, news: str) -> bool:
    """Whether the partner has been told."""
    return any(
        callback["payload"]["type"] == news
        and message_id in (callback["payload"]["id"], callback["payload"].get("gsId"))
        for callback in pipeline.callbacks
    )


async def no_more_entries(pipeline: PipelineHarness) -> None:
    """Return when no queue of the journal holds anything."""
    await patiently(pipeline.queue_depths, lambda queues: not any(queues.values()))


async def pass_time_until_tried(pipeline: PipelineHarness, clock: ManualClock, times: int) -> None:
    """Move the clock until the one submission has been tried as often as that."""
    async with asyncio.timeout(HANGS_AFTER_S):
        while await pipeline.submission_attempts() < times:
            clock.advance(ms=500)
            await asyncio.sleep(0.01)


async def deliver(pipeline: PipelineHarness, body: bytes, signed: str | None) -> int:
    """A webhook by hand; gives the answer's status."""
    headers = {} if signed is None else {"X-Hub-Signature-256": signed}
    url = f"{pipeline.service_url}/operator/webhook/{OPERATOR.id}"
    async with pipeline.http.post(url, data=body, headers=headers) as answer:
        return answer.status
