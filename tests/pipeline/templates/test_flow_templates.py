"""A flow: created and published, opened by a template's button, sent, completed, called back."""

import json
from typing import Any, Final

import pytest

from tests.support.builders import ANN, APP
from tests.support.callback_assertions import (
    assert_approval_callbacks,
    assert_delivery_callbacks,
    assert_version_3_value,
    operator_id_of,
)
from tests.support.flow_json import one_screen_flow
from tests.support.pipeline import PipelineHarness
from tests.support.version_3_receiver import Version3Receiver

pytestmark = pytest.mark.content_only

SCREENS: Final = one_screen_flow()

ACTION: Final = {"flow_token": "token-7", "flow_action_data": {"table": "7"}}


async def publish(pipeline: PipelineHarness) -> tuple[str, str]:
    """Publish a flow, and have a template with its button approved; return the ids of both."""
    flow_id = await pipeline.publish_flow("booking", SCREENS)
    button = {"type": "FLOW", "text": "Book", "flow_id": flow_id, "flow_action": "NAVIGATE", "navigate_screen": "START"}
    template_id = await pipeline.approved_template(buttons=[button], category="MARKETING")
    return flow_id, template_id


async def check_flow_callback(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver, message_id: str, flow_token: str
) -> None:
    """Complete the flow: it is called back in version 3; version 2 has no body for it."""
    operator_id = await operator_id_of(pipeline, message_id)
    inbound = await pipeline.control(
        "POST", f"phones/{ANN}/respond", {"message_id": operator_id, "response": {"seats": "4"}, "wait_ms": 5000}
    )
    value = await receiver_v3.message(inbound["wamid"])
    reply = value["messages"][0]["interactive"]["nfm_reply"]
    flow_response = json.loads(reply["response_json"])
    assert flow_response == {"flow_token": flow_token, "seats": "4"}
    content = {
        "type": "nfm_reply",
        "nfm_reply": {"name": "flow", "body": "Sent", "response_json": reply["response_json"]},
    }
    assert_version_3_value(value, inbound["wamid"], operator_id, message_id, "interactive", content)
    await pipeline.reply(ANN, "Thank you")  # callbacks are in order: those before it have been delivered
    called_back = [callback["payload"]["id"] for callback in pipeline.callbacks if callback["type"] == "message"]
    assert inbound["wamid"] not in called_back


def make_shown(flow_id: str, **action: Any) -> dict[str, Any]:
    return {
        "type": "template",
        "template": {"name": "greeting", "language": "en_US", "category": "MARKETING"},
        "text": "Hi Ann, shall we come today?",
        "buttons": [
            {
                "index": 0,
                "type": "FLOW",
                "text": "Book",
                "flow_id": flow_id,
                "flow_version": 1,
                "flow_action": "navigate",
                "screen": "START",
                **action,
            }
        ],
    }


@pytest.mark.holds(
    "does-send", "flow-call", "flow-fields", "flow-template", "flow-id", "flow-answer",
)  # fmt: skip
async def test_flow_template_is_sent_by_passthrough_and_its_reply_called_back(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    flow_id, template_id = await publish(pipeline)
    template = {
        "name": "greeting",
        "language": {"policy": "deterministic", "code": "en_US"},
        "components": [
            {"type": "body", "parameters": [{"type": "text", "text": "Ann"}]},
            {"type": "button", "sub_type": "flow", "index": "0", "parameters": [{"type": "action", "action": ACTION}]},
        ],
    }
    body = {"messaging_product": "whatsapp", "recipient_type": "individual", "to": ANN}

    responses = [
        await send_passthrough_template(pipeline, {**body, "type": "template"}, template, is_form=is_form)
        for is_form in (True, False)
    ]

    await assert_approval_callbacks(pipeline, receiver_v3, template_id)
    for response in responses:
        message_id = response["messages"][0]["id"]
        assert response == {
            "messages": [{"id": message_id}],
            "messaging_product": "whatsapp",
            "contacts": [{"input": ANN, "wa_id": ANN}],
        }
        assert await pipeline.visible_message(message_id) == make_shown(flow_id, **ACTION)
        await assert_delivery_callbacks(pipeline, receiver_v3, message_id)
        await check_flow_callback(pipeline, receiver_v3, message_id, "token-7")


async def send_passthrough_template(
    pipeline: PipelineHarness, body: dict[str, str], template: dict[str, Any], *, is_form: bool
) -> dict[str, Any]:
    url = f"{pipeline.service_url}/partner/app/{APP.id}/v3/message"
    request: dict[str, Any] = {"json": {**body, "template": template}}
    if is_form:
        request = {"data": {**body, "template": json.dumps(template)}}
    headers = {"Authorization": pipeline.app_token}
    async with pipeline.http.post(url, headers=headers, **request) as response:
        assert response.status == 200, await response.text()
        return await response.json()


@pytest.mark.holds("does-send", "flow-id")
@pytest.mark.both_engines
async def test_flow_template_is_sent_like_any_other_by_both_apis(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    flow_id, template_id = await publish(pipeline)

    sent = [await pipeline.send_template(template_id, by=api, params=["Ann"]) for api in ("messaging", "partner")]

    await assert_approval_callbacks(pipeline, receiver_v3, template_id)
    for message_id in sent:
        assert await pipeline.visible_message(message_id) == make_shown(flow_id, flow_token="unused")
        await assert_delivery_callbacks(pipeline, receiver_v3, message_id)
        await check_flow_callback(pipeline, receiver_v3, message_id, "unused")


@pytest.mark.holds("flow-category")
async def test_flow_button_is_accepted_for_marketing_only(pipeline: PipelineHarness) -> None:
    button = {"type": "FLOW", "text": "Book", "flow_id": "1", "flow_action": "NAVIGATE",
              "navigate_screen": "START"}  # fmt: skip
    form = {
        "elementName": "booking",
        "category": "UTILITY",
        "templateType": "TEXT",
        "vertical": "Tables",
        "content": "Book a table.",
        "example": "Book a table.",
        "buttons": json.dumps([button]),
    }

    response = await pipeline.send_request(
        "POST", f"/partner/app/{APP.id}/templates", form, {"Authorization": pipeline.app_token}
    )

    assert response.status == 400
    assert "FLOW" in response.body["message"]
    assert "MARKETING" in response.body["message"]
