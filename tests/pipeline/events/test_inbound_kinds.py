"""Every kind of inbound message is called back, in version 2 and in version 3."""

import base64
from typing import Any

import pytest

from tests.support.builders import ANN, APP, is_event
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from tests.support.version_3_receiver import open_version_3_receiver

pytestmark = pytest.mark.content_only

PNG = base64.b64encode(
    b"\x89PNG\r\n\x1a\n" + b"\x00\x00\x00\rIHDR" + bytes(13) + b"\x00\x00\x00\x00IEND\xaeB`\x82"
).decode()
CARD = {
    "addresses": [
        {"city": "Rome", "country": "Italy", "country_code": "it", "state": "RM", "street": "Via 1",
         "type": "HOME", "zip": "00100"},
    ],
    "emails": [{"email": "bo@bo.test", "type": "WORK"}],
    "name": {"first_name": "Bo", "formatted_name": "Bo Boe", "last_name": "Boe"},
    "org": {"company": "Bo's"},
    "phones": [{"phone": "+15550002222", "type": "CELL"}],
    "urls": [{"url": "https://bo.test", "type": "WORK"}],
}  # fmt: skip
SHOWN_CARD = CARD | {
    "addresses": [
        {"city": "Rome", "country": "Italy", "countryCode": "it", "state": "RM", "street": "Via 1",
         "type": "HOME", "zip": "00100"},
    ],
    "ims": [],
}  # fmt: skip
PLACE = {"latitude": 19.14, "longitude": 72.85, "name": "Office", "address": "Road 1"}

# fmt: off
PLAIN: list[tuple[dict[str, Any], str, dict[str, Any]]] = [  # Source: facts 6.4
    # what the phone sends                                  type        payload
    ({"type": "location", "location": PLACE},               "location", {"longitude": "72.85", "latitude": "19.14", "name": "Office", "address": "Road 1"}),
    ({"type": "location", "location": {"latitude": 1.5, "longitude": 2.5}}, "location", {"longitude": "2.5", "latitude": "1.5"}),
    ({"type": "contacts", "contacts": [CARD]},              "contact",  {"contacts": [SHOWN_CARD]}),
]
MEDIA: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [  # Source: facts 6.4
    # kind       members of media                            type       payload besides url and urlExpiry
    ("image",    {"mime_type": "image/png", "caption": "Me"}, "image",  {"caption": "Me", "contentType": "image/png"}),
    ("image",    {"mime_type": "image/png"},                 "image",   {"contentType": "image/png"}),
    ("video",    {"mime_type": "video/mp4", "caption": "Us"}, "video",  {"caption": "Us", "contentType": "video/mp4"}),
    ("audio",    {"mime_type": "audio/ogg"},                 "audio",   {"contentType": "audio/ogg"}),
    ("document", {"mime_type": "application/pdf", "file_name": "a.pdf"}, "file", {"name": "a.pdf", "contentType": "application/pdf"}),
    ("sticker",  {"mime_type": "image/webp"},                "sticker", {"contentType": "image/webp"}),
]
# fmt: on


async def send_from_phone(pipeline: PipelineHarness, **content: Any) -> str:
    inbound = await pipeline.control("POST", f"phones/{ANN}/messages", {"to": APP.phone_number, **content})
    return inbound["wamid"]


@pytest.mark.holds("event-others")
@pytest.mark.parametrize(("content", "type", "payload"), PLAIN, ids=[case[1] for case in PLAIN])
async def test_inbound_message_is_called_back_in_both_versions(
    pipeline: PipelineHarness, content: dict[str, Any], type: str, payload: dict[str, Any]
) -> None:
    async with open_version_3_receiver(pipeline) as receiver_v3:
        wamid = await send_from_phone(pipeline, **content)

        callback = await pipeline.wait_for_callback(is_event("message", id=wamid))
        value = await receiver_v3.message(wamid)

    assert (callback["payload"]["type"], callback["payload"]["payload"]) == (type, payload)
    [message] = value["messages"]
    assert message["type"] == content["type"]
    assert message[content["type"]] == content[content["type"]]


@pytest.mark.holds("event-41", "event-42", "event-43", "event-44", "event-45", "event-61")
@pytest.mark.parametrize(("kind", "medium", "type", "shown"), MEDIA, ids=range(len(MEDIA)))
async def test_medium_is_called_back_with_a_url_of_its_content(
    pipeline: PipelineHarness, kind: str, medium: dict[str, Any], type: str, shown: dict[str, Any]
) -> None:
    async with open_version_3_receiver(pipeline) as receiver_v3:
        wamid = await send_from_phone(pipeline, type=kind, media={"content": PNG, **medium})

        callback = await pipeline.wait_for_callback(is_event("message", id=wamid))
        value = await receiver_v3.message(wamid)

    outer = callback["payload"]
    payload = dict(outer["payload"])
    url, expires_ms = payload.pop("url"), payload.pop("urlExpiry")
    assert (outer["type"], payload) == (type, shown)
    assert url.startswith(f"{pipeline.service_url}/media/")
    assert abs(expires_ms - pipeline.clock.now_ms() - 7 * 24 * 3600 * 1000) < 60_000
    [message] = value["messages"]
    assert message[kind]["url"] == url
    assert message[kind]["id"]


async def test_content_of_a_medium_is_served_at_its_url_without_a_credential(pipeline: PipelineHarness) -> None:
    wamid = await send_from_phone(pipeline, type="image", media={"content": PNG, "mime_type": "image/png"})
    callback = await pipeline.wait_for_callback(is_event("message", id=wamid))

    async def fetch() -> tuple[int, bytes]:
        async with pipeline.http.get(callback["payload"]["payload"]["url"]) as http_response:
            return http_response.status, await http_response.read()

    assert await poll_until(fetch, lambda response: response[0] == 200) == (200, base64.b64decode(PNG))


async def test_reaction_is_called_back_with_both_ids_of_its_message(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_text("Shall we come?")
    await pipeline.events_of(message_id, until="delivered")
    operator_id = (await pipeline.inbox())[-1]["wamid"]
    reaction = {"message_id": operator_id, "emoji": "👍"}

    wamid = await send_from_phone(pipeline, type="reaction", reaction=reaction)

    callback = await pipeline.wait_for_callback(is_event("message", id=wamid))
    assert callback["payload"]["type"] == "reaction"
    assert callback["payload"]["payload"] == {"emoji": "👍", "id": operator_id, "gsId": message_id}


async def test_removed_reaction_has_no_emoji(pipeline: PipelineHarness) -> None:
    question = await pipeline.reply(ANN, "Hello?")
    reaction = {"message_id": question["payload"]["id"]}

    wamid = await send_from_phone(pipeline, type="reaction", reaction=reaction)

    callback = await pipeline.wait_for_callback(is_event("message", id=wamid))
    assert callback["payload"]["payload"] == {"emoji": "", "id": question["payload"]["id"]}


async def test_message_from_an_advertisement_has_its_referral(pipeline: PipelineHarness) -> None:
    referral = {"source_url": "https://fb.test/1", "source_id": "7", "source_type": "ad",
                "headline": "Look", "body": "Here", "media_type": "image",
                "image_url": "https://fb.test/1.jpg", "ctwa_clid": "c-1"}  # fmt: skip

    wamid = await send_from_phone(pipeline, text="I saw it", referral=referral)

    callback = await pipeline.wait_for_callback(is_event("message", id=wamid))
    assert callback["payload"]["referral"] == referral


async def test_unsupported_message_is_called_back_in_version_3_only(pipeline: PipelineHarness) -> None:
    async with open_version_3_receiver(pipeline, "OTHERS") as receiver_v3:
        wamid = await send_from_phone(pipeline, type="unsupported", unsupported={"type": "poll_creation"})
        value = await receiver_v3.message(wamid)
        await pipeline.reply(ANN, "Did you see it?")

    assert value["messages"][0]["errors"][0]["code"] == 131051
    called_back = [callback["payload"]["id"] for callback in pipeline.callbacks if callback["type"] == "message"]
    assert wamid not in called_back


@pytest.mark.both_engines
async def test_reply_is_called_back_in_version_3_with_all_its_ids_and_its_sender(pipeline: PipelineHarness) -> None:
    await pipeline.control("PUT", f"phones/{ANN}", {"name": "Ann Ames"})
    await pipeline.open_window()
    message_id = await pipeline.send_text("Shall we come?")
    await pipeline.events_of(message_id, until="delivered")
    operator_id = (await pipeline.inbox())[-1]["wamid"]

    async with open_version_3_receiver(pipeline) as receiver_v3:
        callback = await pipeline.reply(ANN, "Please do.", to=operator_id)
        value = await receiver_v3.message(callback["payload"]["id"])

    [message] = value["messages"]
    ids = {name: message["context"][name] for name in ("id", "meta_msg_id", "gs_id")}
    assert ids == {"id": operator_id, "meta_msg_id": operator_id, "gs_id": message_id}
    assert message["text"] == {"body": "Please do."}
    assert message["timestamp"].isdecimal()
    [contact] = value["contacts"]
    assert (contact["wa_id"], contact["profile"]["name"]) == (ANN, "Ann Ames")
    assert value["metadata"] == {"display_phone_number": APP.phone_number, "phone_number_id": APP.phone_number_id}


@pytest.mark.both_engines
async def test_recipient_with_another_number_is_called_back_as_a_mismatch(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()

    async with open_version_3_receiver(pipeline) as receiver_v3:
        change = await pipeline.control("POST", f"phones/{ANN}/number", {"to": "15559990000"})
        [wamid, *_] = change["wamids"]
        callback = await pipeline.wait_for_callback(is_event("message-event", type="mismatch"))
        value = await receiver_v3.message(wamid)

    assert callback["payload"]["id"] == wamid
    assert callback["payload"]["payload"] == {"wa_id": "15559990000", "phone": ANN}
    assert value["messages"][0]["system"]["wa_id"] == "15559990000"


@pytest.mark.both_engines
async def test_sender_without_a_number_is_identified_by_its_business_scoped_id(pipeline: PipelineHarness) -> None:
    await pipeline.control("PUT", f"phones/{ANN}", {"user_id": "US.1349", "username": "ann", "shows_number": False})

    wamid = await send_from_phone(pipeline, text="Hello?")

    callback = await pipeline.wait_for_callback(is_event("message", id=wamid))
    assert callback["payload"]["source"] == "US.1349"
    assert callback["payload"]["sender"]["phone"] == "US.1349"
