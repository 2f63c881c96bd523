"""A number and the WhatsApp id that differs from it are one person, in whichever order the service meets them."""

import asyncio
from typing import Any, Final

import pytest

from tests.support.builders import ANN, APP, PARTNER, is_event
from tests.support.operator_webhook import post_messages_change
from tests.support.pipeline import API_KEY, PipelineHarness
from tests.support.polling import poll_until
from waypost.store.console.conversations import ConversationFilter, list_conversations
from waypost.store.messages.received import search_inbound
from waypost.store.messages.search import MessageFilter, search_messages
from waypost.store.messages.threads import ThreadRecipient, search_thread

NUMBER, WHATSAPP_ID = "5593987654321", "559387654321"
NUMBERS: Final = ((NUMBER, WHATSAPP_ID), ("525512345678", "5215512345678"), ("541123456789", "5491123456789"))
"""Brazil's ninth digit, Mexico's 1 and Argentina's 9."""


async def set_whatsapp_id(pipeline: PipelineHarness, number: str = NUMBER, whatsapp_id: str = WHATSAPP_ID) -> None:
    await pipeline.control("PUT", f"phones/{number}", {"wa_id": whatsapp_id})


async def set_opt_in(pipeline: PipelineHarness, phone: str, direction: str) -> None:
    form, headers = {"user": phone}, {"apikey": API_KEY}
    response = await pipeline.send_request("POST", f"/sm/api/v1/app/opt/{direction}/{APP.name}", form, headers)
    assert response.status == 202, response


async def user_status(pipeline: PipelineHarness, phone: str) -> dict[str, Any]:
    path, headers = f"/partner/app/{APP.id}/userStatus?phone={phone}", {"Authorization": pipeline.app_token}
    response = await pipeline.send_request("GET", path, None, headers)
    assert response.status == 200, response
    return response.body["userStatus"]


async def conversation_rows(pipeline: PipelineHarness, number: str | None = None) -> list[dict[str, Any]]:
    query = ConversationFilter(number=number)
    found = await pipeline.waypost.database.read(list_conversations, PARTNER.id, APP.id, query)
    return found.rows


async def thread(pipeline: PipelineHarness, recipient_id: int) -> list[str]:
    """Return the ids of the messages of a conversation, oldest first."""
    recipient = ThreadRecipient(recipient_id, (NUMBER, WHATSAPP_ID), APP.phone_number)
    found = await pipeline.waypost.database.read(search_thread, PARTNER.id, APP.id, recipient)
    return [row["id"] for row in reversed(found.rows)]


async def thread_of_all(pipeline: PipelineHarness) -> list[list[str]]:
    """Return the messages of each conversation."""
    return [await thread(pipeline, row["id"]) for row in await conversation_rows(pipeline)]


def assert_one_order(pipeline: PipelineHarness) -> None:
    """Check that the callbacks so far are numbered as those of one recipient."""
    numbers = [attempt.sequence for attempt in pipeline.sink.accepted]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.both_engines
@pytest.mark.parametrize(("number", "whatsapp_id"), NUMBERS)
async def test_message_to_a_number_belongs_to_the_conversation_that_its_whatsapp_id_began(
    pipeline: PipelineHarness, number: str, whatsapp_id: str
) -> None:
    await set_whatsapp_id(pipeline, number, whatsapp_id)
    received = await pipeline.reply(number, "Hello?")

    sent = await pipeline.send_text(to=number)  # within the window that the WhatsApp id has opened
    events = await pipeline.events_of(sent, until="delivered")

    assert received["payload"]["source"] == whatsapp_id
    assert {event["destination"] for event in events} == {number}
    [conversation] = await conversation_rows(pipeline)
    assert conversation["phone_number"] == whatsapp_id
    assert await thread(pipeline, conversation["id"]) == [received["payload"]["id"], sent]
    for name in (number, whatsapp_id):
        assert [row["id"] for row in await conversation_rows(pipeline, number=name)] == [conversation["id"]]
        status = await user_status(pipeline, name)
        assert (status["phone"], status["active"]) == (name, True)
        query = MessageFilter(number=name)
        read, scope = pipeline.waypost.database.read, (PARTNER.id, APP.id)
        assert [row["id"] for row in (await read(search_messages, *scope, query)).rows] == [sent]
        found = [row["operator_message_id"] for row in (await read(search_inbound, *scope, query)).rows]
        assert found == [received["payload"]["id"]]
    assert_one_order(pipeline)


@pytest.mark.both_engines
async def test_customer_who_is_written_to_first_answers_in_the_same_conversation(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    await set_whatsapp_id(pipeline)
    await set_opt_in(pipeline, NUMBER, "in")  # the number has a recipient of its own until the operator is asked
    await pipeline.wait_for_callback(is_event("user-event", type="opted-in"))
    sent = await pipeline.send(template_id, to=NUMBER)
    events = await pipeline.events_of(sent, until="delivered")

    received = await pipeline.reply(NUMBER, "Thank you")

    [conversation] = await conversation_rows(pipeline)
    assert await thread(pipeline, conversation["id"]) == [sent, received["payload"]["id"]]
    about_ann = [attempt for attempt in pipeline.sink.accepted if attempt.value["type"] != "template-event"]
    assert [attempt.sequence for attempt in about_ann] == list(range(1, len(about_ann) + 1))
    assert about_ann[0].value["type"] == "user-event"
    assert [event["type"] for event in events] == ["enqueued", "sent", "mismatch", "delivered"]


@pytest.mark.both_engines
@pytest.mark.parametrize("blocked", [NUMBER, WHATSAPP_ID])
async def test_block_by_one_name_is_a_block_of_the_other(pipeline: PipelineHarness, blocked: str) -> None:
    await set_whatsapp_id(pipeline)
    await pipeline.reply(NUMBER, "Hello?")
    if blocked == WHATSAPP_ID:
        await pipeline.events_of(await pipeline.send_text(to=NUMBER), until="delivered")

    fields = {"phone": blocked, "isBlocked": "true"}
    path, headers = f"/partner/app/{APP.id}/block", {"Authorization": pipeline.app_token}
    response = await pipeline.send_request("PUT", path, fields, headers)
    message_id = await pipeline.send_text(to=NUMBER)

    [failed] = await pipeline.events_of(message_id, until="failed")
    assert response.status == 200, response
    assert failed["destination"] == NUMBER
    assert [(await user_status(pipeline, name))["blocked"] for name in (NUMBER, WHATSAPP_ID)] == [True, True]
    assert len(await conversation_rows(pipeline)) == 1
    assert_one_order(pipeline)
    await pipeline.send_request("PUT", path, {"phone": NUMBER, "isBlocked": "false"}, headers)
    assert [(await user_status(pipeline, name))["blocked"] for name in (NUMBER, WHATSAPP_ID)] == [False, False]


async def test_opt_out_by_the_whatsapp_id_counts_for_the_number(pipeline: PipelineHarness) -> None:
    await set_whatsapp_id(pipeline)
    await pipeline.reply(NUMBER, "Hello?")
    await set_opt_in(pipeline, NUMBER, "in")
    await pipeline.events_of(await pipeline.send_text(to=NUMBER), until="delivered")

    await pipeline.control("POST", f"phones/{NUMBER}/marketing", {"to": APP.phone_number, "wants": False})
    await pipeline.wait_for_callback(is_event("user-event", type="opted-out"))

    assert [(await user_status(pipeline, name))["status"] for name in (NUMBER, WHATSAPP_ID)] == ["OPT_OUT"] * 2
    listed = await pipeline.send_request("GET", f"/sm/api/v1/users/{APP.name}", None, {"apikey": API_KEY})
    assert [user["countryCode"] + user["phoneCode"] for user in listed.body["users"]] == [NUMBER]


async def test_whatsapp_id_that_only_a_status_gives_is_the_same_person(proxied_pipeline: PipelineHarness) -> None:
    pipeline = proxied_pipeline
    await pipeline.open_window()
    assert pipeline.operator_proxy is not None
    pipeline.operator_proxy.let_webhooks_pass = False
    message_id = await pipeline.send_text()
    await pipeline.wait_for_state(message_id, "enqueued")
    [delivery] = await pipeline.deliveries(message_id)
    common = {"id": delivery["wamid"], "timestamp": "1776944126", "recipient_id": WHATSAPP_ID}

    for status in ("sent", "delivered"):
        await post_messages_change(pipeline, statuses=[{**common, "status": status}])
    text = {"from": WHATSAPP_ID, "id": "wamid.in.1", "timestamp": "1776944342", "type": "text"}
    await post_messages_change(pipeline, messages=[{**text, "text": {"body": "Here"}}])
    await pipeline.events_of(message_id, until="delivered")
    await pipeline.wait_for_callback(is_event("message", id="wamid.in.1"))

    [conversation] = await conversation_rows(pipeline)
    assert (await thread(pipeline, conversation["id"]))[1:] == [message_id, "wamid.in.1"]
    for name in (ANN, WHATSAPP_ID):
        assert [row["id"] for row in await conversation_rows(pipeline, number=name)] == [conversation["id"]]
    assert_one_order(pipeline)


@pytest.mark.parametrize("response", ["lost", "after the statuses", "after the answer"])
async def test_statuses_and_an_answer_may_come_before_the_response(
    proxied_pipeline: PipelineHarness, response: str
) -> None:
    pipeline, proxy = proxied_pipeline, proxied_pipeline.operator_proxy
    assert proxy is not None
    template_id = await pipeline.approved_template()
    await set_whatsapp_id(pipeline)
    if response != "after the answer":  # else two recipients have callbacks before anything says that they are one
        await set_opt_in(pipeline, NUMBER, "in")
    release = asyncio.Event()

    async def wait_for_release(_wamid: str) -> None:
        await release.wait()

    proxy.lose_responses = int(response == "lost")
    if response == "after the statuses":
        proxy.hold_response = lambda wamid: proxy.wait_until_forwarded("delivered", wamid)
    elif response == "after the answer":
        proxy.hold_response = wait_for_release

    sent = await pipeline.send(template_id, to=NUMBER)
    if response != "after the answer":
        await pipeline.events_of(sent, until="delivered")
    received = await pipeline.reply(NUMBER, "Thank you")
    release.set()
    await pipeline.events_of(sent, until="delivered")

    await poll_until(lambda: thread_of_all(pipeline), lambda ids: ids == [[sent, received["payload"]["id"]]])
    about_ann = [attempt for attempt in pipeline.sink.accepted if attempt.value["type"] != "template-event"]
    assert [attempt.sequence for attempt in about_ann] == list(range(1, len(about_ann) + 1))


@pytest.mark.both_engines
async def test_messages_to_a_number_arrive_in_order_while_its_recipient_becomes_another(
    pipeline: PipelineHarness,
) -> None:
    await set_whatsapp_id(pipeline)
    await pipeline.reply(NUMBER, "Hello?")
    await set_opt_in(pipeline, NUMBER, "in")

    sent = [await pipeline.send_text(f"{number}", to=NUMBER) for number in range(10)]
    for message_id in sent:
        await pipeline.events_of(message_id, until="delivered")

    assert [shown["text"] for shown in (await pipeline.inbox(NUMBER))[1:]] == [f"{number}" for number in range(10)]
    [conversation] = await conversation_rows(pipeline)
    assert (await thread(pipeline, conversation["id"]))[1:] == sent
