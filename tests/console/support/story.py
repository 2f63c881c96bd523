"""The content of the scene: a day of a bakery, created through the APIs."""

import base64
import contextlib
import json
import re
from collections.abc import Sequence
from typing import Any, Final

from tests.console.conftest import ConsoleClient
from tests.console.support.pictures import picture
from tests.console.support.scene import (
    ANN,
    BEN,
    CHI,
    CONTACT,
    DEE,
    ELI,
    FAY,
    GIL,
    HOUR_MS,
    MENU,
    MINUTE_MS,
    PLACE,
    Scene,
)
from tests.support.callback_sink import ReceivedCallback
from tests.support.media_samples import sample
from tests.support.polling import poll_until
from waypost.assembly.dev import demo
from waypost.client.api_client import ApiClient, ApiResponseError, HttpTransport

ALL_MODES: Final = "MESSAGE,ENQUEUED,SENT,DELIVERED,READ,FAILED,TEMPLATE,ACCOUNT"
ORDERS: Final = "/orders"
WAREHOUSE: Final = "/warehouse"
QUICK: Final = "QUICK_REPLY"


def respond(attempt: ReceivedCallback) -> int:
    """Respond 200 for the orders; the receiver of the warehouse is broken."""
    return 503 if attempt.path.endswith(WAREHOUSE) else 200


BUSY: Final = (3, 5, 2, 6, 4, 7, 9, 6, 3)
"""Numbers of neighbours who get a message, every three minutes."""


async def populate_for_screenshots(scene: Scene) -> None:
    """Create the scene with more traffic, for the screenshots."""
    await populate(scene, busy=BUSY)


async def populate(scene: Scene, *, busy: Sequence[int] = ()) -> None:
    """Create the scene, in order of time."""
    scene.sink.choose_status = respond
    await _phones(scene)
    await _subscribe(scene)
    await _templates(scene)
    await _yesterday(scene)
    await _neighbours(scene)
    for nth, count in enumerate(busy):
        for index in range(count):
            params = ("Neighbour", str(100 * nth + index))
            await scene.send_template("order_ready", params, to=f"15551000{100 * nth + index:03d}")
        await scene.advance(3 * MINUTE_MS)
    await _morning(scene)
    await _problems(scene)
    await _last_minutes(scene)
    await _simulator(scene)
    await make_credentials(scene)
    await _share_number(scene)
    await name_values(scene)


async def _share_number(scene: Scene) -> None:
    """Connect the number's own app, last, because the API is slower from then on; a person writes with it."""
    path = f"numbers/{demo.PHONE_NUMBER_ID}/business-app"
    await scene.control("POST", f"{path}/connect", {})
    await scene.control("POST", f"{path}/history/generate", {"messages": 200, "threads": 12})
    await scene.control("PUT", f"{path}/contacts/{ANN}", {"full_name": "Ann Ames"})
    await scene.control("POST", f"{path}/messages", {"to": ANN, "text": "Ring the bell, I am in the bakery."})
    sync = {"syncType": "history"}
    await scene.console.api.form("POST", f"/partner/app/{scene.console.app_id}/coex/sync", sync)


async def make_credentials(scene: Scene) -> None:
    """Create another credential of each kind of which a partner may have several."""
    partner_id, path = demo.PARTNER.id, f"/partner/app/{scene.console.app_id}"
    admin, partner = scene.console.admin, await scene.partner()
    in_a_month_ms = scene.clock.now_ms() + 30 * 24 * HOUR_MS
    body = {"expires_on_ms": in_a_month_ms}
    await admin.json("POST", f"/admin/partners/{partner_id}/client-secrets", body)
    await admin.json("POST", f"/admin/partners/{partner_id}/api-keys", {"name": "web shop"})
    await partner.form("POST", f"{path}/apikey", {"name": "warehouse"})
    shop = {"name": "shop", "expires_on_ms": in_a_month_ms}
    universal = await admin.json("POST", f"/admin/partners/{partner_id}/universal-tokens", shop)
    by_universal = ApiClient(
        HttpTransport(scene.console.base_url), {"Authorization": f"Bearer {universal['universal_token']}"}
    )
    expiry = str(scene.clock.now_ms() + 12 * HOUR_MS)
    await by_universal.form("POST", f"{path}/token", {"name": "till", "expiry": expiry})


async def name_credentials(scene: Scene) -> dict[str, str]:
    """Return the IDs of what `make_credentials` created, by the parameters of the console's paths."""
    partner_id, path = demo.PARTNER.id, f"/partner/app/{scene.console.app_id}"
    admin, partner = scene.console.admin, await scene.partner()
    secrets = (await admin.json("GET", f"/admin/partners/{partner_id}/client-secrets"))["client_secrets"]
    keys = (await admin.json("GET", f"/admin/partners/{partner_id}/api-keys"))["api_keys"]
    second = (await partner.json("GET", f"{path}/apikey"))["apiKeys"]
    minted = (await partner.json("GET", f"{path}/tokens"))["tokens"]
    return {
        "secret_id": secrets[-1]["id"],
        "/settings/keys/{key_id}/revoke key_id": keys[-1]["id"],
        "/apps/{app_id}/settings/keys/{key_id}/revoke key_id": second[0]["id"],
        "/apps/{app_id}/settings/tokens/{key_id}/revoke key_id": minted[0]["id"],
    }


async def name_values(scene: Scene) -> None:
    """Set the scene's values of the parameters in the console's paths."""
    console = scene.console
    messages = await scene.list_phone_messages(ANN)
    path = f"/partner/app/{console.app_id}"
    subscriptions = (await console.api.json("GET", f"{path}/subscription"))["subscriptions"]
    trace = await console.admin.json("GET", f"/admin/trace/{scene.sent['read']}")
    media = (await scene.control("GET", "media"))["media"]
    scene.values = {
        "app_id": console.app_id,
        "message_id": scene.sent["read"],
        "template_id": scene.templates.get("spring_offer", demo.TEMPLATE_ID),
        "subscription_id": str(subscriptions[0]["id"]) if subscriptions else "",
        "callback_id": next((callback["id"] for callback in trace["callbacks"]), ""),
        "phone": ANN,
        "number": demo.SOURCE,
        "position": "1",
        "partner_id": str(demo.PARTNER.id),
        "recipient_id": "1",
        "wamid": messages[-1]["wamid"],
        "item_id": messages[-1]["wamid"],
        "media_id": media[0]["media_id"] if media else "",
        "flow_id": scene.values.get("flow_id", "0"),
        "fault_id": "1",
        "fleet": "crowd",
        "name": "monday",
        "entry_id": await find_failed_request(console),
        **await name_credentials(scene),
    }


async def find_failed_request(console: ConsoleClient) -> str:
    """Send a text without a recipient, and return the id of its entry in the request log."""
    form = {"channel": "whatsapp", "source": demo.SOURCE, "src.name": demo.APP_NAME, "message": "Hello"}
    with contextlib.suppress(ApiResponseError):
        await console.api.form("POST", f"/partner/app/{console.app_id}/msg", form)

    async def find() -> str:
        found = re.search(r'href="/requests/([0-9a-f-]+)"', await console.get("/requests?status=4xx&route=/msg"))
        return found[1] if found else ""

    return await poll_until(find, bool)


async def _phones(scene: Scene) -> None:
    await scene.control("PUT", "settings", {"review_delay_ms": 0})
    for phone, settings in (
        (ANN, {"name": "Ann", "read_after_ms": 400}),
        (BEN, {"name": "Ben", "read_after_ms": 900}),
        (CHI, {"name": "Chi"}),
        (DEE, {"name": "Dee", "is_offline": True}),
        (ELI, {"name": "Eli", "condition": "not_on_whatsapp"}),
        (FAY, {"name": "Fay"}),
        (GIL, {"name": "Gil", "condition": "marketing_limit"}),
    ):
        await scene.control("PUT", f"phones/{phone}", settings)


async def _subscribe(scene: Scene) -> None:
    base = scene.sink.url.removesuffix("/callbacks")
    for tag, path, version in (("orders", ORDERS, "2"), ("warehouse", WAREHOUSE, "2")):
        await scene.console.api.form(
            "POST",
            f"/partner/app/{scene.console.app_id}/subscription",
            {
                "modes": ALL_MODES if tag == "orders" else "DELIVERED,READ", "tag": tag, "url": base + path,
                "version": version, "doCheck": "false",
            },
        )  # fmt: skip


async def _templates(scene: Scene) -> None:
    create, upload = scene.create_template, scene.upload
    bread = await upload(picture("bread"), "image/png", "bread.png", as_sample=True)
    film = await upload(sample("mp4"), "video/mp4", "oven.mp4", as_sample=True)
    bill = await upload(sample("pdf"), "application/pdf", "bill.pdf", as_sample=True)
    more = {"type": "URL", "text": "See the breads", "url": "https://meadow.test/{{1}}", "example": ["rye"]}
    call = {"type": "PHONE_NUMBER", "text": "Call the bakery", "phone_number": "+15550009001"}
    scene.templates["order_ready"] = demo.TEMPLATE_ID
    await create(
        "spring_offer", "Hi {{1}}, *fresh rye bread* every morning from six. Shall we keep one for you?",
        "Hi Ann, *fresh rye bread* every morning from six. Shall we keep one for you?",
        templateType="IMAGE", exampleMedia=bread, enableSample="true", footer="Meadow Bakery, Mill Road 4",
        buttons=[{"type": QUICK, "text": "Keep one"}, {"type": QUICK, "text": "Not today"}, more],
    )  # fmt: skip
    await create(
        "oven_film", "See how {{1}} is baked.", "See how rye bread is baked.",
        templateType="VIDEO", exampleMedia=film, enableSample="true",
    )  # fmt: skip
    await create(
        "monthly_bill", "Your bill for {{1}} is attached.", "Your bill for March is attached.", category="UTILITY",
        templateType="DOCUMENT", exampleMedia=bill, enableSample="true",
    )  # fmt: skip
    await create(
        "way_to_us", "This is where we bake, {{1}}.", "This is where we bake, Ann.", templateType="LOCATION",
    )  # fmt: skip
    await create(
        "whole_range", "Hi {{1}}, all we bake.", "Hi Ann, all we bake.", templateType="CATALOG", footer="Meadow Bakery",
    )  # fmt: skip
    await create("new_cakes", "Hi {{1}}, our new cakes.", "Hi Ann, our new cakes.", templateType="PRODUCT")
    await create(
        "weekend_code", "Hi {{1}}, two days only: a third off all cakes.", "Hi Ann, two days only: a third off all cakes.",
        isLTO="true", limitedOfferText="Weekend only", hasExpiration="true",
        buttons=[{"type": "COPY_CODE", "example": "CAKE33"}, {"type": "URL", "text": "Order", "url": "https://meadow.test/cakes"}],
    )  # fmt: skip
    await create(
        "sign_in_code", "{{1}} is your verification code.", "123456 is your verification code.", category="AUTHENTICATION",
        addSecurityRecommendation="true", codeExpirationMinutes="10",
        buttons=[{"type": "OTP", "otp_type": "COPY_CODE", "text": "Copy the code"}],
    )  # fmt: skip
    cards = [
        {
            "headerType": "IMAGE", "body": f"{title} for {{{{1}}}}.", "sampleText": f"{title} for 4 euros.",
            "exampleMedia": await upload(picture(name), "image/png", f"{name}.png", as_sample=True),
            "buttons": [{"type": QUICK, "text": "I take it"}, more],
        }
        for name, title in (("bread", "Rye bread"), ("cake", "Cream cake"), ("rolls", "Six rolls"), ("pretzel", "Pretzels"))
    ]  # fmt: skip
    await create(
        "this_week", "Hi {{1}}, this week from our oven:", "Hi Ann, this week from our oven:",
        templateType="CAROUSEL", cards=json.dumps(cards),
    )  # fmt: skip
    flow_id = await scene.publish_flow()
    await create(
        "book_a_table", "Breakfast with us, {{1}}? Book a table.", "Breakfast with us, Ann? Book a table.",
        buttons=[{"type": "FLOW", "text": "Book a table", "flow_id": flow_id, "flow_action": "NAVIGATE", "navigate_screen": "START"}],
    )  # fmt: skip
    await create(
        "delivery_today", "Hi {{1}}, your order {{2}} comes between *10 and 12*.",
        "Hi Ann, your order 4711 comes between *10 and 12*.", category="UTILITY", header="Order {{1}}",
        exampleHeader="Order 4711", footer="Meadow Bakery", buttons=[{"type": QUICK, "text": "Somebody is home"}, call],
    )  # fmt: skip
    approved = [name for name in scene.templates if name != "order_ready"]
    await scene.wait_for_status("APPROVED", *approved)


async def _reviews(scene: Scene) -> None:
    """Create templates that are pending, rejected, paused, or of another quality."""
    await scene.control("PUT", "settings", {"review_delay_ms": None})
    await scene.create_template("autumn_cakes", "Hi {{1}}, plum cake is back.", "Hi Ann, plum cake is back.")
    await scene.create_template(
        "new_hours", "From May we open at {{1}} already.", "From May we open at six already.", category="UTILITY"
    )
    await scene.create_template(
        "free_bread", "You have won a year of bread, {{1}}!", "You have won a year of bread, Ann!"
    )
    await scene.create_template("too_often", "Another cake today, {{1}}?", "Another cake today, Ann?")

    async def operator_template_ids() -> dict[str, str]:
        templates = (await scene.control("GET", "templates"))["templates"]
        return {template["name"]: template["id"] for template in templates}

    ids = await poll_until(operator_template_ids, lambda template_ids: scene.templates.keys() <= template_ids.keys())
    decision = {
        "reason": "INVALID_FORMAT", "explanation": "The text promises a prize.",
        "recommendation": "Say what the customer bought, and nothing of prizes.",
    }  # fmt: skip
    await scene.control("POST", f"templates/{ids['free_bread']}/reject", decision)
    await scene.control("POST", f"templates/{ids['too_often']}/approve")
    await scene.wait_for_status("APPROVED", "too_often")
    await scene.control("POST", f"templates/{ids['too_often']}/pause")
    await scene.control("POST", f"templates/{ids['spring_offer']}/quality", {"score": "GREEN"})
    await scene.control("POST", f"templates/{ids['this_week']}/quality", {"score": "YELLOW"})
    await scene.wait_for_status("REJECTED", "free_bread")
    await scene.wait_for_status("PAUSED", "too_often")


async def _yesterday(scene: Scene) -> None:
    """Create callbacks to the warehouse that were given up."""
    await scene.send_text_from(BEN, "Do you have rye bread tomorrow?")
    scene.sent["given up"] = await scene.send("Yes, from six.", to=BEN)
    await scene.wait_for_states(**{"given up": "read"})
    await scene.advance(34 * HOUR_MS)


async def _morning(scene: Scene) -> None:
    for phone, text in ((ANN, "Good morning"), (BEN, "Are you open on Sunday?"), (CHI, "Hello, is this the bakery?")):
        await scene.send_text_from(phone, text)
    await scene.send("Good morning, Ann. What can we do for you?")
    await scene.send("On Sunday from *seven to eleven*.", to=BEN)
    await scene.send("It is. _Mill Road 4_, see https://meadow.test/way", to=CHI)
    await scene.send(MENU)
    await scene.advance(7 * MINUTE_MS)
    [menu] = [message for message in await scene.list_phone_messages(ANN) if message.get("type") == "interactive"]
    await scene.control("POST", f"phones/{ANN}/tap", {"message_id": menu["wamid"], "index": 0})
    await scene.send({"type": "location", **{k: str(v) for k, v in PLACE.items()}})
    await scene.send({"type": "contact", "contact": CONTACT})
    image = await scene.upload(picture("rolls"), "image/png", "rolls.png")
    await scene.send({"type": "image", "id": image, "caption": "Fresh from the oven"})
    bill = await scene.upload(sample("pdf"), "application/pdf", "bill.pdf")
    await scene.send({"type": "file", "id": bill, "filename": "bill.pdf", "caption": "Your bill"})
    for name in ("delivery_today", "way_to_us", "whole_range", "sign_in_code", "book_a_table"):
        await scene.send_template(name, *_params(name), to=CHI, **_extra(name))
    await scene.advance(18 * MINUTE_MS)


def _params(name: str) -> tuple[tuple[str, ...]]:
    return ({
        "delivery_today": ("4711", "Chi", "4711"), "way_to_us": ("Chi",), "whole_range": ("Chi", "rye-1"),
        "sign_in_code": ("482913",), "book_a_table": ("Chi",),
    }[name],)  # fmt: skip


def _extra(name: str) -> dict[str, Any]:
    return {"message": {"type": "location", "location": PLACE}} if name == "way_to_us" else {}


async def _problems(scene: Scene) -> None:
    """Send messages that fail, stay unconfirmed, or wait."""
    for fault in (
        {"on": "call", "call": "messages.send", "phone": FAY, "what": {"reset": "after"}, "label": "responses are lost"},
        {"on": "webhook", "phone": FAY, "what": {"drop": True}, "label": "and their statuses are dropped"},
    ):  # fmt: skip
        await scene.control("POST", "faults", fault)
    await scene.send_text_from(ANN, "Thank you!")
    scene.sent["unreachable"] = await scene.send_template("delivery_today", ("1", "Eli", "1"), to=ELI)
    scene.sent["no window"] = await scene.send("Are you coming today?", to=ELI)
    scene.sent["limited"] = await scene.send_template("this_week", ("Gil", *_CARDS), to=GIL, message=_IN_CARDS)
    scene.sent["too few"] = await scene.send_template("delivery_today", ("1",), to=BEN)
    scene.sent["waits"] = await scene.send_template("delivery_today", ("2", "Dee", "2"), to=DEE)
    scene.sent["unconfirmed"] = await scene.send_template("order_ready", ("Fay", "12"), to=FAY)
    await scene.wait_for_states(
        **{"unreachable": "failed", "no window": "failed", "limited": "failed", "too few": "failed",
           "waits": "sent", "unconfirmed": "uncertain"}
    )  # fmt: skip
    await _reviews(scene)
    await scene.advance(4 * MINUTE_MS)
    await scene.control("DELETE", "faults")


_CARDS: Final = ("4 euros", "rye", "24 euros", "cake", "3 euros", "rolls", "5 euros", "pretzel")
_IN_CARDS: Final = {
    "type": "carousel", "cardHeaderType": "IMAGE",
    "cards": [{"link": f"https://meadow.test/{name}.png"} for name in ("bread", "cake", "rolls", "pretzel")],
}  # fmt: skip


async def _last_minutes(scene: Scene) -> None:
    """Create the last minutes: a template, a tap, a reply, a picture, a reaction."""
    media = await scene.upload(picture("bread"), "image/png", "bread.png")
    scene.sent["delivered"] = await scene.send_template(
        "weekend_code", ("Chi", "CAKE33"), to=CHI, expiration=_offer_expiry_ms(scene)
    )
    cards = [
        {"id": await scene.upload(picture(name), "image/png", f"{name}.png")}
        for name in ("bread", "cake", "rolls", "pretzel")
    ]
    await scene.send_template("this_week", ("Ben", *_CARDS), to=BEN, message={**_IN_CARDS, "cards": cards})
    scene.sent["read"] = await scene.send_template(
        "spring_offer", ("Ann", "rye"), postbacks=("keep-rye", "no-rye"), message={"type": "image", "image": {"id": media}},
    )  # fmt: skip
    await scene.wait_for_states(read="read", delivered="delivered")
    offer = next(
        message for message in reversed(await scene.list_phone_messages(ANN)) if message.get("type") == "template"
    )
    await scene.control("POST", f"phones/{ANN}/tap", {"message_id": offer["wamid"], "index": 0, "wait_ms": 2000})
    await scene.send_from(ANN, type="reaction", reaction={"message_id": offer["wamid"], "emoji": "❤️"})
    content = base64.b64encode(picture("pretzel")).decode()
    await scene.send_from(
        ANN, type="image", media={"content": content, "mime_type": "image/png", "caption": "Like these?"}
    )
    await scene.send_from(BEN, type="location", location={"latitude": 52.52, "longitude": 13.405, "name": "My place"})
    scene.sent["reply"] = await scene.send("Exactly like these. They are ~gone~ *ready* at ten.")
    await scene.wait_for_states(reply="delivered")
    await scene.send_text_from(ANN, "On my way.")


def _offer_expiry_ms(scene: Scene) -> int:
    return scene.clock.now_ms() + 26 * HOUR_MS


async def _neighbours(scene: Scene) -> None:
    """Create a fleet whose phones read most messages and tap a button of some."""
    await scene.control(
        "POST",
        "fleets",
        {
            "name": "crowd", "first": "15551000000", "count": 1000, "seed": 7, "open_window_to": demo.SOURCE,
            "script": [
                {"on": "button", "do": "read", "after_ms": 0, "probability": 0.8},
                {"on": "button", "do": "tap", "index": 0, "after_ms": 0, "probability": 0.4},
            ],
        },
    )  # fmt: skip


async def _simulator(scene: Scene) -> None:
    """Create a snapshot, and a fault that never fires."""
    for at in range(6):
        await scene.send_template("order_ready", ("Neighbour", str(40 + at)), to=f"1555100000{at}")
    await scene.control("POST", "snapshots", {"name": "monday"})
    await scene.control(
        "POST",
        "faults",
        {
            "on": "call", "call": "messages.send", "phone": "15559990000", "when": {"every": 3},
            "what": {"error": 130429, "retry_after_s": 1}, "label": "too much at once",
        },
    )  # fmt: skip
