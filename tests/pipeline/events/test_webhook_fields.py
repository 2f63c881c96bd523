"""Every webhook field of the operator's reaches a subscriber of version 3: documented, made up, or broken."""

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.support.builders import ACCOUNT, ANN, APP, is_event
from tests.support.operator_webhook import tell, tell_all, tell_of_messages
from tests.support.pipeline import PipelineHarness
from tests.support.version_3_receiver import ThirdVersion, field_of, listening, value_of
from waypost.wire.callbacks.kinds import CHANGE_KINDS, PASSTHROUGH_KINDS, change_kind

METADATA: Final = {"display_phone_number": APP.phone_number, "phone_number_id": APP.phone_number_id}
MADE_UP: Final = ("holograms", "smb_message_echoes_v2", "x", "Field With Spaces", "f" * 300)
STATED_BY_TESTERS: Final = {  # what was tried from outside, and swallowed
    "smb_message_echoes", "history", "smb_app_state_sync", "calls", "group_lifecycle_update",
    "group_participants_update", "group_settings_update", "group_status_update",
    "account_settings_update", "template_correct_category_detection", "payment_configuration_update",
    "tracking_events", "security",
}  # fmt: skip
STRANGE_TYPES: Final = ("hologram", "unsupported", "edit", "revoke", "request_welcome", "button_v2", "")


def value_for(field: str) -> dict[str, Any]:
    """Something to say under a field, nested and with text beyond ASCII."""
    inner = [{"id": f"n-{field[:40]}", "text": "Grüße 👋", "amount": 12.5, "flags": [True, None, 0]}]
    if field.startswith(("account", "business", "partner", "message_template", "template")):
        return {"event": "SOMETHING", "things": inner}
    return {"messaging_product": "whatsapp", "metadata": METADATA, field: inner}


async def told(third: ThirdVersion, count: int) -> list[Any]:
    """The bodies heard, once there are so many."""
    return await third.sink.wait_for(lambda _: True, count=count)


def test_every_field_that_testers_found_swallowed_is_a_row() -> None:
    assert set(PASSTHROUGH_KINDS) >= STATED_BY_TESTERS
    assert all(row.field == field and row.source for field, row in CHANGE_KINDS.items())


async def test_no_field_is_swallowed(pipeline: PipelineHarness) -> None:
    """Every row of the table, and fields that nobody has thought of yet: what came goes on as it came."""
    fields = [*CHANGE_KINDS, *MADE_UP]
    async with listening(pipeline, "ALL") as third:
        await tell_all(pipeline, [(one, value_for(one)) for one in fields], time=1760000000)
        bodies = await told(third, len(fields))

    swallowed = set(fields) - {field_of(body) for body in bodies}
    assert swallowed == set()
    assert len(bodies) == len(fields)
    for body in bodies:
        assert value_of(body) == value_for(field_of(body))
        assert body["gs_app_id"] == APP.id
        assert (body["entry"][0]["id"], body["entry"][0]["time"]) == (ACCOUNT.id, 1760000000)


async def test_each_field_comes_under_its_mode_and_under_no_other(pipeline: PipelineHarness) -> None:
    fields = (*CHANGE_KINDS, *MADE_UP)
    for mode in sorted({row.mode for row in CHANGE_KINDS.values()} | {"OTHERS"}):
        expected = {field for field in fields if change_kind(field).mode == mode}
        async with listening(pipeline, mode) as third:
            await tell_all(pipeline, [(one, {**value_for(one), "mode": mode}) for one in fields])
            bodies = await told(third, len(expected))
        assert sorted(map(field_of, bodies)) == sorted(expected)
        await pipeline.unsubscribe("three")


@pytest.mark.parametrize("value", [[{"a": 1}], "words", 7, None, True, {}], ids=json.dumps)
async def test_value_that_is_no_object_goes_on_as_it_came(
    pipeline: PipelineHarness, third: ThirdVersion, value: Any
) -> None:
    await tell(pipeline, "holograms", value)

    assert value_of(await third.change("holograms")) == value


@pytest.mark.parametrize("field", ["account_update", "user_preferences", "message_template_status_update"])
async def test_known_field_with_a_value_that_is_no_object_loses_nothing(
    pipeline: PipelineHarness, third: ThirdVersion, field: str
) -> None:
    await tell(pipeline, field, ["odd"])
    await tell(pipeline, field, {"event": "SOMETHING"})

    bodies = await told(third, 2)
    assert len(bodies) == 2


@pytest.mark.parametrize("type", STRANGE_TYPES)
async def test_message_of_a_type_that_nobody_knows_is_called_back_as_it_came(
    pipeline: PipelineHarness, type: str
) -> None:
    message: dict[str, Any] = {"from": ANN, "id": "wamid.odd", "timestamp": "1760000000", "type": type, "odd": [1]}
    if type:
        message[type] = {"deep": {"er": "👋"}}
    async with listening(pipeline, "OTHERS") as third:
        await tell_of_messages(pipeline, messages=[message])
        value = await third.message("wamid.odd")

    assert value["messages"] == [message]
    assert value["metadata"] == METADATA
    assert not [one for one in pipeline.callbacks if is_event("message")(one)]


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
async def test_what_stands_beside_messages_is_called_back_as_it_came(
    pipeline: PipelineHarness, more: Mapping[str, Any], beside: bool
) -> None:
    message = {"from": ANN, "id": "wamid.b", "timestamp": "1760000000", "type": "text", "text": {"body": "Hi"}}
    async with listening(pipeline, "OTHERS") as third:
        await tell_of_messages(pipeline, **more, **({"messages": [message]} if beside else {}))
        [name] = more
        value = await third.value(name)

    assert value == {"messaging_product": "whatsapp", "metadata": METADATA, **more}
    if beside:
        await pipeline.wait_for_callback(is_event("message", id="wamid.b"))


@pytest.mark.parametrize("field", ["calls", "standby", "holograms"])
async def test_messages_and_statuses_of_another_field_are_not_read_as_ours(
    pipeline: PipelineHarness, third: ThirdVersion, field: str
) -> None:
    value = {
        "messaging_product": "whatsapp",
        "metadata": METADATA,
        "messages": [{"from": ANN, "id": "wamid.theirs", "timestamp": "1760000000", "type": "text", "text": {"body": "Hi"}}],
        "statuses": [{"id": "wacid.1", "type": "call", "status": "RINGING", "timestamp": "1760000000"}],
    }  # fmt: skip

    await tell(pipeline, field, value)
    body = await third.change(field)

    assert value_of(body) == value
    assert not [one for one in pipeline.callbacks if is_event("message")(one)]


async def test_field_of_a_number_that_no_app_has_is_told_to_nobody(
    pipeline: PipelineHarness, third: ThirdVersion
) -> None:
    stranger = {"metadata": {"phone_number_id": "2000000000000099"}}

    await tell(pipeline, "history", {**stranger, "history": [{"threads": []}]})
    await tell(pipeline, "account_settings_update", {"phone_number_settings": {"phone_number_id": "2000000000000099"}})  # fmt: skip
    await tell(pipeline, "holograms", {"metadata": METADATA})

    await third.change("holograms")
    assert [field_of(body) for body in third.sink.callbacks] == ["holograms"]


async def test_account_that_only_the_value_names_is_the_one_concerned(
    pipeline: PipelineHarness, third: ThirdVersion
) -> None:
    value = {"event": "PARTNER_ADDED", "waba_info": {"waba_id": ACCOUNT.id}}

    await tell(pipeline, "account_update", value, id="9000000000000001")

    assert value_of(await third.change("account_update")) == value


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
async def test_change_of_a_template_has_our_id_of_it_and_its_time(
    pipeline: PipelineHarness, field: str, more: dict[str, Any]
) -> None:
    template_id = await pipeline.approved_template()
    [held] = (await pipeline.control("GET", "templates"))["templates"]
    value = {
        "message_template_id": int(held["id"]),
        "message_template_name": held["name"],
        "message_template_language": held["language"],
        **more,
    }
    at_s = pipeline.clock.now_ms() // 1000 + 60
    async with listening(pipeline, "TEMPLATE") as third:
        await tell(pipeline, field, value, time=at_s)
        body = await third.change(field)

    assert value_of(body) == value | {"gs_template_id": template_id}
    assert body["entry"][0]["time"] == at_s


async def test_review_by_the_simulator_has_our_id_in_version_3(pipeline: PipelineHarness, third: ThirdVersion) -> None:
    template_id = await pipeline.approved_template()

    body = await third.change("message_template_status_update")

    assert value_of(body)["gs_template_id"] == template_id
    assert type(body["entry"][0]["time"]) is int


async def test_change_of_a_template_that_is_not_ours_goes_on_as_it_came(
    pipeline: PipelineHarness, third: ThirdVersion
) -> None:
    value = {
        "event": "APPROVED", "message_template_id": 77, "message_template_name": "not_ours",
        "message_template_language": "en_US", "reason": "NONE",
    }  # fmt: skip

    await tell(pipeline, "message_template_status_update", value, time=1760000000)

    assert value_of(await third.change("message_template_status_update")) == value
