"""Each type of template is sent from its page with what stands in the form at first."""

import asyncio
import json
import re
from html import unescape
from typing import Any

import pytest

from tests.console.conftest import LOOP, Desk
from tests.support.media_samples import sample
from tests.support.waiting import patiently
from waypost.assembly.dev import demo

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

# fmt: off
OFFER = [{"type": "COPY_CODE", "example": "SAVE30"}, {"type": "URL", "text": "Shop", "url": "https://acme.test/{{1}}", "example": ["https://acme.test/coats"]}]
KINDS: dict[str, dict[str, Any]] = {  # by what the phone shows of it
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


async def test_each_type_is_sent_with_what_stands_in_the_form(desk: Desk) -> None:
    base = f"/partner/app/{demo.APP_ID}"
    upload = await desk.api.file(f"{base}/upload/media", sample("png"), name="a.png", media_type="image/png")
    handle = upload["handleId"]["message"]
    ids: dict[str, str] = {}
    for number, (shown, form) in enumerate(KINDS.items()):
        given = {
            "elementName": f"kind_{number}",
            "vertical": "Shop",
            "content": "Look at this one",
            "example": "Look at this one",
        } | form
        texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in given.items()}
        texts = {k: v.replace("HANDLE", json.dumps(handle)[1:-1] if k == "cards" else handle) for k, v in texts.items()}
        ids[shown] = (await desk.api.form("POST", f"{base}/templates", texts))["template"]["id"]

    for shown, template_id in ids.items():
        path = f"/apps/{demo.APP_ID}/templates/{template_id}"
        page = await approved(desk, path)
        form = page.partition(f'action="{path}/send"')[2].partition("</form>")[0]
        fields = re.findall(r'<input [^>]*?name="([^"]+)"[^>]*? value="([^"]*)"', form)
        await desk.post(f"{path}/send", {name: unescape(value) for name, value in fields})
        assert await on_the_phone(desk, shown), shown


async def approved(desk: Desk, path: str) -> str:
    for _ in range(100):
        page = await desk.get(path)
        if "It can be sent." in page:
            return page
        assert "Reason:" not in page, page.partition("Reason:")[2][:300]
        await asyncio.sleep(0.1)
    raise AssertionError("it is never approved")


async def on_the_phone(desk: Desk, shown: str) -> bool:
    inbox: dict[str, Any] = {"messages": [None]}
    for _ in range(60):
        inbox = await desk.control.json("GET", f"/control/phones/{demo.DESTINATION}")
        if shown in json.dumps(inbox["messages"][-1]):
            return True
        await asyncio.sleep(0.1)
    raise AssertionError(json.dumps(inbox["messages"][-1])[:1500])


async def created(desk: Desk, **given: str) -> str:
    """Submit a template that asks for one name, and wait until it can be sent; gives the path of its page."""
    form = {
        "elementName": "see_what_is_new", "category": "MARKETING", "templateType": "TEXT", "vertical": "Shop",
        "content": "Hi {{1}}, see what is new.", "example": "Hi Ann, see what is new.", **given,
    }  # fmt: skip
    made = await desk.api.form("POST", f"/partner/app/{demo.APP_ID}/templates", form)
    path = f"/apps/{demo.APP_ID}/templates/{made['template']['id']}"
    await approved(desk, path)
    return path


async def test_products_of_a_template_are_typed_into_the_form_and_shown_on_the_phone(desk: Desk) -> None:
    path = await created(desk, templateType="PRODUCT")
    page = await desk.get(path)
    form = page.partition(f'action="{path}/send"')[2].partition("</form>")[0]
    fields = dict(re.findall(r'<input [^>]*?name="([^"]+)"[^>]*? value="([^"]*)"', form))
    assert {"destination", "param-0", "products"} <= fields.keys()

    await desk.post(f"{path}/send", {**fields, "products": "rye-1, wheat-2 ,"})

    assert await on_the_phone(desk, "wheat-2")
    shown = (await desk.control.json("GET", f"/control/phones/{demo.DESTINATION}"))["messages"][-1]
    [button] = shown["buttons"]
    assert button["sections"] == [
        {"title": "Items", "product_items": [{"product_retailer_id": "rye-1"}, {"product_retailer_id": "wheat-2"}]}
    ]
    assert shown["text"] == "Hi Ann, see what is new."


async def test_product_template_sent_without_products_fails_and_its_page_says_why(desk: Desk) -> None:
    path = await created(desk, templateType="PRODUCT")
    before = await desk.control.json("GET", f"/control/phones/{demo.DESTINATION}")
    typed = {"destination": demo.DESTINATION, "param-0": "Ann", "products": " , "}

    answer = await desk.post(f"{path}/send", typed)

    message_id = answer.headers["Location"].rpartition("/")[2]
    await patiently(
        lambda: desk.admin.json("GET", f"/admin/trace/{message_id}"), lambda trace: trace["state"] == "failed"
    )
    page = await desk.get(answer.headers["Location"])
    assert "Button at index 0 of type Mpm requires a parameter" in page
    assert "Provide every parameter of the template, then send it again." in page
    assert before == await desk.control.json("GET", f"/control/phones/{demo.DESTINATION}")


async def session_message(desk: Desk, message: dict[str, Any]) -> str:
    """Send one as a program does; gives our id."""
    form = {
        "channel": "whatsapp", "source": demo.SOURCE, "destination": demo.DESTINATION, "src.name": demo.APP_NAME,
        "message": json.dumps(message),
    }  # fmt: skip
    answer = await desk.api.form("POST", f"/partner/app/{demo.APP_ID}/msg", form)
    return str(answer["messageId"])


@pytest.mark.parametrize("kind", ["text", "image", "file"])
async def test_session_message_is_sent_again_from_its_page_as_it_was(desk: Desk, kind: str) -> None:
    """The console has no form of its own for these: what a program has sent is sent once more."""
    name, media_type = ("a.png", "image/png") if kind == "image" else ("a.pdf", "application/pdf")
    message: dict[str, Any] = {"type": "text", "text": "Grüße, 1 & 2 = 3%"}
    if kind != "text":
        content = sample("png" if kind == "image" else "pdf")
        path = f"/partner/app/{demo.APP_ID}/media"
        made = await desk.api.file(path, content, name=name, media_type=media_type)
        message = {"type": kind, "id": made["mediaId"], "caption": "Grüße, 1 & 2 = 3%"}
    if kind == "file":
        message["filename"] = "bill & more.pdf"
    first = await session_message(desk, message)
    await on_the_phone(desk, "1 & 2 = 3%")
    page = f"/apps/{demo.APP_ID}/messages"

    answer = await desk.post(f"{page}/{first}/resend")

    again = answer.headers["Location"].rpartition("/")[2]
    inbox = await patiently(lambda: own_messages(desk), lambda found: len(found) == 2)
    assert again != first
    assert [shape(one) for one in inbox] == [shape(inbox[0])] * 2
    trace = await desk.admin.json("GET", f"/admin/trace/{again}")
    assert trace["kind"] == ("text" if kind == "text" else "media")
    assert name.partition(".")[0] in await desk.get(f"{page}/{again}")


async def own_messages(desk: Desk) -> list[dict[str, Any]]:
    """What the business has sent to the phone, oldest first."""
    inbox = await desk.control.json("GET", f"/control/phones/{demo.DESTINATION}")
    return [one for one in inbox["messages"] if "1 & 2 = 3%" in json.dumps(one)]


def shape(shown: dict[str, Any]) -> dict[str, Any]:
    """A message on a phone without what is its own."""
    return {name: value for name, value in shown.items() if name in ("type", "text", "image", "document")}
