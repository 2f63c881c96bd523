"""One event, two bodies: what becomes of messages, what they cost, who pauses, who is told when."""

import hashlib
import hmac
import json
from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from tests.support.builders import ACCOUNT, ANN, APP, OPERATOR, is_event
from tests.support.patience import patiently
from tests.support.street import Street
from tests.support.third_version import listening, value_of
from waypost import __version__
from waypost.assembly.service import WEBHOOK_PATH
from waypost.base.clock import ManualClock
from waypost.store.tables import callbacks, inbound_messages

SUBSCRIPTION = f"/partner/app/{APP.id}/subscription"


@pytest.mark.holds("version-negotiation")
async def test_each_state_is_told_in_version_3_with_our_id_beside_the_operators(street: Street) -> None:
    await street.open_window()
    async with listening(street) as third:
        message_id = await street.send_text()
        await third.status(message_id, "delivered")
        await street.read()

        statuses = [await third.status(message_id, name) for name in ("enqueued", "sent", "delivered", "read")]
    operator_id = (await street.inbox())[-1]["wamid"]
    for status in statuses:
        assert (status["id"], status["gs_id"]) == (operator_id, message_id)
        assert status["recipient_id"] == ANN
        assert "biz_opaque_callback_data" not in status
    enqueued, sent, *_ = statuses
    assert abs(int(enqueued["timestamp"]) - street.clock.now_ms()) < 60_000
    assert abs(int(sent["timestamp"]) * 1000 - street.clock.now_ms()) < 60_000


async def test_body_of_version_3_is_the_operators_envelope_with_the_app(street: Street) -> None:
    async with listening(street) as third:
        await street.reply(ANN, "Hello?")
        body = await third.change("messages")

    assert body["object"] == "whatsapp_business_account"
    assert body["gs_app_id"] == APP.id
    assert [job["id"] for job in body["entry"]] == [ACCOUNT.id]


async def test_failure_before_the_operator_has_it_is_told_in_both_versions(street: Street) -> None:
    template_id = await street.approved_template()
    async with listening(street) as third:
        message_id = await street.send(template_id, params=["Ann", "one too many"])

        [failed] = await street.events_of(message_id, until="failed")
        status = await third.status(message_id, "failed")

    assert failed["id"] == message_id
    assert "gsId" not in failed
    assert status["id"] == status["gs_id"] == message_id
    assert status["errors"][0]["code"] == failed["payload"]["code"] == 132000


async def test_failure_that_comes_later_is_told_in_both_versions(street: Street) -> None:
    await street.open_window()
    await street.control("PUT", f"phones/{ANN}", {"deliver_after_ms": 3_600_000})
    async with listening(street) as third:
        message_id = await street.send_text()
        await street.events_of(message_id, until="sent")
        wamid = await _operator_id(street, message_id)
        await street.control("POST", "statuses", {"message_id": wamid, "status": "failed", "code": 131026})
        events = await street.events_of(message_id, until="failed")
        status = await third.status(message_id, "failed")

    assert (events[-1]["id"], events[-1]["gsId"]) == (wamid, message_id)
    assert events[-1]["payload"]["code"] == status["errors"][0]["code"] == 131026


async def test_all_adds_nothing_to_the_modes_of_a_version_2_subscription(street: Street) -> None:
    [everything] = await _subscriptions(street)
    some = await street.subscribe(tag="some", modes="DELIVERED,ALL")
    await street.open_window()
    message_id = await street.send_text()
    await street.events_of(message_id, until="delivered")
    await street.read()
    await street.events_of(message_id, until="read")

    def kept(connection: Connection) -> set[tuple[int, str]]:
        columns = (callbacks.c.subscription_id, callbacks.c.news)
        return {(row[0], row[1]) for row in connection.execute(select(*columns))}

    rows = await street.waypost.database.read(kept)
    assert {news for whose, news in rows if whose == int(some["id"])} == {"delivered"}
    all_of_it = {news for whose, news in rows if whose == int(everything["id"])}
    assert all_of_it > {"enqueued", "sent", "delivered", "read"}


@pytest.mark.holds("submission-states")
async def test_deleted_message_is_told_as_deleted(street: Street) -> None:
    await street.open_window()
    async with listening(street) as third:
        message_id = await street.send_text()
        await street.events_of(message_id, until="delivered")
        wamid = await _operator_id(street, message_id)

        await street.control("POST", "statuses", {"message_id": wamid, "status": "deleted"})

        events = await street.events_of(message_id, until="deleted")
        status = await third.status(message_id, "deleted")

    assert (events[-1]["id"], events[-1]["gsId"]) == (wamid, message_id)
    assert list(events[-1]["payload"]) == ["ts"]
    assert status["id"] == wamid
    assert (await street.trace(message_id))["state"] == "deleted"


async def test_message_is_billed_once_whatever_its_statuses_say(street: Street) -> None:
    await street.subscribe(tag="prices", modes="BILLING")
    template_id = await street.approved_template()
    async with listening(street) as third:
        message_id = await street.send(template_id)
        await street.events_of(message_id, until="delivered")
        await street.read()
        await street.events_of(message_id, until="read")
        change = await third.change("billing-event")

    bills = [one["payload"] for one in street.callbacks if one["type"] == "billing-event"]
    operator_id = (await street.inbox())[-1]["wamid"]
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


async def test_recipient_whom_the_operator_knows_by_another_number_is_told_once(cut_street: Street) -> None:
    await cut_street.open_window()
    assert cut_street.between is not None
    cut_street.between.let_webhooks_pass = False
    message_id = await cut_street.send_text()
    await cut_street.wait_for_state(message_id, "enqueued")
    wamid = await _operator_id(cut_street, message_id)

    for status in ("sent", "delivered"):
        await _tell_service(cut_street, id=wamid, status=status, recipient_id="15559990000")

    events = await cut_street.events_of(message_id, until="delivered")
    [mismatch] = [event for event in events if event["type"] == "mismatch"]
    assert mismatch == {
        "id": wamid,
        "gsId": message_id,
        "type": "mismatch",
        "destination": ANN,
        "payload": {"wa_id": "15559990000", "phone": ANN},
    }


async def test_message_is_billed_with_the_first_status_that_has_a_price(cut_street: Street) -> None:
    await cut_street.subscribe(tag="prices", modes="BILLING,READ")
    await cut_street.open_window()
    assert cut_street.between is not None
    cut_street.between.let_webhooks_pass = False
    message_id = await cut_street.send_text()
    await cut_street.wait_for_state(message_id, "enqueued")
    wamid = await _operator_id(cut_street, message_id)
    price = {"billable": False, "pricing_model": "CBP", "category": "service"}
    talk = {"id": "c-1", "origin": {"type": "free_entry_point"}}

    await _tell_service(cut_street, id=wamid, status="sent")
    await _tell_service(cut_street, id=wamid, status="delivered", pricing=price, conversation=talk)
    await _tell_service(cut_street, id=wamid, status="read", pricing=price)

    await cut_street.events_of(message_id, until="read")
    bills = [one["payload"] for one in cut_street.callbacks if one["type"] == "billing-event"]
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


async def test_message_to_a_business_scoped_id_is_told_in_order_with_what_it_answers(street: Street) -> None:
    await street.control("PUT", f"phones/{ANN}", {"user_id": "US.1349", "username": "ann", "shows_number": False})
    told = await street.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": "Hello?"})
    await street.wait_for_callback(is_event("message", id=told["wamid"]))
    body = {"recipient": "US.1349", "type": "text", "text": json.dumps({"body": "Yes?"})}
    answer = await street.ask(
        "POST",
        f"/partner/app/{APP.id}/v3/message",
        {"messaging_product": "whatsapp", **body},
        {"Authorization": street.app_token},
    )
    message_id = answer.body["messages"][0]["id"]

    events = await street.events_of(message_id, until="delivered")

    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert {event["destination"] for event in events} == {"US.1349"}
    assert [one.sequence for one in street.sink.taken] == [1, 2, 3, 4]


async def test_paused_subscription_hears_nothing_new_and_loses_nothing_old(make_street: Any) -> None:
    clock = ManualClock()
    street: Street = await make_street(clock=clock)
    subscription = (await _subscriptions(street))[0]
    path = f"{SUBSCRIPTION}/{subscription['id']}"
    headers = {"Authorization": street.app_token}
    street.sink.answers = lambda _: 500
    await street.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": "old"})
    await street.sink.wait_until(lambda: len(street.sink.tries) == 1)

    paused = await street.ask("PUT", path, {"active": "false"}, headers)
    street.sink.answers = lambda _: 200
    await street.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": "new"})
    await patiently(lambda: street.waypost.database.read(_received), lambda count: count == 2)
    clock.advance(ms=100_000)
    assert paused.body["subscription"]["active"] is False
    assert len(street.sink.tries) == 1

    await street.ask("PUT", path, {"active": "true"}, headers)
    await street.pass_time_until(lambda: len(street.sink.tries) > 1)
    await street.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": "last"})
    await street.pass_time_until(lambda: len(street.sink.tries) > 2)

    assert [one["payload"]["payload"]["text"] for one in street.callbacks] == ["old", "last"]


async def test_changed_subscription_is_told_at_its_new_address(street: Street) -> None:
    subscription = (await _subscriptions(street))[0]

    await street.ask(
        "PUT",
        f"{SUBSCRIPTION}/{subscription['id']}",
        {"url": f"{street.sink.url}/moved", "doCheck": "false"},
        {"Authorization": street.app_token},
    )
    await street.reply(ANN, "Hello?")

    assert [one.path for one in street.sink.taken] == ["/callbacks/moved"]


async def test_address_is_pinged_in_the_words_of_its_version(street: Street) -> None:
    await street.subscribe(tag="second", doCheck="true")
    await street.subscribe(tag="third", doCheck="true", version="3")

    second, third = (one.value for one in street.sink.taken)
    assert {one.headers["User-Agent"] for one in street.sink.taken} == {f"Waypost/{__version__}"}
    assert second["payload"] == {"phone": "callbackSetPhone", "type": "sandbox-start"}
    assert value_of(third)["statuses"] == [{"type": "set-callback"}]
    assert third["gs_app_id"] == APP.id


async def test_events_are_held_back_as_long_as_set_after_a_message_was_accepted(make_street: Any) -> None:
    clock = ManualClock()
    street: Street = await make_street(clock=clock, changes={"hold_events_s": 5})
    await street.open_window()
    accepted_ms = clock.now_ms()
    message_id = await street.send_text()
    await street.wait_for_state(message_id, "delivered")
    assert not [one for one in street.callbacks if one["type"] == "message-event"]

    await street.pass_time_until(lambda: any(one["type"] == "message-event" for one in street.callbacks))

    assert clock.now_ms() >= accepted_ms + 5_000
    events = await street.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]


async def _operator_id(street: Street, message_id: str) -> str:
    [delivery] = await street.deliveries(message_id)
    return delivery["wamid"]


async def _tell_service(street: Street, **status: Any) -> None:
    """Tell the service a status as the operator would, rightly signed."""
    given = {"timestamp": "1760000000", "recipient_id": ANN, **status}
    value = {"metadata": {"phone_number_id": APP.phone_number_id}, "statuses": [given]}
    job = {"id": ACCOUNT.id, "changes": [{"field": "messages", "value": value}]}
    body = json.dumps({"object": "whatsapp_business_account", "entry": [job]}).encode()
    digest = hmac.new(OPERATOR["app_secret"].encode(), body, hashlib.sha256).hexdigest()
    async with street.http.post(
        f"{street.service_url}{WEBHOOK_PATH}/{OPERATOR.id}",
        data=body,
        headers={"X-Hub-Signature-256": f"sha256={digest}"},
    ) as answer:
        assert answer.status == 200


async def _subscriptions(street: Street) -> list[dict[str, Any]]:
    answer = await street.ask("GET", SUBSCRIPTION, headers={"Authorization": street.app_token})
    return answer.body["subscriptions"]


def _received(connection: Connection) -> int:
    """How many messages of phones have been applied; callbacks are made in the same transaction."""
    return connection.execute(select(func.count()).select_from(inbound_messages)).scalar_one()
