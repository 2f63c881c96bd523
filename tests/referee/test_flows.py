"""The public client creates a flow, edits it, publishes it, and receives its response."""

# The client does not declare its exports, and leaves parts of its types unknown.
# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import pytest
from pywa_async import types
from pywa_async.errors import WhatsAppError
from pywa_async.types import templates as t
from pywa_async.types.flows import (
    CompleteAction,
    FlowCompletion,
    FlowJSON,
    Footer,
    Form,
    Layout,
    Screen,
    TextHeading,
    TextInput,
)

from tests.referee.public_client import ClientHarness
from tests.simulator.conftest import ANN

BOOKING = FlowJSON(
    version="7.3",
    screens=[
        Screen(
            id="FIRST",
            title="Book",
            terminal=True,
            layout=Layout(
                children=[
                    TextHeading(text="A table"),
                    Form(
                        name="form",
                        children=[
                            name := TextInput(name="guest", label="Name"),
                            Footer(label="Done", on_click_action=CompleteAction(payload={"guest": name.ref})),
                        ],
                    ),
                ]
            ),
        )
    ],
)


async def test_flow_is_drafted_published_and_deprecated(harness: ClientHarness) -> None:
    client = harness.client
    created = await client.create_flow("Booking", [types.FlowCategory.APPOINTMENT_BOOKING])
    renamed = await client.update_flow_metadata(created.id, name="Tables", categories=[types.FlowCategory.OTHER])
    updated = await client.update_flow_json(created.id, BOOKING)
    draft = await client.get_flow(created.id)
    assets = await client.get_flow_assets(created.id)
    published = await client.publish_flow(created.id)
    listed = await client.get_flows()
    deprecated = await client.deprecate_flow(created.id)
    after = await client.get_flow(created.id)

    assert renamed.success
    assert updated.success
    assert not updated.validation_errors
    assert (draft.name, draft.status, draft.json_version) == ("Tables", types.FlowStatus.DRAFT, "7.3")
    assert draft.preview is not None
    assert [asset.name for asset in assets] == ["flow.json"]
    assert published.success
    assert [(flow.id, flow.status) for flow in listed] == [(created.id, types.FlowStatus.PUBLISHED)]
    assert deprecated.success
    assert after.status is types.FlowStatus.DEPRECATED


async def test_flow_is_created_published_and_cloned_at_once(harness: ClientHarness) -> None:
    created = await harness.client.create_flow("Booking", [types.FlowCategory.OTHER], flow_json=BOOKING, publish=True)

    clone = await harness.client.create_flow("Another", [types.FlowCategory.OTHER], clone_flow_id=created.id)

    assert (await harness.client.get_flow(created.id)).status is types.FlowStatus.PUBLISHED
    assert (await harness.client.get_flow(clone.id)).json_version == "7.3"


async def test_flow_json_with_errors_is_not_published(harness: ClientHarness) -> None:
    created = await harness.client.create_flow("Booking", [types.FlowCategory.OTHER])
    updated = await harness.client.update_flow_json(created.id, {"version": "7.3", "screens": []})

    with pytest.raises(WhatsAppError):
        await harness.client.publish_flow(created.id)

    assert updated.validation_errors


async def test_draft_is_deleted(harness: ClientHarness) -> None:
    created = await harness.client.create_flow("Booking", [types.FlowCategory.OTHER])

    deleted = await harness.client.delete_flow(created.id)

    assert deleted.success
    assert not await harness.client.get_flows()


async def test_template_with_a_flow_is_sent_and_completed(harness: ClientHarness) -> None:
    flow = await harness.client.create_flow("Booking", [types.FlowCategory.OTHER], flow_json=BOOKING, publish=True)
    button = t.FlowButton(
        text="Book", flow_id=flow.id, flow_action=types.FlowActionType.NAVIGATE, navigate_screen="FIRST"
    )
    template = t.Template(
        name="book",
        language=t.TemplateLanguage.ENGLISH_US,
        category=t.TemplateCategory.MARKETING,
        components=[t.BodyText("A table for you"), t.Buttons(buttons=[button])],
    )
    await harness.client.create_template(template)
    await harness.wait_for_update(t.TemplateStatusUpdate)
    sent = await harness.client.send_template(
        ANN, "book", t.TemplateLanguage.ENGLISH_US, [button.params(index=0, flow_token="t-1")]
    )
    await harness.phone_message(sent.id)

    await harness.control(
        f"phones/{ANN}/respond", {"message_id": sent.id, "response": {"guest": "Ann"}, "wait_ms": 5000}
    )

    completion = await harness.wait_for_update(FlowCompletion)
    assert completion.token == "t-1"
    assert completion.response["guest"] == "Ann"
    assert completion.reply_to_message is not None
    assert completion.reply_to_message.id == sent.id


async def test_migration_names_what_is_wrong_with_its_source(harness: ClientHarness) -> None:
    with pytest.raises(WhatsAppError) as raised:
        await harness.client.migrate_flows("1000000000000009", ["Booking"])

    assert raised.value.code == 100
    assert "another account of the same business" in str(raised.value)
