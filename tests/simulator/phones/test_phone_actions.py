"""Messages and actions of phones, user ids, and statuses sent on request."""

import base64
import hashlib
from typing import Any

import pytest

from tests.simulator.conftest import ANN, BUSINESS, NUMBER_ID, TOKEN, WABA, Bench
from tests.support.manual_clock import ManualClock
from waypost.simulator.apis.control_error import ControlApiError

JsonObject = dict[str, Any]
CONTENT = b"\x89PNG picture"
BASE64 = base64.b64encode(CONTENT).decode()
USER = "US.1349abc"
ITEM = {"product_retailer_id": "sku", "quantity": 2, "item_price": 9.5, "currency": "USD"}
ORDER = {"catalog_id": "1", "text": "Two, please", "product_items": [ITEM]}
BO = {"name": {"formatted_name": "Bo"}}
PLACE = {"latitude": 52.5, "longitude": 13.4}
AD = {"source_url": "https://x.example/ad", "source_type": "ad", "source_id": "1", "headline": "New"}


async def send_and_receive(bench: Bench, message: JsonObject, phone: str = ANN) -> JsonObject:
    """Send a message from a phone and return it as the business receives it."""
    response = await bench.control("POST", f"phones/{phone}/messages", {"to": BUSINESS, **message})
    assert response.status == 200, response.body

    def find_received() -> list[JsonObject]:
        return [message for message in bench.receiver.messages() if message["id"] == response.body["wamid"]]

    await bench.receiver.wait_until(lambda: bool(find_received()))
    return find_received()[0]


# fmt: off
MEDIA: list[tuple[str, str, JsonObject, JsonObject]] = [
    # kind       type               more                                   expected besides id, mime_type and sha256
    ("image",    "image/png",       {"caption": "Look"},                   {"caption": "Look"}),
    ("video",    "video/mp4",       {},                                    {}),
    ("audio",    "audio/ogg",       {"voice": True},                       {"voice": True}),
    ("document", "application/pdf", {"file_name": "a.pdf", "caption": "C"}, {"filename": "a.pdf", "caption": "C"}),
    ("sticker",  "image/webp",      {"animated": True},                    {"animated": True}),
]
# fmt: on


@pytest.mark.parametrize(("kind", "mime_type", "more", "expected"), MEDIA, ids=[row[0] for row in MEDIA])
async def test_media_of_a_phone_can_be_fetched_by_the_business(
    bench: Bench, kind: str, mime_type: str, more: JsonObject, expected: JsonObject
) -> None:
    media = {"content": BASE64, "mime_type": mime_type, **more}

    message = await send_and_receive(bench, {"type": kind, "media": media})

    received = message[kind]
    digest = base64.b64encode(hashlib.sha256(CONTENT).digest()).decode()
    assert message["type"] == kind
    assert received == {"id": received["id"], "mime_type": mime_type, "sha256": digest, **expected}
    node = await bench.graph("GET", received["id"])
    assert node.body["mime_type"] == mime_type
    [shown] = await bench.inbox()
    assert shown["media"] == {"kind": kind, **received}
    assert shown["text"] == expected.get("caption", "")


async def test_existing_media_can_be_sent_by_id(bench: Bench) -> None:
    media_id = await bench.upload_media("image/png", CONTENT)

    message = await send_and_receive(bench, {"type": "image", "media": {"id": media_id}})

    assert message["image"]["id"] == media_id


# fmt: off
SENT_TYPES: list[tuple[str, str]] = [  # what people send, besides what a business may upload
    ("audio",    "audio/ogg; codecs=opus"),
    ("audio",    'audio/ogg;codecs="opus"'),
    ("audio",    "audio/wav"),
    ("document", "text/csv"),
    ("document", "text/html"),
    ("document", "application/zip"),
    ("document", "application/json"),
    ("document", "text/x-vcard"),
    ("document", "text/vcard; charset=utf-8"),
    ("document", "application/vnd.android.package-archive"),
    ("document", "application/octet-stream"),
    ("document", "Application/PDF"),
    ("image",    "image/webp"),
    ("video",    "video/quicktime"),
]
# fmt: on


@pytest.mark.parametrize(("kind", "mime_type"), SENT_TYPES)
@pytest.mark.parametrize("is_stored", [False, True], ids=["at once", "stored before"])
async def test_mime_type_reaches_the_business_as_it_was_sent(
    bench: Bench, kind: str, mime_type: str, is_stored: bool
) -> None:
    # Source: facts 7.4, `voice`.
    media: JsonObject = {"content": BASE64, "mime_type": mime_type}
    if is_stored:
        stored = await bench.control("POST", "media", {"to": BUSINESS, **media})
        media = {"id": stored.body["media_id"]}

    message = await send_and_receive(bench, {"type": kind, "media": media})

    assert message[kind]["mime_type"] == mime_type
    shown = await bench.graph("GET", message[kind]["id"])
    downloaded = await bench.http.get(shown.body["url"], headers={"Authorization": f"Bearer {TOKEN}"})
    assert (shown.body["mime_type"], downloaded.headers["Content-Type"]) == (mime_type, mime_type)
    assert await downloaded.read() == base64.b64decode(BASE64)


async def test_locations_contacts_and_orders_reach_the_business(bench: Bench) -> None:
    coordinates = {"latitude": 37.4, "longitude": -122.1, "name": "Shop", "address": "1 Main St"}
    cards = [{"name": {"formatted_name": "Bo"}, "phones": [{"phone": "+15550000001"}]}]

    location = await send_and_receive(bench, {"type": "location", "location": coordinates})
    contacts = await send_and_receive(bench, {"type": "contacts", "contacts": cards})
    order = await send_and_receive(bench, {"type": "order", "order": ORDER})

    assert location["location"] == coordinates
    assert contacts["contacts"] == cards
    assert order["order"] == ORDER
    assert [shown["text"] for shown in await bench.inbox()] == ["Shop, 1 Main St", "Bo", "Two, please"]


async def test_reaction_can_be_changed_and_removed(bench: Bench) -> None:
    await bench.send_from_phone()
    wamid = await bench.send_text()

    liked = await send_and_receive(
        bench, {"type": "reaction", "reaction": {"message_id": wamid, "emoji": "\U0001f44d"}}
    )
    changed = await send_and_receive(
        bench, {"type": "reaction", "reaction": {"message_id": wamid, "emoji": "\U0001f389"}}
    )
    removed = await send_and_receive(bench, {"type": "reaction", "reaction": {"message_id": wamid}})

    assert liked["reaction"] == {"message_id": wamid, "emoji": "\U0001f44d"}
    assert changed["reaction"] == {"message_id": wamid, "emoji": "\U0001f389"}
    assert removed["reaction"] == {"message_id": wamid}


async def test_reaction_must_refer_to_a_message_of_the_phone(bench: Bench) -> None:
    reaction = {"message_id": "wamid.x", "emoji": "\U0001f44d"}

    response = await bench.control(
        "POST", f"phones/{ANN}/messages", {"to": BUSINESS, "type": "reaction", "reaction": reaction}
    )

    assert (response.status, response.body["field"]) == (404, "reaction.message_id")


async def test_unsupported_message_has_an_error(bench: Bench) -> None:
    message = await send_and_receive(bench, {"type": "unsupported", "unsupported": {"type": "poll"}})

    assert message["errors"][0]["code"] == 131051
    assert message["unsupported"] == {"type": "poll"}


async def test_inbound_options_apply_to_any_message(bench: Bench) -> None:
    product = {"catalog_id": "1", "product_retailer_id": "sku"}

    forwarded = await send_and_receive(bench, {"text": "x", "forwarded": True})
    often = await send_and_receive(bench, {"text": "x", "frequently_forwarded": True})
    about_product = await send_and_receive(bench, {"text": "x", "referred_product": product})
    from_ad = await send_and_receive(bench, {"text": "x", "referral": AD})
    plain = await send_and_receive(bench, {"text": "x"})

    assert forwarded["context"] == {"forwarded": True}
    assert often["context"] == {"frequently_forwarded": True}
    assert about_product["context"] == {"from": BUSINESS, "referred_product": product}
    assert from_ad["referral"] == AD
    assert "context" not in plain
    assert "referral" not in plain


# fmt: off
INVALID: list[tuple[JsonObject, str]] = [
    ({"type": "fax"}, "type"),
    ({"type": "location"}, "location"),
    ({"type": "location", "location": {"latitude": 91, "longitude": 1}}, "location.latitude"),
    ({"type": "location", "location": {"latitude": True, "longitude": 1}}, "location.latitude"),
    ({"type": "location", "location": {**PLACE, "name": 7.5}}, "location.name"),
    ({"type": "location", "location": {**PLACE, "address": ["Pariser Platz"]}}, "location.address"),
    ({"type": "location", "location": {**PLACE, "url": None}}, "location.url"),
    ({"type": "location", "location": {**PLACE, "city": "Berlin"}}, "location.city"),
    ({"type": "contacts", "contacts": []}, "contacts"),
    ({"type": "contacts", "contacts": [{"name": {"formatted_name": 7}}]}, "contacts[0].name.formatted_name"),
    ({"type": "contacts", "contacts": [{**BO, "phones": [{"phone": 15550001}]}]}, "contacts[0].phones[0].phone"),
    ({"type": "contacts", "contacts": [BO, {**BO, "phones": {"phone": "1"}}]}, "contacts[1].phones"),
    ({"type": "contacts", "contacts": [{**BO, "org": {"company": 7}}]}, "contacts[0].org.company"),
    ({"type": "contacts", "contacts": [{**BO, "birthday": "1.2.1990"}]}, "contacts[0].birthday"),
    ({"text": "Hi", "referral": {**AD, "source_id": 1}}, "referral.source_id"),
    ({"text": "Hi", "referred_product": {"catalog_id": 1, "product_retailer_id": "2"}}, "referred_product.catalog_id"),
    ({"type": "reaction", "reaction": {"message_id": 7}}, "reaction.message_id"),
    ({"type": "reaction", "reaction": {"message_id": "wamid.1", "emoji": 7}}, "reaction.emoji"),
    ({"type": "reaction", "reaction": {"message_id": "wamid.1", "text": "x"}}, "reaction.text"),
    ({"type": "order", "order": {**ORDER, "catalog_id": 7}}, "order.catalog_id"),
    ({"type": "order", "order": {**ORDER, "text": 7}}, "order.text"),
    ({"type": "order", "order": {**ORDER, "product_items": [{**ITEM, "currency": 7}]}}, "order.product_items[0].currency"),
    ({"type": "order", "order": {**ORDER, "product_items": [{**ITEM, "quantity": "2"}]}}, "order.product_items[0]"),
    ({"type": "order", "order": {**ORDER, "product_items": [{**ITEM, "item_price": True}]}}, "order.product_items[0]"),
    ({"type": "unsupported", "unsupported": {"type": 7}}, "unsupported.type"),
    ({"type": "unsupported", "unsupported": {"kind": "poll"}}, "unsupported.kind"),
    ({"type": "reaction", "reaction": {"emoji": "x"}}, "reaction.message_id"),
    ({"type": "order", "order": {"catalog_id": "1"}}, "order"),
    ({"type": "order", "order": {**ORDER, "product_items": [{}]}}, "order.product_items[0]"),
    ({"type": "image"}, "media"),
    ({"type": "image", "media": {"id": "1"}}, "media.id"),
    ({"type": "image", "media": {"content": "?", "mime_type": "image/png"}}, "media.content"),
    ({"type": "image", "media": {"content": BASE64, "mime_type": "text/csv"}}, "media.mime_type"),
    ({"type": "document", "media": {"content": BASE64, "mime_type": "csv"}}, "media"),
    ({"type": "document", "media": {"content": BASE64, "mime_type": "text/csv\r\nX: 1"}}, "media"),
    ({"type": "sticker", "media": {"content": BASE64, "mime_type": "image/png"}}, "media.mime_type"),
    ({"type": "image", "media": {"content": BASE64, "mime_type": "audio/ogg"}}, "media.mime_type"),
]
# fmt: on


@pytest.mark.parametrize(("message", "field"), INVALID)
async def test_invalid_phone_message_is_rejected(bench: Bench, message: JsonObject, field: str) -> None:
    response = await bench.control("POST", f"phones/{ANN}/messages", {"to": BUSINESS, **message})

    assert (response.status, response.body["field"]) == (400, field)
    assert response.body["accepted"]


async def test_text_of_another_type_is_rejected_with_what_it_is(bench: Bench) -> None:
    message = {"to": BUSINESS, "type": "location", "location": {**PLACE, "name": 7.50}}

    response = await bench.control("POST", f"phones/{ANN}/messages", message)

    assert (response.status, response.body["rule"], response.body["accepted"]) == (
        400, "must be a text, not a number", "a text",
    )  # fmt: skip


async def test_numbers_of_free_objects_are_shown_as_they_were_written(bench: Bench) -> None:
    place = '{"latitude":52.50,"longitude":1.3e1}'
    item = '{"product_retailer_id":"sku","quantity":2,"item_price":7.50,"currency":"USD","vat":1E-1}'
    value = '{"limit":1.50,"deep":[{"share":0.10}]}'
    to = f'"to":"{BUSINESS}"'

    await bench.control_text("POST", f"phones/{ANN}/messages", f'{{{to},"type":"location","location":{place}}}')
    order = f'{{"catalog_id":"1","product_items":[{item}]}}'
    await bench.control_text("POST", f"phones/{ANN}/messages", f'{{{to},"type":"order","order":{order}}}')
    await bench.control_text("POST", f"accounts/{WABA}/webhooks", f'{{"field":"account_alerts","value":{value}}}')

    await bench.receiver.wait_until(
        lambda: len(bench.receiver.messages()) == 2 and bench.receiver.changes("account_alerts")
    )
    received = b"".join(post.body for post in bench.receiver.posts).decode()
    shown = await bench.control_text("GET", f"phones/{ANN}")
    assert [text for text in (place, item, value) if text not in received] == []
    assert [text for text in (place, item) if text not in shown] == []


async def test_script_keeps_the_spelling_of_its_response(bench: Bench) -> None:
    script = '[{"on":"form","do":"respond","probability":1.0,"response":{"amount":7.50}}]'

    await bench.control_text("PUT", f"phones/{ANN}", f'{{"script":{script}}}')

    assert script in await bench.control_text("GET", f"phones/{ANN}")


async def test_number_change_is_sent_to_businesses_with_a_chat(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{ANN}", {"name": "Ann", "user_id": USER})
    await bench.send_from_phone()
    new = "15550007777"

    response = await bench.control("POST", f"phones/{ANN}/number", {"to": new})

    assert len(response.body["wamids"]) == 1
    await bench.receiver.wait_until(lambda: len(bench.receiver.messages()) == 2)
    value = bench.receiver.changes()[-1]
    [message] = value["messages"]
    assert "contacts" not in value
    assert message["system"] == {
        "body": f"User Ann changed from {ANN} to {new}",
        "wa_id": new,
        "type": "user_changed_number",
    }
    moved = await bench.control("GET", f"phones/{new}")
    assert (moved.body["name"], moved.body["user_id"]) == ("Ann", USER)


async def test_marketing_opt_out_fails_templates_until_the_phone_opts_in_again(bench: Bench) -> None:
    await bench.seed_template([{"type": "BODY", "text": "Buy now"}], category="MARKETING")

    await bench.control("POST", f"phones/{ANN}/marketing", {"to": BUSINESS, "wants": False})
    await bench.restart()
    stopped = await bench.send_template()
    shown = await bench.control("GET", f"phones/{ANN}")
    await bench.control("POST", f"phones/{ANN}/marketing", {"to": BUSINESS, "wants": True})
    resumed = await bench.send_template()

    assert shown.body["stopped_marketing_of"] == [NUMBER_ID]
    failed, accepted = (response.body["messages"][0]["id"] for response in (stopped, resumed))
    [status] = await bench.receiver.wait_until(lambda: bench.receiver.statuses(failed))
    assert (status["status"], status["errors"][0]["code"]) == ("failed", 131050)
    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(accepted)) == 2)
    preferences = [value["user_preferences"][0] for value in bench.receiver.changes("user_preferences")]
    values = [preference["value"] for preference in preferences]
    assert list(dict.fromkeys(values)) == ["stop", "resume"]  # a restart may send the first again
    assert preferences[0]["wa_id"] == ANN
    assert preferences[0]["category"] == "marketing_messages"
    value = bench.receiver.changes("user_preferences")[0]
    assert value["metadata"]["phone_number_id"] == NUMBER_ID


async def test_user_id_is_sent_with_the_number(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{ANN}", {"user_id": USER, "username": "ann", "name": "Ann"})

    message = await send_and_receive(bench, {"text": "Hi"})
    wamid = await bench.send_text()

    assert (message["from"], message["from_user_id"]) == (ANN, USER)
    assert bench.receiver.changes()[0]["contacts"] == [
        {"profile": {"name": "Ann", "username": "ann"}, "wa_id": ANN, "user_id": USER}
    ]
    [status, *_] = await bench.receiver.wait_until(lambda: bench.receiver.statuses(wamid))
    assert (status["recipient_id"], status["recipient_user_id"]) == (ANN, USER)


async def test_phone_with_hidden_number_is_identified_by_its_user_id(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{ANN}", {"user_id": USER, "shows_number": False})
    await bench.restart()

    message = await send_and_receive(bench, {"text": "Hi"})
    sent = await bench.send({"to": None, "recipient": USER, "text": {"body": "Hello"}})

    assert "from" not in message
    assert message["from_user_id"] == USER
    assert "wa_id" not in bench.receiver.changes()[0]["contacts"][0]
    assert sent.body["contacts"] == [{"input": USER, "user_id": USER}]
    wamid = sent.body["messages"][0]["id"]
    [status, *_] = await bench.receiver.wait_until(lambda: bench.receiver.statuses(wamid))
    assert "recipient_id" not in status
    assert status["recipient_user_id"] == USER
    await bench.control("POST", f"phones/{ANN}/read")
    statuses = await bench.receiver.wait_until(
        lambda: [status for status in bench.receiver.statuses(wamid) if status["status"] == "read"]
    )
    assert "recipient_id" not in statuses[0]


async def test_unknown_or_duplicate_user_id_is_rejected(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"user_ids": False})
    unknown = await bench.send({"to": None, "recipient": "US.x", "text": {"body": "Hello"}})
    hidden = await bench.control("PUT", f"phones/{ANN}", {"shows_number": False})
    await bench.control("PUT", f"phones/{ANN}", {"user_id": USER})
    duplicate = await bench.control("PUT", "phones/15550000009", {"user_id": USER})

    assert unknown.error["code"] == 131009
    assert (hidden.status, hidden.body["field"]) == (400, "shows_number")
    assert (duplicate.status, duplicate.body["field"]) == (409, "user_id")


async def test_one_time_code_is_sent_to_numbers_only(bench: Bench) -> None:
    otp = {"type": "OTP", "otp_type": "COPY_CODE"}
    components = [{"type": "BODY"}, {"type": "BUTTONS", "buttons": [otp]}]
    await bench.seed_template(components, category="AUTHENTICATION")
    await bench.control("PUT", f"phones/{ANN}", {"user_id": USER})

    response = await bench.send_template([], to=None, recipient=USER)

    assert (response.status, response.error["code"]) == (400, 131062)


async def test_blocked_phone_sends_and_receives_nothing(bench: Bench) -> None:
    await bench.send_from_phone("before")
    block = {"messaging_product": "whatsapp", "block_users": [{"user": ANN}]}
    blocked = await bench.graph("POST", f"{NUMBER_ID}/block_users", json=block)

    await bench.send_from_phone("unheard")
    rejected = await bench.send({"text": {"body": "x"}})
    await bench.graph("DELETE", f"{NUMBER_ID}/block_users", json=block)
    await bench.send_from_phone("after")

    assert blocked.status == 200, blocked.body
    assert rejected.error["code"] == 130403
    await bench.receiver.wait_until(lambda: len(bench.receiver.messages()) == 2)
    assert [message["text"]["body"] for message in bench.receiver.messages()] == ["before", "after"]
    assert [shown["text"] for shown in await bench.inbox()] == ["before", "unheard", "after"]


async def test_any_status_can_be_sent(bench: Bench) -> None:
    await bench.send_from_phone()
    wamid = await bench.send_text(biz_opaque_callback_data="mine")
    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)

    for fields in (
        {"status": "played"},
        {"status": "deleted", "names_recipient": False},
        {"status": "warning", "code": 131049, "recipient_user_id": USER, "names_recipient": False},
        {"status": "failed", "code": 990, "title": "Odd", "details": "Very odd."},
    ):
        response = await bench.control("POST", "statuses", {"message_id": wamid, **fields})
        assert response.status == 200, response.body

    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 6)
    _, _, played, deleted, warning, failed = bench.receiver.statuses(wamid)
    assert (played["status"], played["recipient_id"]) == ("played", ANN)
    assert played["biz_opaque_callback_data"] == "mine"
    assert "recipient_id" not in deleted
    assert (warning["recipient_user_id"], warning["errors"][0]["code"]) == (USER, 131049)
    assert failed["errors"][0] == {
        "code": 990,
        "title": "Odd",
        "message": "Odd",
        "error_data": {"details": "Very odd."},
        "href": failed["errors"][0]["href"],
    }
    listed = await bench.control("GET", "deliveries")
    assert listed.body["deliveries"][0]["state"] == "failed"


async def test_sent_status_replaces_the_planned_one(slow: Bench, clock: ManualClock) -> None:
    await slow.send_from_phone()
    early = await slow.send_text()
    lost = await slow.send_text()

    await slow.control("POST", "statuses", {"message_id": early, "status": "delivered"})
    await slow.control("POST", "statuses", {"message_id": lost, "status": "failed"})
    clock.advance(ms=5000)
    last = await slow.send_text()

    await slow.receiver.wait_until(lambda: slow.receiver.statuses(last))
    assert [status["status"] for status in slow.receiver.statuses(early)] == ["sent", "delivered"]
    assert [status["status"] for status in slow.receiver.statuses(lost)] == ["sent", "failed"]
    unknown = await slow.control("POST", "statuses", {"message_id": "x", "status": "read"})
    assert unknown.status == 404


async def test_any_account_webhook_can_be_sent(bench: Bench) -> None:
    value = {"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "SCHEDULE_FOR_DISABLE"}}

    response = await bench.control("POST", f"accounts/{WABA}/webhooks", {"field": "account_update", "value": value})

    assert response.body == {"queued": True}
    [received] = await bench.receiver.wait_until(lambda: bench.receiver.changes("account_update"))
    assert received == value
    [post] = bench.receiver.posts
    assert bench.receiver.is_signed(post)
    assert post.value["entry"][0]["id"] == WABA
    assert isinstance(post.value["entry"][0]["time"], int)
    unknown = await bench.control("POST", "accounts/12/webhooks", {"field": "account_update", "value": {}})
    assert unknown.status == 404


async def test_phone_can_be_used_without_the_control_api(bench: Bench) -> None:
    media = {"content": CONTENT, "mime_type": "image/png", "caption": "Look"}

    wamid = await bench.simulator.send_phone_message(phone=ANN, to=BUSINESS, type="image", media=media)

    [message] = await bench.receiver.wait_until(bench.receiver.messages)
    assert (message["id"], message["image"]["caption"]) == (wamid, "Look")
    with pytest.raises(ControlApiError, match="to: is no business number"):
        await bench.simulator.send_phone_message(phone=ANN, to="15550009999", text="Hi")
