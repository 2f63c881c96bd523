"""Hostile markup in every stored text: a page that does not escape it would run it."""

import asyncio
import base64
import json
from typing import Any, Final

from tests.console.support.pictures import picture
from tests.console.support.scene import ANN, BEN, SCREENS, Scene
from tests.console.support.story import ORDERS, make_credentials, name_values
from tests.support.callback_sink import ReceivedCallback
from tests.support.media_samples import sample
from tests.support.polling import poll_until
from waypost.assembly.dev import demo

EVIL: Final = "<img src=x onerror=\"document.title='taken'\">"
SHORT: Final = "<img src=x onerror=alert(1)>"  # 28 characters: for short fields
TINY: Final = "<svg onload=a()>"  # 16
IN_JSON: Final = "</script><script>alert(1)</script>"
IN_ATTRIBUTE: Final = "\" autofocus onfocus=alert(1) x='"
FIND_MARKUP: Final = (
    "() => [document.title, document.querySelectorAll('img[src=\"x\"], svg[onload], [onerror], [onfocus]').length]"
)


async def populate(scene: Scene) -> None:
    """Store hostile texts wherever a partner, a phone user, a reviewer or a receiver can."""
    scene.sink.choose_headers = lambda _: {"X-Note": SHORT}
    scene.sink.choose_status = _respond
    await scene.control("PUT", "settings", {"review_delay_ms": 0})
    for phone, name in ((ANN, EVIL), (BEN, IN_ATTRIBUTE)):
        await scene.control("PUT", f"phones/{phone}", {"name": name, "read_after_ms": 1})
    await _subscribe(scene)
    await _templates(scene)
    await _messages(scene)
    await scene.control(
        "POST",
        "fleets",
        {"name": "crowd", "first": "15551000000", "count": 5, "script": [{"on": "message", "do": "reply", "text": EVIL}]},
    )  # fmt: skip
    await scene.control("POST", "snapshots", {"name": "monday"})
    fault = {
        "on": "call",
        "call": "messages.send",
        "phone": "15559990000",
        "what": {"error": 131000, "details": EVIL},
        "label": SHORT,
    }
    await scene.control("POST", "faults", fault)
    await scene.console.admin.json(
        "POST",
        "/admin/apps",
        {
            "partner_id": demo.PARTNER.id, "name": SHORT, "phone_number": "15550001999",
            "phone_number_id": "1000000000001999", "business_account_id": demo.WABA_ID,
        },
    )  # fmt: skip
    await make_credentials(scene)
    await scene.publish_flow(
        EVIL, json.loads(json.dumps(SCREENS).replace("When will you come?", EVIL.replace('"', "'")))
    )
    await name_values(scene)


def _respond(attempt: ReceivedCallback) -> int:
    return 200 if attempt.path.endswith(ORDERS) else 500


async def _subscribe(scene: Scene) -> None:
    base = scene.sink.url.removesuffix("/callbacks")
    meta = '{"headers": {"X-Evil": "<b>1</b>"}}'
    for tag, path in ((EVIL, ORDERS), (IN_ATTRIBUTE, "/x?a=%3Cimg%20src=x%20onerror=alert(1)%3E")):
        await scene.console.api.form(
            "POST",
            f"/partner/app/{scene.console.app_id}/subscription",
            {
                "modes": "MESSAGE,ENQUEUED,SENT,DELIVERED,READ,FAILED,TEMPLATE", "tag": tag, "url": base + path,
                "version": "2", "doCheck": "false", "meta": meta,
            },
        )  # fmt: skip


async def _templates(scene: Scene) -> None:
    bread = await scene.upload(picture("bread"), "image/png", f"{EVIL}.png", as_sample=True)
    more = {"type": "URL", "text": "More", "url": "https://meadow.test/{{1}}", "example": [SHORT]}
    await scene.create_template(
        "spring_offer", f"Hi {{{{1}}}}, {EVIL} for you.", f"Hi {SHORT}, {EVIL} for you.", footer=EVIL[:60], vertical=EVIL,
        templateType="IMAGE", exampleMedia=bread, enableSample="true",
        buttons=[{"type": "QUICK_REPLY", "text": TINY}, {"type": "QUICK_REPLY", "text": "b</b>"}, more],
    )  # fmt: skip
    await scene.create_template("evil_offer", f"Hi {{{{1}}}}, {IN_JSON} ends.", f"Hi Ann, {IN_JSON} ends.", isLTO="true", limitedOfferText=TINY,
        hasExpiration="true", buttons=[{"type": "COPY_CODE", "example": "<b>C</b>"}, {"type": "URL", "text": TINY, "url": "https://meadow.test/"}])  # fmt: skip
    await scene.wait_for_status("APPROVED", "spring_offer", "evil_offer")
    await scene.control("PUT", "settings", {"review_delay_ms": None})
    await scene.create_template("evil_rejected", f"Won: {{{{1}}}} {EVIL}!", f"Won: you {EVIL}!")
    await scene.create_template("evil_waiting", f"Wait: {{{{1}}}} {EVIL}!", f"Wait: you {EVIL}!")

    async def operator_template_ids() -> dict[str, str]:
        templates = (await scene.control("GET", "templates"))["templates"]
        return {template["name"]: template["id"] for template in templates}

    ids = await poll_until(operator_template_ids, lambda template_ids: scene.templates.keys() <= template_ids.keys())
    decision = {"reason": "INVALID_FORMAT", "explanation": EVIL, "recommendation": IN_JSON}
    await scene.control("POST", f"templates/{ids['evil_rejected']}/reject", decision)
    await scene.wait_for_status("REJECTED", "evil_rejected")


async def _messages(scene: Scene) -> None:
    for text in (
        EVIL,
        IN_JSON,
        IN_ATTRIBUTE,
        f"*{EVIL}* _{SHORT}_ `{SHORT}` ```{EVIL}```\n> {EVIL}\n* {EVIL}",
        f"https://meadow.test/{SHORT} javascript:alert(1)",
    ):
        await scene.send_text_from(ANN, text)
        await scene.send(text)
    bill = await scene.upload(sample("pdf"), "application/pdf", f"{EVIL}.pdf")
    for message in (
        {"type": "file", "id": bill, "filename": f"{EVIL}.pdf", "caption": EVIL},
        {"type": "location", "longitude": "1", "latitude": "2", "name": EVIL, "address": IN_JSON},
        {"type": "contact", "contact": {"name": {"formattedName": EVIL, "firstName": EVIL}, "phones": [{"phone": SHORT}], "org": {"company": EVIL}}},
        {"type": "list", "title": EVIL, "body": EVIL, "footer": SHORT, "msgid": EVIL, "globalButtons": [{"type": "text", "title": TINY}],
         "items": [{"title": TINY, "subtitle": "", "options": [{"type": "text", "title": TINY, "description": SHORT, "postbackText": EVIL}]}]},
        {"type": "quick_reply", "msgid": "q", "content": {"type": "text", "header": SHORT, "text": EVIL, "caption": SHORT},
         "options": [{"type": "text", "title": TINY, "postbackText": EVIL}]},
    ):  # fmt: skip
        await scene.send(message)
    media = await scene.upload(picture("bread"), "image/png", "bread.png")
    scene.sent["read"] = await scene.send_template(
        "spring_offer", (EVIL, SHORT), postbacks=(EVIL, IN_JSON), message={"type": "image", "image": {"id": media}},
    )  # fmt: skip
    await scene.wait_for_states(read="read")
    messages = await scene.list_phone_messages(ANN)
    content = base64.b64encode(sample("pdf")).decode()
    phone_messages: tuple[dict[str, Any], ...] = (
        {"type": "document", "media": {"content": content, "mime_type": "application/pdf", "file_name": f"{EVIL}.pdf", "caption": EVIL}},
        {"type": "location", "location": {"latitude": 1, "longitude": 2, "name": EVIL, "address": EVIL, "url": "javascript:alert(1)"}},
        {"type": "contacts", "contacts": [{"name": {"formatted_name": EVIL, "first_name": EVIL}, "phones": [{"phone": SHORT}]}]},
        {"type": "reaction", "reaction": {"message_id": messages[-1]["wamid"], "emoji": "😀"}},
    )  # fmt: skip
    for phone_message in phone_messages:
        await scene.send_from(ANN, **phone_message)
    await asyncio.sleep(0.3)  # callbacks go out
