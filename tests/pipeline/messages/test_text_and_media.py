"""Templates of text, media and location: created, approved, sent by both APIs, shown, tapped, called back."""

from typing import Any, Final

import pytest

from tests.support.builders import ANN, is_event
from tests.support.callback_assertions import assert_approval_callbacks, assert_delivery_callbacks, assert_tap_callbacks
from tests.support.file_server import FileServer
from tests.support.media_samples import sample
from tests.support.pipeline import TWO_REPLIES, PipelineHarness
from tests.support.version_3_receiver import Version3Receiver

pytestmark = pytest.mark.content_only

LINK: Final = "https://files.acme.test/{}"
MEDIA_TYPES: Final = {  # kind in a send, MIME type, sample, and the name of the file
    "IMAGE": ("image", "image/png", sample("png"), "shoe.png"),
    "VIDEO": ("video", "video/mp4", sample("mp4"), "clip.mp4"),
    "DOCUMENT": ("document", "application/pdf", sample("pdf"), "bill.pdf"),
}
SHOP: Final = {"latitude": 52.52, "longitude": 13.405, "name": "Acme", "address": "High Street 1"}
REPLIES_SHOWN: Final = [
    {"index": 0, "type": "QUICK_REPLY", "text": "Yes", "payload": "come"},
    {"index": 1, "type": "QUICK_REPLY", "text": "No", "payload": "No"},
]


def make_shown(name: str, category: str, **components: Any) -> dict[str, Any]:
    return {"type": "template", "template": {"name": name, "language": "en_US", "category": category}, **components}


@pytest.mark.holds(
    "does-templates", "does-send", "does-callback", "create-call", "create-button-url",
    "create-button-phone", "create-button-quick-reply", "postback-call", "postback-template",
    "postback-texts", "postback-returned", "partner-send-call", "event-envelope", "event-tap",
    "event-text", "event-sender", "event-context", "version-callback", "version-negotiation",
)  # fmt: skip
@pytest.mark.both_engines
async def test_text_template_with_every_kind_of_button_is_shown_and_called_back(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    buttons = (
        *TWO_REPLIES,
        {
            "type": "URL",
            "text": "Look",
            "url": "https://acme.test/orders/{{1}}",
            "example": ["https://acme.test/orders/1"],
        },
        {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"},
    )
    template_id = await pipeline.approved_template(
        buttons=buttons, header="Order {{1}}", exampleHeader="Order 1", footer="Acme"
    )

    sent = [
        await pipeline.send_template(
            template_id, by=api, params=["4712", "Ann", "4712?from=chat"], postback_texts={0: "come", 1: "stay"}
        )
        for api in ("messaging", "partner")
    ]

    expected = make_shown(
        "greeting",
        "UTILITY",
        header={"format": "TEXT", "text": "Order 4712"},
        text="Hi Ann, shall we come today?",
        footer="Acme",
        buttons=[
            {"index": 0, "type": "QUICK_REPLY", "text": "Yes", "payload": "come"},
            {"index": 1, "type": "QUICK_REPLY", "text": "No", "payload": "stay"},
            {"index": 2, "type": "URL", "text": "Look", "url": "https://acme.test/orders/4712?from=chat"},
            {"index": 3, "type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"},
        ],
    )
    await assert_approval_callbacks(pipeline, receiver_v3, template_id)
    assert [await pipeline.visible_message(message_id) for message_id in sent] == [expected, expected]
    for message_id, index, text, postback in zip(sent, (0, 1), ("Yes", "No"), ("come", "stay"), strict=True):
        await assert_delivery_callbacks(pipeline, receiver_v3, message_id)
        await assert_tap_callbacks(pipeline, receiver_v3, message_id, index, text=text, postback_text=postback)


@pytest.mark.parametrize("type", MEDIA_TYPES)
@pytest.mark.holds(
    "does-templates", "does-send", "does-upload", "does-callback", "upload-handle-call",
    "upload-handle-answer", "upload-id-call", "upload-id-answer", "partner-send-image",
)  # fmt: skip
async def test_template_with_a_medium_is_sent_by_id_and_by_url(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver, type: str
) -> None:
    kind, mime_type, content, name = MEDIA_TYPES[type]
    handle = await pipeline.upload_sample(content, mime_type, name=name)
    template_id = await pipeline.approved_template(templateType=type, enableSample="true", exampleMedia=handle)
    [operator_handle] = (await pipeline.control("GET", "handles"))["handles"]
    media_id = await pipeline.upload(content, mime_type, name=name)
    file_name = {"filename": f"your {name}"} if type == "DOCUMENT" else {}

    by_id, by_id_partner = [
        await pipeline.send_template(
            template_id,
            by=api,
            params=["Ann"],
            message={"type": kind, kind: {"id": media_id, **file_name}},
            postback_texts={0: "come"},
        )
        for api in ("messaging", "partner")
    ]
    by_link = await pipeline.send_template(
        template_id,
        by="partner",
        params=["Ann"],
        message={"type": kind, kind: {"link": LINK.format(name), **file_name}},
        postback_texts={0: "come"},
    )

    await assert_approval_callbacks(pipeline, receiver_v3, template_id)
    assert operator_handle["size_bytes"] == len(content)
    for message_id in (by_id, by_id_partner, by_link):
        await assert_delivery_callbacks(pipeline, receiver_v3, message_id)
    uploaded = {"id": await read_operator_media_id(pipeline), "mime_type": mime_type, "filename": name}
    expected = make_shown(
        "greeting",
        "UTILITY",
        header={"format": type, kind: uploaded | file_name},
        text="Hi Ann, shall we come today?",
        buttons=REPLIES_SHOWN,
    )
    assert [await pipeline.visible_message(message_id) for message_id in (by_id, by_id_partner)] == [expected, expected]
    expected["header"] = {"format": type, kind: {"link": LINK.format(name), **file_name}}
    assert await pipeline.visible_message(by_link) == expected
    await assert_tap_callbacks(pipeline, receiver_v3, by_id, 0, text="Yes", postback_text="come")
    await assert_tap_callbacks(pipeline, receiver_v3, by_link, 1, text="No")


async def read_operator_media_id(pipeline: PipelineHarness) -> str:
    """Return the operator's id of the only medium it has."""
    [operator_media] = (await pipeline.control("GET", "media"))["media"]
    return operator_media["media_id"]


async def test_sample_may_be_a_url_or_a_media_id(pipeline: PipelineHarness, files: FileServer) -> None:
    mime_types: dict[str, str] = {}
    for kind, file_name in (("IMAGE", "png"), ("VIDEO", "mp4"), ("DOCUMENT", "pdf")):
        _, mime_type, content, _ = MEDIA_TYPES[kind]
        media_id = await pipeline.upload(content, mime_type)
        url = f"{files.url}/{file_name}"
        for field, source in (("mediaUrl", url), ("mediaId", media_id)):
            form = {"elementName": f"sample_{len(mime_types)}", "templateType": kind, field: source}
            template = await pipeline.create_template(buttons=(), enableSample="true", **form)
            mime_types[template["id"]] = mime_type

    for template_id in mime_types:
        await pipeline.wait_for_callback(is_event("template-event", id=template_id, status="approved"))
    handles = (await pipeline.control("GET", "handles"))["handles"]
    assert sorted(handle["mime_type"] for handle in handles) == sorted(mime_types.values())
    assert set(files.requested_paths) == {"/png", "/mp4", "/pdf"}


@pytest.mark.holds(
    "does-templates", "does-send", "does-callback", "partner-send-location",
    "partner-send-location-shape",
)  # fmt: skip
async def test_location_template_accepts_each_form_of_its_location(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    template_id = await pipeline.approved_template(templateType="LOCATION", footer="Acme")
    long_object = {
        "recipient_type": "individual",
        "preview_url": False,
        "to": ANN,
        "type": "location",
        "location": SHOP,
        "caption": "Our shop",
        "channel": "whatsapp",
    }
    shapes = (
        ("messaging", {"type": "location", "location": SHOP}),
        ("partner", long_object),
        ("partner", {"type": "LOCATION", "location": SHOP | {"latitude": "52.52"}}),
    )

    sent = [
        await pipeline.send_template(template_id, by=api, params=["Ann"], message=message, postback_texts={0: "come"})
        for api, message in shapes
    ]

    expected = make_shown(
        "greeting",
        "UTILITY",
        header={"format": "LOCATION", "location": SHOP},
        text="Hi Ann, shall we come today?",
        footer="Acme",
        buttons=REPLIES_SHOWN,
    )
    await assert_approval_callbacks(pipeline, receiver_v3, template_id)
    assert [await pipeline.visible_message(message_id) for message_id in sent] == [expected] * 3
    for message_id in sent:
        await assert_delivery_callbacks(pipeline, receiver_v3, message_id)
        await assert_tap_callbacks(pipeline, receiver_v3, message_id, 0, text="Yes", postback_text="come")
