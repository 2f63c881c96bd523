"""What becomes of a template after its review: edits, deletions, pauses, quality and category."""

import json
from typing import Any

import pytest
from aiohttp import web

from tests.support.between import Between
from tests.support.builders import ANN, APP, is_event
from tests.support.patience import next_second, patiently
from tests.support.street import Street
from waypost.store.templates.templates import change_template

NEW_TEXT = {"content": "Hi {{1}}, may we come tomorrow?", "example": "Hi Ann, may we come tomorrow?"}


@pytest.fixture
async def waiting(make_street: Any) -> Street:
    """A street on which templates wait for their reviewer."""
    return await make_street(simulator_changes={"review_delay_ms": None})


async def test_edited_template_is_reviewed_anew_and_sent_with_its_new_text(street: Street) -> None:
    template_id = await street.approved_template()
    await next_second(street.clock)

    await edit(street, template_id, **NEW_TEXT)

    await street.sink.wait_for(is_event("template-event", status="approved"), count=2)
    record = await shown(street, template_id)
    assert record["status"] == "APPROVED"
    assert record["data"].startswith("Hi {{1}}, may we come tomorrow?")
    await street.events_of(await street.send(template_id), until="delivered")
    [message] = await street.inbox()
    assert "Hi Ann, may we come tomorrow?" in str(message)


async def test_edit_that_the_operator_refuses_is_told_as_rejected(street: Street) -> None:
    template_id = await street.approved_template()
    [held] = await held_by_operator(street)
    await next_second(street.clock)
    await edit(street, template_id, **NEW_TEXT)
    await street.sink.wait_for(is_event("template-event", status="approved"), count=2)

    await edit(street, template_id, footer="Twice a day is too often")

    callback = await street.wait_for_callback(is_event("template-event", status="rejected"))
    assert "once in 24 hours" in callback["payload"]["rejectedReason"]
    assert [one["id"] for one in await held_by_operator(street)] == [held["id"]]


async def test_rejected_template_that_the_operator_never_had_is_handed_in_by_its_edit(street: Street) -> None:
    template = await street.create_template(content="{{1}}, your order is ready.", example="Ann, your order is ready.")
    await street.wait_for_callback(is_event("template-event", status="rejected"))

    await edit(street, template["id"], **NEW_TEXT)

    await street.wait_for_callback(is_event("template-event", status="approved"))
    record = await shown(street, template["id"])
    assert record["status"] == "APPROVED"
    assert "reason" not in record


async def test_edit_whose_answer_was_lost_is_not_taken_for_a_refusal(make_street: Any) -> None:
    between = LosingAnEdit()
    street: Street = await make_street(between=between)
    template_id = await street.approved_template()
    await next_second(street.clock)

    await edit(street, template_id, **NEW_TEXT)

    await street.sink.wait_for(is_event("template-event", status="approved"), count=2)
    await patiently(lambda: is_idle(street))
    assert between.lost == 1
    assert (await shown(street, template_id))["status"] == "APPROVED"


async def test_edit_and_deletion_outlive_a_restart_while_the_operator_is_away(street: Street) -> None:
    edited = await street.approved_template()
    await street.approved_template(elementName="farewell")
    await next_second(street.clock)
    await street.close_operator()
    await edit(street, edited, **NEW_TEXT)
    await delete(street, "farewell")

    await street.close_service()
    await street.open_service()
    await street.open_operator()

    await street.sink.wait_for(is_event("template-event", id=edited, status="approved"), count=2)
    await patiently(lambda: is_idle(street))
    [held] = await held_by_operator(street)
    assert held["name"] == "greeting"
    assert "tomorrow" in str(held["components"])


async def test_new_template_does_not_take_the_place_of_one_that_could_not_be_deleted(cut_street: Street) -> None:
    await cut_street.approved_template()
    [held] = await held_by_operator(cut_street)
    assert cut_street.between is not None
    cut_street.between.let_webhooks_pass = False
    await cut_street.control("POST", f"templates/{held['id']}/disable", {})
    await delete(cut_street, "greeting")

    again = await cut_street.create_template()

    await patiently(lambda: is_idle(cut_street))
    record = await shown(cut_street, again["id"])
    assert record["status"] == "REJECTED"
    assert "still has the deleted template" in record["reason"]


async def test_deleted_template_is_told_and_gone_at_the_operator_too(street: Street) -> None:
    template_id = await street.approved_template()

    await delete(street, "greeting")

    callback = await street.wait_for_callback(is_event("template-event", status="deleted"))
    assert callback["payload"]["id"] == template_id
    await patiently(lambda: nothing_held(street))
    deleted = [one for one in street.callbacks if one["payload"].get("status") == "deleted"]
    assert len(deleted) == 1


async def test_template_deleted_before_the_operator_had_it_never_comes_to_be(street: Street) -> None:
    await street.close_operator()
    await street.create_template()

    await delete(street, "greeting")
    await street.open_operator()

    await patiently(lambda: is_idle(street))
    assert await nothing_held(street)


async def test_name_that_the_operator_still_locks_is_rejected_with_its_words(street: Street) -> None:
    await street.approved_template()
    await delete(street, "greeting")

    again = await street.create_template()

    callback = await street.wait_for_callback(is_event("template-event", status="rejected"))
    assert callback["payload"]["id"] == again["id"]
    assert "being deleted" in callback["payload"]["rejectedReason"]


async def test_one_language_is_deleted_and_the_other_stays(street: Street) -> None:
    english = await street.approved_template()
    german = await street.approved_template(languageCode="de")

    await delete(street, f"greeting/{english}")

    await patiently(lambda: held_by_operator(street), lambda held: len(held) == 1)
    [held] = await held_by_operator(street)
    assert held["language"] == "de"
    assert (await shown(street, german))["status"] == "APPROVED"


async def test_message_accepted_before_the_deletion_fails_with_the_operators_code(street: Street) -> None:
    template_id = await street.approved_template()
    await street.close_operator()
    message_id = await street.send(template_id)

    await delete(street, "greeting")
    await street.open_operator()
    await patiently(lambda: is_idle(street))

    # Whichever of the two came to the operator first; its word may still be on the way.
    await patiently(lambda: street.trace(message_id), lambda one: one["state"] in ("failed", "delivered"))


async def test_pause_is_told_with_its_description_and_its_end_too(street: Street) -> None:
    template_id = await street.approved_template()
    [held] = await held_by_operator(street)

    await street.control("POST", f"templates/{held['id']}/pause", {})
    paused = await street.wait_for_callback(is_event("template-event", status="paused"))
    assert (await shown(street, template_id))["status"] == "PAUSED"
    await street.control("POST", f"templates/{held['id']}/unpause", {})

    await street.sink.wait_for(is_event("template-event", status="approved"), count=2)
    assert "3 hours" in paused["payload"]["description"]
    assert (await shown(street, template_id))["status"] == "APPROVED"


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
async def test_what_the_operator_does_to_a_template_is_told_in_our_words(street: Street, act: str, status: str) -> None:
    template_id = await street.approved_template()
    [held] = await held_by_operator(street)

    await street.control("POST", f"templates/{held['id']}/{act}", {})

    callback = await street.wait_for_callback(is_event("template-event", status=status.lower()))
    assert callback["payload"]["id"] == template_id


@pytest.mark.holds("record-qualities")
async def test_quality_is_told_and_listed_in_our_words(street: Street) -> None:
    template_id = await street.approved_template()
    [held] = await held_by_operator(street)

    await street.control("POST", f"templates/{held['id']}/quality", {"score": "YELLOW"})

    callback = await street.wait_for_callback(is_event("template-event", type="quality-update"))
    assert callback["payload"] == {
        "type": "quality-update",
        "id": template_id,
        "elementName": "greeting",
        "languageCode": "en_US",
        "quality": "MEDIUM",
    }
    assert (await shown(street, template_id))["quality"] == "MEDIUM"


@pytest.mark.holds("create-old-category")
async def test_category_is_announced_and_then_changed(street: Street) -> None:
    template_id = await street.approved_template()
    [held] = await held_by_operator(street)
    path = f"templates/{held['id']}/category"

    await street.control("POST", path, {"category": "MARKETING", "announced": True})
    [announced] = await street.sink.wait_for(is_event("template-event", type="category-update"))
    coming = await shown(street, template_id)
    assert (coming["new_category"], coming["correct_category"]) == ("MARKETING", "MARKETING")
    assert json.loads(coming["containerMeta"])["correctCategory"] == "MARKETING"
    await street.control("POST", path, {"category": "MARKETING"})
    [_, changed] = await street.sink.wait_for(is_event("template-event", type="category-update"), count=2)

    assert announced["payload"]["category"] == {"current": "UTILITY", "correct": "MARKETING"}
    assert changed["payload"]["category"] == {"old": "UTILITY", "new": "MARKETING"}
    record = await shown(street, template_id)
    assert (record["category"], record["oldCategory"]) == ("MARKETING", "UTILITY")
    assert not {"new_category", "correct_category"} & record.keys()
    assert "correctCategory" not in json.loads(record["containerMeta"])


async def test_version_3_passes_the_operators_own_change_on(street: Street) -> None:
    def of_3(word: str) -> list[dict[str, Any]]:
        bodies = [one.value for one in street.sink.taken if one.path.endswith("/3")]
        values = [body["entry"][0]["changes"][0]["value"] for body in bodies]
        return [value for value in values if value["event"] == word]

    await street.subscribe(tag="third", version="3", url=f"{street.sink.url}/3", modes="TEMPLATE")
    await street.create_template()
    await street.sink.wait_until(lambda: bool(of_3("APPROVED")))
    [held] = await held_by_operator(street)

    await delete(street, "greeting")

    await street.sink.wait_until(lambda: bool(of_3("DELETED")))
    [approved], [deleted] = of_3("APPROVED"), of_3("DELETED")
    assert approved["message_template_id"] == int(held["id"])
    assert approved["reason"] == "NONE"
    assert deleted["message_template_id"] == int(held["id"])  # ours to say, in the operator's words
    assert deleted["message_template_name"] == "greeting"
    assert deleted["reason"] is None


async def test_sync_brings_into_line_what_was_never_told(street: Street) -> None:
    template_id = await street.approved_template()
    [held] = await held_by_operator(street)
    await street.waypost.database.write(forget_review, template_id)

    answer = await ask(street, "GET", "template/sync")

    assert (answer.status, answer.body) == (202, {"status": "success"})
    record = await shown(street, template_id)
    assert record["status"] == "APPROVED"
    assert record["externalId"] == held["id"]


async def test_sync_deletes_what_the_operator_no_longer_has(cut_street: Street) -> None:
    await cut_street.approved_template()
    [held] = await held_by_operator(cut_street)
    assert cut_street.between is not None
    cut_street.between.let_webhooks_pass = False
    await cut_street.control("POST", f"templates/{held['id']}/delete", {})

    answer = await ask(cut_street, "GET", "template/sync")

    assert answer.status == 202
    await cut_street.wait_for_callback(is_event("template-event", status="deleted"))


async def test_ready_template_is_made_and_can_be_sent(street: Street) -> None:
    library = await ask(street, "GET", "template/metalibrary?elementName=order_on_its_way")
    assert library.body["templates"]
    form = {
        "elementName": "on_its_way",
        "category": "UTILITY",
        "languageCode": "en_US",
        "libraryTemplateName": "order_on_its_way",
    }

    answer = await ask(street, "POST", "template/metalibrary", form)

    made = answer.body["templates"]
    assert made["status"] == "APPROVED"
    message_id = await street.send(made["id"], params=["Ann", "PX-9", "5 May"])
    await street.events_of(message_id, until="delivered")
    assert "PX-9" in str(await street.inbox())


async def test_ready_template_that_the_library_does_not_have_is_refused(street: Street) -> None:
    form = {
        "elementName": "on_its_way",
        "category": "UTILITY",
        "languageCode": "en_US",
        "libraryTemplateName": "nobody_wrote_this",
    }

    answer = await ask(street, "POST", "template/metalibrary", form)

    assert answer.status == 400
    assert "libraryTemplateName" in answer.body["message"]


async def test_analytics_count_messages_statuses_and_taps(street: Street) -> None:
    await ask(street, "POST", "template/analytics", {"enable": "true"})
    template_id = await street.approved_template()
    message_id = await street.send(template_id)
    await street.events_of(message_id, until="delivered")
    await street.read()
    await street.events_of(message_id, until="read")
    await street.tap(ANN, 0)

    whole = await ask(street, "GET", f"template/analytics?template_ids={template_id}")
    by_day = await ask(street, "GET", "template/analytics?granularity=DAILY&start=" + today(street))

    [point] = whole.body["template_analytics"]
    click = {"type": "quick_reply_button", "button_content": "Yes", "count": 1}
    assert (point["sent"], point["delivered"], point["read"]) == (1, 1, 1)
    assert point["clicked"] == [click]
    assert sum(point["sent"] for point in by_day.body["template_analytics"]) == 1
    assert all(one["end"] - one["start"] == 86_400 for one in by_day.body["template_analytics"])

    await ask(street, "POST", "template/analytics/buttonclick", {"templateId": template_id, "disable": "true"})
    without = await ask(street, "GET", f"template/analytics?template_ids={template_id}")
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


def today(street: Street) -> str:
    """The beginning of the day, as seconds."""
    now_s = street.clock.now_ms() // 1000
    return str(now_s - now_s % 86_400)


async def ask(street: Street, method: str, path: str, form: dict[str, str] | None = None) -> Any:
    """A call of the partner's about the app."""
    return await street.ask(method, f"/partner/app/{APP.id}/{path}", form, {"Authorization": street.app_token})


async def edit(street: Street, template_id: str, **fields: str) -> None:
    """Edit a template; the operator hears of it later."""
    answer = await ask(street, "PUT", f"templates/{template_id}", fields)
    assert (answer.status, answer.body) == (200, {"status": "success"})


async def delete(street: Street, what: str) -> None:
    """Delete a name, or a name and an id."""
    answer = await ask(street, "DELETE", f"template/{what}")
    assert (answer.status, answer.body) == (200, {"status": "success"})


async def shown(street: Street, template_id: str) -> dict[str, Any]:
    """One template's record."""
    answer = await ask(street, "GET", f"templates/{template_id}")
    assert answer.status == 200, answer
    return answer.body["template"]


async def held_by_operator(street: Street) -> list[dict[str, Any]]:
    """The operator's templates."""
    return (await street.control("GET", "templates"))["templates"]


async def nothing_held(street: Street) -> bool:
    """Whether the operator has no template."""
    return not await held_by_operator(street)


async def is_idle(street: Street) -> bool:
    """Whether nothing waits for the operator."""
    return not (await street.queue_depths()).get("outbound")
