"""The version that the operator has, while an edit of it is on its way, and after the operator has rejected it."""

import asyncio
from typing import Any, Final

import pytest
from aiohttp import web

from tests.support.builders import ACCOUNT, APP, is_event
from tests.support.operator_proxy import OperatorProxy
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from tests.support.template_requests import edit_template, is_idle, read_template

MISSING: Final = (
    b'{"error": {"message": "Unsupported get request. Object with ID \'1\' does not exist", '
    b'"type": "GraphMethodException", "code": 100, "error_subcode": 33, "fbtrace_id": "A"}}'
)


class EditHoldingProxy(OperatorProxy):
    """Hold each edit of a template, and let everything else pass.

    Attributes:
        has_edit: set when an edit arrives.
        may_go: lets edits pass, once set.
        webhook_count: how many webhooks were passed on.
    """

    def __init__(self) -> None:
        super().__init__()
        self.has_edit = asyncio.Event()
        self.may_go = asyncio.Event()
        self.webhook_count = 0

    async def _webhook(self, request: web.Request) -> web.StreamResponse:
        response = await super()._webhook(request)
        self.webhook_count += 1
        return response

    async def _forward(self, request: web.Request, base_url: str) -> tuple[int, dict[str, str], bytes]:
        if request.method == "POST" and request.path.rpartition("/")[2].isdecimal():
            self.has_edit.set()
            await self.may_go.wait()
        return await super()._forward(request, base_url)


class LateResponseProxy(EditHoldingProxy):
    """Pass an edit on to the operator at once, and hold its response.

    Args:
        missing_fetches: how often the operator says of a template that is fetched that it does not exist.
    """

    def __init__(self, missing_fetches: int) -> None:
        super().__init__()
        self.missing_fetches = missing_fetches

    async def _forward(self, request: web.Request, base_url: str) -> tuple[int, dict[str, str], bytes]:
        is_template = request.path.rpartition("/")[2].isdecimal()
        if is_template and request.method == "GET" and self.missing_fetches:
            self.missing_fetches -= 1
            return 400, {"Content-Type": "application/json"}, MISSING
        response = await OperatorProxy._forward(self, request, base_url)
        if is_template and request.method == "POST":
            await self.may_go.wait()
        return response


@pytest.fixture
async def edit_holding_pipeline(make_pipeline: Any) -> PipelineHarness:
    """A pipeline with a proxy that holds edits."""
    return await make_pipeline(operator_proxy=EditHoldingProxy())


async def test_approved_version_stays_and_is_sent_while_its_edit_is_on_its_way(
    edit_holding_pipeline: PipelineHarness,
) -> None:
    pipeline, proxy = edit_holding_pipeline, proxy_of(edit_holding_pipeline)
    template_id = await pipeline.approved_template()
    before = await read_template(pipeline, template_id)
    await edit_template(pipeline, template_id)
    await proxy.has_edit.wait()

    await approve_again(pipeline)

    record = await read_template(pipeline, template_id)
    assert {name: record[name] for name in ("status", "data", "containerMeta")} == {
        name: before[name] for name in ("status", "data", "containerMeta")
    }
    assert record["edit"]["status"] == "PENDING"
    assert record["edit"]["data"].startswith("Hi {{1}}, may we come tomorrow?")
    await pipeline.events_of(await pipeline.send(template_id), until="delivered")
    assert "tomorrow" not in str(await pipeline.inbox())
    path = f"/partner/app/{APP.id}/templates/{template_id}"
    again = await pipeline.send_request("PUT", path, {"footer": "Acme"}, {"Authorization": pipeline.app_token})
    assert again.status == 400
    assert "edit" in str(again.body)

    proxy.may_go.set()
    await pipeline.sink.wait_for(is_event("template-event", status="approved"), count=2)
    await poll_until(lambda: is_idle(pipeline))
    record = await read_template(pipeline, template_id)
    assert record["status"] == "APPROVED"
    assert record["data"].startswith("Hi {{1}}, may we come tomorrow?")
    assert "edit" not in record


async def test_rejected_edit_leaves_the_approved_version_despite_an_approval_meanwhile(
    edit_holding_pipeline: PipelineHarness,
) -> None:
    proxy = proxy_of(edit_holding_pipeline)
    template_id = await edit_holding_pipeline.approved_template()
    proxy.may_go.set()
    await edit_template(edit_holding_pipeline, template_id)
    await edit_holding_pipeline.sink.wait_for(is_event("template-event", status="approved"), count=2)
    await poll_until(lambda: is_idle(edit_holding_pipeline))
    proxy.may_go.clear()
    proxy.has_edit.clear()
    await edit_template(edit_holding_pipeline, template_id, footer="Twice a day is too often")
    await proxy.has_edit.wait()

    await approve_again(edit_holding_pipeline)
    proxy.may_go.set()

    callback = await edit_holding_pipeline.wait_for_callback(is_event("template-event", status="rejected"))
    assert "once in 24 hours" in callback["payload"]["rejectedReason"]
    await poll_until(lambda: is_idle(edit_holding_pipeline))
    record = await read_template(edit_holding_pipeline, template_id)
    assert record["status"] == "APPROVED"
    assert "Twice a day" not in record["data"]
    assert record["edit"]["status"] == "REJECTED"


@pytest.mark.parametrize("missing_fetches", [0, 2])
async def test_approval_that_comes_before_the_response_to_the_edit_is_not_lost(
    make_pipeline: Any, missing_fetches: int
) -> None:
    proxy = LateResponseProxy(missing_fetches)
    pipeline: PipelineHarness = await make_pipeline(operator_proxy=proxy)
    template_id = await pipeline.approved_template()
    await poll_until(lambda: is_idle(pipeline))
    proxy.webhook_count = 0
    await edit_template(pipeline, template_id)
    await poll_until(lambda: has_applied_webhooks(pipeline, 1))

    proxy.may_go.set()

    record = await poll_until(lambda: read_template(pipeline, template_id), lambda record: "tomorrow" in record["data"])
    await poll_until(lambda: is_idle(pipeline))
    record = await read_template(pipeline, template_id)
    assert record["status"] == "APPROVED"
    assert "edit" not in record
    assert proxy.missing_fetches == 0


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


async def has_applied_webhooks(pipeline: PipelineHarness, count: int) -> bool:
    """Return True if so many webhooks were passed on, and all are applied."""
    is_posted = proxy_of(pipeline).webhook_count >= count
    return is_posted and not (await pipeline.queue_depths()).get("webhooks")
