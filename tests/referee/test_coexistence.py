"""The public client reads what a number shared with the business app sends: echoes, edits, revokes and its end."""

# The client does not declare its exports, and leaves parts of its types unknown.
# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportArgumentType=false

import logging
from collections.abc import Iterator

import pytest
from pywa_async import WhatsApp, handlers, types

from tests.referee.public_client import ClientHarness
from tests.simulator.conftest import ANN, ANN_USER_ID, NUMBER_ID, WABA

APP = f"numbers/{NUMBER_ID}/business-app"


@pytest.fixture(autouse=True)
def no_webhook_is_unparsed(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail if the client logs that it could not parse an update."""
    caplog.set_level(logging.WARNING, logger="pywa")
    yield
    unparsed = [record.getMessage() for record in caplog.records if "construct" in record.getMessage()]
    assert not unparsed


async def test_messages_of_the_app_are_outgoing(harness: ClientHarness) -> None:
    await harness.control(f"{APP}/connect")
    wamid = (await harness.control(f"{APP}/messages", {"to": ANN, "text": "At five"}))["wamid"]
    await harness.control(f"{APP}/messages/{wamid}/edit", {"text": "At six"})
    await harness.control(f"{APP}/messages/{wamid}/revoke")

    sent = await harness.wait_for_update(types.OutgoingMessage)
    edited = await harness.wait_for_update(types.OutgoingEditedMessage)
    revoked = await harness.wait_for_update(types.OutgoingDeletedMessage)
    assert (sent.id, sent.text, sent.waba_id) == (wamid, "At five", WABA)
    assert (sent.to_user.wa_id, sent.to_user.bsuid) == (ANN, ANN_USER_ID)
    assert (edited.original_message_id, edited.message.text) == (wamid, "At six")
    assert revoked.original_message_id == wamid
    assert not any(type(update) is types.Message for update in harness.updates)


async def test_changes_of_a_user_are_edited_and_deleted(harness: ClientHarness) -> None:
    await harness.control(f"{APP}/connect")
    wamid = await harness.send_from_phone(text="Two, please")
    await harness.control(f"phones/{ANN}/messages/{wamid}/edit", {"text": "Three, please"})
    await harness.control(f"phones/{ANN}/messages/{wamid}/revoke")

    deleted = await harness.wait_for_update(types.DeletedMessage)
    edited = await harness.wait_for_update(types.EditedMessage)
    assert (edited.original_message_id, edited.message.text, edited.from_user.wa_id) == (wamid, "Three, please", ANN)
    assert (deleted.original_message_id, deleted.from_user.wa_id) == (wamid, ANN)


async def test_unavailable_message_has_its_error(harness: ClientHarness) -> None:
    await harness.control(f"{APP}/connect")
    await harness.send_from_phone(type="unsupported", unsupported={"code": 131060})
    message = await harness.wait_for_update(types.Message)
    assert message.error is not None
    assert message.error.code == 131060


async def test_end_of_the_connection_has_its_reason(harness: ClientHarness) -> None:
    await harness.control(f"{APP}/connect")
    await harness.control(f"{APP}/disconnect", {"reason": "USER_RE_REGISTERED"})

    removed = await harness.wait_for_update(types.AccountUpdate, lambda update: update.disconnection_info is not None)
    assert (removed.id, removed.event.value) == (WABA, "PARTNER_REMOVED")
    assert removed.disconnection_info is not None
    assert removed.disconnection_info.reason.value == "USER_RE_REGISTERED"
    assert removed.disconnection_info.initiated_by.value == "USER"
    offboarded = await harness.wait_for_update(
        types.AccountUpdate, lambda update: update.event.value == "ACCOUNT_OFFBOARDED"
    )
    assert offboarded.id == WABA


async def test_bot_replies_to_what_follows_a_history_only(harness: ClientHarness) -> None:
    """The client has no type for history: it comes raw, each message once or twice, and none as a message."""

    async def reply(_client: WhatsApp, message: types.Message) -> None:
        await message.reply_text("Hello!")

    harness.client.add_handlers(handlers.MessageHandler(reply))
    await harness.control(f"{APP}/connect")
    await harness.control(f"{APP}/history/generate", {"messages": 10_000, "threads": 300})
    options = {"order": "shuffled", "duplicates": 0.1, "chunk_messages": 5000}
    await harness.control(APP, {"sync": options}, "PUT")
    request = {"messaging_product": "whatsapp", "sync_type": "history"}
    accepted = await harness.bench.graph("POST", f"{NUMBER_ID}/smb_app_data", json=request)
    await harness.bench.wait_until_drained()
    wamid = await harness.send_from_phone(text="Hi")
    message = await harness.wait_for_update(types.Message)
    await harness.wait_for_webhook(lambda value: "statuses" in value)

    received = [
        item["id"]
        for update in harness.raw
        for part in update.value.get("history", [])
        for thread in part["threads"]
        for item in thread["messages"]
    ]
    files = [update for update in harness.raw if update.field == "history" and "messages" in update.value]
    sent = [request for request in harness.transport.requests if request.endswith("/messages")]
    chats = await harness.control(f"chats?phone_number_id={NUMBER_ID}", method="GET")
    assert accepted.status == 200
    assert (len(received), len(set(received))) == (11_000, 10_000)
    assert files
    assert [update for update in harness.updates if isinstance(update, types.Message)] == [message]
    assert (message.id, len(sent)) == (wamid, 1)
    assert [phone["phone"] for phone in chats["phones"]] == [ANN]  # no other has a chat, nor a window
