"""Passthrough messages reach the operator unchanged; group messages create no recipients."""

import json
from asyncio import sleep
from typing import Any, Final

import pytest
from sqlalchemy import Connection, select

from tests.support.builders import ANN, APP, is_event
from tests.support.groups import call_group_api, open_group
from tests.support.operator_webhook import post_messages_change
from tests.support.pipeline import API_KEY, PipelineHarness
from tests.support.polling import poll_until
from tests.support.recording_operator_proxy import RecordedSends
from tests.support.version_3_receiver import Version3Receiver, open_version_3_receiver, value_of
from waypost.store.tables import inbound_messages, recipients, webhook_items

BO: Final = "15557654321"
GROUP: Final = "Y2FwaV9ncm91cDoxMjM0NTY3ODkw"
PATH: Final = f"/partner/app/{APP.id}/v3/message"
TEXT: Final = {"messaging_product": "whatsapp", "to": ANN, "type": "text", "text": {"body": "Hello"}}


async def post_passthrough(pipeline: PipelineHarness, body: dict[str, Any]) -> Any:
    """Post a JSON body to the passthrough."""
    async with pipeline.http.post(
        pipeline.service_url + PATH, json=body, headers={"Authorization": pipeline.app_token}
    ) as response:
        return response.status, await response.json()


@pytest.fixture
async def pipeline(make_pipeline: Any) -> PipelineHarness:
    """A pipeline with a proxy before the operator that records what is sent."""
    return await make_pipeline(operator_proxy=RecordedSends())


async def sent_body(pipeline: PipelineHarness, message_id: str) -> dict[str, Any]:
    """Return the body that the operator got, once it has it."""
    assert isinstance(pipeline.operator_proxy, RecordedSends)
    bodies = pipeline.operator_proxy.bodies
    await poll_until(lambda: sleep(0, bodies), lambda bodies: message_id in bodies)
    return bodies[message_id]


async def read_recipients(pipeline: PipelineHarness) -> list[Any]:
    def read(connection: Connection) -> list[Any]:
        return list(connection.execute(select(recipients)).all())

    return await pipeline.waypost.database.read(read)


def make_group_message(**more: Any) -> dict[str, Any]:
    return {
        "from": ANN, "id": "wamid.g1", "timestamp": "1760000000", "type": "text",
        "text": {"body": "Hello all"}, "group_id": GROUP, **more,
    }  # fmt: skip


async def test_message_to_a_group_is_sent_there_and_creates_no_recipient(pipeline: PipelineHarness) -> None:
    async with open_version_3_receiver(pipeline, "GROUP_MESSAGING_EVENTS,ENQUEUED") as receiver_v3:
        group_id = await open_group(pipeline, BO)
        status, response = await post_passthrough(pipeline, TEXT | {"to": group_id, "recipient_type": "group"})
        message_id = response["messages"][0]["id"]
        body = await sent_body(pipeline, message_id)
        sent = await receiver_v3.status(message_id, "sent")
        enqueued = await receiver_v3.status(message_id, "enqueued")

    assert status == 200
    assert response["contacts"] == [{"input": group_id, "wa_id": group_id}]
    assert body == TEXT | {"to": group_id, "recipient_type": "group", "biz_opaque_callback_data": message_id}
    assert (sent["recipient_id"], sent["recipient_type"]) == (group_id, "group")
    assert (enqueued["recipient_id"], enqueued["recipient_type"]) == (group_id, "group")
    assert type(enqueued["timestamp"]) is int
    assert await read_recipients(pipeline) == []
    assert (await pipeline.trace(message_id))["recipient_id"] is None


async def test_version_2_gets_only_the_enqueued_event_of_a_message_to_a_group(pipeline: PipelineHarness) -> None:
    group_id = await open_group(pipeline, ANN)
    _, response = await post_passthrough(pipeline, TEXT | {"to": group_id, "recipient_type": "group"})
    message_id = response["messages"][0]["id"]
    await pipeline.wait_for_state(message_id, "delivered")
    await pipeline.reply(BO, "Done")

    events = [callback["payload"] for callback in pipeline.callbacks if callback["type"] == "message-event"]
    assert [(event["type"], event["destination"]) for event in events] == [("enqueued", group_id)]


@pytest.mark.holds("event-77")
async def test_every_members_status_is_called_back(pipeline: PipelineHarness) -> None:
    group_id = await open_group(pipeline, ANN, BO)
    async with open_version_3_receiver(pipeline, "GROUP_MESSAGING_EVENTS") as receiver_v3:
        _, response = await post_passthrough(pipeline, TEXT | {"to": group_id, "recipient_type": "group"})
        message_id = response["messages"][0]["id"]
        await receiver_v3.sink.wait_for(lambda _: True, count=3)
        await pipeline.control("POST", f"phones/{BO}/groups/{group_id}/read", {})
        bodies = await receiver_v3.sink.wait_for(lambda _: True, count=4)

    statuses = [value_of(body)["statuses"][0] for body in bodies]
    assert {status["gs_id"] for status in statuses} == {message_id}
    assert {(status["recipient_id"], status["recipient_type"]) for status in statuses} == {(group_id, "group")}
    assert sorted((status["status"], status.get("recipient_participant_id", "")) for status in statuses) == [
        ("delivered", ANN), ("delivered", BO), ("read", BO), ("sent", ""),
    ]  # fmt: skip
    assert (await pipeline.trace(message_id))["state"] == "read"
    assert await read_recipients(pipeline) == []


async def test_statuses_of_participants_without_numbers_are_told_apart(pipeline: PipelineHarness) -> None:
    group_id = await open_group(pipeline, ANN, BO)
    await pipeline.control("PUT", "settings", {"user_ids": True})
    for phone in (ANN, BO):
        await pipeline.control("PUT", f"phones/{phone}", {"shows_number": False})
    async with open_version_3_receiver(pipeline, "GROUP_MESSAGING_EVENTS") as receiver_v3:
        await post_passthrough(pipeline, TEXT | {"to": group_id, "recipient_type": "group"})
        bodies = await receiver_v3.sink.wait_for(lambda _: True, count=3)

    statuses = [value_of(body)["statuses"][0] for body in bodies]
    assert all("recipient_participant_id" not in status for status in statuses)
    assert len({status.get("recipient_participant_user_id") for status in statuses}) == 3


async def test_message_to_an_unknown_group_fails(pipeline: PipelineHarness) -> None:
    _, response = await post_passthrough(pipeline, TEXT | {"to": GROUP, "recipient_type": "group"})

    trace = await pipeline.wait_for_state(response["messages"][0]["id"], "failed")

    assert trace["code"] == 131041


@pytest.mark.holds("event-74", "event-75")
async def test_changes_of_a_group_are_called_back(pipeline: PipelineHarness) -> None:
    async with open_version_3_receiver(pipeline, "GROUP_ACCOUNT_EVENTS") as receiver_v3:
        group_id = await open_group(pipeline, ANN)
        created = await receiver_v3.change("group_lifecycle_update")
        added = await receiver_v3.change("group_participants_update")
        listed = await call_group_api(pipeline, "GET")
        removal = await call_group_api(pipeline, "DELETE", f"/{group_id}/participants", participants=[{"user": ANN}])
        deletion = await call_group_api(pipeline, "DELETE", f"/{group_id}")
        bodies = await receiver_v3.sink.wait_for(lambda _: True, count=4)

    [group] = value_of(created)["groups"]
    assert group["timestamp"] == int(group["timestamp"])
    assert {name: group[name] for name in ("type", "group_id", "subject", "description", "join_approval_mode")} == {
        "type": "group_create", "group_id": group_id, "subject": "Tea", "description": "All about tea",
        "join_approval_mode": "auto_approve",
    }  # fmt: skip
    assert group["invite_link"].startswith("https://chat.whatsapp.com/")
    assert [item["id"] for item in listed["data"]] == [group_id]
    [participant] = value_of(added)["groups"]
    assert (participant["type"], participant["reason"]) == ("group_participants_add", "invite_link")
    assert [item["wa_id"] for item in participant["added_participants"]] == [ANN]
    changes = [value_of(body)["groups"][0] for body in bodies]
    by_request = {change["request_id"]: change["type"] for change in changes if "request_id" in change}
    assert by_request[removal["request_id"]] == "group_participants_remove"
    assert by_request[deletion["request_id"]] == "group_delete"


@pytest.mark.holds("event-76")
async def test_message_of_a_phone_in_a_group_is_called_back(pipeline: PipelineHarness) -> None:
    group_id = await open_group(pipeline, ANN, BO)
    async with open_version_3_receiver(pipeline, "GROUP_MESSAGING_EVENTS") as receiver_v3:
        written = await pipeline.control("POST", f"phones/{ANN}/groups/{group_id}/messages", {"text": "Hello all"})
        value = await receiver_v3.message(written["wamid"])

    [message] = value["messages"]
    assert (message["from"], message["group_id"], message["type"]) == (ANN, group_id, "text")
    assert message["text"] == {"body": "Hello all"}
    assert [contact["wa_id"] for contact in value["contacts"]] == [ANN]
    assert await read_recipients(pipeline) == []


@pytest.mark.parametrize("modes", ["MESSAGE", "GROUP_MESSAGING_EVENTS", "MESSAGE,GROUP_MESSAGING_EVENTS", "ALL"])
async def test_message_from_a_group_reaches_no_private_conversation(pipeline: PipelineHarness, modes: str) -> None:
    await pipeline.open_window(BO)
    before = await read_recipients(pipeline)
    async with open_version_3_receiver(pipeline, modes) as receiver_v3:
        await post_messages_change(
            pipeline, messages=[make_group_message()], contacts=[{"wa_id": ANN, "profile": {"name": "Ann"}}]
        )
        value = await receiver_v3.message("wamid.g1")
        await pipeline.reply(BO, "Private")

    def read_rows(connection: Connection) -> list[Any]:
        query = select(inbound_messages.c.recipient_id, webhook_items.c.item).join(
            webhook_items, webhook_items.c.id == inbound_messages.c.item_id
        ).where(inbound_messages.c.operator_message_id == "wamid.g1")  # fmt: skip
        return list(connection.execute(query).all())

    assert value["messages"] == [make_group_message()]
    assert value["contacts"] == [{"wa_id": ANN, "profile": {"name": "Ann"}}]
    assert [row.phone_number for row in await read_recipients(pipeline)] == [row.phone_number for row in before] == [BO]
    [row] = await pipeline.waypost.database.read(read_rows)
    assert row.recipient_id == 0
    contents = [callback["payload"]["payload"] for callback in pipeline.callbacks if is_event("message")(callback)]
    assert {"text": "Hello all"} not in contents
    groups = [
        callback
        for callback in receiver_v3.sink.callbacks
        if value_of(callback).get("messages", [{}])[0].get("group_id")
    ]
    assert len(groups) == 1


async def test_message_from_a_group_does_not_open_a_closed_window(pipeline: PipelineHarness) -> None:
    """Ann is a recipient whose window is closed: she has not written for a day."""
    await pipeline.open_window(ANN)
    [before] = await read_recipients(pipeline)
    async with open_version_3_receiver(pipeline, "ALL") as receiver_v3:
        later = str(pipeline.clock.now_ms() // 1000 + 3600)
        await post_messages_change(pipeline, messages=[make_group_message(timestamp=later)])
        await receiver_v3.message("wamid.g1")

    [after] = await read_recipients(pipeline)
    assert after == before


async def test_message_from_a_group_is_fetched_without_a_sender(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    await post_messages_change(pipeline, messages=[make_group_message()])
    await receiver_v3.message("wamid.g1")

    response = await pipeline.send_request("GET", f"/wa/app/{APP.id}/msg/wamid.g1", headers={"apikey": API_KEY})

    assert response.status == 200, response
    assert "source" not in response.body["message"]


@pytest.mark.parametrize(("category", "ttl_s"), [("utility", 600), ("authentication", 900), ("UTILITY", None)])
async def test_direct_send_keeps_its_category_and_its_lifetime(
    pipeline: PipelineHarness, category: str, ttl_s: int | None
) -> None:
    """Without an open window a plain text fails; with a category it is delivered."""
    direct = {"category": category} | ({"ttl_seconds": ttl_s} if ttl_s else {})

    _, response = await post_passthrough(pipeline, TEXT | direct)
    message_id = response["messages"][0]["id"]
    await pipeline.wait_for_state(message_id, "delivered")

    assert await sent_body(pipeline, message_id) == TEXT | direct | {
        "recipient_type": "individual", "biz_opaque_callback_data": message_id,
    }  # fmt: skip
    [shown] = await pipeline.inbox()
    assert shown["text"] == "Hello"


async def test_status_of_direct_send_names_the_generated_template_in_version_3(pipeline: PipelineHarness) -> None:
    """A template that the operator generated appears in its statuses, which are called back as given."""
    async with open_version_3_receiver(pipeline, "SENT") as receiver_v3:
        _, response = await post_passthrough(pipeline, TEXT | {"category": "utility", "ttl_seconds": 600})
        sent = await receiver_v3.status(response["messages"][0]["id"], "sent")

    assert sent["template_id"].isdecimal()
    assert sent["pricing"]["category"] == "utility"


@pytest.mark.parametrize(("access", "code"), [("NOT_ENABLED", 100), ("RESTRICTED", 139200), ("RATE_LIMITED", 131064)])
async def test_direct_send_of_an_account_that_may_not_use_it_fails_with_the_operators_code(
    pipeline: PipelineHarness, access: str, code: int
) -> None:
    await pipeline.control("PUT", f"accounts/{APP.business_account_id}/direct-send", {"access": access})

    _, response = await post_passthrough(pipeline, TEXT | {"category": "utility"})
    message_id = response["messages"][0]["id"]
    await pipeline.wait_for_state(message_id, "failed")

    assert (await pipeline.trace(message_id))["code"] == code


async def test_text_without_a_category_is_no_direct_send(pipeline: PipelineHarness) -> None:
    _, response = await post_passthrough(pipeline, TEXT)
    message_id = response["messages"][0]["id"]

    trace = await pipeline.wait_for_state(message_id, "failed")

    assert trace["code"] == 131047


@pytest.mark.parametrize(
    "wrong",
    [{"category": "marketing"}, {"category": "utility", "ttl_seconds": 29}, {"ttl_seconds": 600}],
    ids=json.dumps,
)
async def test_error_for_an_invalid_direct_send_names_the_member(
    pipeline: PipelineHarness, wrong: dict[str, Any]
) -> None:
    _, response = await post_passthrough(pipeline, TEXT | wrong)

    trace = await pipeline.wait_for_state(response["messages"][0]["id"], "failed")

    assert trace["code"] == 100
    assert list(wrong)[-1] in trace["reason"]


@pytest.mark.parametrize("to", [f"+{ANN}", f"{ANN[:1]} {ANN[1:4]} {ANN[4:]}", f" {ANN} ", ANN, int(ANN)])
async def test_recipient_is_sent_exactly_as_received_and_stored_as_digits(
    pipeline: PipelineHarness, to: str | int
) -> None:
    await pipeline.open_window()

    _, response = await post_passthrough(pipeline, TEXT | {"to": to})
    message_id = response["messages"][0]["id"]
    body = await sent_body(pipeline, message_id)

    assert body["to"] == to
    assert (await pipeline.trace(message_id))["destination"] == ANN


async def test_partners_own_callback_data_is_called_back_with_a_status(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    await pipeline.open_window()

    _, response = await post_passthrough(pipeline, TEXT | {"biz_opaque_callback_data": "order 7, part 2"})
    message_id = response["messages"][0]["id"]
    body = await sent_body(pipeline, message_id)
    delivered = await receiver_v3.status(message_id, "delivered")

    assert body["biz_opaque_callback_data"] == f"{message_id} order 7, part 2"
    assert delivered["biz_opaque_callback_data"] == "order 7, part 2"


async def test_context_keeps_its_other_members_and_gets_the_operators_id(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    first = await pipeline.send_text()
    await pipeline.events_of(first, until="delivered")
    [delivery] = await pipeline.deliveries(first)

    _, response = await post_passthrough(pipeline, TEXT | {"context": {"message_id": first, "odd": [1, None]}})
    body = await sent_body(pipeline, response["messages"][0]["id"])

    assert body["context"] == {"message_id": delivery["wamid"], "odd": [1, None]}
