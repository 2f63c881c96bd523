"""News of the operator's that comes late, in the wrong order, or in words that nobody here knows."""

import json
from typing import Any

import pytest
from aiohttp import web

from tests.support.builders import ANN, APP, is_event
from tests.support.operator_proxy import Between
from tests.support.operator_webhook import tell, tell_of_messages
from tests.support.pipeline import PipelineHarness
from tests.support.version_3_receiver import ThirdVersion

FIELD = "message_template_status_update"
REFUSED = {
    "error": {"message": "Invalid parameter", "code": 100, "error_user_msg": "This template was edited a moment ago."}
}


class RefusingEdits(Between):
    """Refuses each edit of a template, and lets everything else pass."""

    async def _pass_on(self, request: web.Request, base_url: str) -> tuple[int, dict[str, str], bytes]:
        if request.method == "POST" and request.path.rpartition("/")[2].isdecimal():
            return 400, {"Content-Type": "application/json"}, json.dumps(REFUSED).encode()
        return await super()._pass_on(request, base_url)


async def shown(pipeline: PipelineHarness, template_id: str) -> dict[str, Any]:
    """One template's record."""
    path = f"/partner/app/{APP.id}/templates/{template_id}"
    answer = await pipeline.ask("GET", path, headers={"Authorization": pipeline.app_token})
    return answer.body["template"]


async def decided(pipeline: PipelineHarness, template_id: str, word: str, at_s: int) -> str:
    """The operator's decision of some time comes now; gives the status after it."""
    [held] = (await pipeline.control("GET", "templates"))["templates"]
    value = {
        "event": word,
        "message_template_id": int(held["id"]),
        "message_template_name": held["name"],
        "message_template_language": held["language"],
        "reason": "NONE",
    }
    await tell(pipeline, FIELD, value, time=at_s)
    return (await shown(pipeline, template_id))["status"]


async def test_approval_from_before_a_refused_edit_does_not_approve_the_edit(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(between=RefusingEdits())
    template_id = await pipeline.approved_template()
    before_s = pipeline.clock.now_ms() // 1000
    form = {"content": "Hi {{1}}, may we come at noon?", "example": "Hi Ann, may we come at noon?"}
    path = f"/partner/app/{APP.id}/templates/{template_id}"
    await pipeline.ask("PUT", path, form, {"Authorization": pipeline.app_token})
    await pipeline.wait_for_callback(is_event("template-event", status="rejected"))

    late = await decided(pipeline, template_id, "APPROVED", before_s)
    later = await decided(pipeline, template_id, "APPROVED", before_s + 3600)

    assert (late, later) == ("REJECTED", "APPROVED")


@pytest.mark.parametrize("unit", [1, 1000], ids=["seconds", "milliseconds"])
async def test_decisions_count_by_their_own_time_in_whatever_order_they_come(
    pipeline: PipelineHarness, unit: int
) -> None:
    template_id = await pipeline.approved_template()
    now_s = pipeline.clock.now_ms() // 1000 + 10

    paused = await decided(pipeline, template_id, "PAUSED", (now_s + 200) * unit)
    older = await decided(pipeline, template_id, "APPROVED", (now_s + 100) * unit)
    of_the_same_second = await decided(pipeline, template_id, "DISABLED", (now_s + 200) * unit)
    newer = await decided(pipeline, template_id, "APPROVED", (now_s + 300) * unit)

    assert (paused, older, of_the_same_second, newer) == ("PAUSED", "PAUSED", "DISABLED", "APPROVED")


async def test_same_decision_again_makes_what_was_said_before_it_old(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    now_s = pipeline.clock.now_ms() // 1000 + 10
    await decided(pipeline, template_id, "APPROVED", now_s + 200)

    late = await decided(pipeline, template_id, "PAUSED", now_s + 100)

    assert late == "APPROVED"


async def test_decision_without_a_time_counts(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()

    status = await decided(pipeline, template_id, "PAUSED", 0)

    assert status == "PAUSED"


async def test_status_that_nobody_knows_moves_nothing_and_is_handed_on_as_it_is(
    pipeline: PipelineHarness, third: ThirdVersion
) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    [delivery] = await pipeline.deliveries(message_id)
    odd = {
        "id": delivery["wamid"],
        "status": "warning",
        "timestamp": "1760000000",
        "recipient_id": ANN,
        "biz_opaque_callback_data": message_id,
        "warnings": [{"code": 7}],
    }

    await tell_of_messages(pipeline, statuses=[odd, odd])

    told = await third.status(message_id, "warning")
    assert told == {name: value for name, value in odd.items() if name != "biz_opaque_callback_data"} | {
        "gs_id": message_id
    }
    assert (await pipeline.trace(message_id))["state"] == "delivered"
    heard = await pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in heard] == ["enqueued", "sent", "delivered"]


async def test_errors_beside_messages_lose_nothing(pipeline: PipelineHarness) -> None:
    message = {"from": ANN, "id": "wamid.beside", "timestamp": "1760000000", "type": "text", "text": {"body": "Hello"}}

    await tell_of_messages(pipeline, messages=[message], errors=[{"code": 131031}])

    await pipeline.wait_for_callback(is_event("message", id="wamid.beside"))
    assert not (await pipeline.queue_depths()).get("webhooks")
