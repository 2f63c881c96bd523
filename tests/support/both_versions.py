"""What a partner hears of one event in both versions, held against it whole."""

from typing import Any

from tests.support.builders import ANN, APP, is_event
from tests.support.callback_sink import Callback
from tests.support.pipeline import PipelineHarness
from tests.support.version_3_receiver import ThirdVersion, value_of
from waypost.simulator.phones.user_ids import encode_user_id


async def is_told_as_approved(
    pipeline: PipelineHarness, third: ThirdVersion, template_id: str, language_code: str = "en_US"
) -> None:
    """The first template's approval is told in both versions, each with its own id of it."""
    callback = await pipeline.wait_for_callback(is_event("template-event", id=template_id))
    element_name = callback["payload"]["elementName"]
    assert callback["payload"] == {
        "type": "status-update",
        "id": template_id,
        "status": "approved",
        "elementName": element_name,
        "languageCode": language_code,
    }
    [theirs] = (await pipeline.control("GET", "templates"))["templates"]
    value = value_of(await third.change("message_template_status_update"))
    assert value["event"] == "APPROVED"
    assert str(value["message_template_id"]) == theirs["id"]
    assert value["message_template_name"] == element_name
    assert value["message_template_language"] == language_code


async def is_told_as_delivered(
    pipeline: PipelineHarness, third: ThirdVersion, message_id: str, *, kind: str = "template"
) -> None:
    """Each state on the way is told once, in order, in both versions, and with both ids."""
    events = await pipeline.events_of(message_id, until="delivered")
    operator_id = await operator_id_of(pipeline, message_id)
    enqueued, *later = events[:3]  # it may have been read since
    assert enqueued == {
        "id": message_id,
        "type": "enqueued",
        "destination": ANN,
        "payload": {"whatsappMessageId": operator_id, "type": kind},
    }
    assert [event["type"] for event in later] == ["sent", "delivered"]
    for event in later:
        ids = (event["id"], event["gsId"], event["destination"])
        assert ids == (operator_id, message_id, ANN)
        assert list(event["payload"]) == ["ts"]
    for state in ("enqueued", "sent", "delivered"):
        status = await third.status(message_id, state)
        ids = (status["id"], status["gs_id"], status["recipient_id"])
        assert ids == (operator_id, message_id, ANN)


async def a_tap_comes_back(
    pipeline: PipelineHarness,
    third: ThirdVersion,
    message_id: str,
    index: int,
    *,
    text: str,
    postback_text: str | None = None,
    payload: str | None = None,
    **more: Any,
) -> None:
    """Tap a quick reply of a message of ours: both callbacks say which, to what, and what was behind it.

    Args:
        pipeline: the pipeline.
        third: the receiver of version 3.
        message_id: ours.
        index: of the button, in the message or in the card that `more` names.
        text: the button's label.
        postback_text: what was given for it.
        payload: what version 3 has behind the label; the postback text, or else the label.
        more: what else the control door takes: `card`, `not_requested`.
    """
    operator_id = await operator_id_of(pipeline, message_id)
    callback = await pipeline.tap(ANN, index, message_id=operator_id, **more)
    inner = {"text": text, "type": "button"}
    if postback_text is not None:
        inner["postbackText"] = postback_text
    behind = payload or postback_text or text
    is_in_version_2(callback, operator_id, message_id, "quick_reply", inner)
    await is_in_version_3(third, callback, operator_id, message_id, "button", {"payload": behind, "text": text})


async def an_answer_comes_back(
    pipeline: PipelineHarness,
    third: ThirdVersion,
    message_id: str,
    written: dict[str, Any],
    *,
    second: tuple[str, Any],
    third_says: tuple[str, Any],
) -> None:
    """Write in reply to a message of ours: both callbacks say what, and to what.

    Args:
        pipeline: the pipeline.
        third: the receiver of version 3.
        message_id: ours.
        written: what the control door takes of a message from a phone.
        second: type and inner payload in version 2.
        third_says: type and its member in version 3.
    """
    operator_id = await operator_id_of(pipeline, message_id)
    body = {"to": APP.phone_number, "context_id": operator_id, **written}
    told = await pipeline.control("POST", f"phones/{ANN}/messages", body)
    callback = await pipeline.wait_for_callback(is_event("message", id=told["wamid"]))
    is_in_version_2(callback, operator_id, message_id, *second)
    await is_in_version_3(third, callback, operator_id, message_id, *third_says)


def is_in_version_2(callback: Callback, operator_id: str, message_id: str, kind: str, inner: Any) -> None:
    """The whole body of version 2, in reply to a message of ours."""
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


async def is_in_version_3(
    third: ThirdVersion, callback: Callback, operator_id: str, message_id: str, kind: str, content: Any
) -> None:
    """The whole value of version 3 that belongs to a callback of version 2."""
    wamid = callback["payload"]["id"]
    is_the_value(await third.message(wamid), wamid, operator_id, message_id, kind, content)


def is_the_value(value: dict[str, Any], wamid: str, operator_id: str, message_id: str, kind: str, content: Any) -> None:
    """The whole value of version 3, in reply to a message of ours."""
    user_id = encode_user_id(ANN)
    assert value == {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": APP.phone_number, "phone_number_id": APP.phone_number_id},
        "contacts": [{"profile": {"name": "Phone 4567"}, "wa_id": ANN, "user_id": user_id}],
        "messages": [
            {
                "context": {
                    "from": APP.phone_number,
                    "id": operator_id,
                    "meta_msg_id": operator_id,
                    "gs_id": message_id,
                },
                "from": ANN,
                "from_user_id": user_id,
                "id": wamid,
                "timestamp": value["messages"][0]["timestamp"],
                "type": kind,
                kind: content,
            }
        ],
    }


async def operator_id_of(pipeline: PipelineHarness, message_id: str) -> str:
    """The operator's id of a message of ours, once it is delivered."""
    await pipeline.events_of(message_id, until="delivered")
    [delivery] = await pipeline.deliveries(message_id)
    return delivery["wamid"]
