"""Messages to groups, and messages that name a category instead of a template."""

import json
from typing import Any

import pytest

from tests.simulator.conftest import ANN, NUMBER_ID, WABA, Bench

GROUP = "Y2FwaV9ncm91cDoxMjM0NTY3ODkw"
GROUP_MESSAGE = {"recipient_type": "group", "to": GROUP, "type": "text", "text": {"body": "Hello all"}}


async def test_group_message_is_sent_and_appears_on_no_phone(bench: Bench) -> None:
    response = await bench.send(GROUP_MESSAGE | {"biz_opaque_callback_data": "mine"})

    assert response.status == 200, response.body
    assert response.body["contacts"] == [{"input": GROUP, "wa_id": GROUP}]
    wamid = response.body["messages"][0]["id"]
    [status] = await bench.receiver.wait_until(lambda: bench.receiver.statuses(wamid))
    assert (status["status"], status["recipient_id"], status["recipient_type"]) == ("sent", GROUP, "group")  # fmt: skip
    assert status["biz_opaque_callback_data"] == "mine"
    deliveries = (await bench.control("GET", "deliveries")).body["deliveries"]
    assert [(delivery["to"], delivery["state"]) for delivery in deliveries] == [(f"group:{GROUP}", "sent")]
    assert (await bench.control("GET", "chats")).body.get("chats", []) == []


@pytest.mark.parametrize("to", ["", " ", None, 7, "g" * 201])
async def test_invalid_group_id_is_rejected(bench: Bench, to: Any) -> None:
    response = await bench.send(GROUP_MESSAGE | {"to": to})

    assert (response.status, response.body["error"]["code"]) == (400, 100)


async def test_content_of_a_group_message_is_validated(bench: Bench) -> None:
    response = await bench.send(GROUP_MESSAGE | {"text": {}})

    assert (response.status, response.body["error"]["code"]) == (400, 100)


async def test_unknown_recipient_type_is_rejected(bench: Bench) -> None:
    response = await bench.send(GROUP_MESSAGE | {"recipient_type": "broadcast"})

    assert response.status == 400
    assert "individual, group" in json.dumps(response.body)


async def test_any_group_webhook_can_be_sent(bench: Bench) -> None:
    message = {
        "from": ANN,
        "id": "wamid.g",
        "timestamp": "1",
        "type": "text",
        "text": {"body": "Hi"},
        "group_id": GROUP,
    }
    value = {"messaging_product": "whatsapp", "metadata": {"phone_number_id": NUMBER_ID}, "messages": [message]}

    await bench.control("POST", f"accounts/{WABA}/webhooks", {"field": "messages", "value": value})

    await bench.receiver.wait_until(lambda: value in bench.receiver.changes())


@pytest.mark.parametrize("category", ["utility", "UTILITY", "authentication"])
async def test_direct_send_needs_no_window(bench: Bench, category: str) -> None:
    wamid = await bench.send_text("Your order is ready.", category=category)

    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)
    sent, delivered = bench.receiver.statuses(wamid)
    assert [sent["status"], delivered["status"]] == ["sent", "delivered"]
    assert sent["pricing"]["category"] == category.lower()
    assert sent["pricing"]["billable"] is True


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"category": "marketing"}, "category"),
        ({"category": 7}, "category"),
        ({"ttl_seconds": 600}, "ttl_seconds"),
        ({"category": "utility", "ttl_seconds": 29}, "ttl_seconds"),
        ({"category": "utility", "ttl_seconds": 43_201}, "ttl_seconds"),
        ({"category": "authentication", "ttl_seconds": 901}, "ttl_seconds"),
        ({"category": "utility", "ttl_seconds": "600"}, "ttl_seconds"),
        ({"category": "utility", "ttl_seconds": True}, "ttl_seconds"),
        ({"category": "utility", "type": "reaction", "reaction": {"message_id": "w", "emoji": "+"}}, "category"),
    ],
    ids=str,
)  # fmt: skip
async def test_invalid_direct_send_error_names_the_parameter(bench: Bench, more: dict[str, Any], name: str) -> None:
    response = await bench.send({"type": "text", "text": {"body": "Hello"}, **more})

    assert (response.status, response.body["error"]["code"]) == (400, 100)
    assert f"Param {name}" in response.body["error"]["message"]


@pytest.mark.parametrize("ttl_s", [30, 43_200])
async def test_ttl_of_direct_send_is_accepted(bench: Bench, ttl_s: int) -> None:
    wamid = await bench.send_text("Hello", category="utility", ttl_seconds=ttl_s)

    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)
