"""MM Lite: marketing templates that go through the operator's API for marketing messages."""

import datetime
from asyncio import sleep
from typing import Any, Final

import pytest

from tests.support.builders import ANN, APP, is_event
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from tests.support.recording_operator_proxy import RecordedSends
from tests.support.version_3_receiver import open_version_3_receiver, value_of

PATH: Final = f"/partner/app/{APP.id}"
LINK: Final = {"type": "URL", "text": "Shop", "url": "https://shop.example"}


@pytest.fixture
async def pipeline(make_pipeline: Any) -> PipelineHarness:
    """A pipeline with a proxy before the operator that records what is sent."""
    return await make_pipeline(operator_proxy=RecordedSends())


async def request(pipeline: PipelineHarness, method: str, path: str, **more: Any) -> tuple[int, Any]:
    """Make a request with the app's token; return its status and body."""
    async with pipeline.http.request(
        method, pipeline.service_url + PATH + path, headers={"Authorization": pipeline.app_token}, **more
    ) as response:
        return response.status, await response.json()


async def onboard(pipeline: PipelineHarness) -> None:
    path = f"accounts/{APP.business_account_id}/marketing-messages"
    await pipeline.control("PUT", path, {"status": "ONBOARDED"})


async def enable(pipeline: PipelineHarness) -> None:
    await onboard(pipeline)
    assert await request(pipeline, "POST", "/mmlite/msg/enable") == (200, {"status": "success"})


def template_message(name: str) -> dict[str, Any]:
    return {
        "messaging_product": "whatsapp", "recipient_type": "individual", "to": ANN, "type": "template",
        "template": {"namespace": "58e6d318_b627_4112_b9c7_2961197553ea", "name": name,
                     "language": {"policy": "deterministic", "code": "en_US"},
                     "components": [{"type": "body", "parameters": [{"type": "text", "text": "Ann"}]}]},
    }  # fmt: skip


async def sent_path(pipeline: PipelineHarness, message_id: str) -> str:
    """Return the last segment of the path to which a message was sent, once it was."""
    proxy = pipeline.operator_proxy
    assert isinstance(proxy, RecordedSends)
    await poll_until(lambda: sleep(0, proxy.bodies), lambda bodies: message_id in bodies)
    return proxy.paths[message_id].rpartition("/")[2]


@pytest.mark.holds("post-mmlite-msg-enable")
async def test_app_is_enabled_once_the_owner_has_accepted_the_terms(pipeline: PipelineHarness) -> None:
    before = await request(pipeline, "POST", "/mmlite/msg/enable")
    await onboard(pipeline)
    after = await request(pipeline, "POST", "/mmlite/msg/enable")
    _, info = await request(pipeline, "GET", "/waba/info")

    assert before[0] == 400
    assert before[1]["message"].startswith("MM lite is not enabled for this app")
    assert after == (200, {"status": "success"})
    assert info["wabaInfo"]["mmLiteStatus"] == "ONBOARDED"


@pytest.mark.holds("post-onboarding-marketing-msg")
@pytest.mark.parametrize("path", ["/onboarding/marketing/msg", "/v3/mmlite/message"])
async def test_documented_call_sends_through_the_operators_api(pipeline: PipelineHarness, path: str) -> None:
    await pipeline.approved_template(buttons=[], elementName="offer", category="MARKETING")
    await enable(pipeline)

    status, response = await request(pipeline, "POST", path, json=template_message("offer"))

    message_id = response["messages"][0]["id"]
    assert status == 200
    assert response == {
        "messages": [{"id": message_id}],
        "messaging_product": "whatsapp",
        "contacts": [{"input": ANN, "wa_id": ANN}],
    }
    assert await sent_path(pipeline, message_id) == "marketing_messages"
    await pipeline.wait_for_state(message_id, "delivered")
    sent = await pipeline.wait_for_callback(is_event("message-event", type="sent", gsId=message_id))
    assert sent["payload"]["pricing"]["category"] == "marketing_lite"


async def test_version_2_sends_marketing_templates_that_way_by_themselves(pipeline: PipelineHarness) -> None:
    marketing = await pipeline.approved_template(buttons=[], elementName="offer", category="MARKETING")
    utility = await pipeline.approved_template(buttons=[], elementName="order", category="UTILITY")
    before = await pipeline.send(marketing, to=ANN)
    await enable(pipeline)

    after, other = await pipeline.send(marketing, to=ANN), await pipeline.send(utility, to=ANN)

    paths = [await sent_path(pipeline, message_id) for message_id in (before, after, other)]
    assert paths == ["messages", "marketing_messages", "messages"]


async def test_other_messages_are_rejected(pipeline: PipelineHarness) -> None:
    await enable(pipeline)
    text = {"messaging_product": "whatsapp", "to": ANN, "type": "text", "text": {"body": "Hello"}}
    receipt = {"messaging_product": "whatsapp", "status": "read", "message_id": "wamid.1"}

    responses = [await request(pipeline, "POST", "/onboarding/marketing/msg", json=body) for body in (text, receipt)]

    assert [(status, body["message"]) for status, body in responses] == [
        (400, "type must be template: marketing templates only.")
    ] * 2


async def test_template_of_another_category_fails_with_the_operators_code(pipeline: PipelineHarness) -> None:
    await pipeline.approved_template(buttons=[], elementName="order", category="UTILITY")
    await enable(pipeline)

    _, response = await request(pipeline, "POST", "/onboarding/marketing/msg", json=template_message("order"))

    trace = await pipeline.wait_for_state(response["messages"][0]["id"], "failed")
    assert trace["code"] == 134100


@pytest.mark.holds("event-62")
async def test_click_on_a_link_is_called_back_as_documented(pipeline: PipelineHarness) -> None:
    """Version 3, field `messages`, `user_actions` with the click's component, id and token."""
    template_id = await pipeline.approved_template(buttons=[LINK], elementName="offer", category="MARKETING")
    await enable(pipeline)
    async with open_version_3_receiver(pipeline, "OTHERS") as receiver_v3:
        message_id = await pipeline.send(template_id, to=ANN)
        await pipeline.wait_for_state(message_id, "delivered")
        [delivery] = await pipeline.deliveries(message_id)
        tapped = await pipeline.control("POST", f"phones/{ANN}/tap", {"message_id": delivery["wamid"], "index": 0})
        [body] = await receiver_v3.sink.wait_for(lambda body: "user_actions" in value_of(body))

    [action] = value_of(body)["user_actions"]
    click = action["marketing_messages_link_click_data"]
    assert action == {
        "action_type": "marketing_messages_link_click",
        "timestamp": action["timestamp"],
        "marketing_messages_link_click_data": {
            "click_component": "CTA",
            "click_id": tapped["click_id"],
            "tracking_token": click["tracking_token"],
        },
    }
    assert body["entry"][0]["changes"][0]["field"] == "messages"
    assert value_of(body)["messaging_product"] == "whatsapp"


@pytest.mark.holds("get-template-one-insights")
async def test_insights_are_the_operators(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template(buttons=[], elementName="offer", category="MARKETING")
    utility_id = await pipeline.approved_template(buttons=[], elementName="order", category="UTILITY")
    off = await request(pipeline, "GET", f"/template/{template_id}/insights")
    await enable(pipeline)
    message_id = await pipeline.send(template_id, to=ANN)
    await pipeline.wait_for_state(message_id, "delivered")

    status, body = await request(pipeline, "GET", f"/template/{template_id}/insights?date_preset=today")
    unknown = await request(pipeline, "GET", "/template/none/insights")
    wrong = await request(pipeline, "GET", f"/template/{utility_id}/insights")
    someday = await request(pipeline, "GET", f"/template/{template_id}/insights?date_preset=someday")
    clicks = await request(pipeline, "GET", f"/template/{template_id}/insights?fields=clicks")

    assert off[0] == 400
    assert off[1]["message"].startswith("MM lite is not enabled for this app")
    assert status == 200
    assert body["status"] == "success"
    [insights] = body["template_insights"]
    assert insights["marketing_messages_sent"] == "1"
    assert insights["marketing_messages_delivered"] == "1"
    assert insights["marketing_messages_spend"] == "0"
    assert set(map(type, insights.values())) == {str}
    for response in (unknown, wrong):
        assert response[0] == 400
        assert response[1]["message"].startswith("Invalid template id provided.")
    assert [(each[0], each[1]["message"].partition(" ")[0]) for each in (someday, clicks)] == [
        (400, "date_preset"), (400, "fields"),
    ]  # fmt: skip


async def test_usage_counts_them_apart(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template(buttons=[], elementName="offer", category="MARKETING")
    first = await pipeline.send(template_id, to=ANN)
    await enable(pipeline)
    second = await pipeline.send(template_id, to=ANN)
    for message_id in (first, second):
        await pipeline.wait_for_state(message_id, "delivered")
    date = datetime.datetime.fromtimestamp(pipeline.clock.now_ms() / 1000, datetime.UTC).date().isoformat()

    _, body = await request(pipeline, "GET", f"/usage?from={date}&to={date}")

    [day] = body["partnerAppUsageList"]
    assert (day["marketing"], day["mmLiteMarketing"], day["templateMsg"]) == (1, 1, 2)


@pytest.mark.holds("get-mmlite-link")
async def test_link_leads_to_the_operators_page_for_the_account(pipeline: PipelineHarness) -> None:
    status, body = await request(pipeline, "GET", "/mmlite/link?lang=pt_BR")

    assert status == 200
    assert body == {"link": body["link"], "status": "success"}
    assert body["link"].startswith("https://business.facebook.com/")
    assert f"asset_id={APP.business_account_id}" in body["link"]
    assert body["link"].endswith("locale=pt_BR")
