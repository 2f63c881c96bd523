"""Templates of text, media and a place: created, approved, sent by both APIs, seen, tapped, called back."""

from typing import Any, Final

import pytest

from tests.support.both_versions import a_tap_comes_back, is_told_as_approved, is_told_as_delivered
from tests.support.builders import ANN, is_event
from tests.support.file_server import FileServer
from tests.support.media_samples import sample
from tests.support.pipeline import TWO_REPLIES, PipelineHarness
from tests.support.version_3_receiver import ThirdVersion

pytestmark = pytest.mark.content_only

LINK: Final = "https://files.acme.test/{}"
OF_TYPE: Final = {  # kind in a send, MIME type, sample, and the name of the file
    "IMAGE": ("image", "image/png", sample("png"), "shoe.png"),
    "VIDEO": ("video", "video/mp4", sample("mp4"), "clip.mp4"),
    "DOCUMENT": ("document", "application/pdf", sample("pdf"), "bill.pdf"),
}
SHOP: Final = {"latitude": 52.52, "longitude": 13.405, "name": "Acme", "address": "High Street 1"}
REPLIES_SHOWN: Final = [
    {"index": 0, "type": "QUICK_REPLY", "text": "Yes", "payload": "come"},
    {"index": 1, "type": "QUICK_REPLY", "text": "No", "payload": "No"},
]


def shown_of(name: str, category: str, **components: Any) -> dict[str, Any]:
    return {"type": "template", "template": {"name": name, "language": "en_US", "category": category}, **components}


@pytest.mark.holds(
    "does-templates", "does-send", "does-callback", "create-call", "create-button-url",
    "create-button-phone", "create-button-quick-reply", "postback-call", "postback-template",
    "postback-texts", "postback-returned", "partner-send-call", "event-envelope", "event-tap",
    "event-text", "event-sender", "event-context", "version-callback", "version-negotiation",
)  # fmt: skip
@pytest.mark.both_engines
async def test_text_template_with_every_kind_of_button(pipeline: PipelineHarness, third: ThirdVersion) -> None:
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

    expected = shown_of(
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
    await is_told_as_approved(pipeline, third, template_id)
    assert [await pipeline.shown(one) for one in sent] == [expected, expected]
    for message_id, index, text, postback in zip(sent, (0, 1), ("Yes", "No"), ("come", "stay"), strict=True):
        await is_told_as_delivered(pipeline, third, message_id)
        await a_tap_comes_back(pipeline, third, message_id, index, text=text, postback_text=postback)


@pytest.mark.parametrize("type", OF_TYPE)
@pytest.mark.holds(
    "does-templates", "does-send", "does-upload", "does-callback", "upload-handle-call",
    "upload-handle-answer", "upload-id-call", "upload-id-answer", "partner-send-image",
)  # fmt: skip
async def test_template_with_a_medium_is_sent_by_id_and_by_address(
    pipeline: PipelineHarness, third: ThirdVersion, type: str
) -> None:
    kind, mime_type, content, name = OF_TYPE[type]
    handle = await pipeline.upload_sample(content, mime_type, name=name)
    template_id = await pipeline.approved_template(templateType=type, enableSample="true", exampleMedia=handle)
    [held] = (await pipeline.control("GET", "handles"))["handles"]
    media_id = await pipeline.upload(content, mime_type, name=name)
    named = {"filename": f"your {name}"} if type == "DOCUMENT" else {}

    by_id, by_id_too = [
        await pipeline.send_template(
            template_id,
            by=api,
            params=["Ann"],
            message={"type": kind, kind: {"id": media_id, **named}},
            postback_texts={0: "come"},
        )
        for api in ("messaging", "partner")
    ]
    by_link = await pipeline.send_template(
        template_id,
        by="partner",
        params=["Ann"],
        message={"type": kind, kind: {"link": LINK.format(name), **named}},
        postback_texts={0: "come"},
    )

    await is_told_as_approved(pipeline, third, template_id)
    assert held["size_bytes"] == len(content)
    for message_id in (by_id, by_id_too, by_link):
        await is_told_as_delivered(pipeline, third, message_id)
    uploaded = {"id": await operators_id(pipeline), "mime_type": mime_type, "filename": name}
    expected = shown_of(
        "greeting",
        "UTILITY",
        header={"format": type, kind: uploaded | named},
        text="Hi Ann, shall we come today?",
        buttons=REPLIES_SHOWN,
    )
    assert [await pipeline.shown(one) for one in (by_id, by_id_too)] == [expected, expected]
    expected["header"] = {"format": type, kind: {"link": LINK.format(name), **named}}
    assert await pipeline.shown(by_link) == expected
    await a_tap_comes_back(pipeline, third, by_id, 0, text="Yes", postback_text="come")
    await a_tap_comes_back(pipeline, third, by_link, 1, text="No")


async def operators_id(pipeline: PipelineHarness) -> str:
    """The operator's id of the one medium it was given."""
    [held] = (await pipeline.control("GET", "media"))["media"]
    return held["media_id"]


async def test_sample_may_be_an_address_or_a_media_id(pipeline: PipelineHarness, files: FileServer) -> None:
    made: dict[str, str] = {}
    for kind, kept_at in (("IMAGE", "png"), ("VIDEO", "mp4"), ("DOCUMENT", "pdf")):
        _, mime_type, content, _ = OF_TYPE[kind]
        media_id = await pipeline.upload(content, mime_type)
        address = f"{files.url}/{kept_at}"
        for field, where in (("mediaUrl", address), ("mediaId", media_id)):
            form = {"elementName": f"sample_{len(made)}", "templateType": kind, field: where}
            template = await pipeline.create_template(buttons=(), enableSample="true", **form)
            made[template["id"]] = mime_type

    for template_id in made:
        await pipeline.wait_for_callback(is_event("template-event", id=template_id, status="approved"))
    handles = (await pipeline.control("GET", "handles"))["handles"]
    assert sorted(one["mime_type"] for one in handles) == sorted(made.values())
    assert set(files.asked) == {"/png", "/mp4", "/pdf"}


@pytest.mark.holds(
    "does-templates", "does-send", "does-callback", "partner-send-location",
    "partner-send-location-shape",
)  # fmt: skip
async def test_location_template_in_each_shape_of_its_place(pipeline: PipelineHarness, third: ThirdVersion) -> None:
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

    expected = shown_of(
        "greeting",
        "UTILITY",
        header={"format": "LOCATION", "location": SHOP},
        text="Hi Ann, shall we come today?",
        footer="Acme",
        buttons=REPLIES_SHOWN,
    )
    await is_told_as_approved(pipeline, third, template_id)
    assert [await pipeline.shown(one) for one in sent] == [expected] * 3
    for message_id in sent:
        await is_told_as_delivered(pipeline, third, message_id)
        await a_tap_comes_back(pipeline, third, message_id, 0, text="Yes", postback_text="come")
