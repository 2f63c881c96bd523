"""News of a template's old text while its new one is on its way: nobody takes it for the new one's."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from tests.support.builders import ACCOUNT, APP, is_event
from tests.support.operator_proxy import Between
from tests.support.pipeline import PipelineHarness
from tests.support.waiting import next_second, patiently


class HoldingEdits(Between):
    """Holds or turns away each edit of a template, and lets everything else pass.

    Attributes:
        came: an edit is here.
        may_go: it is answered from then on.
        told: how many webhooks were handed on.
        away: it is answered at once, as by an operator that is away.
    """

    def __init__(self) -> None:
        super().__init__()
        self.came = asyncio.Event()
        self.may_go = asyncio.Event()
        self.away = False
        self.told = 0

    async def _webhook(self, request: web.Request) -> web.StreamResponse:
        answer = await super()._webhook(request)
        self.told += 1
        return answer

    async def _pass_on(self, request: web.Request, base_url: str) -> tuple[int, dict[str, str], bytes]:
        if request.method == "POST" and request.path.rpartition("/")[2].isdecimal():
            self.came.set()
            if self.away:
                return 503, {}, b""
            await self.may_go.wait()
        return await super()._pass_on(request, base_url)


@pytest.fixture
async def holding(make_pipeline: Any) -> PipelineHarness:
    """A pipeline on which edits are held."""
    return await make_pipeline(between=HoldingEdits())


async def test_approval_of_the_old_text_does_not_count_while_the_edit_waits(holding: PipelineHarness) -> None:
    between = between_of(holding)
    template_id = await holding.approved_template()
    between.away = True
    await edit(holding, template_id)
    await patiently(holding.submission_attempts, lambda attempts: attempts > 0)

    await approve_again(holding)

    assert (await shown(holding, template_id))["status"] == "PENDING"
    between.away = False
    between.may_go.set()
    await holding.sink.wait_for(is_event("template-event", status="approved"), count=2)
    await patiently(lambda: is_idle(holding))
    assert (await shown(holding, template_id))["status"] == "APPROVED"


async def test_refused_edit_is_rejected_whatever_was_said_meanwhile(holding: PipelineHarness) -> None:
    between = between_of(holding)
    template_id = await holding.approved_template()
    await next_second(holding.clock)
    between.may_go.set()
    await edit(holding, template_id)
    await holding.sink.wait_for(is_event("template-event", status="approved"), count=2)
    await patiently(lambda: is_idle(holding))
    between.may_go.clear()
    between.came.clear()
    await edit(holding, template_id, footer="Twice a day is too often")
    await between.came.wait()
    await next_second(holding.clock)

    await approve_again(holding)
    between.may_go.set()

    callback = await holding.wait_for_callback(is_event("template-event", status="rejected"))
    assert "once in 24 hours" in callback["payload"]["rejectedReason"]
    assert (await shown(holding, template_id))["status"] == "REJECTED"


def between_of(pipeline: PipelineHarness) -> HoldingEdits:
    assert isinstance(pipeline.between, HoldingEdits)
    return pipeline.between


async def approve_again(pipeline: PipelineHarness) -> None:
    """The operator says once more that it has approved the template; return when that was heard."""
    before = between_of(pipeline).told
    [held] = (await pipeline.control("GET", "templates"))["templates"]
    value = {
        "event": "APPROVED",
        "message_template_id": int(held["id"]),
        "message_template_name": held["name"],
        "message_template_language": held["language"],
        "reason": "NONE",
    }
    news = {"field": "message_template_status_update", "value": value}
    told = await pipeline.control("POST", f"accounts/{ACCOUNT.id}/webhooks", news)
    assert told == {"told": True}
    await patiently(lambda: has_heard_all(pipeline, before + 1))


async def edit(pipeline: PipelineHarness, template_id: str, **fields: str) -> None:
    """Edit a template; the operator hears of it later."""
    form = {"content": "Hi {{1}}, may we come tomorrow?", "example": "Hi Ann, may we come tomorrow?"}
    path = f"/partner/app/{APP.id}/templates/{template_id}"
    answer = await pipeline.ask("PUT", path, form | fields, {"Authorization": pipeline.app_token})
    assert answer.status == 200, answer


async def shown(pipeline: PipelineHarness, template_id: str) -> dict[str, Any]:
    """One template's record."""
    path = f"/partner/app/{APP.id}/templates/{template_id}"
    answer = await pipeline.ask("GET", path, headers={"Authorization": pipeline.app_token})
    return answer.body["template"]


async def is_idle(pipeline: PipelineHarness) -> bool:
    """Whether nothing waits for the operator."""
    return not (await pipeline.queue_depths()).get("outbound")


async def has_heard_all(pipeline: PipelineHarness, count: int) -> bool:
    """Whether the operator has said so much, and all of it is applied."""
    is_told = between_of(pipeline).told >= count
    return is_told and not (await pipeline.queue_depths()).get("webhooks")
