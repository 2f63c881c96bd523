"""The public client makes a flow, works on it, publishes it, and hears its answer."""

# The client exports its names without saying so, and leaves parts of its own types open.
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

from tests.referee.public_client import Arena
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


async def test_flow_lives_from_draft_to_deprecated(arena: Arena) -> None:
    client = arena.client
    made = await client.create_flow("Booking", [types.FlowCategory.APPOINTMENT_BOOKING])
    renamed = await client.update_flow_metadata(made.id, name="Tables", categories=[types.FlowCategory.OTHER])
    written = await client.update_flow_json(made.id, BOOKING)
    draft = await client.get_flow(made.id)
    assets = await client.get_flow_assets(made.id)
    published = await client.publish_flow(made.id)
    listed = await client.get_flows()
    ended = await client.deprecate_flow(made.id)
    after = await client.get_flow(made.id)

    assert renamed.success
    assert written.success
    assert not written.validation_errors
    assert (draft.name, draft.status, draft.json_version) == ("Tables", types.FlowStatus.DRAFT, "7.3")
    assert draft.preview is not None
    assert [one.name for one in assets] == ["flow.json"]
    assert published.success
    assert [(one.id, one.status) for one in listed] == [(made.id, types.FlowStatus.PUBLISHED)]
    assert ended.success
    assert after.status is types.FlowStatus.DEPRECATED


async def test_flow_is_made_published_and_cloned_at_once(arena: Arena) -> None:
    made = await arena.client.create_flow("Booking", [types.FlowCategory.OTHER], flow_json=BOOKING, publish=True)

    clone = await arena.client.create_flow("Another", [types.FlowCategory.OTHER], clone_flow_id=made.id)

    assert (await arena.client.get_flow(made.id)).status is types.FlowStatus.PUBLISHED
    assert (await arena.client.get_flow(clone.id)).json_version == "7.3"


async def test_flow_json_with_errors_is_not_published(arena: Arena) -> None:
    made = await arena.client.create_flow("Booking", [types.FlowCategory.OTHER])
    written = await arena.client.update_flow_json(made.id, {"version": "7.3", "screens": []})

    with pytest.raises(WhatsAppError):
        await arena.client.publish_flow(made.id)

    assert written.validation_errors


async def test_draft_is_deleted(arena: Arena) -> None:
    made = await arena.client.create_flow("Booking", [types.FlowCategory.OTHER])

    deleted = await arena.client.delete_flow(made.id)

    assert deleted.success
    assert not await arena.client.get_flows()


async def test_template_with_a_flow_is_sent_and_answered(arena: Arena) -> None:
    flow = await arena.client.create_flow("Booking", [types.FlowCategory.OTHER], flow_json=BOOKING, publish=True)
    button = t.FlowButton(
        text="Book", flow_id=flow.id, flow_action=types.FlowActionType.NAVIGATE, navigate_screen="FIRST"
    )
    template = t.Template(
        name="book",
        language=t.TemplateLanguage.ENGLISH_US,
        category=t.TemplateCategory.MARKETING,
        components=[t.BodyText("A table for you"), t.Buttons(buttons=[button])],
    )
    await arena.client.create_template(template)
    await arena.hears(t.TemplateStatusUpdate)
    sent = await arena.client.send_template(
        ANN, "book", t.TemplateLanguage.ENGLISH_US, [button.params(index=0, flow_token="t-1")]
    )
    await arena.on_phone(sent.id)

    await arena.act(f"phones/{ANN}/answer", {"message_id": sent.id, "response": {"guest": "Ann"}, "wait_ms": 5000})

    answer = await arena.hears(FlowCompletion)
    assert answer.token == "t-1"
    assert answer.response["guest"] == "Ann"
    assert answer.reply_to_message is not None
    assert answer.reply_to_message.id == sent.id
