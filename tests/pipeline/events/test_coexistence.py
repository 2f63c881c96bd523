"""A number that its WhatsApp Business app and the API share, from the app to the partner's receivers and bots."""

import base64
from collections import Counter
from dataclasses import replace
from typing import Any, Final

import pytest
from sqlalchemy import Connection, func, select

from tests.support.builders import ANN, APP, OPERATOR, is_event
from tests.support.callback_sink import Callback
from tests.support.media_samples import sample
from tests.support.operator_webhook import post_change
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from tests.support.version_3_receiver import field_of, open_version_3_receiver, value_of
from waypost.domain.app import App
from waypost.store.apps.apps import change_app
from waypost.store.tables import messages, recipients

BUSINESS_APP: Final = f"numbers/{APP.phone_number_id}/business-app"


async def connect(pipeline: PipelineHarness, **members: Any) -> None:
    await pipeline.control("POST", f"{BUSINESS_APP}/connect", members)


async def request_sync(pipeline: PipelineHarness, sync_type: str) -> int:
    response = await pipeline.send_request(
        "POST", f"/partner/app/{APP.id}/coex/sync", {"syncType": sync_type}, {"Authorization": pipeline.app_token}
    )
    return response.status


async def send_from_app(pipeline: PipelineHarness, text: str = "Your order is ready.") -> str:
    return (await pipeline.control("POST", f"{BUSINESS_APP}/messages", {"to": ANN, "text": text}))["wamid"]


def _count_people_and_messages(connection: Connection) -> tuple[int, int, int]:
    """Return how many recipients there are, how many with a window, and how many messages."""
    counts = [
        connection.execute(statement).scalar_one()
        for statement in (
            select(func.count()).select_from(recipients),
            select(func.count()).select_from(recipients).where(recipients.c.window_until_ms.is_not(None)),
            select(func.count()).select_from(messages),
        )
    ]
    return counts[0], counts[1], counts[2]


def _messages_of(callback: Callback) -> list[dict[str, Any]]:
    return [
        message
        for part in value_of(callback).get("history", [])
        for thread in part["threads"]
        for message in thread["messages"]
    ]


@pytest.mark.content_only
@pytest.mark.holds("event-71", "event-72")
async def test_ten_thousand_messages_of_history_are_no_inbound_messages(pipeline: PipelineHarness) -> None:
    """Shuffled and in part sent twice: each arrives, opens no window, creates no recipient and triggers no reply."""
    await connect(pipeline)
    await pipeline.control("POST", f"{BUSINESS_APP}/history/generate", {"messages": 10_000, "threads": 300})
    options = {"order": "shuffled", "duplicates": 0.1, "chunk_messages": 5000}
    await pipeline.control("PUT", BUSINESS_APP, {"sync": options})
    before = await pipeline.waypost.database.read(_count_people_and_messages)

    async with open_version_3_receiver(pipeline) as receiver:
        statuses = [await request_sync(pipeline, name) for name in ("smb_app_state_sync", "history", "history")]

        def is_complete() -> bool:
            received = {item["id"] for callback in receiver.sink.callbacks for item in _messages_of(callback)}
            return len(received) == 10_000

        await receiver.sink.wait_until(is_complete)
        wamid = (await pipeline.reply(ANN, "Hi"))["payload"]["id"]  # what follows the history has all of it behind it
        await receiver.message(wamid)
        callbacks = receiver.sink.callbacks

    received = Counter(item["id"] for callback in callbacks for item in _messages_of(callback))
    contacts = [value_of(callback)["state_sync"] for callback in callbacks if "state_sync" in value_of(callback)]
    fields = Counter(field_of(callback) for callback in callbacks)
    after = await pipeline.waypost.database.read(_count_people_and_messages)
    assert statuses == [200, 200, 400]
    assert (len(received), sum(received.values())) == (10_000, 11_000)
    assert sum(map(len, contacts)) == 300
    assert fields["messages"] == 1
    assert [callback["payload"]["id"] for callback in pipeline.callbacks if callback["type"] == "message"] == [wamid]
    assert after == (before[0] + 1, before[1] + 1, before[2])
    assert {callback["gs_app_id"] for callback in callbacks} == {APP.id}


@pytest.mark.content_only
async def test_file_of_an_old_message_is_no_inbound_message(pipeline: PipelineHarness) -> None:
    """Its webhook has the field history and a list `messages`: it is called back as received, without a URL."""
    await connect(pipeline)
    shown = await pipeline.control("GET", BUSINESS_APP)
    old = {"phone": ANN, "at_ms": shown["onboarded_ms"] - 1000, "type": "image"}
    await pipeline.control("PUT", f"{BUSINESS_APP}/history", {"messages": [old]})

    async with open_version_3_receiver(pipeline, "COEXISTENCE") as receiver:
        assert await request_sync(pipeline, "history") == 200
        value = await receiver.value("messages", type="image")

    assert "url" not in value["messages"][0]["image"]
    assert not any(callback["type"] == "message" for callback in pipeline.callbacks)


@pytest.mark.content_only
@pytest.mark.holds("event-73")
async def test_echo_opens_no_window_and_is_no_inbound_message(pipeline: PipelineHarness) -> None:
    await connect(pipeline)
    before = await pipeline.waypost.database.read(_count_people_and_messages)

    async with open_version_3_receiver(pipeline, "COEXISTENCE") as receiver:
        wamid = await send_from_app(pipeline)
        await pipeline.control("POST", f"{BUSINESS_APP}/messages/{wamid}/edit", {"text": "It is ready."})
        await pipeline.control("POST", f"{BUSINESS_APP}/messages/{wamid}/revoke", {})
        revoked = await receiver.value("message_echoes", type="revoke")
        edited = await receiver.value("message_echoes", type="edit")
        sent = await receiver.value("message_echoes", id=wamid)

    assert sent["message_echoes"][0]["text"] == {"body": "Your order is ready."}
    assert edited["message_echoes"][0]["edit"]["original_message_id"] == wamid
    assert revoked["message_echoes"][0]["revoke"] == {"original_message_id": wamid}
    assert await pipeline.waypost.database.read(_count_people_and_messages) == before


@pytest.mark.content_only
async def test_edit_and_revoke_of_a_customer_are_called_back_as_received(pipeline: PipelineHarness) -> None:
    """In version 3 and the mode MESSAGE; a change extends no window."""
    await connect(pipeline)
    async with open_version_3_receiver(pipeline, "MESSAGE") as receiver:
        wamid = (await pipeline.reply(ANN, "Two, please"))["payload"]["id"]
        window_ms = await pipeline.waypost.database.read(_window_until_ms)
        await pipeline.control("POST", f"phones/{ANN}/messages/{wamid}/edit", {"text": "Three, please"})
        await pipeline.control("POST", f"phones/{ANN}/messages/{wamid}/revoke", {})
        revoked = await receiver.value("messages", type="revoke")
        edited = await receiver.value("messages", type="edit")

    [edit] = edited["messages"]
    assert edit["edit"] == {
        "original_message_id": wamid,
        "message": {"type": "text", "text": {"body": "Three, please"}},
    }
    assert edited["contacts"][0]["wa_id"] == ANN
    assert revoked["messages"][0]["revoke"] == {"original_message_id": wamid}
    assert await pipeline.waypost.database.read(_window_until_ms) == window_ms


def _window_until_ms(connection: Connection) -> int | None:
    return connection.execute(select(recipients.c.window_until_ms)).scalar_one()


@pytest.mark.content_only
async def test_end_of_a_connection_is_called_back_and_sending_fails(pipeline: PipelineHarness) -> None:
    await connect(pipeline)
    await pipeline.open_window()
    async with open_version_3_receiver(pipeline, "ACCOUNT") as receiver:
        await pipeline.control("POST", f"{BUSINESS_APP}/disconnect", {"reason": "USER_RE_REGISTERED"})
        await receiver.sink.wait_for(lambda callback: field_of(callback) == "account_update", count=2)
        values = [value_of(callback) for callback in receiver.sink.callbacks]
    message_id = await pipeline.send_text("Hello")
    failed = await pipeline.wait_for_callback(is_event("message-event", type="failed", id=message_id))

    assert [value["event"] for value in values] == ["ACCOUNT_OFFBOARDED", "PARTNER_REMOVED"]
    assert values[1]["disconnection_info"] == {"reason": "USER_RE_REGISTERED", "initiated_by": "USER"}
    assert failed["payload"]["payload"]["code"] == 133010


async def read_pace(pipeline: PipelineHarness) -> int | None:
    """Return the pace at which messages of the app are sent."""
    route = await pipeline.waypost.directory.app_route(APP.id)
    assert route is not None
    return route.app.throughput


@pytest.mark.parametrize("sign", ["the partner's sync", "an echo", "a contact"])
async def test_pace_of_a_live_number_follows_its_connection_to_the_app(pipeline: PipelineHarness, sign: str) -> None:
    """20 a second from the first sign that it is shared until it is disconnected, whatever its own pace is."""

    def quicken(known: App) -> App:
        return replace(known, per_second=500)

    app = await pipeline.waypost.database.write(change_app, APP.id, quicken)
    assert app is not None
    paces = [await read_pace(pipeline)]

    await connect(pipeline)
    if sign == "an echo":
        await send_from_app(pipeline)
    else:
        await request_sync(pipeline, "smb_app_state_sync")
    if sign == "a contact":
        await pipeline.control("PUT", f"{BUSINESS_APP}/contacts/{ANN}", {"full_name": "Ann Example"})
    paces.append(await poll_until(lambda: read_pace(pipeline), lambda pace: pace != 500))
    await pipeline.control("POST", f"{BUSINESS_APP}/disconnect", {})
    paces.append(await poll_until(lambda: read_pace(pipeline), lambda pace: pace != 20))

    assert paces == [500, 20, 500]  # Source: operator's facts 8


@pytest.mark.content_only
async def test_registered_number_has_its_own_pace_again(pipeline: PipelineHarness) -> None:
    """Also if the service missed the webhook about the disconnection, or a late one of the app came after it."""
    await connect(pipeline)
    await request_sync(pipeline, "history")
    shared = await read_pace(pipeline)
    await pipeline.control("POST", f"{BUSINESS_APP}/disconnect", {})
    await poll_until(lambda: read_pace(pipeline), lambda pace: pace is None)
    await post_change(pipeline, "smb_message_echoes", {"metadata": {"phone_number_id": APP.phone_number_id}})
    late = await read_pace(pipeline)

    path = f"/partner/app/{APP.id}/onboarding/register"
    registered = await pipeline.send_request("POST", path, {}, {"Authorization": pipeline.app_token})

    assert (shared, late, registered.status, await read_pace(pipeline)) == (20, 20, 200, None)
    async with pipeline.http.get(
        f"{pipeline.operator_url}/v23.0/{APP.phone_number_id}?fields=is_on_biz_app",
        headers={"Authorization": f"Bearer {OPERATOR['token']}"},
    ) as response:
        assert (await response.json())["is_on_biz_app"] is False


@pytest.mark.content_only
@pytest.mark.parametrize("is_bare", [False, True])
async def test_declined_history_is_called_back(pipeline: PipelineHarness, is_bare: bool) -> None:
    """With and without the envelope, which the documented sample lacks."""
    await connect(pipeline, shares_history=False)
    await pipeline.control("PUT", BUSINESS_APP, {"sync": {"declines_without_envelope": is_bare}})
    async with open_version_3_receiver(pipeline, "COEXISTENCE") as receiver:
        assert await request_sync(pipeline, "history") == 200
        declined = await receiver.change("history")

    assert value_of(declined)["history"][0]["errors"][0]["code"] == 2593109


@pytest.mark.content_only
@pytest.mark.holds("event-72")
async def test_changes_of_the_address_book_are_called_back_once_the_contacts_were_requested(
    pipeline: PipelineHarness,
) -> None:
    await connect(pipeline)
    contact = f"{BUSINESS_APP}/contacts/{ANN}"
    async with open_version_3_receiver(pipeline, "COEXISTENCE") as receiver:
        await pipeline.control("PUT", contact, {"full_name": "Ann Ames"})  # before the request: part of the set
        assert await request_sync(pipeline, "smb_app_state_sync") == 200
        await receiver.value("state_sync", action="add")
        await pipeline.control("PUT", contact, {"full_name": "Ann Archer"})
        await pipeline.control("DELETE", contact)
        removed = await receiver.value("state_sync", action="remove")
        changes = [value_of(callback)["state_sync"][0] for callback in receiver.sink.callbacks]

    assert [(change["action"], change["contact"].get("full_name")) for change in changes] == [
        ("add", "Ann Ames"),
        ("add", "Ann Archer"),
        ("remove", None),
    ]
    assert removed["state_sync"][0]["contact"] == {"phone_number": ANN}
    assert removed["state_sync"][0]["metadata"] == {"timestamp": "0"}


@pytest.mark.content_only
@pytest.mark.holds("event-73")
async def test_echo_of_a_file_has_an_id_and_no_url(pipeline: PipelineHarness) -> None:
    await connect(pipeline)
    media = {"content": base64.b64encode(sample("png")).decode(), "mime_type": "image/png", "caption": "The new oven"}
    async with open_version_3_receiver(pipeline, "COEXISTENCE") as receiver:
        await pipeline.control("POST", f"{BUSINESS_APP}/messages", {"to": ANN, "type": "image", "media": media})
        value = await receiver.value("message_echoes", type="image")

    image = value["message_echoes"][0]["image"]
    path = f"/partner/app/{APP.id}/media/{image['id']}"
    file = await pipeline.send_request("GET", path, None, {"Authorization": pipeline.app_token})
    assert (image["caption"], image["mime_type"], "url" in image) == ("The new oven", "image/png", False)
    assert file.status == 200


@pytest.mark.content_only
async def test_nothing_of_the_app_is_called_back_in_version_2(pipeline: PipelineHarness) -> None:
    """No page documents a shape of version 2 for it; what a customer writes comes as ever."""
    await connect(pipeline)
    await pipeline.control("POST", f"{BUSINESS_APP}/history/generate", {"messages": 50, "threads": 5})
    before = len(pipeline.callbacks)
    async with open_version_3_receiver(pipeline) as receiver:
        wamid = await send_from_app(pipeline)
        await pipeline.control("POST", f"{BUSINESS_APP}/messages/{wamid}/edit", {"text": "It is ready."})
        assert [await request_sync(pipeline, name) for name in ("smb_app_state_sync", "history")] == [200, 200]
        reply = (await pipeline.reply(ANN, "Thanks"))["payload"]["id"]
        await receiver.message(reply)
        fields = {field_of(callback) for callback in receiver.sink.callbacks}

    assert fields == {"smb_message_echoes", "smb_app_state_sync", "history", "messages"}
    assert [callback["payload"]["id"] for callback in pipeline.callbacks[before:]] == [reply]
