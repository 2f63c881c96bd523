"""A flow: made and published, put behind a template's button, sent, filled in, called back."""

import json
from typing import Any, Final

import pytest

from tests.support.both_versions import is_the_value, is_told_as_approved, is_told_as_delivered, operator_id_of
from tests.support.builders import ANN, APP
from tests.support.pipeline import PipelineHarness
from tests.support.version_3_receiver import ThirdVersion

pytestmark = pytest.mark.content_only

SCREENS: Final[dict[str, Any]] = {
    "version": "7.0",
    "screens": [{"id": "START", "title": "Book", "terminal": True, "layout": {}}],
}

ACTION: Final = {"flow_token": "token-7", "flow_action_data": {"table": "7"}}


async def published(pipeline: PipelineHarness) -> tuple[str, str]:
    """The ids of a published flow, and of an approved template with its button."""
    flow_id = await pipeline.publish_flow("booking", SCREENS)
    button = {"type": "FLOW", "text": "Book", "flow_id": flow_id, "flow_action": "NAVIGATE", "navigate_screen": "START"}
    template_id = await pipeline.approved_template(buttons=[button], category="MARKETING")
    return flow_id, template_id


async def comes_back(pipeline: PipelineHarness, third: ThirdVersion, message_id: str, flow_token: str) -> None:
    """Fill the flow in: version 3 tells it whole, version 2 has no body for it."""
    operator_id = await operator_id_of(pipeline, message_id)
    told = await pipeline.control(
        "POST", f"phones/{ANN}/answer", {"message_id": operator_id, "response": {"seats": "4"}, "wait_ms": 5000}
    )
    value = await third.message(told["wamid"])
    reply = value["messages"][0]["interactive"]["nfm_reply"]
    response = json.loads(reply["response_json"])
    assert response == {"flow_token": flow_token, "seats": "4"}
    content = {
        "type": "nfm_reply",
        "nfm_reply": {"name": "flow", "body": "Sent", "response_json": reply["response_json"]},
    }
    is_the_value(value, told["wamid"], operator_id, message_id, "interactive", content)
    await pipeline.reply(ANN, "Thank you")  # callbacks come in order: whatever was before it is here
    heard = [one["payload"]["id"] for one in pipeline.callbacks if one["type"] == "message"]
    assert told["wamid"] not in heard


def shown_of(flow_id: str, **action: Any) -> dict[str, Any]:
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
                "flow_action": "navigate",
                "screen": "START",
                **action,
            }
        ],
    }


@pytest.mark.holds(
    "does-send", "flow-call", "flow-fields", "flow-template", "flow-id", "flow-answer",
)  # fmt: skip
async def test_flow_is_passed_through_and_its_reply_called_back(pipeline: PipelineHarness, third: ThirdVersion) -> None:
    flow_id, template_id = await published(pipeline)
    template = {
        "name": "greeting",
        "language": {"policy": "deterministic", "code": "en_US"},
        "components": [
            {"type": "body", "parameters": [{"type": "text", "text": "Ann"}]},
            {"type": "button", "sub_type": "flow", "index": "0", "parameters": [{"type": "action", "action": ACTION}]},
        ],
    }
    body = {"messaging_product": "whatsapp", "recipient_type": "individual", "to": ANN}

    answers = [
        await pass_through(pipeline, {**body, "type": "template"}, template, is_form=is_form)
        for is_form in (True, False)
    ]

    await is_told_as_approved(pipeline, third, template_id)
    for answer in answers:
        message_id = answer["messages"][0]["id"]
        assert answer == {
            "messages": [{"id": message_id}],
            "messaging_product": "whatsapp",
            "contacts": [{"input": ANN, "wa_id": ANN}],
        }
        assert await pipeline.shown(message_id) == shown_of(flow_id, **ACTION)
        await is_told_as_delivered(pipeline, third, message_id)
        await comes_back(pipeline, third, message_id, "token-7")


async def pass_through(
    pipeline: PipelineHarness, body: dict[str, str], template: dict[str, Any], *, is_form: bool
) -> dict[str, Any]:
    url = f"{pipeline.service_url}/partner/app/{APP.id}/v3/message"
    given: dict[str, Any] = {"json": {**body, "template": template}}
    if is_form:
        given = {"data": {**body, "template": json.dumps(template)}}
    headers = {"Authorization": pipeline.app_token}
    async with pipeline.http.post(url, headers=headers, **given) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


@pytest.mark.holds("does-send", "flow-id")
@pytest.mark.both_engines
async def test_flow_template_is_sent_like_any_other_by_both_apis(
    pipeline: PipelineHarness, third: ThirdVersion
) -> None:
    flow_id, template_id = await published(pipeline)

    sent = [await pipeline.send_template(template_id, by=api, params=["Ann"]) for api in ("messaging", "partner")]

    await is_told_as_approved(pipeline, third, template_id)
    for message_id in sent:
        assert await pipeline.shown(message_id) == shown_of(flow_id, flow_token="unused")
        await is_told_as_delivered(pipeline, third, message_id)
        await comes_back(pipeline, third, message_id, "unused")


@pytest.mark.holds("flow-category")
async def test_flow_button_is_for_marketing_alone(pipeline: PipelineHarness) -> None:
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

    answer = await pipeline.ask("POST", f"/partner/app/{APP.id}/templates", form, {"Authorization": pipeline.app_token})

    assert answer.status == 400
    assert "FLOW" in answer.body["message"]
    assert "MARKETING" in answer.body["message"]
