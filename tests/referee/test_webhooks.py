"""The public client checks the signature of every webhook itself, and makes its own types of them."""

# The client exports its names without saying so, and leaves parts of its own types open.
# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import base64
import logging
from collections.abc import Iterator
from typing import Any, Final

import aiohttp
import pytest
from pywa_async import types
from pywa_async.types import templates as t

from tests.referee.public_client import VERIFY_TOKEN, Arena
from tests.simulator.conftest import ANN, ANN_USER_ID, BUSINESS, NUMBER_ID, WABA
from tests.support.media_samples import SAMPLES

Kind = types.MessageType


@pytest.fixture(autouse=True)
def nothing_is_left_unread(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The client logs what it cannot read, and goes on; here that is a failure."""
    caplog.set_level(logging.WARNING, logger="pywa")
    yield
    unread = [one.getMessage() for one in caplog.records if "construct" in one.getMessage()]
    assert not unread


def medium(sample: str, mime_type: str, **more: Any) -> dict[str, Any]:
    return {"content": base64.b64encode(SAMPLES[sample]).decode(), "mime_type": mime_type, **more}


# fmt: off
SAID: Final[dict[str, tuple[dict[str, Any], Kind]]] = {  # what a phone sends, and what it is to the client
    "text":         ({"text": "Hello"},                                                                     Kind.TEXT),
    "emoji":        ({"text": "Grüße 👋 / <b> % @"},                                                        Kind.TEXT),
    "image":        ({"type": "image", "media": medium("jpeg", "image/jpeg", caption="Me")},                Kind.IMAGE),
    "video":        ({"type": "video", "media": medium("mp4", "video/mp4")},                                Kind.VIDEO),
    "audio":        ({"type": "audio", "media": medium("mp3", "audio/mpeg")},                               Kind.AUDIO),
    "voice":        ({"type": "audio", "media": medium("ogg", "audio/ogg", voice=True)},                    Kind.AUDIO),
    "document":     ({"type": "document", "media": medium("pdf", "application/pdf", file_name="a.pdf")},    Kind.DOCUMENT),
    "sticker":      ({"type": "sticker", "media": medium("webp", "image/webp", animated=True)},             Kind.STICKER),
    "location":     ({"type": "location", "location": {"latitude": 59.9, "longitude": 10.7, "name": "Home"}}, Kind.LOCATION),
    "contacts":     ({"type": "contacts", "contacts": [{"name": {"formatted_name": "Bo", "first_name": "Bo"},
                      "phones": [{"phone": "+15550002222", "type": "CELL"}]}]},                             Kind.CONTACTS),
    "order":        ({"type": "order", "order": {"catalog_id": "7", "text": "Please", "product_items": [
                      {"product_retailer_id": "h-1", "quantity": 2, "item_price": 9.5, "currency": "USD"}]}}, Kind.ORDER),
    "unsupported":  ({"type": "unsupported", "unsupported": {"type": "poll"}},                              Kind.UNSUPPORTED),
    "forwarded":    ({"text": "Look", "forwarded": True},                                                   Kind.TEXT),
    "forwarded_often": ({"text": "Look", "frequently_forwarded": True},                                     Kind.TEXT),
    "of_a_product": ({"text": "How much?", "referred_product": {"catalog_id": "7", "product_retailer_id": "h-1"}}, Kind.TEXT),
    "of_an_advert": ({"text": "Hi", "referral": {"source_url": "https://fb.me/a", "source_type": "ad", "source_id": "1",
                      "headline": "Hats", "body": "Hats!", "media_type": "image", "image_url": "https://fb.me/i", "ctwa_clid": "c"}}, Kind.TEXT),
}
# fmt: on


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", SAID)
async def test_message_of_a_phone_is_understood(shared: Arena, name: str) -> None:
    wish, kind = SAID[name]

    wamid = await shared.phone_says(**wish)

    message = await shared.hears(types.Message, lambda one: one.id == wamid)
    assert (message.id, message.type, message.waba_id) == (wamid, kind, WABA)
    assert message.metadata.phone_number_id == NUMBER_ID
    assert message.metadata.display_phone_number == BUSINESS
    assert (message.from_user.wa_id, message.from_user.bsuid) == (ANN, ANN_USER_ID)
    assert message.from_user.name == "Phone 4567"


async def test_parts_of_messages_are_where_the_client_looks(arena: Arena) -> None:
    for wish, _ in SAID.values():
        await arena.phone_says(**wish)
    await arena.hears(types.Message, lambda one: one.referral is not None)

    heard = [one for one in arena.heard if isinstance(one, types.Message)]
    by_name = dict(zip(SAID, heard, strict=True))
    assert by_name["emoji"].text == SAID["emoji"][0]["text"]
    assert by_name["voice"].audio is not None
    assert by_name["voice"].audio.voice
    assert by_name["sticker"].sticker is not None
    assert by_name["sticker"].sticker.animated
    assert by_name["document"].document is not None
    assert by_name["document"].document.filename == "a.pdf"
    assert by_name["location"].location is not None
    assert by_name["location"].location.name == "Home"
    assert by_name["order"].order is not None
    assert by_name["order"].order.products[0].sku == "h-1"
    assert by_name["forwarded"].forwarded
    assert by_name["forwarded_often"].forwarded_many_times
    assert by_name["unsupported"].error is not None
    assert by_name["unsupported"].error.code == 131051


async def test_reply_and_reactions_name_their_message(arena: Arena) -> None:
    await arena.phone_says(text="Hi")
    sent = await arena.client.send_message(ANN, "Hello")
    await arena.on_phone(sent.id)

    await arena.phone_says(text="Fine", context_id=sent.id)
    await arena.phone_says(type="reaction", reaction={"message_id": sent.id, "emoji": "👍"})
    await arena.phone_says(type="reaction", reaction={"message_id": sent.id})

    reply = await arena.hears(types.Message, lambda one: one.reply_to_message is not None)
    assert reply.reply_to_message is not None
    assert reply.reply_to_message.id == sent.id
    put = await arena.hears(types.Message, lambda one: one.reaction is not None and one.reaction.emoji == "👍")
    assert put.reaction is not None
    assert put.reaction.message_id == sent.id
    await arena.hears(types.Message, lambda one: one.reaction is not None and not one.reaction.emoji)


async def test_tapped_reply_button_and_list_row_are_heard(arena: Arena) -> None:
    await arena.phone_says(text="Hi")
    asked = await arena.client.send_message(ANN, "Well?", buttons=[types.Button("Yes", "y-1")])
    rows = types.SectionList("Menu", [types.Section("S", [types.SectionRow("One", "r-1", "first")])])
    listed = await arena.client.send_message(ANN, "Choose", buttons=rows)

    await arena.act(f"phones/{ANN}/tap", {"message_id": asked.id, "index": 0, "wait_ms": 5000})
    await arena.act(f"phones/{ANN}/tap", {"message_id": listed.id, "index": 0, "wait_ms": 5000})

    button = await arena.hears(types.CallbackButton)
    assert (button.data, button.title) == ("y-1", "Yes")
    assert button.reply_to_message is not None
    assert button.reply_to_message.id == asked.id
    row = await arena.hears(types.CallbackSelection)
    assert (row.data, row.title, row.description) == ("r-1", "One", "first")


async def test_tapped_quick_reply_of_a_template_is_heard(arena: Arena) -> None:
    reply = t.QuickReplyButton(text="Yes")
    template = t.Template(
        name="ask",
        language=t.TemplateLanguage.ENGLISH_US,
        category=t.TemplateCategory.UTILITY,
        components=[t.BodyText("Shall we?"), t.Buttons(buttons=[reply])],
    )
    await arena.client.create_template(template)
    await arena.hears(t.TemplateStatusUpdate)
    sent = await arena.client.send_template(
        ANN, "ask", t.TemplateLanguage.ENGLISH_US, [reply.params(callback_data="y-1", index=0)]
    )

    await arena.act(f"phones/{ANN}/tap", {"message_id": sent.id, "index": 0, "wait_ms": 5000})

    button = await arena.hears(types.CallbackButton)
    assert (button.data, button.title, button.type) == ("y-1", "Yes", Kind.BUTTON)


async def test_answered_call_permission_is_heard(arena: Arena) -> None:
    await arena.phone_says(text="Hi")
    asked = await arena.client.send_message(ANN, "May we?", buttons=types.CallPermissionRequestButton())

    await arena.act(f"phones/{ANN}/answer", {"message_id": asked.id, "wait_ms": 5000})

    answer = await arena.hears(types.CallPermissionUpdate)
    assert answer.response.value == "accept"


async def test_every_status_is_heard(arena: Arena) -> None:
    await arena.phone_says(text="Hi")
    sent = await arena.client.send_message(ANN, "Hello", tracker="mine")
    await arena.on_phone(sent.id)
    await arena.act(f"phones/{ANN}/read")
    await arena.act("statuses", {"message_id": sent.id, "status": "played"})
    await arena.act("statuses", {"message_id": sent.id, "status": "failed", "code": 131049})

    every = types.MessageStatusType
    for state in (every.SENT, every.DELIVERED, every.READ, every.PLAYED, every.FAILED):
        status = await arena.hears(types.MessageStatus, lambda one, state=state: one.status is state)
        assert (status.id, status.from_user.wa_id, status.tracker) == (sent.id, ANN, "mine")
        assert (status.error is not None) == (state is every.FAILED)
        assert (status.pricing is not None) == (state in (every.SENT, every.DELIVERED))


async def test_older_status_has_a_conversation(arena: Arena) -> None:
    await arena.act("settings", {"statuses_version": "v23"}, method="PUT")
    await arena.phone_says(text="Hi")

    await arena.client.send_message(ANN, "Hello")

    status = await arena.hears(types.MessageStatus)
    assert status.conversation is not None
    assert status.conversation.category is types.ConversationCategory.SERVICE


async def test_owner_moves_to_another_number(arena: Arena) -> None:
    await arena.phone_says(text="Hi")

    await arena.act(f"phones/{ANN}/number", {"to": "15550009999"})

    change = await arena.hears(types.PhoneNumberChange)
    assert (change.old_wa_id, change.new_wa_id) == (ANN, "15550009999")


@pytest.mark.parametrize("wants", [False, True])
async def test_owner_stops_and_resumes_marketing(arena: Arena, wants: bool) -> None:
    await arena.act(f"phones/{ANN}/marketing", {"to": BUSINESS, "wants": wants})

    update = await arena.hears(types.UserMarketingPreferences)

    assert update.value.value == ("resume" if wants else "stop")
    assert update.from_user.wa_id == ANN


async def test_phone_that_hides_its_number_is_known_by_its_user_id(arena: Arena) -> None:
    await arena.act(f"phones/{ANN}", {"shows_number": False, "username": "ann"}, method="PUT")
    await arena.phone_says(text="Hi")
    message = await arena.hears(types.Message)

    sent = await message.reply_text("Hello")

    assert (message.from_user.wa_id, message.from_user.username) == (None, "ann")
    assert (await arena.on_phone(sent.id))["text"] == "Hello"


@pytest.mark.parametrize(("signature", "status"), [("sha256=" + "0" * 64, 403), ("", 401)], ids=["wrong", "missing"])
async def test_client_refuses_what_the_app_has_not_signed(arena: Arena, signature: str, status: int) -> None:
    """So the other tests show that what the simulator sends is signed as the client expects."""
    headers = {"X-Hub-Signature-256": signature} if signature else {}
    async with aiohttp.ClientSession() as http:
        answer = await http.post(arena.server.uri, data=b"{}", headers=headers)

    assert answer.status == status


async def test_client_passes_the_handshake(arena: Arena) -> None:
    query = {"hub.mode": "subscribe", "hub.challenge": "42", "hub.verify_token": VERIFY_TOKEN}
    async with aiohttp.ClientSession() as http, http.get(arena.server.uri, params=query) as answer:
        text = await answer.text()

    assert text == "42"
