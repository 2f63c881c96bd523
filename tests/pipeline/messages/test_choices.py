"""A choice from the buttons or rows that a partner sent is called back with the partner's text for it."""

import json
from typing import Any

import pytest

from tests.support.builders import ANN, APP, is_event
from tests.support.media_samples import sample
from tests.support.pipeline import API_KEY, PipelineHarness
from tests.support.version_3_receiver import open_version_3_receiver

pytestmark = pytest.mark.content_only

QUESTION: dict[str, Any] = {
    "type": "quick_reply",
    "msgid": "q-1",
    "content": {"type": "text", "text": "Shall we come?"},
    "options": [
        {"type": "text", "title": "Yes", "postbackText": "come"},
        {"type": "text", "title": "No", "postbackText": "come"},
        {"type": "text", "title": "Later"},
    ],
}
LIST: dict[str, Any] = {
    "type": "list",
    "title": "Menu",
    "body": "What would you like?",
    "msgid": "l-1",
    "globalButtons": [{"type": "text", "title": "Open"}],
    "items": [
        {"title": "Warm", "subtitle": "", "options": [
            {"type": "text", "title": "Soup", "description": "Hot", "postbackText": "soup"}]},
        {"title": "Cold", "subtitle": "", "options": [
            {"type": "text", "title": "Ice", "description": "Cold", "postbackText": "ice"}]},
    ],
}  # fmt: skip
OWN_BUTTONS = {
    "type": "button",
    "body": {"text": "Shall we come?"},
    "action": {
        "buttons": [
            {"type": "reply", "reply": {"id": "own-1", "title": "Yes"}},
            {"type": "reply", "reply": {"id": "own-2", "title": "No"}},
        ]
    },
}
FLOW = {
    "type": "flow",
    "body": {"text": "Book a table"},
    "action": {
        "name": "flow",
        "parameters": {
            "flow_message_version": "3",
            "flow_token": "token-7",
            "flow_id": "1",
            "flow_cta": "Book",
            "mode": "draft",
            "flow_action": "navigate",
            "flow_action_payload": {"screen": "START"},
        },
    },
}


async def send_choice(pipeline: PipelineHarness, message: dict[str, Any]) -> str:
    """Open the window and send a session message of any type; return our id of it."""
    await pipeline.open_window()
    form = {
        "channel": "whatsapp",
        "source": APP.phone_number,
        "destination": ANN,
        "src.name": APP.name,
        "message": json.dumps(message),
    }
    response = await pipeline.send_request("POST", "/wa/api/v1/msg", form, {"apikey": API_KEY})
    assert response.status == 200, response
    return response.body["messageId"]


async def send_passthrough_json(pipeline: PipelineHarness, type: str, content: Any) -> str:
    """Open the window and send a passthrough message; return our id of it."""
    await pipeline.open_window()
    body = {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": ANN,
        "type": type,
        type: json.dumps(content),
    }
    response = await pipeline.send_request(
        "POST", f"/partner/app/{APP.id}/v3/message", body, {"Authorization": pipeline.app_token}
    )
    assert response.status == 200, response
    return response.body["messages"][0]["id"]


@pytest.mark.holds("event-39")
@pytest.mark.parametrize(("index", "title", "postback"), [(0, "Yes", "come"), (1, "No", "come"), (2, "Later", None)])
async def test_reply_to_a_session_message_is_called_back_with_its_number_and_text(
    pipeline: PipelineHarness, index: int, title: str, postback: str | None
) -> None:
    async with open_version_3_receiver(pipeline) as receiver_v3:
        message_id = await send_choice(pipeline, QUESTION)

        callback = await pipeline.tap(ANN, index)
        value = await receiver_v3.message(callback["payload"]["id"])

    expected = {"title": title, "id": "q-1", "reply": f"{title} {index + 1}"}
    if postback is not None:
        expected["postbackText"] = postback
    assert callback["payload"]["type"] == "button_reply"
    assert callback["payload"]["payload"] == expected
    assert callback["payload"]["context"]["gsId"] == message_id
    reply = value["messages"][0]["interactive"]["button_reply"]
    assert reply == {"id": postback or title, "title": title}


@pytest.mark.holds("event-40")
@pytest.mark.parametrize(("index", "title", "text"), [(0, "Soup", "Hot"), (1, "Ice", "Cold")])
async def test_chosen_row_is_numbered_through_all_sections(
    pipeline: PipelineHarness, index: int, title: str, text: str
) -> None:
    async with open_version_3_receiver(pipeline) as receiver_v3:
        message_id = await send_choice(pipeline, LIST)

        callback = await pipeline.tap(ANN, index)
        value = await receiver_v3.message(callback["payload"]["id"])

    assert callback["payload"]["type"] == "list_reply"
    assert callback["payload"]["payload"] == {
        "title": title,
        "id": "l-1",
        "reply": f"{title} {index + 1}",
        "postbackText": title.lower(),
        "description": text,
    }
    assert callback["payload"]["context"]["gsId"] == message_id
    reply = value["messages"][0]["interactive"]["list_reply"]
    assert reply == {"id": title.lower(), "title": title, "description": text}


@pytest.mark.parametrize("question", [QUESTION, LIST])
async def test_reply_to_a_message_without_a_msgid_is_called_back_with_an_empty_id(
    pipeline: PipelineHarness, question: dict[str, Any]
) -> None:
    message = {name: value for name, value in question.items() if name != "msgid"}
    message_id = await send_choice(pipeline, message)

    callback = await pipeline.tap(ANN, 0)

    assert callback["payload"]["payload"]["id"] == ""
    assert callback["payload"]["context"]["gsId"] == message_id


async def test_reply_to_a_passthrough_is_called_back_with_the_partners_own_id(pipeline: PipelineHarness) -> None:
    async with open_version_3_receiver(pipeline) as receiver_v3:
        message_id = await send_passthrough_json(pipeline, "interactive", OWN_BUTTONS)

        callback = await pipeline.tap(ANN, 1)
        value = await receiver_v3.message(callback["payload"]["id"])

    assert callback["payload"]["payload"] == {"title": "No", "id": "own-2", "reply": "No 2", "postbackText": "own-2"}
    assert callback["payload"]["context"]["gsId"] == message_id
    reply = value["messages"][0]["interactive"]["button_reply"]
    assert reply == {"id": "own-2", "title": "No"}


async def test_completed_flow_is_called_back_in_version_3_only(pipeline: PipelineHarness) -> None:
    await pipeline.control("PUT", "settings", {"check_references": False})
    await pipeline.control("PUT", f"phones/{ANN}", {"name": "Ann Ames"})
    async with open_version_3_receiver(pipeline, "FLOWS_MESSAGE") as receiver_v3:
        message_id = await send_passthrough_json(pipeline, "interactive", FLOW)
        await pipeline.events_of(message_id, until="delivered")

        inbound = await pipeline.control("POST", f"phones/{ANN}/respond", {"response": {"seats": "4"}, "wait_ms": 5000})
        value = await receiver_v3.message(inbound["wamid"])

    [message] = value["messages"]
    reply = message["interactive"]["nfm_reply"]
    assert message["interactive"]["type"] == "nfm_reply"
    assert json.loads(reply["response_json"]) == {"flow_token": "token-7", "seats": "4"}
    assert message["timestamp"].isdecimal()
    assert message["context"]["gs_id"] == message_id
    [contact] = value["contacts"]
    assert (contact["wa_id"], contact["profile"]["name"]) == (ANN, "Ann Ames")
    called_back = [callback["payload"]["id"] for callback in pipeline.callbacks if callback["type"] == "message"]
    assert inbound["wamid"] not in called_back


@pytest.mark.holds("flow-id")
@pytest.mark.both_engines
async def test_flow_of_a_template_is_sent_completed_and_called_back(pipeline: PipelineHarness) -> None:
    await pipeline.control("PUT", "settings", {"check_references": False})
    button = {"type": "FLOW", "text": "Book", "flow_id": "1", "flow_action": "NAVIGATE", "navigate_screen": "START"}
    template_id = await pipeline.approved_template(
        buttons=[button], category="MARKETING", content="Book a table.", example="Book a table."
    )
    async with open_version_3_receiver(pipeline, "FLOWS_MESSAGE") as receiver_v3:
        message_id = await pipeline.send(template_id, params=())
        await pipeline.events_of(message_id, until="delivered")

        inbound = await pipeline.control("POST", f"phones/{ANN}/respond", {"response": {"seats": "2"}, "wait_ms": 5000})
        value = await receiver_v3.message(inbound["wamid"])

    reply = value["messages"][0]["interactive"]["nfm_reply"]
    assert json.loads(reply["response_json"])["seats"] == "2"
    assert value["messages"][0]["context"]["gs_id"] == message_id


@pytest.mark.both_engines
async def test_long_postback_text_is_called_back_whole_in_both_versions(pipeline: PipelineHarness) -> None:
    text = "x" * 1000
    template_id = await pipeline.approved_template()
    async with open_version_3_receiver(pipeline) as receiver_v3:
        await pipeline.send(template_id, postback_texts={0: text, 1: "n-1"})

        callback = await pipeline.tap(ANN, 0)
        value = await receiver_v3.message(callback["payload"]["id"])

    assert callback["payload"]["payload"] == {"text": "Yes", "type": "button", "postbackText": text}
    assert value["messages"][0]["button"] == {"text": "Yes", "payload": text}


@pytest.mark.holds("postback-cards", "postback-returned")
@pytest.mark.parametrize("card", [0, 1])
async def test_tapped_card_is_called_back_with_its_own_postback_text(pipeline: PipelineHarness, card: int) -> None:
    reply = {"type": "QUICK_REPLY", "text": "Buy"}
    handle = await pipeline.upload_sample(sample("png"), "image/png")
    cards = [{"headerType": "IMAGE", "body": f"Card {n}", "sampleText": f"Card {n}",
              "exampleMedia": handle, "buttons": [reply]} for n in (0, 1)]  # fmt: skip
    template_id = await pipeline.approved_template(
        buttons=(), templateType="CAROUSEL", category="MARKETING", cards=json.dumps(cards)
    )
    message = {
        "type": "carousel",
        "cardHeaderType": "IMAGE",
        "cards": [
            {"link": "https://img.test/1.png", "postbackTexts": [{"index": 0, "text": f"buy-{n}"}]} for n in (0, 1)
        ],
    }
    form = {
        "source": APP.phone_number,
        "destination": ANN,
        "src.name": APP.name,
        "template": json.dumps({"id": template_id, "params": ["Ann"]}),
        "message": json.dumps(message),
    }
    response = await pipeline.send_request(
        "POST", f"/partner/app/{APP.id}/template/msg", form, {"Authorization": pipeline.app_token}
    )
    assert response.status == 200, response

    inbound = await pipeline.control("POST", f"phones/{ANN}/tap", {"card": card, "index": 0, "wait_ms": 5000})

    callback = await pipeline.wait_for_callback(is_event("message", id=inbound["wamid"]))
    assert callback["payload"]["payload"]["postbackText"] == f"buy-{card}"
