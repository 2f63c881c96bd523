"""The public client checks the signature of every webhook, and parses it into its own types."""

# The client does not declare its exports, and leaves parts of its types unknown.
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

from tests.referee.public_client import VERIFY_TOKEN, ClientHarness
from tests.simulator.conftest import ANN, ANN_USER_ID, BUSINESS, NUMBER_ID, WABA
from tests.support.media_samples import SAMPLES

Kind = types.MessageType


@pytest.fixture(autouse=True)
def no_webhook_is_unparsed(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail if the client logs that it could not parse an update."""
    caplog.set_level(logging.WARNING, logger="pywa")
    yield
    unparsed = [record.getMessage() for record in caplog.records if "construct" in record.getMessage()]
    assert not unparsed


def medium(sample: str, mime_type: str, **more: Any) -> dict[str, Any]:
    return {"content": base64.b64encode(SAMPLES[sample]).decode(), "mime_type": mime_type, **more}


# fmt: off
PHONE_MESSAGES: Final[dict[str, tuple[dict[str, Any], Kind]]] = {  # a phone's message, and its type in the client
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
@pytest.mark.parametrize("name", PHONE_MESSAGES)
async def test_message_of_a_phone_is_parsed(shared_harness: ClientHarness, name: str) -> None:
    content, kind = PHONE_MESSAGES[name]

    wamid = await shared_harness.send_from_phone(**content)

    message = await shared_harness.wait_for_update(types.Message, lambda update: update.id == wamid)
    assert (message.id, message.type, message.waba_id) == (wamid, kind, WABA)
    assert message.metadata.phone_number_id == NUMBER_ID
    assert message.metadata.display_phone_number == BUSINESS
    assert (message.from_user.wa_id, message.from_user.bsuid) == (ANN, ANN_USER_ID)
    assert message.from_user.name == "Phone 4567"


async def test_members_of_messages_are_where_the_client_reads_them(harness: ClientHarness) -> None:
    for content, _ in PHONE_MESSAGES.values():
        await harness.send_from_phone(**content)
    await harness.wait_for_update(types.Message, lambda update: update.referral is not None)

    messages = [update for update in harness.updates if isinstance(update, types.Message)]
    by_name = dict(zip(PHONE_MESSAGES, messages, strict=True))
    assert by_name["emoji"].text == PHONE_MESSAGES["emoji"][0]["text"]
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


async def test_reply_and_reactions_name_their_message(harness: ClientHarness) -> None:
    await harness.send_from_phone(text="Hi")
    sent = await harness.client.send_message(ANN, "Hello")
    await harness.phone_message(sent.id)

    await harness.send_from_phone(text="Fine", context_id=sent.id)
    await harness.send_from_phone(type="reaction", reaction={"message_id": sent.id, "emoji": "👍"})
    await harness.send_from_phone(type="reaction", reaction={"message_id": sent.id})

    reply = await harness.wait_for_update(types.Message, lambda update: update.reply_to_message is not None)
    assert reply.reply_to_message is not None
    assert reply.reply_to_message.id == sent.id
    put = await harness.wait_for_update(
        types.Message, lambda update: update.reaction is not None and update.reaction.emoji == "👍"
    )
    assert put.reaction is not None
    assert put.reaction.message_id == sent.id
    await harness.wait_for_update(
        types.Message, lambda update: update.reaction is not None and not update.reaction.emoji
    )


async def test_tapped_reply_button_and_list_row_are_received(harness: ClientHarness) -> None:
    await harness.send_from_phone(text="Hi")
    question = await harness.client.send_message(ANN, "Well?", buttons=[types.Button("Yes", "y-1")])
    rows = types.SectionList("Menu", [types.Section("S", [types.SectionRow("One", "r-1", "first")])])
    listed = await harness.client.send_message(ANN, "Choose", buttons=rows)

    await harness.control(f"phones/{ANN}/tap", {"message_id": question.id, "index": 0, "wait_ms": 5000})
    await harness.control(f"phones/{ANN}/tap", {"message_id": listed.id, "index": 0, "wait_ms": 5000})

    button = await harness.wait_for_update(types.CallbackButton)
    assert (button.data, button.title) == ("y-1", "Yes")
    assert button.reply_to_message is not None
    assert button.reply_to_message.id == question.id
    row = await harness.wait_for_update(types.CallbackSelection)
    assert (row.data, row.title, row.description) == ("r-1", "One", "first")


async def test_tapped_quick_reply_of_a_template_is_received(harness: ClientHarness) -> None:
    reply = t.QuickReplyButton(text="Yes")
    template = t.Template(
        name="ask",
        language=t.TemplateLanguage.ENGLISH_US,
        category=t.TemplateCategory.UTILITY,
        components=[t.BodyText("Shall we?"), t.Buttons(buttons=[reply])],
    )
    await harness.client.create_template(template)
    await harness.wait_for_update(t.TemplateStatusUpdate)
    sent = await harness.client.send_template(
        ANN, "ask", t.TemplateLanguage.ENGLISH_US, [reply.params(callback_data="y-1", index=0)]
    )

    await harness.control(f"phones/{ANN}/tap", {"message_id": sent.id, "index": 0, "wait_ms": 5000})

    button = await harness.wait_for_update(types.CallbackButton)
    assert (button.data, button.title, button.type) == ("y-1", "Yes", Kind.BUTTON)


async def test_granted_call_permission_is_received(harness: ClientHarness) -> None:
    await harness.send_from_phone(text="Hi")
    request = await harness.client.send_message(ANN, "May we?", buttons=types.CallPermissionRequestButton())

    await harness.control(f"phones/{ANN}/respond", {"message_id": request.id, "wait_ms": 5000})

    update = await harness.wait_for_update(types.CallPermissionUpdate)
    assert update.response.value == "accept"


async def test_every_status_is_received(harness: ClientHarness) -> None:
    await harness.send_from_phone(text="Hi")
    sent = await harness.client.send_message(ANN, "Hello", tracker="mine")
    await harness.phone_message(sent.id)
    await harness.control(f"phones/{ANN}/read")
    await harness.control("statuses", {"message_id": sent.id, "status": "played"})
    await harness.control("statuses", {"message_id": sent.id, "status": "failed", "code": 131049})

    every = types.MessageStatusType
    for state in (every.SENT, every.DELIVERED, every.READ, every.PLAYED, every.FAILED):
        status = await harness.wait_for_update(types.MessageStatus, lambda update, state=state: update.status is state)
        assert (status.id, status.from_user.wa_id, status.tracker) == (sent.id, ANN, "mine")
        assert (status.error is not None) == (state is every.FAILED)
        assert (status.pricing is not None) == (state in (every.SENT, every.DELIVERED))


async def test_older_status_has_a_conversation(harness: ClientHarness) -> None:
    await harness.control("settings", {"statuses_version": "v23"}, method="PUT")
    await harness.send_from_phone(text="Hi")

    await harness.client.send_message(ANN, "Hello")

    status = await harness.wait_for_update(types.MessageStatus)
    assert status.conversation is not None
    assert status.conversation.category is types.ConversationCategory.SERVICE


async def test_owner_moves_to_another_number(harness: ClientHarness) -> None:
    await harness.send_from_phone(text="Hi")

    await harness.control(f"phones/{ANN}/number", {"to": "15550009999"})

    change = await harness.wait_for_update(types.PhoneNumberChange)
    assert (change.old_wa_id, change.new_wa_id) == (ANN, "15550009999")


@pytest.mark.parametrize("wants", [False, True])
async def test_owner_stops_and_resumes_marketing(harness: ClientHarness, wants: bool) -> None:
    await harness.control(f"phones/{ANN}/marketing", {"to": BUSINESS, "wants": wants})

    update = await harness.wait_for_update(types.UserMarketingPreferences)

    assert update.value.value == ("resume" if wants else "stop")
    assert update.from_user.wa_id == ANN


async def test_phone_that_hides_its_number_is_known_by_its_user_id(harness: ClientHarness) -> None:
    await harness.control(f"phones/{ANN}", {"shows_number": False, "username": "ann"}, method="PUT")
    await harness.send_from_phone(text="Hi")
    message = await harness.wait_for_update(types.Message)

    sent = await message.reply_text("Hello")

    assert (message.from_user.wa_id, message.from_user.username) == (None, "ann")
    assert (await harness.phone_message(sent.id))["text"] == "Hello"


@pytest.mark.parametrize(("signature", "status"), [("sha256=" + "0" * 64, 403), ("", 401)], ids=["wrong", "missing"])
async def test_client_rejects_a_webhook_without_the_apps_signature(
    harness: ClientHarness, signature: str, status: int
) -> None:
    """Therefore the other tests prove that the simulator signs as the client expects."""
    headers = {"X-Hub-Signature-256": signature} if signature else {}
    async with aiohttp.ClientSession() as http:
        response = await http.post(harness.server.uri, data=b"{}", headers=headers)

    assert response.status == status


async def test_client_passes_the_handshake(harness: ClientHarness) -> None:
    query = {"hub.mode": "subscribe", "hub.challenge": "42", "hub.verify_token": VERIFY_TOKEN}
    async with aiohttp.ClientSession() as http, http.get(harness.server.uri, params=query) as response:
        text = await response.text()

    assert text == "42"
