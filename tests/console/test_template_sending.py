"""Each type of template is sent from its page with what stands in the form at first."""

import asyncio
import json
import re
from html import unescape
from typing import Any

import pytest

from tests.console.conftest import LOOP, Desk
from tests.support.media_samples import sample
from waypost.assembly import demo

pytestmark = [pytest.mark.asyncio(loop_scope=LOOP), pytest.mark.timeout(60)]

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
    upload = await desk.api.file(
        f"{base}/upload/media", sample("png"), name="a.png", media_type="image/png"
    )
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
        texts = {
            k: v.replace("HANDLE", json.dumps(handle)[1:-1] if k == "cards" else handle)
            for k, v in texts.items()
        }
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
        assert "The operator says:" not in page, page.partition("The operator says:")[2][:300]
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
