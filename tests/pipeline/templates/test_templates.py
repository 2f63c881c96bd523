"""Templates under review: what the partner hears, and what the list then says."""

from typing import Any

import pytest

from tests.support.builders import APP, is_event
from tests.support.pipeline import PipelineHarness
from tests.support.waiting import patiently


@pytest.fixture
async def waiting(make_pipeline: Any) -> PipelineHarness:
    """A pipeline on which templates wait for their reviewer."""
    return await make_pipeline(simulator_changes={"review_delay_ms": None})


@pytest.mark.holds("status-others", "status-moves")
async def test_approved_template_is_told_and_listed_as_approved(pipeline: PipelineHarness) -> None:
    template = await pipeline.create_template(elementName="welcome", languageCode="de")

    callback = await pipeline.wait_for_callback(is_event("template-event"))

    assert callback["payload"] == {
        "type": "status-update",
        "id": template["id"],
        "status": "approved",
        "elementName": "welcome",
        "languageCode": "de",
    }
    [listed] = await listed_templates(pipeline)
    assert listed["status"] == "APPROVED"
    assert listed["externalId"]
    assert "reason" not in listed


async def test_rejected_template_is_told_and_listed_with_the_reviewers_reason(waiting: PipelineHarness) -> None:
    template = await waiting.create_template()
    [handed_in] = await handed_in_templates(waiting)
    reject = f"templates/{handed_in['id']}/reject"

    await waiting.control("POST", reject, {"reason": "INVALID_FORMAT", "explanation": "Too vague."})

    callback = await waiting.wait_for_callback(is_event("template-event", status="rejected"))
    assert callback["payload"]["id"] == template["id"]
    assert callback["payload"]["rejectedReason"] == "Too vague."
    [listed] = await listed_templates(waiting)
    assert listed["status"] == "REJECTED"
    assert listed["reason"] == "Too vague."


async def test_template_that_the_operator_refuses_at_once_is_told_as_rejected(pipeline: PipelineHarness) -> None:
    template = await pipeline.create_template(
        content="{{1}}, your order is ready.", example="Ann, your order is ready."
    )

    callback = await pipeline.wait_for_callback(is_event("template-event", status="rejected"))

    assert callback["payload"]["id"] == template["id"]
    assert callback["payload"]["rejectedReason"]
    [listed] = await listed_templates(pipeline)
    assert listed["status"] == "REJECTED"
    assert listed["reason"] == callback["payload"]["rejectedReason"]


async def test_template_is_pending_until_its_review(waiting: PipelineHarness) -> None:
    await waiting.create_template()

    await handed_in_templates(waiting)

    [listed] = await listed_templates(waiting)
    assert listed["status"] == "PENDING"
    assert waiting.callbacks == []


@pytest.mark.holds("status-moves")
async def test_approved_template_may_be_rejected_later(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    [handed_in] = await handed_in_templates(pipeline)

    await pipeline.control("POST", f"templates/{handed_in['id']}/reject", {"reason": "SCAM"})

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


async def listed_templates(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    """The app's templates, as the partner sees them."""
    answer = await pipeline.ask(
        "GET", f"/partner/app/{APP.id}/templates", headers={"Authorization": pipeline.app_token}
    )
    assert answer.status == 200
    return answer.body["templates"]


async def handed_in_templates(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    """The operator's templates, once there is one."""
    told = await patiently(lambda: pipeline.control("GET", "templates"), lambda held: held["templates"])
    return told["templates"]
