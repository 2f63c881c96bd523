"""Between service and operator the line breaks at the worst moment: sent once, or said so."""

import asyncio
from typing import Any

from tests.support.between import Between
from tests.support.builders import ANN, OPERATOR, is_event
from tests.support.patience import HANGS_AFTER_S, patiently
from tests.support.street import Street
from waypost.base.clock import ManualClock
from waypost.simulator.webhooks.webhooks import sign_body


async def test_status_that_overtakes_the_answer_is_called_back_after_enqueued(cut_street: Street) -> None:
    between = line_of(cut_street)
    await cut_street.open_window()
    between.hold_answer = lambda wamid: between.has_told("delivered", wamid)

    message_id = await cut_street.send_text()

    await cut_street.events_of(message_id, until="delivered")
    await no_more_entries(cut_street)
    events = await cut_street.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert len(await cut_street.deliveries(message_id)) == 1


async def test_lost_answer_leaves_a_message_uncertain_and_it_is_not_sent_again(cut_street: Street) -> None:
    between = line_of(cut_street)
    await cut_street.open_window()
    between.let_webhooks_pass = False
    between.lose_answers = 1

    message_id = await cut_street.send_text()

    trace = await cut_street.wait_for_state(message_id, "uncertain")
    assert trace["callbacks"] == []
    assert between.sends == len(await cut_street.deliveries(message_id)) == 1


async def test_status_moves_an_uncertain_message_on_as_if_nothing_had_happened(cut_street: Street) -> None:
    between = line_of(cut_street)
    await cut_street.open_window()
    between.let_webhooks_pass = False
    between.lose_answers = 1
    message_id = await cut_street.send_text()
    await cut_street.wait_for_state(message_id, "uncertain")

    between.let_webhooks_pass = True

    events = await cut_street.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert events[0]["id"] == events[1]["gsId"] == message_id
    assert events[0]["payload"]["whatsappMessageId"] == events[1]["id"]
    assert between.sends == len(await cut_street.deliveries(message_id)) == 1


async def test_uncertain_message_does_not_hold_up_the_next_one(cut_street: Street) -> None:
    between = line_of(cut_street)
    await cut_street.open_window()
    between.let_webhooks_pass = False
    between.lose_answers = 1
    await cut_street.send_text("doubtful")

    message_id = await cut_street.send_text("next")

    await cut_street.wait_for_state(message_id, "enqueued")
    assert [shown["text"] for shown in await cut_street.inbox()] == ["Hello?", "doubtful", "next"]


async def test_doubt_ends_as_failed_and_a_later_status_still_moves_it(make_street: Any) -> None:
    clock = ManualClock()
    street: Street = await make_street(between=Between(), clock=clock, changes={"uncertain_for_s": 900})
    between = line_of(street)
    await street.open_window()
    between.let_webhooks_pass = False
    between.lose_answers = 1
    message_id = await street.send_text()
    await street.wait_for_state(message_id, "uncertain")
    clock.advance(ms=899_000)
    assert (await street.trace(message_id))["state"] == "uncertain"

    clock.advance(ms=1_001)
    [failed] = await street.events_of(message_id, until="failed")
    between.let_webhooks_pass = True
    await street.pass_time_until(lambda: heard(street, message_id, "delivered"))

    assert failed["id"] == message_id
    assert failed["payload"]["code"] == 4002
    assert "may have arrived" in failed["payload"]["reason"]
    events = await street.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["failed", "sent", "delivered"]
    assert between.sends == len(await street.deliveries(message_id)) == 1


async def test_message_is_sent_once_when_an_operator_that_was_down_is_back(make_street: Any) -> None:
    clock = ManualClock()
    street: Street = await make_street(clock=clock)
    await street.open_window()
    await street.close_operator()
    message_id = await street.send_text()
    await pass_time_until_tried(street, clock, 3)

    await street.open_operator()
    await street.pass_time_until(lambda: heard(street, message_id, "delivered"))

    events = await street.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert len(await street.deliveries(message_id)) == 1


async def test_message_that_stays_unavailable_fails_after_its_lifetime(make_street: Any) -> None:
    clock = ManualClock()
    street: Street = await make_street(clock=clock, changes={"message_ttl_s": 60})
    await street.close_operator()
    message_id = await street.send_text()

    await street.pass_time_until(lambda: heard(street, message_id, "failed"), step_ms=5000)

    [failed] = await street.events_of(message_id, until="failed")
    assert failed["id"] == message_id
    assert failed["payload"]["code"] == 4002
    await street.open_operator()


async def test_template_is_handed_in_when_an_operator_that_was_down_is_back(make_street: Any) -> None:
    clock = ManualClock()
    street: Street = await make_street(clock=clock)
    await street.close_operator()
    template = await street.create_template()
    await pass_time_until_tried(street, clock, 2)

    await street.open_operator()
    await street.pass_time_until(lambda: any(map(is_event("template-event"), street.callbacks)))

    [callback] = street.callbacks
    assert callback["payload"]["id"] == template["id"]
    assert callback["payload"]["status"] == "approved"


async def test_webhook_that_comes_twice_is_called_back_once(cut_street: Street) -> None:
    between = line_of(cut_street)
    between.repeat_webhooks = 2
    await cut_street.open_window()
    message_id = await cut_street.send_text()
    await cut_street.events_of(message_id, until="delivered")

    await cut_street.read()

    await cut_street.events_of(message_id, until="read")
    await no_more_entries(cut_street)
    kinds = [callback["payload"]["type"] for callback in cut_street.callbacks]
    assert kinds == ["text", "enqueued", "sent", "delivered", "read"]


async def test_webhook_with_a_wrong_signature_is_refused_and_nothing_of_it_is_kept(street: Street) -> None:
    body = (
        b'{"object":"whatsapp_business_account","entry":[{"id":"1000000000000001","changes":['
        b'{"field":"messages","value":{"metadata":{"phone_number_id":"2000000000000002"},'
        b'"messages":[{"from":"15551234567","id":"wamid.forged","timestamp":"1760000000",'
        b'"type":"text","text":{"body":"Hi"}}]}}]}]}'
    )
    wrong = sign_body("another secret", body)
    right = sign_body(OPERATOR["app_secret"], body)

    refused = await deliver(street, body, wrong)
    changed = await deliver(street, body + b" ", right)
    unsigned = await deliver(street, body, None)
    await no_more_entries(street)

    assert [refused, changed, unsigned] == [401, 401, 401]
    assert street.callbacks == []
    assert await deliver(street, body, right) == 200
    callback = await street.wait_for_callback(is_event("message", id="wamid.forged"))
    assert callback["payload"]["source"] == ANN


def line_of(street: Street) -> Between:
    """What stands between service and operator."""
    assert street.between is not None
    return street.between


def heard(street: Street, message_id: str, news: str) -> bool:
    """Whether the partner has been told."""
    return any(
        callback["payload"]["type"] == news
        and message_id in (callback["payload"]["id"], callback["payload"].get("gsId"))
        for callback in street.callbacks
    )


async def no_more_entries(street: Street) -> None:
    """Return when no queue of the journal holds anything."""
    await patiently(street.queue_depths, lambda queues: not any(queues.values()))


async def pass_time_until_tried(street: Street, clock: ManualClock, times: int) -> None:
    """Move the clock until the one submission has been tried as often as that."""
    async with asyncio.timeout(HANGS_AFTER_S):
        while await street.submission_attempts() < times:
            clock.advance(ms=500)
            await asyncio.sleep(0.01)


async def deliver(street: Street, body: bytes, signed: str | None) -> int:
    """A webhook by hand; gives the answer's status."""
    headers = {} if signed is None else {"X-Hub-Signature-256": signed}
    url = f"{street.service_url}/operator/webhook/{OPERATOR.id}"
    async with street.http.post(url, data=body, headers=headers) as answer:
        return answer.status
