"""Messages of a business's own app and of its customers: echoes, edits and revokes, and the address book."""

import base64
from typing import Any

import pytest

from tests.simulator.business_app.test_connection import APP, connect
from tests.simulator.conftest import ANN, ANN_USER_ID, BUSINESS, NUMBER_ID, WABA, Bench
from tests.support.manual_clock import ManualClock

MINUTE_MS = 60_000
DAY_MS = 24 * 3600 * 1000
BOB = "15551230002"
BASE64 = base64.b64encode(b"\x89PNG picture").decode()
METADATA = {"display_phone_number": BUSINESS, "phone_number_id": NUMBER_ID}
BO = {"name": {"formatted_name": "Bo"}}


async def send_from_app(bench: Bench, text: str = "Hi", **members: Any) -> str:
    response = await bench.control("POST", f"{APP}/messages", {"to": ANN, "text": text, **members})
    assert response.status == 200, response.body
    return response.body["wamid"]


async def echoes(bench: Bench, count: int) -> list[dict[str, Any]]:
    await bench.receiver.wait_until(lambda: len(bench.receiver.changes("smb_message_echoes")) >= count)
    return [value["message_echoes"][0] for value in bench.receiver.changes("smb_message_echoes")]


async def test_message_of_the_app_is_echoed_and_arrives(bench: Bench) -> None:
    # Source: the operator's page "Onboard WhatsApp Business app users", smb_message_echoes.
    await connect(bench)

    wamid = await send_from_app(bench, "Your order is ready.")

    [echo] = await echoes(bench, 1)
    [value] = bench.receiver.changes("smb_message_echoes")
    [shown] = await bench.inbox()
    assert value["metadata"] == METADATA
    assert value["contacts"][0]["wa_id"] == ANN
    assert echo == {
        "from": BUSINESS, "to": ANN, "to_user_id": ANN_USER_ID, "id": wamid, "timestamp": echo["timestamp"],
        "type": "text", "text": {"body": "Your order is ready."},
    }  # fmt: skip
    assert (shown["wamid"], shown["direction"], shown["sent_by"]) == (wamid, "to_phone", "business_app")


async def test_entry_of_an_echo_has_no_time(bench: Bench) -> None:
    await connect(bench)
    await send_from_app(bench)
    await echoes(bench, 1)
    [post] = bench.receiver.posts
    assert list(post.value["entry"][0]) == ["id", "changes"]
    assert post.value["entry"][0]["id"] == WABA


async def test_echo_without_user_ids_has_the_documented_members(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"user_ids": False})
    await connect(bench)
    await send_from_app(bench)
    [echo] = await echoes(bench, 1)
    [value] = bench.receiver.changes("smb_message_echoes")
    assert list(echo) == ["from", "to", "id", "timestamp", "type", "text"]
    assert list(value) == ["messaging_product", "metadata", "message_echoes"]


async def test_message_of_the_app_has_no_statuses_even_when_read(bench: Bench) -> None:
    await connect(bench)
    await send_from_app(bench)
    await bench.control("POST", f"phones/{ANN}/read")
    reply = await bench.send_from_phone("Thanks")

    await bench.receiver.wait_until(bench.receiver.messages)
    await bench.wait_until_drained()

    assert bench.receiver.statuses() == []
    assert [message["id"] for message in bench.receiver.messages()] == [reply]


async def test_message_of_the_app_waits_for_a_phone_that_is_offline(bench: Bench) -> None:
    await connect(bench)
    await bench.control("PUT", f"phones/{ANN}", {"is_offline": True})
    wamid = await send_from_app(bench)
    before = await bench.inbox()
    await bench.control("PUT", f"phones/{ANN}", {"is_offline": False})
    after = await bench.inbox()
    await bench.wait_until_drained()
    assert (before, [message["wamid"] for message in after]) == ([], [wamid])
    assert bench.receiver.statuses() == []


# fmt: off
CONTENTS: list[tuple[str, dict[str, Any]]] = [
    ("image",       {"media": {"content": BASE64, "mime_type": "image/png", "caption": "Look"}}),
    ("video",       {"media": {"content": BASE64, "mime_type": "video/mp4"}}),
    ("audio",       {"media": {"content": BASE64, "mime_type": "audio/ogg", "voice": True}}),
    ("document",    {"media": {"content": BASE64, "mime_type": "application/pdf", "file_name": "a.pdf"}}),
    ("sticker",     {"media": {"content": BASE64, "mime_type": "image/webp"}}),
    ("location",    {"location": {"latitude": 52.5, "longitude": 13.4}}),
    ("contacts",    {"contacts": [BO]}),
    ("unsupported", {"unsupported": {"type": "poll"}}),
]
# fmt: on


@pytest.mark.parametrize(("kind", "content"), CONTENTS, ids=[row[0] for row in CONTENTS])
async def test_app_sends_every_type(bench: Bench, kind: str, content: dict[str, Any]) -> None:
    await connect(bench)

    response = await bench.control("POST", f"{APP}/messages", {"to": ANN, "type": kind, **content})

    assert response.status == 200, response.body
    [echo] = await echoes(bench, 1)
    assert (echo["type"], echo["id"]) == (kind, response.body["wamid"])
    if "media" in content:
        assert "url" not in echo[kind]
        assert (await bench.graph("GET", echo[kind]["id"])).body["mime_type"] == content["media"]["mime_type"]


async def test_app_reacts_and_replies(bench: Bench) -> None:
    await connect(bench)
    received = await bench.send_from_phone("Hi")
    reaction = {"message_id": received, "emoji": "👍"}
    await bench.control("POST", f"{APP}/messages", {"to": ANN, "type": "reaction", "reaction": reaction})
    await send_from_app(bench, "Hello", context_id=received)
    reacted, replied = await echoes(bench, 2)
    assert reacted["reaction"] == reaction
    assert replied["context"] == {"from": ANN, "id": received}


@pytest.mark.parametrize(("is_own", "author"), [(True, BUSINESS), (False, ANN)])
async def test_app_reacts_and_replies_to_a_message_of_its_history(bench: Bench, is_own: bool, author: str) -> None:
    await connect(bench)
    old = {"phone": ANN, "text": "Rye?", "at_ms": 1_700_000_000_000, "is_own": is_own}
    await bench.control("PUT", f"{APP}/history", {"messages": [old, {**old, "phone": BOB}]})
    [wamid, of_another] = [
        (await bench.control("GET", f"{APP}/chats/{phone}")).body["messages"][0]["wamid"] for phone in (ANN, BOB)
    ]
    reaction = {"message_id": wamid, "emoji": "👍"}
    await bench.control("POST", f"{APP}/messages", {"to": ANN, "type": "reaction", "reaction": reaction})
    await send_from_app(bench, "Every day", context_id=wamid)
    rejected = await bench.control("POST", f"{APP}/messages", {"to": ANN, "text": "a", "context_id": of_another})
    reacted, replied = await echoes(bench, 2)
    assert (reacted["reaction"], replied["context"]) == (reaction, {"from": author, "id": wamid})
    assert (rejected.status, rejected.body["field"]) == (404, "context_id")


async def test_invalid_messages_of_the_app_name_the_field(bench: Bench) -> None:
    await connect(bench)
    # fmt: off
    cases: list[tuple[dict[str, Any], int, str]] = [
        ({"to": ANN},                                                          400, "text"),
        ({"to": "12", "text": "a"},                                            400, "to"),
        ({"to": BUSINESS, "text": "a"},                                        409, "to"),
        ({"to": ANN, "type": "order"},                                         400, "type"),
        ({"to": ANN, "type": "image"},                                         400, "media"),
        ({"to": ANN, "text": "a", "context_id": "wamid.x"},                    404, "context_id"),
        ({"to": ANN, "type": "reaction", "reaction": {"message_id": "wamid.x"}}, 404, "reaction.message_id"),
        ({"to": ANN, "text": "a", "companion_id": "1"},                        404, "companion_id"),
        ({"to": ANN, "text": "a", "more": 1},                                  400, "more"),
    ]
    # fmt: on
    for body, status, field in cases:
        response = await bench.control("POST", f"{APP}/messages", body)
        assert (response.status, response.body["field"]) == (status, field), body


async def test_offline_app_sends_by_a_linked_device_only(bench: Bench) -> None:
    await connect(bench)
    device = (await bench.control("POST", f"{APP}/companions")).body["companion_id"]
    await bench.control("PUT", APP, {"is_offline": True})
    rejected = await bench.control("POST", f"{APP}/messages", {"to": ANN, "text": "a"})
    await send_from_app(bench, companion_id=device)
    await bench.control("PUT", f"{APP}/companions/{device}", {"is_offline": True})
    offline = await bench.control("POST", f"{APP}/messages", {"to": ANN, "text": "a", "companion_id": device})
    assert [response.status for response in (rejected, offline)] == [409, 409]


async def test_app_edits_within_fifteen_minutes_and_revokes_within_two_days(slow: Bench, clock: ManualClock) -> None:
    await connect(slow)
    wamid = await send_from_app(slow, "At five")
    clock.advance(ms=15 * MINUTE_MS)
    edited = await slow.control("POST", f"{APP}/messages/{wamid}/edit", {"text": "At six"})
    clock.advance(ms=1)
    late = await slow.control("POST", f"{APP}/messages/{wamid}/edit", {"text": "At seven"})
    [shown] = await slow.inbox()
    clock.advance(ms=2 * DAY_MS - 15 * MINUTE_MS - 1)
    revoked = await slow.control("POST", f"{APP}/messages/{wamid}/revoke")
    again = await slow.control("POST", f"{APP}/messages/{wamid}/revoke")

    _, edit, revoke = await echoes(slow, 3)
    [gone] = await slow.inbox()
    assert [response.status for response in (edited, late, revoked, again)] == [200, 409, 200, 409]
    assert edit["type"] == "edit"
    assert edit["edit"] == {"original_message_id": wamid, "message": {"type": "text", "text": {"body": "At six"}}}
    assert (revoke["type"], revoke["revoke"]) == ("revoke", {"original_message_id": wamid})
    assert edit["id"] == edited.body["wamid"] != wamid
    assert (shown["text"], gone["text"], "revoked_ms" in gone) == ("At six", "", True)


async def test_revoke_is_too_late_after_two_days(slow: Bench, clock: ManualClock) -> None:
    await connect(slow)
    wamid = await send_from_app(slow)
    clock.advance(ms=2 * DAY_MS + 1)
    late = await slow.control("POST", f"{APP}/messages/{wamid}/revoke")
    assert (late.status, "2 days" in late.body["rule"]) == (409, True)


async def test_message_of_the_api_is_not_changed_in_the_app(bench: Bench) -> None:
    await connect(bench)
    wamid = await bench.send_text("by the API")
    rejected = await bench.control("POST", f"{APP}/messages/{wamid}/revoke")
    assert (rejected.status, rejected.body["field"]) == (404, "wamid")


async def test_customer_edits_and_revokes(bench: Bench) -> None:
    # Source: the operator's page "Onboard WhatsApp Business app users", Edit and Revoke.
    await connect(bench)
    wamid = await bench.send_from_phone("Two, please")
    until = (await bench.control("GET", f"phones/{ANN}/chats")).body["chats"][0]["window_until_ms"]

    edited = await bench.control("POST", f"phones/{ANN}/messages/{wamid}/edit", {"text": "Three, please"})
    revoked = await bench.control("POST", f"phones/{ANN}/messages/{wamid}/revoke")

    await bench.receiver.wait_until(lambda: len(bench.receiver.messages()) == 3)
    _, edit, revoke = bench.receiver.messages()
    [shown] = await bench.inbox()
    chats = await bench.control("GET", f"phones/{ANN}/chats")
    assert edit == {
        "from": ANN, "from_user_id": ANN_USER_ID, "id": edited.body["wamid"], "timestamp": edit["timestamp"],
        "type": "edit",
        "edit": {"original_message_id": wamid, "message": {"type": "text", "text": {"body": "Three, please"}}},
    }  # fmt: skip
    assert (revoke["id"], revoke["revoke"]) == (revoked.body["wamid"], {"original_message_id": wamid})
    assert bench.receiver.changes()[-1]["contacts"][0]["wa_id"] == ANN
    assert "revoked_ms" in shown
    assert chats.body["chats"][0]["window_until_ms"] == until


async def test_edited_picture_keeps_its_file(bench: Bench) -> None:
    await connect(bench)
    media = {"content": BASE64, "mime_type": "image/png", "caption": "Look"}
    sent = await bench.control("POST", f"phones/{ANN}/messages", {"to": BUSINESS, "type": "image", "media": media})

    await bench.control("POST", f"phones/{ANN}/messages/{sent.body['wamid']}/edit", {"text": "Look here"})

    await bench.receiver.wait_until(lambda: len(bench.receiver.messages()) == 2)
    original, edit = bench.receiver.messages()
    assert edit["edit"]["message"] == {"type": "image", "image": {**original["image"], "caption": "Look here"}}
    [shown] = await bench.inbox()
    assert (shown["text"], shown["media"]["caption"]) == ("Look here", "Look here")


async def test_changes_that_are_not_possible_are_rejected(bench: Bench) -> None:
    await connect(bench)
    place = {"to": BUSINESS, "type": "location", "location": {"latitude": 1, "longitude": 1}}
    location = (await bench.control("POST", f"phones/{ANN}/messages", place)).body["wamid"]
    received = await send_from_app(bench)
    edited = await bench.control("POST", f"phones/{ANN}/messages/{location}/edit", {"text": "a"})
    foreign = await bench.control("POST", f"phones/{ANN}/messages/{received}/revoke")
    other = await bench.control("POST", f"phones/{BOB}/messages/{location}/revoke")
    assert [response.status for response in (edited, foreign, other)] == [409, 404, 404]


async def test_business_without_the_app_gets_a_change_as_unsupported(bench: Bench) -> None:
    wamid = await bench.send_from_phone("Hi")
    await bench.control("POST", f"phones/{ANN}/messages/{wamid}/edit", {"text": "Hello"})
    await bench.receiver.wait_until(lambda: len(bench.receiver.messages()) == 2)
    edit = bench.receiver.messages()[1]
    assert (edit["type"], edit["unsupported"], edit["errors"][0]["code"]) == ("unsupported", {"type": "edit"}, 131051)


async def test_unavailable_message_has_its_code(bench: Bench) -> None:
    await connect(bench)
    body = {"to": BUSINESS, "type": "unsupported", "unsupported": {"code": 131060}}
    await bench.control("POST", f"phones/{ANN}/messages", body)
    rejected = await bench.control("POST", f"phones/{ANN}/messages", {**body, "unsupported": {"code": 131061}})
    [message] = await bench.receiver.wait_until(bench.receiver.messages)
    assert (message["type"], message["errors"][0]["code"]) == ("unsupported", 131060)
    assert (rejected.status, rejected.body["accepted"]) == (400, "131051, 131060")


async def test_changed_contact_is_announced_after_the_contacts_were_requested(bench: Bench) -> None:
    # Source: the operator's page "Onboard WhatsApp Business app users", smb_app_state_sync.
    await connect(bench)
    await bench.control("PUT", f"{APP}/contacts/{ANN}", {"full_name": "Ann Ames"})
    await bench.graph(
        "POST", f"{NUMBER_ID}/smb_app_data", json={"messaging_product": "whatsapp", "sync_type": "smb_app_state_sync"}
    )
    await bench.control("PUT", f"{APP}/contacts/{ANN}", {"full_name": "Ann Amesbury", "first_name": "Annie"})
    await bench.control("DELETE", f"{APP}/contacts/{ANN}")

    await bench.receiver.wait_until(lambda: len(bench.receiver.changes("smb_app_state_sync")) == 3)
    changes = [value["state_sync"] for value in bench.receiver.changes("smb_app_state_sync")]
    assert [[(item["action"], item["contact"]) for item in items] for items in changes] == [
        [("add", {"full_name": "Ann Ames", "first_name": "Ann", "phone_number": ANN})],
        [("add", {"full_name": "Ann Amesbury", "first_name": "Annie", "phone_number": ANN})],
        [("remove", {"phone_number": ANN})],
    ]
    assert changes[2][0]["metadata"] == {"timestamp": "0"}
    assert (await bench.control("GET", f"{APP}/contacts")).body == {"contacts": []}


async def test_chats_of_the_app_show_everything(bench: Bench) -> None:
    await connect(bench)
    await bench.control("PUT", f"{APP}/contacts/{ANN}", {"full_name": "Ann Ames"})
    old = {"phone": ANN, "at_ms": 1_000_000, "text": "Long ago", "is_own": True}
    await bench.control("PUT", f"{APP}/history", {"messages": [old]})
    await bench.send_from_phone("Hi")
    await bench.send_text("by the API")
    await send_from_app(bench, "by the app")

    chat = await bench.control("GET", f"{APP}/chats/{ANN}")
    chats = await bench.control("GET", f"{APP}/chats")

    shown = [(message["sender"], message["text"]) for message in chat.body["messages"]]
    assert shown == [
        ("business_app", "Long ago"), ("user", "Hi"), ("api", "by the API"), ("business_app", "by the app"),
    ]  # fmt: skip
    assert [(each["phone"], each["name"], each["last"]["text"]) for each in chats.body["chats"]] == [
        (ANN, "Ann Ames", "by the app")
    ]
