"""Every webhook field reaches a subscriber of version 3: documented, made up, or malformed."""

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.support.builders import ACCOUNT, ANN, APP, is_event
from tests.support.operator_webhook import post_change, post_changes, post_messages_change
from tests.support.pipeline import PipelineHarness
from tests.support.version_3_receiver import Version3Receiver, field_of, open_version_3_receiver, value_of
from waypost.wire.callbacks.kinds import CHANGE_KINDS, PASSTHROUGH_KINDS, change_kind

METADATA: Final = {"display_phone_number": APP.phone_number, "phone_number_id": APP.phone_number_id}
UNKNOWN_FIELDS: Final = ("holograms", "smb_message_echoes_v2", "x", "Field With Spaces", "f" * 300)
FIELDS_OF_TESTERS: Final = {  # fields that testers had found to be dropped
    "smb_message_echoes", "history", "smb_app_state_sync", "calls", "group_lifecycle_update",
    "group_participants_update", "group_settings_update", "group_status_update",
    "account_settings_update", "template_correct_category_detection", "payment_configuration_update",
    "tracking_events", "security",
}  # fmt: skip
UNKNOWN_TYPES: Final = ("hologram", "unsupported", "edit", "revoke", "button_v2", "")


def make_value(field: str) -> dict[str, Any]:
    """Return a value for a field, nested and with non-ASCII text."""
    inner = [{"id": f"n-{field[:40]}", "text": "Grüße 👋", "amount": 12.5, "flags": [True, None, 0]}]
    if field.startswith(("account", "business", "partner", "message_template", "template")):
        return {"event": "SOMETHING", "things": inner}
    return {"messaging_product": "whatsapp", "metadata": METADATA, field: inner}


async def wait_for_bodies(receiver_v3: Version3Receiver, count: int) -> list[Any]:
    """Return the received bodies, once there are so many."""
    return await receiver_v3.sink.wait_for(lambda _: True, count=count)


def test_every_field_that_testers_found_to_be_dropped_is_a_row() -> None:
    assert set(PASSTHROUGH_KINDS) >= FIELDS_OF_TESTERS
    assert all(row.field == field and row.source for field, row in CHANGE_KINDS.items())


async def test_no_field_is_dropped(pipeline: PipelineHarness) -> None:
    """Every row of the table and unknown fields are called back unchanged."""
    fields = [*CHANGE_KINDS, *UNKNOWN_FIELDS]
    async with open_version_3_receiver(pipeline, "ALL") as receiver_v3:
        await post_changes(pipeline, [(field, make_value(field)) for field in fields], time=1760000000)
        bodies = await wait_for_bodies(receiver_v3, len(fields))

    dropped = set(fields) - {field_of(body) for body in bodies}
    assert dropped == set()
    assert len(bodies) == len(fields)
    for body in bodies:
        assert value_of(body) == make_value(field_of(body))
        assert body["gs_app_id"] == APP.id
        assert (body["entry"][0]["id"], body["entry"][0]["time"]) == (ACCOUNT.id, 1760000000)


async def test_each_field_is_called_back_under_its_mode_and_no_other(pipeline: PipelineHarness) -> None:
    fields = (*CHANGE_KINDS, *UNKNOWN_FIELDS)
    for mode in sorted({row.mode for row in CHANGE_KINDS.values()} | {"OTHERS"}):
        expected = {field for field in fields if change_kind(field).mode == mode}
        async with open_version_3_receiver(pipeline, mode) as receiver_v3:
            await post_changes(pipeline, [(field, {**make_value(field), "mode": mode}) for field in fields])
            bodies = await wait_for_bodies(receiver_v3, len(expected))
        assert sorted(map(field_of, bodies)) == sorted(expected)
        await pipeline.unsubscribe("three")


@pytest.mark.parametrize("value", [[{"a": 1}], "words", 7, None, True, {}], ids=json.dumps)
async def test_value_that_is_no_object_is_called_back_unchanged(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver, value: Any
) -> None:
    await post_change(pipeline, "holograms", value)

    assert value_of(await receiver_v3.change("holograms")) == value


@pytest.mark.parametrize("field", ["account_update", "user_preferences", "message_template_status_update"])
async def test_known_field_with_a_value_that_is_no_object_is_not_dropped(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver, field: str
) -> None:
    await post_change(pipeline, field, ["odd"])
    await post_change(pipeline, field, {"event": "SOMETHING"})

    bodies = await wait_for_bodies(receiver_v3, 2)
    assert len(bodies) == 2


@pytest.mark.parametrize("type", UNKNOWN_TYPES)
async def test_message_of_an_unknown_type_is_called_back_unchanged(pipeline: PipelineHarness, type: str) -> None:
    message: dict[str, Any] = {"from": ANN, "id": "wamid.odd", "timestamp": "1760000000", "type": type, "odd": [1]}
    if type:
        message[type] = {"deep": {"er": "👋"}}
    async with open_version_3_receiver(pipeline, "OTHERS") as receiver_v3:
        await post_messages_change(pipeline, messages=[message])
        value = await receiver_v3.message("wamid.odd")

    assert value["messages"] == [message]
    assert value["metadata"] == METADATA
    assert not [callback for callback in pipeline.callbacks if is_event("message")(callback)]


@pytest.mark.parametrize(
    "more",
    [
        {"user_actions": [{"action_type": "marketing_messages_link_click", "timestamp": "1760000000"}]},
        {"errors": [{"code": 131031, "title": "Account locked"}]},
        {"holograms": [{"id": "1"}]},
    ],
    ids=lambda more: next(iter(more)),
)  # fmt: skip
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a message"])
async def test_member_beside_messages_is_called_back_unchanged(
    pipeline: PipelineHarness, more: Mapping[str, Any], beside: bool
) -> None:
    message = {"from": ANN, "id": "wamid.b", "timestamp": "1760000000", "type": "text", "text": {"body": "Hi"}}
    async with open_version_3_receiver(pipeline, "OTHERS") as receiver_v3:
        await post_messages_change(pipeline, **more, **({"messages": [message]} if beside else {}))
        [name] = more
        value = await receiver_v3.value(name)

    assert value == {"messaging_product": "whatsapp", "metadata": METADATA, **more}
    if beside:
        await pipeline.wait_for_callback(is_event("message", id="wamid.b"))


@pytest.mark.parametrize("field", ["calls", "standby", "holograms"])
async def test_messages_and_statuses_of_another_field_are_not_applied(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver, field: str
) -> None:
    value = {
        "messaging_product": "whatsapp",
        "metadata": METADATA,
        "messages": [{"from": ANN, "id": "wamid.theirs", "timestamp": "1760000000", "type": "text", "text": {"body": "Hi"}}],
        "statuses": [{"id": "wacid.1", "type": "call", "status": "RINGING", "timestamp": "1760000000"}],
    }  # fmt: skip

    await post_change(pipeline, field, value)
    body = await receiver_v3.change(field)

    assert value_of(body) == value
    assert not [callback for callback in pipeline.callbacks if is_event("message")(callback)]


async def test_field_of_a_number_that_no_app_has_is_not_called_back(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    unknown_number = {"metadata": {"phone_number_id": "2000000000000099"}}

    await post_change(pipeline, "history", {**unknown_number, "history": [{"threads": []}]})
    await post_change(pipeline, "account_settings_update", {"phone_number_settings": {"phone_number_id": "2000000000000099"}})  # fmt: skip
    await post_change(pipeline, "holograms", {"metadata": METADATA})

    await receiver_v3.change("holograms")
    assert [field_of(body) for body in receiver_v3.sink.callbacks] == ["holograms"]


async def test_account_named_only_in_the_value_gets_the_callback(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    value = {"event": "PARTNER_ADDED", "waba_info": {"waba_id": ACCOUNT.id}}

    await post_change(pipeline, "account_update", value, id="9000000000000001")

    assert value_of(await receiver_v3.change("account_update")) == value


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("message_template_status_update", {"event": "PAUSED", "reason": "NONE"}),
        ("message_template_status_update", {"event": "HOLOGRAPHIC"}),
        ("message_template_quality_update", {"previous_quality_score": "GREEN", "new_quality_score": "RED"}),
        ("message_template_quality_update", {"new_quality_score": "PURPLE"}),
        ("template_category_update", {"previous_category": "UTILITY", "new_category": "MARKETING"}),
        ("template_category_update", {"new_category": "HOLOGRAPHIC"}),
        ("message_template_components_update", {"message_template_element": "Hi"}),
        ("template_correct_category_detection", {"category": "UTILITY", "correct_category": "MARKETING"}),
    ],
    ids=str,
)  # fmt: skip
async def test_change_of_a_template_has_our_template_id_and_its_time(
    pipeline: PipelineHarness, field: str, more: dict[str, Any]
) -> None:
    template_id = await pipeline.approved_template()
    [operator_template] = (await pipeline.control("GET", "templates"))["templates"]
    value = {
        "message_template_id": int(operator_template["id"]),
        "message_template_name": operator_template["name"],
        "message_template_language": operator_template["language"],
        **more,
    }
    at_s = pipeline.clock.now_ms() // 1000 + 60
    async with open_version_3_receiver(pipeline, "TEMPLATE") as receiver_v3:
        await post_change(pipeline, field, value, time=at_s)
        body = await receiver_v3.change(field)

    assert value_of(body) == value | {"gs_template_id": template_id}
    assert body["entry"][0]["time"] == at_s


async def test_review_by_the_simulator_has_our_template_id_in_version_3(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    template_id = await pipeline.approved_template()

    body = await receiver_v3.change("message_template_status_update")

    assert value_of(body)["gs_template_id"] == template_id
    assert type(body["entry"][0]["time"]) is int


async def test_change_of_an_unknown_template_is_called_back_unchanged(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    value = {
        "event": "APPROVED", "message_template_id": 77, "message_template_name": "not_ours",
        "message_template_language": "en_US", "reason": "NONE",
    }  # fmt: skip

    await post_change(pipeline, "message_template_status_update", value, time=1760000000)

    assert value_of(await receiver_v3.change("message_template_status_update")) == value
