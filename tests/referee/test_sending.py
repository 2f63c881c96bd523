"""The public client sends every kind of message, and the phone shows its content."""

# The client does not declare its exports, and leaves parts of its types unknown.
# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import datetime
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest
from pywa_async import WhatsApp, types
from pywa_async.errors import ReEngagementMessage

from tests.referee.public_client import ClientHarness
from tests.simulator.conftest import ANN, ANN_USER_ID
from tests.support.media_samples import SAMPLES

Send = Callable[[WhatsApp], Awaitable[Any]]
LINK: Final = "https://cdn.example/a"
CONTACT: Final = types.Contact(
    name=types.Contact.Name(formatted_name="Bo Berg", first_name="Bo"),
    birthday="1990-05-04",
    phones=[types.Contact.Phone(phone="+15550002222", type="CELL", wa_id="15550002222")],
    emails=[types.Contact.Email(email="bo@example.com", type="WORK")],
    urls=[types.Contact.Url(url="https://bo.example", type="WORK")],
    addresses=[types.Contact.Address(city="Oslo", country="Norway", country_code="NO")],
    org=types.Contact.Org(company="Berg"),
)
ROWS: Final = [
    types.Section("First", [types.SectionRow("One", "r-1", "the first"), types.SectionRow("Two", "r-2")]),
    types.Section("Second", [types.SectionRow("Three", "r-3")]),
]
PRODUCTS: Final = [types.ProductsSection("Hats", ["h-1", "h-2"]), types.ProductsSection("Shoes", ["s-1"])]
CARDS: Final[list[Any]] = [
    types.ImageCarouselCard(image=LINK, body=f"Card {n}", buttons=types.URLButton("Open", LINK)) for n in range(2)
]

# fmt: off
SENDS: Final[dict[str, tuple[Send, str, dict[str, Any]]]] = {  # the call, the type on the phone, some of the content it shows
    "text":            (lambda wa: wa.send_message(ANN, "Hello"),                                            "text",     {"text": "Hello"}),
    "text_preview":    (lambda wa: wa.send_message(ANN, f"See {LINK}", preview_url=True),                     "text",     {"preview_url": True}),
    "text_to_user_id": (lambda wa: wa.send_message(ANN_USER_ID, "Hello"),                                    "text",     {"text": "Hello"}),
    "image_link":      (lambda wa: wa.send_image(ANN, LINK, "A picture"),                                    "image",    {"text": "A picture"}),
    "image_bytes":     (lambda wa: wa.send_image(ANN, SAMPLES["png"], mime_type="image/png"),                "image",    {}),
    "video_link":      (lambda wa: wa.send_video(ANN, LINK, "A film"),                                       "video",    {"text": "A film"}),
    "video_bytes":     (lambda wa: wa.send_video(ANN, SAMPLES["mp4"], mime_type="video/mp4"),                "video",    {}),
    "audio_link":      (lambda wa: wa.send_audio(ANN, LINK),                                                 "audio",    {}),
    "audio_bytes":     (lambda wa: wa.send_audio(ANN, SAMPLES["mp3"], mime_type="audio/mpeg"),               "audio",    {}),
    "voice_bytes":     (lambda wa: wa.send_voice(ANN, SAMPLES["ogg"], mime_type="audio/ogg"),                "audio",    {}),
    "document_link":   (lambda wa: wa.send_document(ANN, LINK, filename="a.pdf", caption="A page"),          "document", {"text": "A page"}),
    "document_bytes":  (lambda wa: wa.send_document(ANN, SAMPLES["pdf"], "b.pdf", mime_type="application/pdf"), "document", {}),
    "sticker_link":    (lambda wa: wa.send_sticker(ANN, LINK),                                               "sticker",  {}),
    "sticker_bytes":   (lambda wa: wa.send_sticker(ANN, SAMPLES["webp"], mime_type="image/webp"),            "sticker",  {}),
    "location":        (lambda wa: wa.send_location(ANN, 59.91, 10.75, "Office", "Main Road 1"),           "location", {"text": "Office, Main Road 1"}),
    "contact":         (lambda wa: wa.send_contact(ANN, CONTACT),                                            "contacts", {"text": "Bo Berg"}),
    "contacts":        (lambda wa: wa.send_contact(ANN, [CONTACT, CONTACT]),                                 "contacts", {"text": "Bo Berg, Bo Berg"}),
    "buttons":         (lambda wa: wa.send_message(ANN, "Well?", header="H", footer="F", buttons=[types.Button("Yes", "y"), types.Button("No", "n")]),
                                                                                                             "interactive", {"text": "Well?", "footer": "F"}),
    "image_buttons":   (lambda wa: wa.send_image(ANN, LINK, "Well?", buttons=[types.Button("Yes", "y")]),    "interactive", {"text": "Well?"}),
    "video_buttons":   (lambda wa: wa.send_video(ANN, LINK, "Well?", buttons=[types.Button("Yes", "y")]),    "interactive", {"text": "Well?"}),
    "document_buttons": (lambda wa: wa.send_document(ANN, LINK, "a.pdf", "Well?", buttons=[types.Button("Yes", "y")]), "interactive", {"text": "Well?"}),
    "list":            (lambda wa: wa.send_message(ANN, "Choose", buttons=types.SectionList("Menu", ROWS)),  "interactive", {"text": "Choose"}),
    "cta_url":         (lambda wa: wa.send_message(ANN, "Look", buttons=types.URLButton("Open", LINK)),      "interactive", {"text": "Look"}),
    "image_cta_url":   (lambda wa: wa.send_image(ANN, LINK, "Look", buttons=types.URLButton("Open", LINK)),  "interactive", {"text": "Look"}),
    "voice_call":      (lambda wa: wa.send_message(ANN, "Call", buttons=types.VoiceCallButton("Call", datetime.timedelta(days=1))), "interactive", {"text": "Call"}),
    "call_permission": (lambda wa: wa.send_message(ANN, "May we?", buttons=types.CallPermissionRequestButton()), "interactive", {"text": "May we?"}),
    "catalog":         (lambda wa: wa.send_catalog(ANN, "Our things", "F", thumbnail_product_sku="h-1"),     "interactive", {"text": "Our things"}),
    "product":         (lambda wa: wa.send_product(ANN, "77", "h-1", "One thing", "F"),                      "interactive", {"text": "One thing"}),
    "products":        (lambda wa: wa.send_products(ANN, "77", PRODUCTS, "Things", "Some things", "F"),      "interactive", {"text": "Some things"}),
    "carousel":        (lambda wa: wa.send_carousel(ANN, body="Slide", cards=CARDS),                         "interactive", {"text": "Slide"}),
    "location_request": (lambda wa: wa.request_location(ANN, "Where?"),                                      "interactive", {"text": "Where?"}),
    "contact_request": (lambda wa: wa.request_contact_info(ANN, "Your number?"),                             "interactive", {"text": "Your number?"}),
}
# fmt: on


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", SENDS)
async def test_message_reaches_the_phone(shared_harness: ClientHarness, name: str) -> None:
    send, kind, shown = SENDS[name]
    await shared_harness.send_from_phone(text="Hi")

    sent = await send(shared_harness.client)

    message = await shared_harness.phone_message(sent.id)
    assert message["type"] == kind
    assert {member: message[member] for member in shown} == shown
    delivered = await shared_harness.wait_for_update(
        types.MessageStatus, lambda update: update.id == sent.id and update.status is types.MessageStatusType.DELIVERED
    )
    assert delivered.from_user.wa_id == ANN


async def test_flow_message_reaches_the_phone(harness: ClientHarness) -> None:
    await harness.send_from_phone(text="Hi")
    flow = await harness.client.create_flow("Booking", [types.FlowCategory.OTHER])

    sent = await harness.client.send_message(
        ANN,
        "Book a table",
        buttons=types.FlowButton(
            "Book",
            flow_id=flow.id,
            flow_token="t-1",
            flow_action_type=types.FlowActionType.NAVIGATE,
            flow_action_screen="FIRST",
            flow_action_payload={"name": "Ann"},
            mode=types.FlowStatus.DRAFT,
        ),
    )

    message = await harness.phone_message(sent.id)
    assert message["buttons"][0]["type"] == "FLOW"


async def test_reaction_is_sent_and_removed(harness: ClientHarness) -> None:
    wamid = await harness.send_from_phone(text="Hi")

    put = await harness.client.send_reaction(ANN, "👍", wamid)
    removed = await harness.client.remove_reaction(ANN, wamid)

    assert (await harness.phone_message(put.id))["reaction"] == {"message_id": wamid, "emoji": "👍"}
    assert (await harness.phone_message(removed.id))["reaction"] == {"message_id": wamid, "emoji": ""}


async def test_reply_quotes_its_message(harness: ClientHarness) -> None:
    await harness.send_from_phone(text="Hi")
    message = await harness.wait_for_update(types.Message)

    sent = await message.reply_text("Hello", quote=True)

    assert (await harness.phone_message(sent.id))["context_id"] == message.id


async def test_every_status_has_the_tracker(harness: ClientHarness) -> None:
    await harness.send_from_phone(text="Hi")

    sent = await harness.client.send_message(ANN, "Hello", tracker="order-7")

    for state in (types.MessageStatusType.SENT, types.MessageStatusType.DELIVERED):
        status = await harness.wait_for_update(types.MessageStatus, lambda update, s=state: update.status is s)
        assert (status.id, status.tracker) == (sent.id, "order-7")


async def test_client_marks_as_read_and_shows_the_typing_indicator(harness: ClientHarness) -> None:
    wamid = await harness.send_from_phone(text="Hi")

    read = await harness.client.mark_message_as_read(wamid)
    typed = await harness.client.indicate_typing(wamid)

    assert read.success
    assert typed.success
    shown = await harness.control(f"phones/{ANN}", method="GET")
    assert shown["messages"][-1]["state"] == "read"
    assert shown["typing"]


async def test_closed_window_fails_in_a_status(harness: ClientHarness) -> None:
    sent = await harness.client.send_message(ANN, "Hello")

    failed = await harness.wait_for_update(types.MessageStatus)

    assert (failed.id, failed.status) == (sent.id, types.MessageStatusType.FAILED)
    assert isinstance(failed.error, ReEngagementMessage)
    assert (failed.from_user.wa_id, failed.from_user.bsuid) == (ANN, None)
