"""Every kind of session message: sent by both APIs, shown on the phone, and its choices called back."""

from typing import Any, Final

import pytest

from tests.support.builders import ANN
from tests.support.callback_assertions import (
    assert_delivery_callbacks,
    assert_reply_callbacks,
    assert_version_2_callback,
    assert_version_3_callback,
    operator_id_of,
)
from tests.support.media_samples import sample
from tests.support.pipeline import PipelineHarness
from tests.support.session_samples import SESSION_SAMPLES
from tests.support.version_3_receiver import Version3Receiver

pytestmark = pytest.mark.content_only

# fmt: off
UPLOADS: Final = {  # kind, MIME type, sample
    "image":   ("image",    "image/png",       sample("png")),
    "video":   ("video",    "video/mp4",       sample("mp4")),
    "audio":   ("audio",    "audio/mpeg",      sample("mp3")),
    "file":    ("document", "application/pdf", sample("pdf")),
    "sticker": ("sticker",  "image/webp",      sample("webp")),
}
# fmt: on


def remove_payloads(shown: dict[str, Any]) -> dict[str, Any]:
    """Remove the payloads of buttons, which a person does not see."""
    interactive = shown.pop("interactive", {})
    opens_with = interactive.get("action", {}).get("button")
    shown["buttons"] = [
        {name: value for name, value in button.items() if name != "payload"} for button in shown["buttons"]
    ]
    return shown | ({"opens_with": opens_with} if opens_with else {})


@pytest.mark.parametrize("api", ["messaging", "partner"])
@pytest.mark.holds(
    "does-session", "session-call", "session-message", "session-type", "session-preview",
    "session-context",
)  # fmt: skip
async def test_every_kind_of_session_message_is_shown_as_specified(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver, api: str
) -> None:
    question = await pipeline.reply(ANN, "What have you got?")
    context = {"context": {"msgId": question["payload"]["id"]}}

    sent = {
        name: await pipeline.send_session(message | context, by=api)
        for name, (message, _, _) in SESSION_SAMPLES.items()
    }
    untyped = await pipeline.send_session({"text": "As you like"}, by=api)

    shown = {name: remove_payloads(await pipeline.visible_message(message_id)) for name, message_id in sent.items()}
    assert shown == {name: {"buttons": [], **expected} for name, (_, _, expected) in SESSION_SAMPLES.items()}
    assert await pipeline.visible_message(untyped) == {"type": "text", "text": "As you like", "buttons": []}
    for message_id in sent.values():
        await assert_delivery_callbacks(pipeline, receiver_v3, message_id, kind="session")
    context_ids = {message["context_id"] for message in await pipeline.inbox() if message.get("callback_data")}
    assert context_ids == {question["payload"]["id"], None}
    row = {"title": "Ice", "description": "Cold"}
    await check_choice_callback(
        pipeline, receiver_v3, sent["list"], 1, "list_reply", {"id": "l-1", "postbackText": "ice", **row},
    )  # fmt: skip
    for name in (name for name in SESSION_SAMPLES if name.startswith("quick_reply")):
        await check_choice_callback(
            pipeline, receiver_v3, sent[name], 1, "button_reply",
            {"id": "q-1", "postbackText": "stay", "title": "No"},
        )  # fmt: skip


async def check_choice_callback(
    pipeline: PipelineHarness,
    receiver_v3: Version3Receiver,
    message_id: str,
    index: int,
    kind: str,
    inner: dict[str, str],
) -> None:
    """Choose: the callback has the partner's `msgid` as id in version 2, and the postback text in version 3."""
    operator_id = await operator_id_of(pipeline, message_id)
    callback = await pipeline.tap(ANN, index, message_id=operator_id)
    expected = {**inner, "reply": f"{inner['title']} {index + 1}"}
    assert_version_2_callback(callback, operator_id, message_id, kind, expected)
    chosen = {name: inner[name] for name in ("title", "description") if name in inner}
    content = {"type": kind, kind: {"id": inner["postbackText"], **chosen}}
    await assert_version_3_callback(receiver_v3, callback, operator_id, message_id, "interactive", content)


@pytest.mark.holds("upload-id-call", "upload-id-answer")
@pytest.mark.both_engines
async def test_every_kind_of_medium_is_sent_by_its_id(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    ids = {
        name: await pipeline.upload(content, mime_type, name=name) for name, (_, mime_type, content) in UPLOADS.items()
    }

    sent = {name: await pipeline.send_session({"type": name, "id": media_id}) for name, media_id in ids.items()}

    shown = {name: await pipeline.visible_message(message_id) for name, message_id in sent.items()}
    operator_media = (await pipeline.control("GET", "media"))["media"]
    operator_ids = {medium["mime_type"]: medium["media_id"] for medium in operator_media}
    for name, (kind, mime_type, _) in UPLOADS.items():
        assert shown[name]["type"] == kind
        media = {"id": operator_ids[mime_type], "mime_type": mime_type, "filename": name}
        assert shown[name]["media"] == {"kind": kind, **media}


@pytest.mark.parametrize("by_operator_id", [False, True], ids=["our id", "operator's id"])
async def test_reaction_is_shown_on_its_message_until_it_is_removed(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver, by_operator_id: bool
) -> None:
    await pipeline.open_window()
    target_id = await pipeline.send_session({"type": "text", "text": "Done"})
    operator_id = await operator_id_of(pipeline, target_id)
    reaction = {"type": "reaction", "msgId": operator_id if by_operator_id else target_id}

    reacted = await pipeline.send_session({**reaction, "emoji": "👍"})
    removed = await pipeline.send_session({**reaction, "emoji": ""}, by="partner")

    for message_id, emoji in ((reacted, "👍"), (removed, "")):
        assert await pipeline.visible_message(message_id, until="sent") == {
            "type": "reaction",
            "text": emoji,
            "reaction": {"message_id": operator_id, "emoji": emoji},
            "buttons": [],
        }
        await assert_delivery_callbacks(pipeline, receiver_v3, message_id, kind="session", states=("enqueued", "sent"))


async def test_reaction_to_a_message_of_the_recipient_has_its_id(pipeline: PipelineHarness) -> None:
    question = await pipeline.reply(ANN, "What have you got?")

    reacted = await pipeline.send_session({"type": "reaction", "msgId": question["payload"]["id"], "emoji": "👀"})

    shown = await pipeline.visible_message(reacted, until="sent")
    assert shown["reaction"] == {"message_id": question["payload"]["id"], "emoji": "👀"}


async def test_location_sent_for_a_location_request_is_a_reply_to_it(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_session(SESSION_SAMPLES["location_request_message"].sent)
    location = {"latitude": 52.52, "longitude": 13.405, "name": "Home", "address": "High Street 1"}

    await assert_reply_callbacks(
        pipeline, receiver_v3, message_id, {"type": "location", "location": location},
        second=("location", {"latitude": "52.52", "longitude": "13.405", "name": "Home", "address": "High Street 1"}),
        version_3_content=("location", location),
    )  # fmt: skip
