"""Events of one template within one second: the operator's times have whole seconds, so two may have the same bytes."""

import asyncio
import hashlib
import hmac
import json
from typing import Any, Final

import pytest
from aiohttp import web

from tests.support.builders import OPERATOR, is_event
from tests.support.manual_clock import ServiceClock
from tests.support.operator_proxy import OperatorProxy
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from tests.support.template_requests import edit_template, is_idle, read_template

MESSAGE_TTL_S: Final = 3600


class OneSecondProxy(OperatorProxy):
    """Let every webhook of a template be of the same second, and keep their bodies.

    Attributes:
        reviews: the bodies with status updates, in order.
        failed_fetches: how many of the next fetches of a template fail: the operator is away.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reviews: list[bytes] = []
        self.failed_fetches = 0

    async def _forward(self, request: web.Request, base_url: str) -> tuple[int, dict[str, str], bytes]:
        if self.failed_fetches and request.method == "GET" and request.path.rpartition("/")[2].isdecimal():
            self.failed_fetches -= 1
            return 503, {"Content-Type": "application/json"}, b"{}"
        return await super()._forward(request, base_url)

    async def _webhook(self, request: web.Request) -> web.StreamResponse:
        content = json.loads(await request.read())
        for entry in content["entry"]:
            entry["time"] = 1_760_000_000
        body = json.dumps(content).encode()
        if b"message_template_status_update" in body:
            self.reviews.append(body)
        return web.Response(status=await self.post(body))

    async def post(self, body: bytes) -> int:
        """Post a webhook with a correct signature, as the operator does; return the status of the response."""
        assert self._http is not None
        signature = hmac.new(OPERATOR["app_secret"].encode(), body, hashlib.sha256).hexdigest()
        url, headers = f"{self.service_url}/operator/webhook", {"X-Hub-Signature-256": f"sha256={signature}"}
        async with self._http.post(url, data=body, headers=headers) as response:
            return response.status


@pytest.fixture
async def one_second_pipeline(make_pipeline: Any) -> PipelineHarness:
    """A pipeline on which every decision about a template is of the same second."""
    return await make_pipeline(operator_proxy=OneSecondProxy())


async def test_second_approval_within_a_second_is_not_taken_for_the_first(one_second_pipeline: PipelineHarness) -> None:
    template_id = await one_second_pipeline.approved_template()

    await edit_template(one_second_pipeline, template_id)

    await one_second_pipeline.sink.wait_for(is_event("template-event", id=template_id, status="approved"), count=2)
    proxy = proxy_of(one_second_pipeline)
    await poll_until(lambda: is_idle(one_second_pipeline), lambda is_idle: is_idle and len(proxy.reviews) == 2)
    first, second = map(status_update, proxy.reviews)
    assert first == second
    record = await read_template(one_second_pipeline, template_id)
    assert record["status"] == "APPROVED"
    assert record["data"].startswith("Hi {{1}}, may we come tomorrow?")


async def test_template_is_fetched_once_the_operator_is_back_however_long_ago_it_changed(make_pipeline: Any) -> None:
    proxy, clock = OneSecondProxy(), ServiceClock()
    changes = {"message_ttl_s": MESSAGE_TTL_S}
    pipeline: PipelineHarness = await make_pipeline(operator_proxy=proxy, clock=clock, changes=changes)
    template_id = await pipeline.approved_template()
    await pipeline.control("PUT", "settings", {"review_delay_ms": None})
    await edit_template(pipeline, template_id)
    await poll_until(lambda: read_template(pipeline, template_id), lambda record: record["status"] == "PENDING")
    await poll_until(lambda: is_idle(pipeline))
    clock.advance(ms=MESSAGE_TTL_S * 1000)
    proxy.failed_fetches = 3

    [operator_template] = (await pipeline.control("GET", "templates"))["templates"]
    await pipeline.control("POST", f"templates/{operator_template['id']}/approve", {})

    def is_approved_again() -> bool:
        approvals = [callback for callback in pipeline.callbacks if callback["payload"].get("status") == "approved"]
        return len(approvals) == 2

    await pipeline.pass_time_until(is_approved_again)
    assert proxy.failed_fetches == 0
    assert (await read_template(pipeline, template_id))["status"] == "APPROVED"


async def test_redelivered_approval_does_not_approve_the_edit_in_review(make_pipeline: Any) -> None:
    pipeline = await make_pipeline(operator_proxy=OneSecondProxy())
    template_id = await pipeline.approved_template()
    proxy = proxy_of(pipeline)
    await pipeline.control("PUT", "settings", {"review_delay_ms": None})
    await edit_template(pipeline, template_id)
    await poll_until(lambda: read_template(pipeline, template_id), lambda record: record["status"] == "PENDING")
    await poll_until(lambda: is_idle(pipeline))

    assert await proxy.post(proxy.reviews[0]) == 200

    await poll_until(lambda: is_idle(pipeline))
    assert (await read_template(pipeline, template_id))["status"] == "PENDING"
    approvals = [callback for callback in pipeline.callbacks if callback["payload"].get("status") == "approved"]
    assert len(approvals) == 1


async def test_equal_deliveries_at_one_moment_are_one_event(one_second_pipeline: PipelineHarness) -> None:
    proxy = proxy_of(one_second_pipeline)
    template_id = await one_second_pipeline.approved_template()

    assert await asyncio.gather(*(proxy.post(proxy.reviews[0]) for _ in range(8))) == [200] * 8

    await poll_until(lambda: is_idle(one_second_pipeline))
    history = [callback for callback in one_second_pipeline.callbacks if callback["payload"].get("id") == template_id]
    assert [callback["payload"]["status"] for callback in history] == ["approved"]


def status_update(body: bytes) -> tuple[int, dict[str, Any]]:
    """Return the status update in a webhook's body, with its time."""
    updates = [
        (entry["time"], change)
        for entry in json.loads(body)["entry"]
        for change in entry["changes"]
        if change["field"] == "message_template_status_update"
    ]
    [update] = updates
    return update


def proxy_of(pipeline: PipelineHarness) -> OneSecondProxy:
    assert isinstance(pipeline.operator_proxy, OneSecondProxy)
    return pipeline.operator_proxy
