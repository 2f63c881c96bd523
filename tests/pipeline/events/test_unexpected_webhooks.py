"""Webhooks that are late, out of order, or have values that the service does not know."""

import json
from typing import Any

import pytest
from aiohttp import web

from tests.support.builders import ANN, is_event
from tests.support.operator_proxy import OperatorProxy
from tests.support.operator_webhook import post_change, post_messages_change
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from tests.support.template_requests import edit_template, is_idle, read_template
from tests.support.version_3_receiver import Version3Receiver

FIELD = "message_template_status_update"
EDIT_ERROR = {
    "error": {"message": "Invalid parameter", "code": 100, "error_user_msg": "This template was edited a moment ago."}
}


class EditRejectingProxy(OperatorProxy):
    """Reject each edit of a template, and let everything else pass."""

    async def _forward(self, request: web.Request, base_url: str) -> tuple[int, dict[str, str], bytes]:
        if request.method == "POST" and request.path.rpartition("/")[2].isdecimal():
            return 400, {"Content-Type": "application/json"}, json.dumps(EDIT_ERROR).encode()
        return await super()._forward(request, base_url)


async def post_decision(pipeline: PipelineHarness, template_id: str, event: str, at_s: int) -> str:
    """Post a decision with the given time; return the template's status after it."""
    [operator_template] = (await pipeline.control("GET", "templates"))["templates"]
    value = {
        "event": event,
        "message_template_id": int(operator_template["id"]),
        "message_template_name": operator_template["name"],
        "message_template_language": operator_template["language"],
        "reason": "NONE",
    }
    await post_change(pipeline, FIELD, value, time=at_s)
    return (await read_template(pipeline, template_id))["status"]


async def test_approval_from_before_a_rejected_edit_does_not_approve_the_edit(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(operator_proxy=EditRejectingProxy())
    template_id = await pipeline.approved_template()
    before_s = pipeline.clock.now_ms() // 1000
    await edit_template(pipeline, template_id)
    await pipeline.wait_for_callback(is_event("template-event", status="rejected"))

    late = await post_decision(pipeline, template_id, "APPROVED", before_s)
    later = await post_decision(pipeline, template_id, "APPROVED", before_s + 3600)

    assert (late, later) == ("APPROVED", "APPROVED")
    await poll_until(lambda: is_idle(pipeline))
    record = await read_template(pipeline, template_id)
    assert record["data"].startswith("Hi {{1}}, shall we come today?")
    assert record["edit"]["status"] == "REJECTED"
    history = [callback["payload"] for callback in pipeline.callbacks if callback["payload"].get("id") == template_id]
    assert [payload["status"] for payload in history] == ["approved", "rejected"]


@pytest.mark.parametrize("unit", [1, 1000], ids=["seconds", "milliseconds"])
async def test_decisions_are_applied_by_their_own_time_in_whatever_order_they_are_posted(
    pipeline: PipelineHarness, unit: int
) -> None:
    template_id = await pipeline.approved_template()
    now_s = pipeline.clock.now_ms() // 1000 + 10

    paused = await post_decision(pipeline, template_id, "PAUSED", (now_s + 200) * unit)
    older = await post_decision(pipeline, template_id, "APPROVED", (now_s + 100) * unit)
    of_the_same_second = await post_decision(pipeline, template_id, "DISABLED", (now_s + 200) * unit)
    newer = await post_decision(pipeline, template_id, "APPROVED", (now_s + 300) * unit)

    assert (paused, older, of_the_same_second, newer) == ("PAUSED", "PAUSED", "DISABLED", "APPROVED")


async def test_repeated_decision_makes_earlier_decisions_obsolete(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    now_s = pipeline.clock.now_ms() // 1000 + 10
    await post_decision(pipeline, template_id, "APPROVED", now_s + 200)

    late = await post_decision(pipeline, template_id, "PAUSED", now_s + 100)

    assert late == "APPROVED"


async def test_decision_without_a_time_is_applied(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()

    status = await post_decision(pipeline, template_id, "PAUSED", 0)

    assert status == "PAUSED"


async def test_unknown_status_changes_no_state_and_is_called_back_unchanged(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    [delivery] = await pipeline.deliveries(message_id)
    unknown = {
        "id": delivery["wamid"],
        "status": "warning",
        "timestamp": "1760000000",
        "recipient_id": ANN,
        "biz_opaque_callback_data": message_id,
        "warnings": [{"code": 7}],
    }

    await post_messages_change(pipeline, statuses=[unknown, unknown])

    warning = await receiver_v3.status(message_id, "warning")
    assert warning == {name: value for name, value in unknown.items() if name != "biz_opaque_callback_data"} | {
        "gs_id": message_id,
        "meta_msg_id": delivery["wamid"],
    }
    assert (await pipeline.trace(message_id))["state"] == "delivered"
    events = await pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]


async def test_errors_beside_messages_do_not_drop_the_messages(pipeline: PipelineHarness) -> None:
    message = {"from": ANN, "id": "wamid.beside", "timestamp": "1760000000", "type": "text", "text": {"body": "Hello"}}

    await post_messages_change(pipeline, messages=[message], errors=[{"code": 131031}])

    await pipeline.wait_for_callback(is_event("message", id="wamid.beside"))
    assert not (await pipeline.queue_depths()).get("webhooks")
