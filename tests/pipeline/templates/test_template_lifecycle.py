"""What becomes of a template after its review: edits, deletions, pauses, quality and category."""

import json
from typing import Any

import pytest
from aiohttp import web

from tests.support.builders import ANN, APP, is_event
from tests.support.operator_proxy import Between
from tests.support.pipeline import PipelineHarness
from tests.support.waiting import next_second, patiently
from waypost.store.templates.templates import change_template

NEW_TEXT = {"content": "Hi {{1}}, may we come tomorrow?", "example": "Hi Ann, may we come tomorrow?"}


@pytest.fixture
async def waiting(make_pipeline: Any) -> PipelineHarness:
    """A pipeline on which templates wait for their reviewer."""
    return await make_pipeline(simulator_changes={"review_delay_ms": None})


async def test_edited_template_is_reviewed_anew_and_sent_with_its_new_text(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    await next_second(pipeline.clock)

    await edit(pipeline, template_id, **NEW_TEXT)

    await pipeline.sink.wait_for(is_event("template-event", status="approved"), count=2)
    record = await shown(pipeline, template_id)
    assert record["status"] == "APPROVED"
    assert record["data"].startswith("Hi {{1}}, may we come tomorrow?")
    await pipeline.events_of(await pipeline.send(template_id), until="delivered")
    [message] = await pipeline.inbox()
    assert "Hi Ann, may we come tomorrow?" in str(message)


async def test_edit_that_the_operator_refuses_is_told_as_rejected(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    [held] = await held_by_operator(pipeline)
    await next_second(pipeline.clock)
    await edit(pipeline, template_id, **NEW_TEXT)
    await pipeline.sink.wait_for(is_event("template-event", status="approved"), count=2)

    await edit(pipeline, template_id, footer="Twice a day is too often")

    callback = await pipeline.wait_for_callback(is_event("template-event", status="rejected"))
    assert "once in 24 hours" in callback["payload"]["rejectedReason"]
    assert [one["id"] for one in await held_by_operator(pipeline)] == [held["id"]]


async def test_rejected_template_that_the_operator_never_had_is_handed_in_by_its_edit(
    pipeline: PipelineHarness,
) -> None:
    template = await pipeline.create_template(
        content="{{1}}, your order is ready.", example="Ann, your order is ready."
    )
    await pipeline.wait_for_callback(is_event("template-event", status="rejected"))

    await edit(pipeline, template["id"], **NEW_TEXT)

    await pipeline.wait_for_callback(is_event("template-event", status="approved"))
    record = await shown(pipeline, template["id"])
    assert record["status"] == "APPROVED"
    assert "reason" not in record


async def test_edit_whose_answer_was_lost_is_not_taken_for_a_refusal(make_pipeline: Any) -> None:
    between = LosingAnEdit()
    pipeline: PipelineHarness = await make_pipeline(between=between)
    template_id = await pipeline.approved_template()
    await next_second(pipeline.clock)

    await edit(pipeline, template_id, **NEW_TEXT)

    await pipeline.sink.wait_for(is_event("template-event", status="approved"), count=2)
    await patiently(lambda: is_idle(pipeline))
    assert between.lost == 1
    assert (await shown(pipeline, template_id))["status"] == "APPROVED"


async def test_edit_and_deletion_outlive_a_restart_while_the_operator_is_away(pipeline: PipelineHarness) -> None:
    edited = await pipeline.approved_template()
    await pipeline.approved_template(elementName="farewell")
    await next_second(pipeline.clock)
    await pipeline.close_operator()
    await edit(pipeline, edited, **NEW_TEXT)
    await delete(pipeline, "farewell")

    await pipeline.close_service()
    await pipeline.open_service()
    await pipeline.open_operator()

    await pipeline.sink.wait_for(is_event("template-event", id=edited, status="approved"), count=2)
    await patiently(lambda: is_idle(pipeline))
    [held] = await held_by_operator(pipeline)
    assert held["name"] == "greeting"
    assert "tomorrow" in str(held["components"])


async def test_new_template_does_not_take_the_place_of_one_that_could_not_be_deleted(
    cut_pipeline: PipelineHarness,
) -> None:
    await cut_pipeline.approved_template()
    [held] = await held_by_operator(cut_pipeline)
    assert cut_pipeline.between is not None
    cut_pipeline.between.let_webhooks_pass = False
    await cut_pipeline.control("POST", f"templates/{held['id']}/disable", {})
    await delete(cut_pipeline, "greeting")

    again = await cut_pipeline.create_template()

    await patiently(lambda: is_idle(cut_pipeline))
    record = await shown(cut_pipeline, again["id"])
    assert record["status"] == "REJECTED"
    assert "still has the deleted template" in record["reason"]


async def test_deleted_template_is_told_and_gone_at_the_operator_too(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()

    await delete(pipeline, "greeting")

    callback = await pipeline.wait_for_callback(is_event("template-event", status="deleted"))
    assert callback["payload"]["id"] == template_id
    await patiently(lambda: nothing_held(pipeline))
    deleted = [one for one in pipeline.callbacks if one["payload"].get("status") == "deleted"]
    assert len(deleted) == 1


async def test_template_deleted_before_the_operator_had_it_never_comes_to_be(pipeline: PipelineHarness) -> None:
    await pipeline.close_operator()
    await pipeline.create_template()

    await delete(pipeline, "greeting")
    await pipeline.open_operator()

    await patiently(lambda: is_idle(pipeline))
    assert await nothing_held(pipeline)


async def test_name_that_the_operator_still_locks_is_rejected_with_its_words(pipeline: PipelineHarness) -> None:
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

    await patiently(lambda: held_by_operator(pipeline), lambda held: len(held) == 1)
    [held] = await held_by_operator(pipeline)
    assert held["language"] == "de"
    assert (await shown(pipeline, german))["status"] == "APPROVED"


async def test_message_accepted_before_the_deletion_fails_with_the_operators_code(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    await pipeline.close_operator()
    message_id = await pipeline.send(template_id)

    await delete(pipeline, "greeting")
    await pipeline.open_operator()
    await patiently(lambda: is_idle(pipeline))

    # Whichever of the two came to the operator first; its word may still be on the way.
    await patiently(lambda: pipeline.trace(message_id), lambda one: one["state"] in ("failed", "delivered"))


async def test_pause_is_told_with_its_description_and_its_end_too(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    [held] = await held_by_operator(pipeline)

    await pipeline.control("POST", f"templates/{held['id']}/pause", {})
    paused = await pipeline.wait_for_callback(is_event("template-event", status="paused"))
    assert (await shown(pipeline, template_id))["status"] == "PAUSED"
    await pipeline.control("POST", f"templates/{held['id']}/unpause", {})

    await pipeline.sink.wait_for(is_event("template-event", status="approved"), count=2)
    assert "3 hours" in paused["payload"]["description"]
    assert (await shown(pipeline, template_id))["status"] == "APPROVED"


@pytest.mark.parametrize(
    ("act", "status"),
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
async def test_what_the_operator_does_to_a_template_is_told_in_our_words(
    pipeline: PipelineHarness, act: str, status: str
) -> None:
    template_id = await pipeline.approved_template()
    [held] = await held_by_operator(pipeline)

    await pipeline.control("POST", f"templates/{held['id']}/{act}", {})

    callback = await pipeline.wait_for_callback(is_event("template-event", status=status.lower()))
    assert callback["payload"]["id"] == template_id


@pytest.mark.holds("record-qualities")
async def test_quality_is_told_and_listed_in_our_words(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    [held] = await held_by_operator(pipeline)

    await pipeline.control("POST", f"templates/{held['id']}/quality", {"score": "YELLOW"})

    callback = await pipeline.wait_for_callback(is_event("template-event", type="quality-update"))
    assert callback["payload"] == {
        "type": "quality-update",
        "id": template_id,
        "elementName": "greeting",
        "languageCode": "en_US",
        "quality": "MEDIUM",
    }
    assert (await shown(pipeline, template_id))["quality"] == "MEDIUM"


@pytest.mark.holds("create-old-category")
async def test_category_is_announced_and_then_changed(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    [held] = await held_by_operator(pipeline)
    path = f"templates/{held['id']}/category"

    await pipeline.control("POST", path, {"category": "MARKETING", "announced": True})
    [announced] = await pipeline.sink.wait_for(is_event("template-event", type="category-update"))
    coming = await shown(pipeline, template_id)
    assert (coming["new_category"], coming["correct_category"]) == ("MARKETING", "MARKETING")
    assert json.loads(coming["containerMeta"])["correctCategory"] == "MARKETING"
    await pipeline.control("POST", path, {"category": "MARKETING"})
    [_, changed] = await pipeline.sink.wait_for(is_event("template-event", type="category-update"), count=2)

    assert announced["payload"]["category"] == {"current": "UTILITY", "correct": "MARKETING"}
    assert changed["payload"]["category"] == {"old": "UTILITY", "new": "MARKETING"}
    record = await shown(pipeline, template_id)
    assert (record["category"], record["oldCategory"]) == ("MARKETING", "UTILITY")
    assert not {"new_category", "correct_category"} & record.keys()
    assert "correctCategory" not in json.loads(record["containerMeta"])


async def test_version_3_passes_the_operators_own_change_on(pipeline: PipelineHarness) -> None:
    def of_3(word: str) -> list[dict[str, Any]]:
        bodies = [one.value for one in pipeline.sink.taken if one.path.endswith("/3")]
        values = [body["entry"][0]["changes"][0]["value"] for body in bodies]
        return [value for value in values if value["event"] == word]

    await pipeline.subscribe(tag="third", version="3", url=f"{pipeline.sink.url}/3", modes="TEMPLATE")
    await pipeline.create_template()
    await pipeline.sink.wait_until(lambda: bool(of_3("APPROVED")))
    [held] = await held_by_operator(pipeline)

    await delete(pipeline, "greeting")

    await pipeline.sink.wait_until(lambda: bool(of_3("DELETED")))
    [approved], [deleted] = of_3("APPROVED"), of_3("DELETED")
    assert approved["message_template_id"] == int(held["id"])
    assert approved["reason"] == "NONE"
    assert deleted["message_template_id"] == int(held["id"])  # ours to say, in the operator's words
    assert deleted["message_template_name"] == "greeting"
    assert deleted["reason"] is None


async def test_sync_brings_into_line_what_was_never_told(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    [held] = await held_by_operator(pipeline)
    await pipeline.waypost.database.write(forget_review, template_id)

    answer = await ask(pipeline, "GET", "template/sync")

    assert (answer.status, answer.body) == (202, {"status": "success"})
    record = await shown(pipeline, template_id)
    assert record["status"] == "APPROVED"
    assert record["externalId"] == held["id"]


async def test_sync_deletes_what_the_operator_no_longer_has(cut_pipeline: PipelineHarness) -> None:
    await cut_pipeline.approved_template()
    [held] = await held_by_operator(cut_pipeline)
    assert cut_pipeline.between is not None
    cut_pipeline.between.let_webhooks_pass = False
    await cut_pipeline.control("POST", f"templates/{held['id']}/delete", {})

    answer = await ask(cut_pipeline, "GET", "template/sync")

    assert answer.status == 202
    await cut_pipeline.wait_for_callback(is_event("template-event", status="deleted"))


async def test_ready_template_is_made_and_can_be_sent(pipeline: PipelineHarness) -> None:
    library = await ask(pipeline, "GET", "template/metalibrary?elementName=order_on_its_way")
    assert library.body["templates"]
    form = {
        "elementName": "on_its_way",
        "category": "UTILITY",
        "languageCode": "en_US",
        "libraryTemplateName": "order_on_its_way",
    }

    answer = await ask(pipeline, "POST", "template/metalibrary", form)

    made = answer.body["templates"]
    assert made["status"] == "APPROVED"
    message_id = await pipeline.send(made["id"], params=["Ann", "PX-9", "5 May"])
    await pipeline.events_of(message_id, until="delivered")
    assert "PX-9" in str(await pipeline.inbox())


async def test_ready_template_that_the_library_does_not_have_is_refused(pipeline: PipelineHarness) -> None:
    form = {
        "elementName": "on_its_way",
        "category": "UTILITY",
        "languageCode": "en_US",
        "libraryTemplateName": "nobody_wrote_this",
    }

    answer = await ask(pipeline, "POST", "template/metalibrary", form)

    assert answer.status == 400
    assert "libraryTemplateName" in answer.body["message"]


async def test_analytics_count_messages_statuses_and_taps(pipeline: PipelineHarness) -> None:
    await ask(pipeline, "POST", "template/analytics", {"enable": "true"})
    template_id = await pipeline.approved_template()
    message_id = await pipeline.send(template_id)
    await pipeline.events_of(message_id, until="delivered")
    await pipeline.read()
    await pipeline.events_of(message_id, until="read")
    await pipeline.tap(ANN, 0)

    whole = await ask(pipeline, "GET", f"template/analytics?template_ids={template_id}")
    by_day = await ask(pipeline, "GET", "template/analytics?granularity=DAILY&start=" + today(pipeline))

    [point] = whole.body["template_analytics"]
    click = {"type": "quick_reply_button", "button_content": "Yes", "count": 1}
    assert (point["sent"], point["delivered"], point["read"]) == (1, 1, 1)
    assert point["clicked"] == [click]
    assert sum(point["sent"] for point in by_day.body["template_analytics"]) == 1
    assert all(one["end"] - one["start"] == 86_400 for one in by_day.body["template_analytics"])

    await ask(pipeline, "POST", "template/analytics/buttonclick", {"templateId": template_id, "disable": "true"})
    without = await ask(pipeline, "GET", f"template/analytics?template_ids={template_id}")
    assert without.body["template_analytics"][0]["clicked"] == []


class LosingAnEdit(Between):
    """Lets the first edit of a template through to the operator, and loses its answer."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = 0

    async def _pass_on(self, request: web.Request, base_url: str) -> tuple[int, dict[str, str], bytes]:
        answer = await super()._pass_on(request, base_url)
        is_edit = request.method == "POST" and request.path.rpartition("/")[2].isdecimal()
        if is_edit and self.lost == 0:
            self.lost += 1
            assert request.transport is not None
            request.transport.abort()
        return answer


def forget_review(connection: Any, template_id: str) -> None:
    """As if neither the operator's answer nor its news had ever come."""
    change_template(connection, template_id, status="PENDING", operator_template_id=None)


def today(pipeline: PipelineHarness) -> str:
    """The beginning of the day, as seconds."""
    now_s = pipeline.clock.now_ms() // 1000
    return str(now_s - now_s % 86_400)


async def ask(pipeline: PipelineHarness, method: str, path: str, form: dict[str, str] | None = None) -> Any:
    """A call of the partner's about the app."""
    return await pipeline.ask(method, f"/partner/app/{APP.id}/{path}", form, {"Authorization": pipeline.app_token})


async def edit(pipeline: PipelineHarness, template_id: str, **fields: str) -> None:
    """Edit a template; the operator hears of it later."""
    answer = await ask(pipeline, "PUT", f"templates/{template_id}", fields)
    assert (answer.status, answer.body) == (200, {"status": "success"})


async def delete(pipeline: PipelineHarness, what: str) -> None:
    """Delete a name, or a name and an id."""
    answer = await ask(pipeline, "DELETE", f"template/{what}")
    assert (answer.status, answer.body) == (200, {"status": "success"})


async def shown(pipeline: PipelineHarness, template_id: str) -> dict[str, Any]:
    """One template's record."""
    answer = await ask(pipeline, "GET", f"templates/{template_id}")
    assert answer.status == 200, answer
    return answer.body["template"]


async def held_by_operator(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    """The operator's templates."""
    return (await pipeline.control("GET", "templates"))["templates"]


async def nothing_held(pipeline: PipelineHarness) -> bool:
    """Whether the operator has no template."""
    return not await held_by_operator(pipeline)


async def is_idle(pipeline: PipelineHarness) -> bool:
    """Whether nothing waits for the operator."""
    return not (await pipeline.queue_depths()).get("outbound")
