"""The calls of two public clients of the vendor's API, in their order, from the login to the first callback."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.builders import ACCOUNT, ANN, APP, PARTNER
from tests.support.pipeline import HttpResponse, PipelineHarness
from waypost.base.encryption import hash_secret
from waypost.store.accounts.credentials import CredentialKind, add_credential

pytestmark = pytest.mark.content_only

SECRET = "client-secret-of-acme"


@pytest.fixture
async def partner(pipeline: PipelineHarness) -> PipelineHarness:
    """Give the partner a client secret, and no subscription."""
    now_ms = pipeline.clock.now_ms()
    await pipeline.waypost.admin_context.database.write(
        add_credential, CredentialKind.CLIENT_SECRET, PARTNER.id, hash_secret(SECRET), now_ms
    )
    await pipeline.unsubscribe("all")
    return pipeline


async def send_json(
    pipeline: PipelineHarness, method: str, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Any:
    async with pipeline.http.request(method, pipeline.service_url + path, json=body, headers=headers) as response:
        content = await response.json()
        assert response.status == 200, content
        return content


def body_of(response: HttpResponse) -> Any:
    assert response.status == 200, response
    return response.body


async def test_kairon_sets_its_callback_sends_and_receives(partner: PipelineHarness) -> None:
    """Source: public clients, kairon: login and callback as JSON, the app token in a header of its configuration."""
    account = {"email": PARTNER.email, "password": SECRET}
    token = (await send_json(partner, "POST", "/partner/account/login", account))["token"]
    webhook = {"webhookUrl": partner.sink.url}
    await send_json(partner, "PUT", f"/partner/app/{APP.id}", webhook, {"Authorization": token})
    headers = {"Authorization": partner.app_token, "accept": "application/json"}
    template = {
        "elementName": "kairon_greeting",
        "content": "Hi {{1}}, shall we come today?",
        "category": "UTILITY",
        "vertical": "Greetings",
        "templateType": "TEXT",
        "example": "Hi Ann, shall we come today?",
        "buttons": "null",
    }
    made = body_of(await partner.send_request("POST", f"/partner/app/{APP.id}/templates", template, headers))
    listed = body_of(
        await partner.send_request("GET", f"/partner/app/{APP.id}/templates?id={made['template']['id']}", None, headers)
    )
    assert [one["elementName"] for one in listed["templates"]] == ["kairon_greeting"]
    received = await partner.reply(ANN, "Hello?")
    assert received["payload"]["payload"]["text"] == "Hello?"

    message = {"source": APP.phone_number, "destination": ANN, "message": json.dumps({"type": "text", "text": "Hi"})}
    sent = body_of(await partner.send_request("POST", f"/partner/app/{APP.id}/msg", message, headers))
    read = {"messaging_product": "whatsapp", "status": "read", "message_id": received["payload"]["id"]}
    await send_json(partner, "POST", f"/partner/app/{APP.id}/v3/message", read, {"Authorization": partner.app_token})

    events = await partner.events_of(sent["messageId"], until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]


async def test_biznavigate_links_an_app_polls_its_pipeline_and_subscribes(partner: PipelineHarness) -> None:
    """Source: public clients, BizNavigate: the number has an app already, whose id the client reads from the error."""
    login = {"email": PARTNER.email, "password": SECRET}
    token = body_of(await partner.send_request("POST", "/partner/account/login", login))["token"]
    by_partner = {"Authorization": token}
    app = {"name": "shop1000000000000001", "wabaId": ACCOUNT.id, "phone": f"+{APP.phone_number}"}
    linked = await partner.send_request("POST", "/partner/tpp/app", app, by_partner)
    assert (linked.status, linked.body["message"]) == (
        409,
        f"App {APP.id} already exists with phone {APP.phone_number}",
    )
    apps = body_of(await partner.send_request("GET", "/partner/app/list", headers=by_partner))["apps"]
    assert [one["creationStage"] for one in apps] == ["WHATSAPP_PROVISIONING_DONE"]
    path = f"/partner/app/{APP.id}"
    app_token = body_of(await partner.send_request("GET", f"{path}/token", headers=by_partner))["token"]["token"]
    by_app = {"Authorization": app_token}
    pipeline = body_of(await partner.send_request("GET", f"{path}/pipeline", headers=by_app))["whatsapp"]
    assert (pipeline["creationStage"], pipeline["pipeLineStage"]) == ("WHATSAPP_PROVISIONING_DONE", "FINALIZE")
    assert body_of(await partner.send_request("GET", path, headers=by_app))["app"]["live"] is True
    form = {"callbackUrl": f"{partner.sink.url}/live"}
    assert body_of(await partner.send_request("PUT", path, form, by_partner))["appDetails"]["live"] is True
    subscription = {
        "modes": "2047",
        "tag": "BizNavigate-V3",
        "url": partner.sink.url,
        "version": "3",
        "showOnUI": "false",
    }
    made = body_of(await partner.send_request("POST", f"{path}/subscription", subscription, by_app))["subscription"]

    created = await partner.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "text": "Hello?"})

    assert made["mode"] == 2047
    callback = await partner.wait_for_callback(lambda body: created["wamid"] in json.dumps(body) and "entry" in body)
    assert callback["entry"][0]["changes"][0]["field"] == "messages"
