"""Assertions on the complete callbacks that a partner receives of one event, in both versions."""

from typing import Any

from tests.support.builders import ANN, APP, is_event
from tests.support.callback_sink import Callback
from tests.support.pipeline import PipelineHarness
from tests.support.version_3_receiver import Version3Receiver, value_of


async def assert_approval_callbacks(
    pipeline: PipelineHarness, third: Version3Receiver, template_id: str, language_code: str = "en_US"
) -> None:
    """Assert that the first template's approval is sent in both versions, each with its own template id."""
    callback = await pipeline.wait_for_callback(is_event("template-event", id=template_id))
    element_name = callback["payload"]["elementName"]
    assert callback["payload"] == {
        "type": "status-update",
        "id": template_id,
        "status": "approved",
        "elementName": element_name,
        "languageCode": language_code,
    }
    [operator_template] = (await pipeline.control("GET", "templates"))["templates"]
    value = value_of(await third.change("message_template_status_update"))
    assert value["event"] == "APPROVED"
    assert str(value["message_template_id"]) == operator_template["id"]
    assert value["message_template_name"] == element_name
    assert value["message_template_language"] == language_code


async def assert_delivery_callbacks(
    pipeline: PipelineHarness,
    third: Version3Receiver,
    message_id: str,
    *,
    kind: str = "template",
    states: tuple[str, ...] = ("enqueued", "sent", "delivered"),
) -> None:
    """Assert that each of these states is sent once, in order, in both versions, with both ids."""
    events = await pipeline.events_of(message_id, until=states[-1])
    operator_id = await operator_id_of(pipeline, message_id, until=states[-1])
    enqueued, *later = events[: len(states)]  # `read` may follow
    assert enqueued == {
        "id": message_id,
        "type": "enqueued",
        "destination": ANN,
        "payload": {"whatsappMessageId": operator_id, "type": kind},
    }
    assert [event["type"] for event in later] == list(states[1:])
    for event in later:
        ids = (event["id"], event["gsId"], event["destination"])
        assert ids == (operator_id, message_id, ANN)
        assert list(event["payload"]) == ["ts"]
    for state in states:
        status = await third.status(message_id, state)
        ids = (status["id"], status["gs_id"], status["recipient_id"])
        assert ids == (operator_id, message_id, ANN)


async def assert_tap_callbacks(
    pipeline: PipelineHarness,
    third: Version3Receiver,
    message_id: str,
    index: int,
    *,
    text: str,
    postback_text: str | None = None,
    payload: str | None = None,
    **more: Any,
) -> None:
    """Tap a quick reply of our message, and assert the callbacks of both versions.

    Args:
        pipeline: the pipeline.
        third: the receiver of version 3.
        message_id: our id.
        index: of the button, in the message or in the card that `more` names.
        text: the button's label.
        postback_text: sent with the button.
        payload: the button's payload in version 3; by default the postback text, or else the label.
        more: further fields of the simulator control API: `card`, `not_requested`.
    """
    operator_id = await operator_id_of(pipeline, message_id)
    callback = await pipeline.tap(ANN, index, message_id=operator_id, **more)
    inner = {"text": text, "type": "button"}
    if postback_text is not None:
        inner["postbackText"] = postback_text
    button_payload = payload or postback_text or text
    assert_version_2_callback(callback, operator_id, message_id, "quick_reply", inner)
    await assert_version_3_callback(
        third, callback, operator_id, message_id, "button", {"payload": button_payload, "text": text}
    )


async def assert_reply_callbacks(
    pipeline: PipelineHarness,
    third: Version3Receiver,
    message_id: str,
    written: dict[str, Any],
    *,
    second: tuple[str, Any],
    version_3_content: tuple[str, Any],
) -> None:
    """Send a phone's reply to our message, and assert the callbacks of both versions.

    Args:
        pipeline: the pipeline.
        third: the receiver of version 3.
        message_id: our id.
        written: the phone's message, as the simulator control API accepts it.
        second: type and inner payload in version 2.
        third_says: type and its member in version 3.
    """
    operator_id = await operator_id_of(pipeline, message_id)
    body = {"to": APP.phone_number, "context_id": operator_id, **written}
    created = await pipeline.control("POST", f"phones/{ANN}/messages", body)
    callback = await pipeline.wait_for_callback(is_event("message", id=created["wamid"]))
    assert_version_2_callback(callback, operator_id, message_id, *second)
    await assert_version_3_callback(third, callback, operator_id, message_id, *version_3_content)


def assert_version_2_callback(callback: Callback, operator_id: str, message_id: str, kind: str, inner: Any) -> None:
    """Assert the complete body of version 2, in reply to our message."""
    assert callback == {
        "app": APP.name,
        "phone": APP.phone_number,
        "timestamp": callback["timestamp"],
        "version": 2,
        "type": "message",
        "payload": {
            "id": callback["payload"]["id"],
            "source": ANN,
            "type": kind,
            "payload": inner,
            "sender": {"phone": ANN, "name": "Phone 4567", "country_code": "1", "dial_code": "5551234567"},
            "context": {"id": operator_id, "gsId": message_id, "forwarded": False, "frequently_forwarded": False},
        },
    }


async def assert_version_3_callback(
    third: Version3Receiver, callback: Callback, operator_id: str, message_id: str, kind: str, content: Any
) -> None:
    """Assert the complete value of version 3 that matches a callback of version 2."""
    wamid = callback["payload"]["id"]
    assert_version_3_value(await third.message(wamid), wamid, operator_id, message_id, kind, content)


def assert_version_3_value(
    value: dict[str, Any], wamid: str, operator_id: str, message_id: str, kind: str, content: Any
) -> None:
    """Assert the complete value of version 3, in reply to our message."""
    assert value == {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": APP.phone_number, "phone_number_id": APP.phone_number_id},
        "contacts": [{"profile": {"name": "Phone 4567"}, "wa_id": ANN}],
        "messages": [
            {
                "context": {
                    "from": APP.phone_number,
                    "id": operator_id,
                    "meta_msg_id": operator_id,
                    "gs_id": message_id,
                },
                "from": ANN,
                "id": wamid,
                "timestamp": value["messages"][0]["timestamp"],
                "type": kind,
                kind: content,
            }
        ],
    }


async def operator_id_of(pipeline: PipelineHarness, message_id: str, *, until: str = "delivered") -> str:
    """Return the operator's id of our message, once it has a status."""
    await pipeline.events_of(message_id, until=until)
    [delivery] = await pipeline.deliveries(message_id)
    return delivery["wamid"]
