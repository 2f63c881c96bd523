"""Events about a template's old text while an edit is pending are not applied to the new text."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from tests.support.builders import ACCOUNT, APP, is_event
from tests.support.operator_proxy import OperatorProxy
from tests.support.pipeline import PipelineHarness
from tests.support.polling import next_second, poll_until


class EditHoldingProxy(OperatorProxy):
    """Hold each edit of a template, or respond 503, and let everything else pass.

    Attributes:
        has_edit: set when an edit arrives.
        may_go: lets edits pass, once set.
        webhook_count: how many webhooks were passed on.
        is_down: edits get a 503 at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.has_edit = asyncio.Event()
        self.may_go = asyncio.Event()
        self.is_down = False
        self.webhook_count = 0

    async def _webhook(self, request: web.Request) -> web.StreamResponse:
        response = await super()._webhook(request)
        self.webhook_count += 1
        return response

    async def _forward(self, request: web.Request, base_url: str) -> tuple[int, dict[str, str], bytes]:
        if request.method == "POST" and request.path.rpartition("/")[2].isdecimal():
            self.has_edit.set()
            if self.is_down:
                return 503, {}, b""
            await self.may_go.wait()
        return await super()._forward(request, base_url)


@pytest.fixture
async def edit_holding_pipeline(make_pipeline: Any) -> PipelineHarness:
    """A pipeline with a proxy that holds edits."""
    return await make_pipeline(operator_proxy=EditHoldingProxy())


async def test_approval_of_the_old_text_is_ignored_while_an_edit_is_pending(
    edit_holding_pipeline: PipelineHarness,
) -> None:
    proxy = proxy_of(edit_holding_pipeline)
    template_id = await edit_holding_pipeline.approved_template()
    proxy.is_down = True
    await edit(edit_holding_pipeline, template_id)
    await poll_until(edit_holding_pipeline.submission_attempts, lambda attempts: attempts > 0)
    await next_second(edit_holding_pipeline.clock)

    await approve_again(edit_holding_pipeline)

    assert (await read_template(edit_holding_pipeline, template_id))["status"] == "PENDING"
    await next_second(edit_holding_pipeline.clock)
    proxy.is_down = False
    proxy.may_go.set()
    await edit_holding_pipeline.sink.wait_for(is_event("template-event", status="approved"), count=2)
    await poll_until(lambda: is_idle(edit_holding_pipeline))
    assert (await read_template(edit_holding_pipeline, template_id))["status"] == "APPROVED"


async def test_rejected_edit_makes_a_template_rejected_despite_an_approval_meanwhile(
    edit_holding_pipeline: PipelineHarness,
) -> None:
    proxy = proxy_of(edit_holding_pipeline)
    template_id = await edit_holding_pipeline.approved_template()
    await next_second(edit_holding_pipeline.clock)
    proxy.may_go.set()
    await edit(edit_holding_pipeline, template_id)
    await edit_holding_pipeline.sink.wait_for(is_event("template-event", status="approved"), count=2)
    await poll_until(lambda: is_idle(edit_holding_pipeline))
    proxy.may_go.clear()
    proxy.has_edit.clear()
    await edit(edit_holding_pipeline, template_id, footer="Twice a day is too often")
    await proxy.has_edit.wait()
    await next_second(edit_holding_pipeline.clock)

    await approve_again(edit_holding_pipeline)
    proxy.may_go.set()

    callback = await edit_holding_pipeline.wait_for_callback(is_event("template-event", status="rejected"))
    assert "once in 24 hours" in callback["payload"]["rejectedReason"]
    assert (await read_template(edit_holding_pipeline, template_id))["status"] == "REJECTED"


def proxy_of(pipeline: PipelineHarness) -> EditHoldingProxy:
    assert isinstance(pipeline.operator_proxy, EditHoldingProxy)
    return pipeline.operator_proxy


async def approve_again(pipeline: PipelineHarness) -> None:
    """Have the operator post the approval again; return when it is applied."""
    before = proxy_of(pipeline).webhook_count
    [operator_template] = (await pipeline.control("GET", "templates"))["templates"]
    value = {
        "event": "APPROVED",
        "message_template_id": int(operator_template["id"]),
        "message_template_name": operator_template["name"],
        "message_template_language": operator_template["language"],
        "reason": "NONE",
    }
    webhook = {"field": "message_template_status_update", "value": value}
    response = await pipeline.control("POST", f"accounts/{ACCOUNT.id}/webhooks", webhook)
    assert response == {"queued": True}
    await poll_until(lambda: has_applied_webhooks(pipeline, before + 1))


async def edit(pipeline: PipelineHarness, template_id: str, **fields: str) -> None:
    """Edit a template; the edit is submitted to the operator later."""
    form = {"content": "Hi {{1}}, may we come tomorrow?", "example": "Hi Ann, may we come tomorrow?"}
    path = f"/partner/app/{APP.id}/templates/{template_id}"
    response = await pipeline.send_request("PUT", path, form | fields, {"Authorization": pipeline.app_token})
    assert response.status == 200, response


async def read_template(pipeline: PipelineHarness, template_id: str) -> dict[str, Any]:
    """Return the record of a template."""
    path = f"/partner/app/{APP.id}/templates/{template_id}"
    response = await pipeline.send_request("GET", path, headers={"Authorization": pipeline.app_token})
    return response.body["template"]


async def is_idle(pipeline: PipelineHarness) -> bool:
    """Return True if no outbound job is left."""
    return not (await pipeline.queue_depths()).get("outbound")


async def has_applied_webhooks(pipeline: PipelineHarness, count: int) -> bool:
    """Return True if so many webhooks were passed on, and all are applied."""
    is_posted = proxy_of(pipeline).webhook_count >= count
    return is_posted and not (await pipeline.queue_depths()).get("webhooks")
