"""Templates under review: the callbacks, and the list of templates afterwards."""

from typing import Any

import pytest

from tests.support.builders import APP, is_event
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until


@pytest.fixture
async def unreviewed_pipeline(make_pipeline: Any) -> PipelineHarness:
    """A pipeline on which templates wait for a review."""
    return await make_pipeline(simulator_changes={"review_delay_ms": None})


@pytest.mark.holds("status-others", "status-moves")
async def test_approved_template_is_called_back_and_listed_as_approved(pipeline: PipelineHarness) -> None:
    template = await pipeline.create_template(elementName="welcome", languageCode="de")

    callback = await pipeline.wait_for_callback(is_event("template-event"))

    assert callback["payload"] == {
        "type": "status-update",
        "id": template["id"],
        "status": "approved",
        "elementName": "welcome",
        "languageCode": "de",
    }
    [listed] = await list_templates(pipeline)
    assert listed["status"] == "APPROVED"
    assert listed["externalId"]
    assert "reason" not in listed


async def test_rejected_template_is_called_back_and_listed_with_the_reason_of_the_review(
    unreviewed_pipeline: PipelineHarness,
) -> None:
    template = await unreviewed_pipeline.create_template()
    [submitted] = await wait_for_submitted(unreviewed_pipeline)
    reject = f"templates/{submitted['id']}/reject"

    await unreviewed_pipeline.control("POST", reject, {"reason": "INVALID_FORMAT", "explanation": "Too vague."})

    callback = await unreviewed_pipeline.wait_for_callback(is_event("template-event", status="rejected"))
    assert callback["payload"]["id"] == template["id"]
    assert callback["payload"]["rejectedReason"] == "Too vague."
    [listed] = await list_templates(unreviewed_pipeline)
    assert listed["status"] == "REJECTED"
    assert listed["reason"] == "Too vague."


async def test_template_that_the_operator_rejects_at_once_is_called_back_as_rejected(pipeline: PipelineHarness) -> None:
    template = await pipeline.create_template(
        content="{{1}}, your order is ready.", example="Ann, your order is ready."
    )

    callback = await pipeline.wait_for_callback(is_event("template-event", status="rejected"))

    assert callback["payload"]["id"] == template["id"]
    assert callback["payload"]["rejectedReason"]
    [listed] = await list_templates(pipeline)
    assert listed["status"] == "REJECTED"
    assert listed["reason"] == callback["payload"]["rejectedReason"]


async def test_template_is_pending_until_its_review(unreviewed_pipeline: PipelineHarness) -> None:
    await unreviewed_pipeline.create_template()

    await wait_for_submitted(unreviewed_pipeline)

    [listed] = await list_templates(unreviewed_pipeline)
    assert listed["status"] == "PENDING"
    assert unreviewed_pipeline.callbacks == []


@pytest.mark.holds("status-moves")
async def test_approved_template_may_be_rejected_later(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    [submitted] = await wait_for_submitted(pipeline)

    await pipeline.control("POST", f"templates/{submitted['id']}/reject", {"reason": "SCAM"})

    callback = await pipeline.wait_for_callback(is_event("template-event", status="rejected"))
    assert callback["payload"]["id"] == template_id
    assert callback["payload"]["rejectedReason"] == "SCAM"


async def test_header_footer_and_buttons_are_shown_on_the_phone(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template(header="Order {{1}}", exampleHeader="Order 4711", footer="Acme")

    message_id = await pipeline.send(template_id, params=["4712", "Ann"])

    await pipeline.events_of(message_id, until="delivered")
    [shown] = await pipeline.inbox()
    assert "Order 4712" in str(shown)
    assert "Hi Ann, shall we come today?" in str(shown)
    assert "Acme" in str(shown)
    assert [button["text"] for button in shown["buttons"]] == ["Yes", "No"]


async def list_templates(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    """Return the app's templates, as the partner sees them."""
    response = await pipeline.send_request(
        "GET", f"/partner/app/{APP.id}/templates", headers={"Authorization": pipeline.app_token}
    )
    assert response.status == 200
    return response.body["templates"]


async def wait_for_submitted(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    """Return the operator's templates, once there is one."""
    listed = await poll_until(lambda: pipeline.control("GET", "templates"), lambda listed: listed["templates"])
    return listed["templates"]
