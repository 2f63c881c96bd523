"""Every kind of session message: sent by both APIs, seen on the phone, and where it offers a choice answered."""

from typing import Any, Final

import pytest

from tests.support.both_versions import (
    an_answer_comes_back,
    is_in_version_2,
    is_in_version_3,
    is_told_as_delivered,
    operator_id_of,
)
from tests.support.builders import ANN
from tests.support.media_samples import sample
from tests.support.pipeline import PipelineHarness
from tests.support.session_samples import SESSION_SAMPLES
from tests.support.version_3_receiver import ThirdVersion

pytestmark = pytest.mark.content_only

# fmt: off
OF_UPLOADS: Final = {  # kind, MIME type, sample
    "image":   ("image",    "image/png",       sample("png")),
    "video":   ("video",    "video/mp4",       sample("mp4")),
    "audio":   ("audio",    "audio/mpeg",      sample("mp3")),
    "file":    ("document", "application/pdf", sample("pdf")),
    "sticker": ("sticker",  "image/webp",      sample("webp")),
}
# fmt: on


def seen(shown: dict[str, Any]) -> dict[str, Any]:
    """What a person sees: without what lies behind buttons, which is between us and the operator."""
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
async def test_every_kind_of_session_message_is_seen_as_it_was_meant(
    pipeline: PipelineHarness, third: ThirdVersion, api: str
) -> None:
    asked = await pipeline.reply(ANN, "What have you got?")
    context = {"context": {"msgId": asked["payload"]["id"]}}

    sent = {
        name: await pipeline.send_session(message | context, by=api)
        for name, (message, _, _) in SESSION_SAMPLES.items()
    }
    untyped = await pipeline.send_session({"text": "As you like"}, by=api)

    shown = {name: seen(await pipeline.shown(message_id)) for name, message_id in sent.items()}
    assert shown == {name: {"buttons": [], **expected} for name, (_, _, expected) in SESSION_SAMPLES.items()}
    assert await pipeline.shown(untyped) == {"type": "text", "text": "As you like", "buttons": []}
    for message_id in sent.values():
        await is_told_as_delivered(pipeline, third, message_id, kind="session")
    answered = {one["context_id"] for one in await pipeline.inbox() if one.get("callback_data")}
    assert answered == {asked["payload"]["id"], None}
    row = {"title": "Ice", "description": "Cold"}
    await a_choice_comes_back(
        pipeline, third, sent["list"], 1, "list_reply", {"id": "l-1", "postbackText": "ice", **row},
    )  # fmt: skip
    for name in (name for name in SESSION_SAMPLES if name.startswith("quick_reply")):
        await a_choice_comes_back(
            pipeline, third, sent[name], 1, "button_reply",
            {"id": "q-1", "postbackText": "stay", "title": "No"},
        )  # fmt: skip


async def a_choice_comes_back(
    pipeline: PipelineHarness, third: ThirdVersion, message_id: str, index: int, kind: str, inner: dict[str, str]
) -> None:
    """Choose: version 2 has the partner's `msgid` as the id, version 3 what was behind the choice."""
    operator_id = await operator_id_of(pipeline, message_id)
    callback = await pipeline.tap(ANN, index, message_id=operator_id)
    told = {**inner, "reply": f"{inner['title']} {index + 1}"}
    is_in_version_2(callback, operator_id, message_id, kind, told)
    chosen = {name: inner[name] for name in ("title", "description") if name in inner}
    content = {"type": kind, kind: {"id": inner["postbackText"], **chosen}}
    await is_in_version_3(third, callback, operator_id, message_id, "interactive", content)


@pytest.mark.holds("upload-id-call", "upload-id-answer")
@pytest.mark.both_engines
async def test_every_kind_of_medium_is_sent_by_its_id(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    ids = {
        name: await pipeline.upload(content, mime_type, name=name)
        for name, (_, mime_type, content) in OF_UPLOADS.items()
    }

    sent = {name: await pipeline.send_session({"type": name, "id": media_id}) for name, media_id in ids.items()}

    shown = {name: await pipeline.shown(message_id) for name, message_id in sent.items()}
    held = (await pipeline.control("GET", "media"))["media"]
    operators = {one["mime_type"]: one["media_id"] for one in held}
    for name, (kind, mime_type, _) in OF_UPLOADS.items():
        assert shown[name]["type"] == kind
        media = {"id": operators[mime_type], "mime_type": mime_type, "filename": name}
        assert shown[name]["media"] == {"kind": kind, **media}


@pytest.mark.parametrize("by_operator_id", [False, True], ids=["our id", "operator's id"])
async def test_reaction_is_seen_on_its_message_until_it_is_removed(
    pipeline: PipelineHarness, third: ThirdVersion, by_operator_id: bool
) -> None:
    await pipeline.open_window()
    about = await pipeline.send_session({"type": "text", "text": "Done"})
    operator_id = await operator_id_of(pipeline, about)
    reaction = {"type": "reaction", "msgId": operator_id if by_operator_id else about}

    reacted = await pipeline.send_session({**reaction, "emoji": "👍"})
    removed = await pipeline.send_session({**reaction, "emoji": ""}, by="partner")

    for message_id, emoji in ((reacted, "👍"), (removed, "")):
        assert await pipeline.shown(message_id) == {
            "type": "reaction",
            "text": emoji,
            "reaction": {"message_id": operator_id, "emoji": emoji},
            "buttons": [],
        }
        await is_told_as_delivered(pipeline, third, message_id, kind="session")


async def test_reaction_to_a_message_of_the_recipient_names_it(pipeline: PipelineHarness) -> None:
    asked = await pipeline.reply(ANN, "What have you got?")

    reacted = await pipeline.send_session({"type": "reaction", "msgId": asked["payload"]["id"], "emoji": "👀"})

    shown = await pipeline.shown(reacted)
    assert shown["reaction"] == {"message_id": asked["payload"]["id"], "emoji": "👀"}


async def test_phone_answers_a_request_for_its_location_in_reply_to_it(
    pipeline: PipelineHarness, third: ThirdVersion
) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_session(SESSION_SAMPLES["location_request_message"].sent)
    place = {"latitude": 52.52, "longitude": 13.405, "name": "Home", "address": "High Street 1"}

    await an_answer_comes_back(
        pipeline, third, message_id, {"type": "location", "location": place},
        second=("location", {"latitude": "52.52", "longitude": "13.405", "name": "Home", "address": "High Street 1"}),
        third_says=("location", place),
    )  # fmt: skip
