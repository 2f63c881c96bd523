"""Messages of every kind, from the partner's form to the phone."""

import json
from typing import Any

import pytest

from tests.support.builders import ANN, APP
from tests.support.pipeline import API_KEY, PipelineHarness

pytestmark = pytest.mark.content_only

OPTIONS = [{"type": "text", "title": "Yes"}, {"type": "text", "title": "No"}]


async def submit(pipeline: PipelineHarness, path: str, field: str, **form: Any) -> str:
    """Send a form through the partner API, and return our id."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in form.items()}
    addresses = {"source": APP.phone_number, "destination": ANN, "to": ANN}
    response = await pipeline.send_request(
        "POST", f"/partner/app/{APP.id}/{path}", addresses | texts, {"Authorization": pipeline.app_token}
    )
    assert response.status == 200, response
    message_id: str = response.body[field] if field == "messageId" else response.body[field][0]["id"]
    return message_id


async def wait_for_shown(pipeline: PipelineHarness, message_id: str, *, until: str = "delivered") -> dict[str, Any]:
    """Return a message as the phone shows it, once it has a status."""
    await pipeline.events_of(message_id, until=until)
    return (await pipeline.inbox())[-1]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            {"type": "location", "latitude": "19.5", "longitude": 72.5, "name": "Shop"},
            {"location": {"latitude": 19.5, "longitude": 72.5, "name": "Shop"}},
        ),
        (
            {"type": "contact", "contact": {"name": {"formattedName": "Ann", "firstName": "Ann"}}},
            {"contacts": [{"name": {"formatted_name": "Ann", "first_name": "Ann"}}]},
        ),
        ({"type": "quick_reply", "content": {"text": "Sure?"}, "options": OPTIONS}, {"text": "Sure?"}),
        (
            {
                "type": "list",
                "body": "Choose",
                "globalButtons": [{"title": "Menu"}],
                "items": [{"title": "A", "options": OPTIONS}],
            },
            {"text": "Choose"},
        ),
        (
            {
                "type": "product_details",
                "subType": "product",
                "catalogId": "9",
                "productId": "a",
                "body": {"text": "This"},
            },
            {"text": "This"},
        ),
    ],
)
async def test_session_message_of_any_type_is_shown_on_the_phone(
    pipeline: PipelineHarness, message: dict[str, Any], shown: dict[str, Any]
) -> None:
    await pipeline.open_window()

    message_id = await submit(pipeline, "msg", "messageId", message=message)

    actual = await wait_for_shown(pipeline, message_id)
    assert {name: actual[name] for name in shown} == shown


async def test_passthrough_is_shown_on_the_phone_and_called_back_under_our_id(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()

    message_id = await submit(pipeline, "v3/message", "messages", type="text", text={"body": "As it is"})

    assert (await wait_for_shown(pipeline, message_id))["text"] == "As it is"


@pytest.mark.both_engines
async def test_passthrough_of_a_reaction_reacts_to_our_own_message(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_text("Look")
    operator_id = (await wait_for_shown(pipeline, message_id))["wamid"]

    reaction_id = await submit(
        pipeline, "v3/message", "messages", type="reaction", reaction={"message_id": message_id, "emoji": "👍"}
    )

    shown = await wait_for_shown(pipeline, reaction_id, until="sent")
    assert shown["reaction"] == {"message_id": operator_id, "emoji": "👍"}


@pytest.mark.holds("postback-app-name")
@pytest.mark.parametrize("name_field", [{}, {"src.name": ""}], ids=["missing", "empty"])
async def test_template_message_without_src_name_is_sent_by_the_app_of_its_source(
    pipeline: PipelineHarness, name_field: dict[str, str]
) -> None:
    template_id = await pipeline.approved_template()
    response = await pipeline.send_request(
        "POST",
        "/wa/api/v1/template/msg",
        {
            "source": APP.phone_number,
            "destination": ANN,
            "template": json.dumps({"id": template_id, "params": ["Ann"]}),
            **name_field,
        },
        {"apikey": API_KEY},
    )

    events = await pipeline.events_of(response.body["messageId"], until="delivered")

    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert len(await pipeline.deliveries(response.body["messageId"])) == 1
