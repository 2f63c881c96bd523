"""A template after its review: edits, deletions, pauses, quality and category."""

import json
from typing import Any

import pytest
from aiohttp import web

from tests.support.builders import ANN, APP, is_event
from tests.support.operator_proxy import OperatorProxy
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from waypost.store.templates.templates import change_template

NEW_TEXT = {"content": "Hi {{1}}, may we come tomorrow?", "example": "Hi Ann, may we come tomorrow?"}


@pytest.fixture
async def unreviewed_pipeline(make_pipeline: Any) -> PipelineHarness:
    """A pipeline on which templates wait for a review."""
    return await make_pipeline(simulator_changes={"review_delay_ms": None})


async def test_edited_template_is_reviewed_again_and_sent_with_its_new_text(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()

    await edit(pipeline, template_id, **NEW_TEXT)

    await pipeline.sink.wait_for(is_event("template-event", status="approved"), count=2)
    record = await read_template(pipeline, template_id)
    assert record["status"] == "APPROVED"
    assert record["data"].startswith("Hi {{1}}, may we come tomorrow?")
    await pipeline.events_of(await pipeline.send(template_id), until="delivered")
    [message] = await pipeline.inbox()
    assert "Hi Ann, may we come tomorrow?" in str(message)


async def test_edit_that_the_operator_rejects_is_called_back_as_rejected(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    [operator_template] = await list_operator_templates(pipeline)
    await edit(pipeline, template_id, **NEW_TEXT)
    await pipeline.sink.wait_for(is_event("template-event", status="approved"), count=2)

    await edit(pipeline, template_id, footer="Twice a day is too often")

    callback = await pipeline.wait_for_callback(is_event("template-event", status="rejected"))
    assert "once in 24 hours" in callback["payload"]["rejectedReason"]
    record = await read_template(pipeline, template_id)
    assert record["status"] == "APPROVED"
    assert record["data"].startswith("Hi {{1}}, may we come tomorrow?")
    assert "Twice a day" not in record["data"]
    assert "reason" not in record
    assert record["edit"]["status"] == "REJECTED"
    assert "once in 24 hours" in record["edit"]["reason"]
    assert "Twice a day is too often" in record["edit"]["data"]
    await pipeline.events_of(await pipeline.send(template_id), until="delivered")
    assert [template["id"] for template in await list_operator_templates(pipeline)] == [operator_template["id"]]


async def test_rejected_template_that_the_operator_never_had_is_submitted_by_its_edit(
    pipeline: PipelineHarness,
) -> None:
    template = await pipeline.create_template(
        content="{{1}}, your order is ready.", example="Ann, your order is ready."
    )
    await pipeline.wait_for_callback(is_event("template-event", status="rejected"))

    await edit(pipeline, template["id"], **NEW_TEXT)

    await pipeline.wait_for_callback(is_event("template-event", status="approved"))
    record = await read_template(pipeline, template["id"])
    assert record["status"] == "APPROVED"
    assert "reason" not in record


async def test_edit_with_a_lost_response_is_not_treated_as_rejected(make_pipeline: Any) -> None:
    between = EditResponseLosingProxy()
    pipeline: PipelineHarness = await make_pipeline(operator_proxy=between)
    template_id = await pipeline.approved_template()

    await edit(pipeline, template_id, **NEW_TEXT)

    await pipeline.sink.wait_for(is_event("template-event", status="approved"), count=2)
    await poll_until(lambda: is_idle(pipeline))
    assert between.lost == 1
    assert (await read_template(pipeline, template_id))["status"] == "APPROVED"


async def test_edit_and_deletion_survive_a_restart_while_the_operator_is_down(pipeline: PipelineHarness) -> None:
    edited = await pipeline.approved_template()
    await pipeline.approved_template(elementName="farewell")
    await pipeline.close_operator()
    await edit(pipeline, edited, **NEW_TEXT)
    await delete(pipeline, "farewell")

    await pipeline.close_service()
    await pipeline.open_service()
    await pipeline.open_operator()

    await pipeline.sink.wait_for(is_event("template-event", id=edited, status="approved"), count=2)
    await poll_until(lambda: is_idle(pipeline))
    [operator_template] = await list_operator_templates(pipeline)
    assert operator_template["name"] == "greeting"
    assert "tomorrow" in str(operator_template["components"])


async def test_new_template_is_rejected_while_the_operator_still_has_the_deleted_one(
    proxied_pipeline: PipelineHarness,
) -> None:
    await proxied_pipeline.approved_template()
    [operator_template] = await list_operator_templates(proxied_pipeline)
    assert proxied_pipeline.operator_proxy is not None
    proxied_pipeline.operator_proxy.let_webhooks_pass = False
    await proxied_pipeline.control("POST", f"templates/{operator_template['id']}/disable", {})
    await delete(proxied_pipeline, "greeting")

    again = await proxied_pipeline.create_template()

    await poll_until(lambda: is_idle(proxied_pipeline))
    record = await read_template(proxied_pipeline, again["id"])
    assert record["status"] == "REJECTED"
    assert "still has the deleted template" in record["reason"]


async def test_deleted_template_is_called_back_and_deleted_at_the_operator(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()

    await delete(pipeline, "greeting")

    callback = await pipeline.wait_for_callback(is_event("template-event", status="deleted"))
    assert callback["payload"]["id"] == template_id
    await poll_until(lambda: is_operator_empty(pipeline))
    deleted = [callback for callback in pipeline.callbacks if callback["payload"].get("status") == "deleted"]
    assert len(deleted) == 1


async def test_template_deleted_before_its_submission_is_never_created_at_the_operator(
    pipeline: PipelineHarness,
) -> None:
    await pipeline.close_operator()
    await pipeline.create_template()

    await delete(pipeline, "greeting")
    await pipeline.open_operator()

    await poll_until(lambda: is_idle(pipeline))
    assert await is_operator_empty(pipeline)


async def test_name_that_the_operator_still_locks_is_rejected_with_the_operators_error(
    pipeline: PipelineHarness,
) -> None:
    await pipeline.approved_template()
    await delete(pipeline, "greeting")

    again = await pipeline.create_template()

    callback = await pipeline.wait_for_callback(is_event("template-event", status="rejected"))
    assert callback["payload"]["id"] == again["id"]
    assert "being deleted" in callback["payload"]["rejectedReason"]


async def test_one_language_is_deleted_and_the_other_stays(pipeline: PipelineHarness) -> None:
    english = await pipeline.approved_template()
    german = await pipeline.approved_template(languageCode="de")

    await delete(pipeline, f"greeting/{english}")

    await poll_until(lambda: list_operator_templates(pipeline), lambda templates: len(templates) == 1)
    [operator_template] = await list_operator_templates(pipeline)
    assert operator_template["language"] == "de"
    assert (await read_template(pipeline, german))["status"] == "APPROVED"


async def test_message_accepted_before_the_deletion_fails_with_the_operators_code(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    await pipeline.close_operator()
    message_id = await pipeline.send(template_id)

    await delete(pipeline, "greeting")
    await pipeline.open_operator()
    await poll_until(lambda: is_idle(pipeline))

    # Either may reach the operator first, and its webhook may still be on the way.
    await poll_until(lambda: pipeline.trace(message_id), lambda trace: trace["state"] in ("failed", "delivered"))


async def test_pause_is_called_back_with_its_description_and_so_is_its_end(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    [operator_template] = await list_operator_templates(pipeline)

    await pipeline.control("POST", f"templates/{operator_template['id']}/pause", {})
    paused = await pipeline.wait_for_callback(is_event("template-event", status="paused"))
    assert (await read_template(pipeline, template_id))["status"] == "PAUSED"
    await pipeline.control("POST", f"templates/{operator_template['id']}/unpause", {})

    await pipeline.sink.wait_for(is_event("template-event", status="approved"), count=2)
    assert "3 hours" in paused["payload"]["description"]
    assert (await read_template(pipeline, template_id))["status"] == "APPROVED"


@pytest.mark.parametrize(
    ("action", "status"),
    [
        ("disable", "DISABLED"),
        ("appeal", "IN_APPEAL"),
        ("flag", "FLAGGED"),
        ("lock", "LOCKED"),
        ("archive", "ARCHIVED"),
        ("limit", "FAILED"),
        ("pending-deletion", "DELETED"),
    ],
)
@pytest.mark.holds("status-others", "status-moves")
async def test_status_set_by_the_operator_is_called_back_with_our_name_of_it(
    pipeline: PipelineHarness, action: str, status: str
) -> None:
    template_id = await pipeline.approved_template()
    [operator_template] = await list_operator_templates(pipeline)

    await pipeline.control("POST", f"templates/{operator_template['id']}/{action}", {})

    callback = await pipeline.wait_for_callback(is_event("template-event", status=status.lower()))
    assert callback["payload"]["id"] == template_id


@pytest.mark.holds("record-qualities")
async def test_quality_is_called_back_and_listed_with_our_name_of_it(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    [operator_template] = await list_operator_templates(pipeline)

    await pipeline.control("POST", f"templates/{operator_template['id']}/quality", {"score": "YELLOW"})

    callback = await pipeline.wait_for_callback(is_event("template-event", type="quality-update"))
    assert callback["payload"] == {
        "type": "quality-update",
        "id": template_id,
        "elementName": "greeting",
        "languageCode": "en_US",
        "quality": "YELLOW",
    }
    assert (await read_template(pipeline, template_id))["quality"] == "MEDIUM"


@pytest.mark.holds("create-old-category")
async def test_category_is_announced_and_then_changed(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    [operator_template] = await list_operator_templates(pipeline)
    path = f"templates/{operator_template['id']}/category"

    await pipeline.control("POST", path, {"category": "MARKETING", "announced": True})
    [announced] = await pipeline.sink.wait_for(is_event("template-event", type="category-update"))
    record = await read_template(pipeline, template_id)
    assert (record["new_category"], record["correct_category"]) == ("MARKETING", "MARKETING")
    assert json.loads(record["containerMeta"])["correctCategory"] == "MARKETING"
    await pipeline.control("POST", path, {"category": "MARKETING"})
    [_, changed] = await pipeline.sink.wait_for(is_event("template-event", type="category-update"), count=2)

    assert announced["payload"]["category"] == {"current": "UTILITY", "correct": "MARKETING"}
    assert changed["payload"]["category"] == {"old": "UTILITY", "new": "MARKETING"}
    record = await read_template(pipeline, template_id)
    assert (record["category"], record["oldCategory"]) == ("MARKETING", "UTILITY")
    assert not {"new_category", "correct_category"} & record.keys()
    assert "correctCategory" not in json.loads(record["containerMeta"])


async def test_version_3_has_the_change_of_the_operator_unchanged(pipeline: PipelineHarness) -> None:
    def changes_of(event: str) -> list[dict[str, Any]]:
        bodies = [attempt.value for attempt in pipeline.sink.accepted if attempt.path.endswith("/3")]
        values = [body["entry"][0]["changes"][0]["value"] for body in bodies]
        return [value for value in values if value["event"] == event]

    await pipeline.subscribe(tag="third", version="3", url=f"{pipeline.sink.url}/3", modes="TEMPLATE")
    await pipeline.create_template()
    await pipeline.sink.wait_until(lambda: bool(changes_of("APPROVED")))
    [operator_template] = await list_operator_templates(pipeline)

    await delete(pipeline, "greeting")

    await pipeline.sink.wait_until(lambda: bool(changes_of("DELETED")))
    [approved], [deleted] = changes_of("APPROVED"), changes_of("DELETED")
    assert approved["message_template_id"] == int(operator_template["id"])
    assert approved["reason"] == "NONE"
    # The service makes the change itself, in the operator's format.
    assert deleted["message_template_id"] == int(operator_template["id"])
    assert deleted["message_template_name"] == "greeting"
    assert deleted["reason"] is None


async def test_sync_applies_a_review_that_was_never_received(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    [operator_template] = await list_operator_templates(pipeline)
    await pipeline.waypost.database.write(undo_review, template_id)

    response = await call_app(pipeline, "GET", "template/sync")

    assert (response.status, response.body) == (202, {"status": "success"})
    record = await read_template(pipeline, template_id)
    assert record["status"] == "APPROVED"
    assert record["externalId"] == operator_template["id"]


async def test_sync_deletes_templates_that_the_operator_no_longer_has(proxied_pipeline: PipelineHarness) -> None:
    await proxied_pipeline.approved_template()
    [operator_template] = await list_operator_templates(proxied_pipeline)
    assert proxied_pipeline.operator_proxy is not None
    proxied_pipeline.operator_proxy.let_webhooks_pass = False
    await proxied_pipeline.control("POST", f"templates/{operator_template['id']}/delete", {})

    response = await call_app(proxied_pipeline, "GET", "template/sync")

    assert response.status == 202
    await proxied_pipeline.wait_for_callback(is_event("template-event", status="deleted"))


async def test_library_template_is_created_and_can_be_sent(pipeline: PipelineHarness) -> None:
    library = await call_app(pipeline, "GET", "template/metalibrary?elementName=order_on_its_way")
    assert library.body["templates"]
    form = {
        "elementName": "on_its_way",
        "category": "UTILITY",
        "languageCode": "en_US",
        "libraryTemplateName": "order_on_its_way",
    }

    response = await call_app(pipeline, "POST", "template/metalibrary", form)

    template = response.body["templates"]
    assert template["status"] == "APPROVED"
    message_id = await pipeline.send(template["id"], params=["Ann", "PX-9", "5 May"])
    await pipeline.events_of(message_id, until="delivered")
    assert "PX-9" in str(await pipeline.inbox())


async def test_template_that_the_library_does_not_have_gets_an_error(pipeline: PipelineHarness) -> None:
    form = {
        "elementName": "on_its_way",
        "category": "UTILITY",
        "languageCode": "en_US",
        "libraryTemplateName": "no_such_template",
    }

    response = await call_app(pipeline, "POST", "template/metalibrary", form)

    assert response.status == 400
    assert "libraryTemplateName" in response.body["message"]


async def test_analytics_count_messages_statuses_and_taps(pipeline: PipelineHarness) -> None:
    await call_app(pipeline, "POST", "template/analytics", {"enable": "true"})
    template_id = await pipeline.approved_template()
    message_id = await pipeline.send(template_id)
    await pipeline.events_of(message_id, until="delivered")
    await pipeline.read()
    await pipeline.events_of(message_id, until="read")
    await pipeline.tap(ANN, 0)

    whole = await call_app(pipeline, "GET", f"template/analytics?template_ids={template_id}")
    by_day = await call_app(pipeline, "GET", "template/analytics?granularity=DAILY&start=" + today(pipeline))

    [point] = whole.body["template_analytics"]
    click = {"type": "quick_reply_button", "button_content": "Yes", "count": 1}
    assert (point["sent"], point["delivered"], point["read"]) == (1, 1, 1)
    assert point["clicked"] == [click]
    assert sum(point["sent"] for point in by_day.body["template_analytics"]) == 1
    assert all(point["end"] - point["start"] == 86_400 for point in by_day.body["template_analytics"])

    await call_app(pipeline, "POST", "template/analytics/buttonclick", {"templateId": template_id, "disable": "true"})
    without = await call_app(pipeline, "GET", f"template/analytics?template_ids={template_id}")
    assert without.body["template_analytics"][0]["clicked"] == []


class EditResponseLosingProxy(OperatorProxy):
    """Pass the first edit of a template on to the operator, and lose the response."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = 0

    async def _forward(self, request: web.Request, base_url: str) -> tuple[int, dict[str, str], bytes]:
        response = await super()._forward(request, base_url)
        is_edit = request.method == "POST" and request.path.rpartition("/")[2].isdecimal()
        if is_edit and self.lost == 0:
            self.lost += 1
            assert request.transport is not None
            request.transport.abort()
        return response


def undo_review(connection: Any, template_id: str) -> None:
    """Undo a review, as if neither the operator's response nor its webhook had arrived."""
    change_template(connection, template_id, status="PENDING", operator_template_id=None)


def today(pipeline: PipelineHarness) -> str:
    """Return the start of the day, in seconds."""
    now_s = pipeline.clock.now_ms() // 1000
    return str(now_s - now_s % 86_400)


async def call_app(pipeline: PipelineHarness, method: str, path: str, form: dict[str, str] | None = None) -> Any:
    """Make a call of the partner for the app."""
    return await pipeline.send_request(
        method, f"/partner/app/{APP.id}/{path}", form, {"Authorization": pipeline.app_token}
    )


async def edit(pipeline: PipelineHarness, template_id: str, **fields: str) -> None:
    """Edit a template; the edit is submitted to the operator later."""
    response = await call_app(pipeline, "PUT", f"templates/{template_id}", fields)
    assert (response.status, response.body) == (200, {"status": "success"})


async def delete(pipeline: PipelineHarness, what: str) -> None:
    """Delete a name, or a name and an id."""
    response = await call_app(pipeline, "DELETE", f"template/{what}")
    assert (response.status, response.body) == (200, {"status": "success"})


async def read_template(pipeline: PipelineHarness, template_id: str) -> dict[str, Any]:
    """Return the record of a template."""
    response = await call_app(pipeline, "GET", f"templates/{template_id}")
    assert response.status == 200, response
    return response.body["template"]


async def list_operator_templates(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    """Return the operator's templates."""
    return (await pipeline.control("GET", "templates"))["templates"]


async def is_operator_empty(pipeline: PipelineHarness) -> bool:
    """Return True if the operator has no template."""
    return not await list_operator_templates(pipeline)


async def is_idle(pipeline: PipelineHarness) -> bool:
    """Return True if no outbound job is left."""
    return not (await pipeline.queue_depths()).get("outbound")
