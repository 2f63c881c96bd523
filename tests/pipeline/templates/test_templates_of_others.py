"""Templates that were made, edited or deleted at the operator by somebody else."""

from typing import Any

from tests.support.builders import ACCOUNT, APP, OPERATOR, is_event
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from tests.support.template_requests import is_idle, read_template

THEIR_TEXT = "Your order {{1}} has left our house today."


async def test_name_that_the_operator_has_with_another_text_is_rejected_and_not_adopted(
    pipeline: PipelineHarness,
) -> None:
    theirs = await create_at_operator(pipeline)

    ours = await pipeline.create_template()

    callback = await pipeline.wait_for_callback(is_event("template-event", id=ours["id"], status="rejected"))
    assert "another template of this name and language" in callback["payload"]["rejectedReason"]
    record = await read_template(pipeline, ours["id"])
    assert record["status"] == "REJECTED"
    assert "externalId" not in record
    await delete_template(pipeline, ours["id"])
    await poll_until(lambda: is_idle(pipeline))
    assert [listed["id"] for listed in await list_at_operator(pipeline)] == [theirs]


async def test_name_that_the_operator_has_with_our_text_is_the_one_that_was_submitted_before(
    pipeline: PipelineHarness,
) -> None:
    theirs = await create_at_operator(pipeline, content="Hi {{1}}, shall we come today?", example="Ann")
    await poll_until(lambda: list_at_operator(pipeline), lambda listed: listed[0]["status"] == "APPROVED")

    ours = await pipeline.create_template()

    await pipeline.wait_for_callback(is_event("template-event", id=ours["id"], status="approved"))
    assert (await read_template(pipeline, ours["id"]))["externalId"] == theirs
    assert len(await list_at_operator(pipeline)) == 1


async def test_edit_of_a_template_whose_name_is_taken_does_not_overwrite_the_other_one(
    pipeline: PipelineHarness,
) -> None:
    await create_at_operator(pipeline)
    ours = await pipeline.create_template()
    await pipeline.wait_for_callback(is_event("template-event", id=ours["id"], status="rejected"))

    path = f"/partner/app/{APP.id}/templates/{ours['id']}"
    response = await pipeline.send_request("PUT", path, {"footer": "Acme"}, {"Authorization": pipeline.app_token})
    assert response.status == 200
    await pipeline.sink.wait_for(is_event("template-event", id=ours["id"], status="rejected"), count=2)

    [listed] = await list_at_operator(pipeline)
    assert THEIR_TEXT in str(listed["components"])


async def create_at_operator(
    pipeline: PipelineHarness, *, content: str = THEIR_TEXT, example: str = "4711", **members: Any
) -> str:
    """Create a template with the Graph API, as another tool does; return the operator's id."""
    body = {"type": "BODY", "text": content, "example": {"body_text": [[example]]}}
    template = {"name": "greeting", "language": "en_US", "category": "UTILITY", "components": [body], **members}
    created = await call_operator(pipeline, f"{ACCOUNT.id}/message_templates", template)
    return created["id"]


async def call_operator(pipeline: PipelineHarness, path: str, body: Any) -> dict[str, Any]:
    """Post to the Graph API."""
    url, headers = f"{pipeline.operator_url}/v25.0/{path}", {"Authorization": f"Bearer {OPERATOR['token']}"}
    async with pipeline.http.post(url, json=body, headers=headers) as response:
        content = await response.json()
        assert response.status == 200, content
        return content


async def list_at_operator(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    """Return the operator's templates."""
    return (await pipeline.control("GET", "templates"))["templates"]


async def delete_template(pipeline: PipelineHarness, template_id: str) -> None:
    path = f"/partner/app/{APP.id}/template/greeting/{template_id}"
    response = await pipeline.send_request("DELETE", path, headers={"Authorization": pipeline.app_token})
    assert response.status == 200, response
