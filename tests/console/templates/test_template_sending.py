"""Each type of template can be sent from its page with the initial values of the form."""

import asyncio
import json
import re
from html import unescape
from typing import Any

import pytest

from tests.console.conftest import LOOP, ConsoleClient
from tests.support.media_samples import sample
from tests.support.polling import poll_until
from waypost.assembly.dev import demo

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

# fmt: off
OFFER = [{"type": "COPY_CODE", "example": "SAVE30"}, {"type": "URL", "text": "Shop", "url": "https://acme.test/{{1}}", "example": ["https://acme.test/coats"]}]
FORMS: dict[str, dict[str, Any]] = {  # by a text that the phone shows
    "Order 4711":        {"category": "UTILITY", "templateType": "TEXT", "header": "Order {{1}}", "exampleHeader": "Order 4711"},
    '"filename": "a.png"': {"category": "MARKETING", "templateType": "IMAGE", "exampleMedia": "HANDLE"},
    "The shop":          {"category": "UTILITY", "templateType": "LOCATION"},
    "SAVE30":            {"category": "MARKETING", "templateType": "TEXT", "isLTO": "true", "limitedOfferText": "Soon", "hasExpiration": "true", "buttons": OFFER},
    "123456":            {"category": "AUTHENTICATION", "templateType": "TEXT", "content": "{{1}} is your verification code.",
                          "example": "123456 is your verification code.", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]},
    "Coat 2 for winter": {"category": "MARKETING", "templateType": "CAROUSEL", "cards": [
                              {"headerType": "IMAGE", "exampleMedia": "HANDLE", "body": f"Coat {n} for {{{{1}}}} days",
                               "sampleText": f"Coat {n} for winter days", "buttons": [{"type": "QUICK_REPLY", "text": "More"}]}
                              for n in (1, 2)]},
    "View catalog":      {"category": "MARKETING", "templateType": "CATALOG"},
}
# fmt: on


async def test_each_type_can_be_sent_with_the_initial_values_of_the_form(console: ConsoleClient) -> None:
    base = f"/partner/app/{demo.APP_ID}"
    upload = await console.api.file(f"{base}/upload/media", sample("png"), name="a.png", media_type="image/png")
    handle = upload["handleId"]["message"]
    ids: dict[str, str] = {}
    for number, (text, form) in enumerate(FORMS.items()):
        merged = {
            "elementName": f"kind_{number}",
            "vertical": "Shop",
            "content": "Look at this one",
            "example": "Look at this one",
        } | form
        texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in merged.items()}
        texts = {k: v.replace("HANDLE", json.dumps(handle)[1:-1] if k == "cards" else handle) for k, v in texts.items()}
        ids[text] = (await console.api.form("POST", f"{base}/templates", texts))["template"]["id"]

    for text, template_id in ids.items():
        path = f"/apps/{demo.APP_ID}/templates/{template_id}"
        page = await wait_for_approval(console, path)
        form = page.partition(f'action="{path}/send"')[2].partition("</form>")[0]
        fields = re.findall(r'<input [^>]*?name="([^"]+)"[^>]*? value="([^"]*)"', form)
        await console.post(f"{path}/send", {name: unescape(value) for name, value in fields})
        assert await wait_on_phone(console, text), text


async def wait_for_approval(console: ConsoleClient, path: str) -> str:
    for _ in range(100):
        page = await console.get(path)
        if "It can be sent." in page:
            return page
        assert "Reason:" not in page, page.partition("Reason:")[2][:300]
        await asyncio.sleep(0.1)
    raise AssertionError("the template was not approved")


async def wait_on_phone(console: ConsoleClient, text: str) -> bool:
    inbox: dict[str, Any] = {"messages": [None]}
    for _ in range(60):
        inbox = await console.control.json("GET", f"/control/phones/{demo.DESTINATION}")
        if text in json.dumps(inbox["messages"][-1]):
            return True
        await asyncio.sleep(0.1)
    raise AssertionError(json.dumps(inbox["messages"][-1])[:1500])


async def create_template(console: ConsoleClient, **fields: str) -> str:
    """Submit a template with one variable, wait until it can be sent, and return the path of its page."""
    form = {
        "elementName": "see_what_is_new", "category": "MARKETING", "templateType": "TEXT", "vertical": "Shop",
        "content": "Hi {{1}}, see what is new.", "example": "Hi Ann, see what is new.", **fields,
    }  # fmt: skip
    response = await console.api.form("POST", f"/partner/app/{demo.APP_ID}/templates", form)
    path = f"/apps/{demo.APP_ID}/templates/{response['template']['id']}"
    await wait_for_approval(console, path)
    return path


async def test_products_entered_in_the_form_are_shown_on_the_phone(console: ConsoleClient) -> None:
    path = await create_template(console, templateType="PRODUCT")
    page = await console.get(path)
    form = page.partition(f'action="{path}/send"')[2].partition("</form>")[0]
    fields = dict(re.findall(r'<input [^>]*?name="([^"]+)"[^>]*? value="([^"]*)"', form))
    assert {"destination", "param-0", "products"} <= fields.keys()

    await console.post(f"{path}/send", {**fields, "products": "rye-1, wheat-2 ,"})

    assert await wait_on_phone(console, "wheat-2")
    message = (await console.control.json("GET", f"/control/phones/{demo.DESTINATION}"))["messages"][-1]
    [button] = message["buttons"]
    assert button["sections"] == [
        {"title": "Items", "product_items": [{"product_retailer_id": "rye-1"}, {"product_retailer_id": "wheat-2"}]}
    ]
    assert message["text"] == "Hi Ann, see what is new."


async def test_product_template_sent_without_products_fails_with_a_reason(console: ConsoleClient) -> None:
    path = await create_template(console, templateType="PRODUCT")
    before = await console.control.json("GET", f"/control/phones/{demo.DESTINATION}")
    typed = {"destination": demo.DESTINATION, "param-0": "Ann", "products": " , "}

    response = await console.post(f"{path}/send", typed)

    message_id = response.headers["Location"].rpartition("/")[2]
    await poll_until(
        lambda: console.admin.json("GET", f"/admin/trace/{message_id}"), lambda trace: trace["state"] == "failed"
    )
    page = await console.get(response.headers["Location"])
    assert "Button at index 0 of type Mpm requires a parameter" in page
    assert "Provide every parameter of the template, then send it again." in page
    assert before == await console.control.json("GET", f"/control/phones/{demo.DESTINATION}")


async def send_session_message(console: ConsoleClient, message: dict[str, Any]) -> str:
    """Send a session message by the API; return our message ID."""
    form = {
        "channel": "whatsapp", "source": demo.SOURCE, "destination": demo.DESTINATION, "src.name": demo.APP_NAME,
        "message": json.dumps(message),
    }  # fmt: skip
    response = await console.api.form("POST", f"/partner/app/{demo.APP_ID}/msg", form)
    return str(response["messageId"])


@pytest.mark.parametrize("kind", ["text", "image", "file"])
async def test_session_message_is_resent_unchanged_from_its_page(console: ConsoleClient, kind: str) -> None:
    """The console has no form for session messages: it resends what a program has sent."""
    name, media_type = ("a.png", "image/png") if kind == "image" else ("a.pdf", "application/pdf")
    message: dict[str, Any] = {"type": "text", "text": "Grüße, 1 & 2 = 3%"}
    if kind != "text":
        content = sample("png" if kind == "image" else "pdf")
        path = f"/partner/app/{demo.APP_ID}/media"
        upload = await console.api.file(path, content, name=name, media_type=media_type)
        message = {"type": kind, "id": upload["mediaId"], "caption": "Grüße, 1 & 2 = 3%"}
    if kind == "file":
        message["filename"] = "bill & more.pdf"
    first_id = await send_session_message(console, message)
    await wait_on_phone(console, "1 & 2 = 3%")
    page = f"/apps/{demo.APP_ID}/messages"

    response = await console.post(f"{page}/{first_id}/resend")

    resent_id = response.headers["Location"].rpartition("/")[2]
    inbox = await poll_until(lambda: sent_messages(console), lambda messages: len(messages) == 2)
    assert resent_id != first_id
    assert [comparable_parts(message) for message in inbox] == [comparable_parts(inbox[0])] * 2
    trace = await console.admin.json("GET", f"/admin/trace/{resent_id}")
    assert trace["kind"] == ("text" if kind == "text" else "media")
    assert name.partition(".")[0] in await console.get(f"{page}/{resent_id}")


async def sent_messages(console: ConsoleClient) -> list[dict[str, Any]]:
    """Return what the business has sent to the phone, oldest first."""
    inbox = await console.control.json("GET", f"/control/phones/{demo.DESTINATION}")
    return [message for message in inbox["messages"] if "1 & 2 = 3%" in json.dumps(message)]


def comparable_parts(message: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a message on a phone that a resend repeats."""
    return {name: value for name, value in message.items() if name in ("type", "text", "image", "document")}
