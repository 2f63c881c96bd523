"""Callbacks in versions 2 and 3: message events, billing, pauses of subscriptions, and delays."""

import hashlib
import hmac
import json
from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from tests.support.builders import ACCOUNT, ANN, APP, OPERATOR, is_event
from tests.support.manual_clock import ServiceClock
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from tests.support.version_3_receiver import open_version_3_receiver, value_of
from waypost import __version__
from waypost.assembly.components import WEBHOOK_PATH
from waypost.store.tables import callbacks, inbound_messages

pytestmark = pytest.mark.content_only

SUBSCRIPTION = f"/partner/app/{APP.id}/subscription"


@pytest.mark.holds("version-negotiation")
async def test_each_state_is_called_back_in_version_3_with_our_id_and_the_operators(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    async with open_version_3_receiver(pipeline) as receiver_v3:
        message_id = await pipeline.send_text()
        await receiver_v3.status(message_id, "delivered")
        await pipeline.read()

        statuses = [await receiver_v3.status(message_id, name) for name in ("enqueued", "sent", "delivered", "read")]
    operator_id = (await pipeline.inbox())[-1]["wamid"]
    for status in statuses:
        assert (status["id"], status["gs_id"]) == (operator_id, message_id)
        assert status["recipient_id"] == ANN
        assert "biz_opaque_callback_data" not in status
    enqueued, sent, *_ = statuses
    assert abs(int(enqueued["timestamp"]) - pipeline.clock.now_ms()) < 60_000
    assert abs(int(sent["timestamp"]) * 1000 - pipeline.clock.now_ms()) < 60_000


async def test_body_of_version_3_is_the_operators_envelope_with_the_app(pipeline: PipelineHarness) -> None:
    async with open_version_3_receiver(pipeline) as receiver_v3:
        await pipeline.reply(ANN, "Hello?")
        body = await receiver_v3.change("messages")

    assert body["object"] == "whatsapp_business_account"
    assert body["gs_app_id"] == APP.id
    assert [entry["id"] for entry in body["entry"]] == [ACCOUNT.id]


@pytest.mark.both_engines
async def test_failure_before_the_operator_accepts_a_message_is_called_back_in_both_versions(
    pipeline: PipelineHarness,
) -> None:
    template_id = await pipeline.approved_template()
    async with open_version_3_receiver(pipeline) as receiver_v3:
        message_id = await pipeline.send(template_id, params=["Ann", "one too many"])

        [failed] = await pipeline.events_of(message_id, until="failed")
        status = await receiver_v3.status(message_id, "failed")

    assert failed["id"] == message_id
    assert "gsId" not in failed
    assert status["id"] == status["gs_id"] == message_id
    assert status["errors"][0]["code"] == failed["payload"]["code"] == 132000


async def test_later_failure_is_called_back_in_both_versions(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    await pipeline.control("PUT", f"phones/{ANN}", {"deliver_after_ms": 3_600_000})
    async with open_version_3_receiver(pipeline) as receiver_v3:
        message_id = await pipeline.send_text()
        await pipeline.events_of(message_id, until="sent")
        wamid = await _find_operator_id(pipeline, message_id)
        await pipeline.control("POST", "statuses", {"message_id": wamid, "status": "failed", "code": 131026})
        events = await pipeline.events_of(message_id, until="failed")
        status = await receiver_v3.status(message_id, "failed")

    assert (events[-1]["id"], events[-1]["gsId"]) == (wamid, message_id)
    assert events[-1]["payload"]["code"] == status["errors"][0]["code"] == 131026


async def test_all_adds_nothing_to_the_modes_of_a_version_2_subscription(pipeline: PipelineHarness) -> None:
    [everything] = await _subscriptions(pipeline)
    some = await pipeline.subscribe(tag="some", modes="DELIVERED,ALL")
    await pipeline.open_window()
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    await pipeline.read()
    await pipeline.events_of(message_id, until="read")

    def read_events(connection: Connection) -> set[tuple[int, str]]:
        columns = (callbacks.c.subscription_id, callbacks.c.event)
        return {(row[0], row[1]) for row in connection.execute(select(*columns))}

    rows = await pipeline.waypost.database.read(read_events)
    assert {event for owner_id, event in rows if owner_id == int(some["id"])} == {"delivered"}
    all_events = {event for owner_id, event in rows if owner_id == int(everything["id"])}
    assert all_events > {"enqueued", "sent", "delivered", "read"}


@pytest.mark.holds("submission-states")
async def test_deleted_message_is_called_back_as_deleted(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    async with open_version_3_receiver(pipeline) as receiver_v3:
        message_id = await pipeline.send_text()
        await pipeline.events_of(message_id, until="delivered")
        wamid = await _find_operator_id(pipeline, message_id)

        await pipeline.control("POST", "statuses", {"message_id": wamid, "status": "deleted"})

        events = await pipeline.events_of(message_id, until="deleted")
        status = await receiver_v3.status(message_id, "deleted")

    assert (events[-1]["id"], events[-1]["gsId"]) == (wamid, message_id)
    assert list(events[-1]["payload"]) == ["ts"]
    assert status["id"] == wamid
    assert (await pipeline.trace(message_id))["state"] == "deleted"


@pytest.mark.both_engines
async def test_message_is_billed_once_although_several_statuses_have_a_price(pipeline: PipelineHarness) -> None:
    await pipeline.subscribe(tag="prices", modes="BILLING")
    template_id = await pipeline.approved_template()
    async with open_version_3_receiver(pipeline) as receiver_v3:
        message_id = await pipeline.send(template_id)
        await pipeline.events_of(message_id, until="delivered")
        await pipeline.read()
        await pipeline.events_of(message_id, until="read")
        change = await receiver_v3.change("billing-event")

    bills = [callback["payload"] for callback in pipeline.callbacks if callback["type"] == "billing-event"]
    operator_id = (await pipeline.inbox())[-1]["wamid"]
    assert bills == [
        {
            "deductions": {
                "type": "regular",
                "model": "PMP",
                "source": "whatsapp",
                "billable": True,
                "category": "utility",
            },
            "references": {"id": operator_id, "gsId": message_id, "destination": ANN},
        }
    ]
    billing = value_of(change)["billing"]
    assert billing["deductions"] == bills[0]["deductions"]
    assert billing["references"] == {"id": operator_id, "gs_id": message_id, "destination": ANN}


async def test_mismatch_of_a_recipients_number_is_called_back_once(proxied_pipeline: PipelineHarness) -> None:
    await proxied_pipeline.open_window()
    assert proxied_pipeline.operator_proxy is not None
    proxied_pipeline.operator_proxy.let_webhooks_pass = False
    message_id = await proxied_pipeline.send_text()
    await proxied_pipeline.wait_for_state(message_id, "enqueued")
    wamid = await _find_operator_id(proxied_pipeline, message_id)

    for status in ("sent", "delivered"):
        await _post_status(proxied_pipeline, id=wamid, status=status, recipient_id="15559990000")

    events = await proxied_pipeline.events_of(message_id, until="delivered")
    [mismatch] = [event for event in events if event["type"] == "mismatch"]
    assert mismatch == {
        "id": wamid,
        "gsId": message_id,
        "type": "mismatch",
        "destination": ANN,
        "payload": {"wa_id": "15559990000", "phone": ANN},
    }


async def test_recipient_with_another_whatsapp_id_causes_one_mismatch_and_answers_by_it(
    pipeline: PipelineHarness,
) -> None:
    number, wa_id = "5593987654321", "559387654321"
    await pipeline.control("PUT", f"phones/{number}", {"wa_id": wa_id})
    reply = await pipeline.reply(number, "Hello?")

    message_id = await pipeline.send_text(to=number)
    events = await pipeline.events_of(message_id, until="delivered")

    assert reply["payload"]["source"] == wa_id
    [mismatch] = [event for event in events if event["type"] == "mismatch"]
    assert mismatch["payload"] == {"wa_id": wa_id, "phone": number}
    assert {event["destination"] for event in events} == {number}


async def test_message_is_billed_with_the_first_status_that_has_a_price(proxied_pipeline: PipelineHarness) -> None:
    await proxied_pipeline.subscribe(tag="prices", modes="BILLING,READ")
    await proxied_pipeline.open_window()
    assert proxied_pipeline.operator_proxy is not None
    proxied_pipeline.operator_proxy.let_webhooks_pass = False
    message_id = await proxied_pipeline.send_text()
    await proxied_pipeline.wait_for_state(message_id, "enqueued")
    wamid = await _find_operator_id(proxied_pipeline, message_id)
    price = {"billable": False, "pricing_model": "CBP", "category": "service"}
    conversation = {"id": "c-1", "origin": {"type": "free_entry_point"}}

    await _post_status(proxied_pipeline, id=wamid, status="sent")
    await _post_status(proxied_pipeline, id=wamid, status="delivered", pricing=price, conversation=conversation)
    await _post_status(proxied_pipeline, id=wamid, status="read", pricing=price)

    await proxied_pipeline.events_of(message_id, until="read")
    bills = [callback["payload"] for callback in proxied_pipeline.callbacks if callback["type"] == "billing-event"]
    assert [bill["deductions"] for bill in bills] == [
        {
            "type": "service",
            "model": "CBP",
            "source": "whatsapp",
            "billable": False,
            "category": "service",
            "conversationType": "FTC",
        }
    ]
    assert bills[0]["references"]["conversationId"] == "c-1"


async def test_message_to_a_business_scoped_id_is_called_back_in_order_after_the_inbound_message(
    pipeline: PipelineHarness,
) -> None:
    await pipeline.control("PUT", f"phones/{ANN}", {"user_id": "US.1349", "username": "ann", "shows_number": False})
    inbound = await pipeline.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": "Hello?"})
    await pipeline.wait_for_callback(is_event("message", id=inbound["wamid"]))
    body = {"recipient": "US.1349", "type": "text", "text": json.dumps({"body": "Yes?"})}
    response = await pipeline.send_request(
        "POST",
        f"/partner/app/{APP.id}/v3/message",
        {"messaging_product": "whatsapp", **body},
        {"Authorization": pipeline.app_token},
    )
    message_id = response.body["messages"][0]["id"]

    events = await pipeline.events_of(message_id, until="delivered")

    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert {event["destination"] for event in events} == {"US.1349"}
    assert [attempt.sequence for attempt in pipeline.sink.accepted] == [1, 2, 3, 4]


@pytest.mark.both_engines
async def test_paused_subscription_gets_no_new_callbacks_and_loses_no_old_ones(make_pipeline: Any) -> None:
    clock = ServiceClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    subscription = (await _subscriptions(pipeline))[0]
    path = f"{SUBSCRIPTION}/{subscription['id']}"
    headers = {"Authorization": pipeline.app_token}
    pipeline.sink.choose_status = lambda _: 500
    await pipeline.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": "old"})
    await pipeline.sink.wait_until(lambda: len(pipeline.sink.requests) == 1)

    paused = await pipeline.send_request("PUT", path, {"active": "false"}, headers)
    pipeline.sink.choose_status = lambda _: 200
    await pipeline.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": "new"})
    await poll_until(lambda: pipeline.waypost.database.read(_count_inbound), lambda count: count == 2)
    clock.advance(ms=100_000)
    assert paused.body["subscription"]["active"] is False
    assert len(pipeline.sink.requests) == 1

    await pipeline.send_request("PUT", path, {"active": "true"}, headers)
    await pipeline.pass_time_until(lambda: len(pipeline.sink.requests) > 1)
    await pipeline.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": "last"})
    await pipeline.pass_time_until(lambda: len(pipeline.sink.requests) > 2)

    assert [callback["payload"]["payload"]["text"] for callback in pipeline.callbacks] == ["old", "last"]


async def test_changed_subscription_gets_callbacks_at_its_new_url(pipeline: PipelineHarness) -> None:
    subscription = (await _subscriptions(pipeline))[0]

    await pipeline.send_request(
        "PUT",
        f"{SUBSCRIPTION}/{subscription['id']}",
        {"url": f"{pipeline.sink.url}/moved", "doCheck": "false"},
        {"Authorization": pipeline.app_token},
    )
    await pipeline.reply(ANN, "Hello?")

    assert [attempt.path for attempt in pipeline.sink.accepted] == ["/callbacks/moved"]


@pytest.mark.holds("event-11", "event-52")
async def test_endpoint_url_is_pinged_with_the_body_of_its_version(pipeline: PipelineHarness) -> None:
    await pipeline.subscribe(tag="second", doCheck="true")
    await pipeline.subscribe(tag="third", doCheck="true", version="3")

    ping_v2, ping_v3 = (attempt.value for attempt in pipeline.sink.accepted)
    assert {attempt.headers["User-Agent"] for attempt in pipeline.sink.accepted} == {f"Waypost/{__version__}"}
    assert ping_v2["payload"] == {"phone": "callbackSetPhone", "type": "sandbox-start"}
    value = {"messaging_product": "whatsapp", "statuses": [{"type": "set-callback"}]}
    assert ping_v3 == {
        "object": "whatsapp_business_account",
        "entry": [{"changes": [{"field": "messages", "value": value}]}],
        "gs_app_id": APP.id,
    }


@pytest.mark.both_engines
async def test_events_are_delayed_as_long_as_configured_after_a_message_was_accepted(make_pipeline: Any) -> None:
    clock = ServiceClock()
    pipeline: PipelineHarness = await make_pipeline(clock=clock, changes={"hold_events_s": 5})
    await pipeline.open_window()
    accepted_on_ms = clock.now_ms()
    message_id = await pipeline.send_text()
    await pipeline.wait_for_state(message_id, "delivered")
    assert not [callback for callback in pipeline.callbacks if callback["type"] == "message-event"]

    await pipeline.pass_time_until(lambda: any(callback["type"] == "message-event" for callback in pipeline.callbacks))

    assert clock.now_ms() >= accepted_on_ms + 5_000
    events = await pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]


async def _find_operator_id(pipeline: PipelineHarness, message_id: str) -> str:
    [delivery] = await pipeline.deliveries(message_id)
    return delivery["wamid"]


async def _post_status(pipeline: PipelineHarness, **status: Any) -> None:
    """Post a status to the service as the operator would, with a valid signature."""
    full_status = {"timestamp": "1760000000", "recipient_id": ANN, **status}
    value = {"metadata": {"phone_number_id": APP.phone_number_id}, "statuses": [full_status]}
    entry = {"id": ACCOUNT.id, "changes": [{"field": "messages", "value": value}]}
    body = json.dumps({"object": "whatsapp_business_account", "entry": [entry]}).encode()
    digest = hmac.new(OPERATOR["app_secret"].encode(), body, hashlib.sha256).hexdigest()
    async with pipeline.http.post(
        f"{pipeline.service_url}{WEBHOOK_PATH}/{OPERATOR.id}",
        data=body,
        headers={"X-Hub-Signature-256": f"sha256={digest}"},
    ) as response:
        assert response.status == 200


async def _subscriptions(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    response = await pipeline.send_request("GET", SUBSCRIPTION, headers={"Authorization": pipeline.app_token})
    return response.body["subscriptions"]


def _count_inbound(connection: Connection) -> int:
    """Return how many inbound messages are stored; their callbacks are in the same transaction."""
    return connection.execute(select(func.count()).select_from(inbound_messages)).scalar_one()
