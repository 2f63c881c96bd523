"""An operator account near its limits: templates wait in the queue, messages are sent."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from aiohttp import web

from tests.support.builders import ACCOUNT, ANN, APP, OPERATOR
from tests.support.pipeline import PipelineHarness
from waypost.admin import provisioning
from waypost.base.clock import VirtualClock

pytestmark = pytest.mark.content_only


@dataclass
class UsageReportingOperator:
    """A real server in the operator's place that reports how much of a limit is used.

    Attributes:
        used: percent, in the next responses.
        type: of the limit.
        requests: the last part of each requested path, in order.
    """

    used: int = 0
    type: str = "whatsapp_business_management"
    requests: list[str] = field(default_factory=list[str])

    async def handle(self, request: web.Request) -> web.StreamResponse:
        edge = request.path.rpartition("/")[2]
        self.requests.append(edge)
        usage = [{"type": self.type, "call_count": self.used}]
        headers = {"X-Business-Use-Case-Usage": json.dumps({ACCOUNT.id: usage})}
        body: dict[str, Any] = {"messages": [{"id": f"wamid.{len(self.requests)}"}]}
        if edge == "message_templates":
            body = {"id": str(len(self.requests)), "status": "APPROVED", "category": "UTILITY"}
        return web.json_response(body, headers=headers)


@pytest.fixture
async def pipeline_and_operator(make_pipeline: Any) -> AsyncIterator[tuple[PipelineHarness, UsageReportingOperator]]:
    """A pipeline whose operator reports usage, on a virtual clock."""
    pipeline: PipelineHarness = await make_pipeline(clock=VirtualClock())
    operator = UsageReportingOperator()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", operator.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    await provisioning.put_operator_account(pipeline.waypost.admin_context, replace(OPERATOR, base_url=url))
    yield pipeline, operator
    await runner.cleanup()


async def status_of(pipeline: PipelineHarness, template: dict[str, Any]) -> str:
    path = f"/partner/app/{APP.id}/templates/{template['id']}"
    response = await pipeline.send_request("GET", path, headers={"Authorization": pipeline.app_token})
    return response.body["template"]["status"]


async def test_templates_wait_near_the_limit_and_messages_do_not(
    pipeline_and_operator: tuple[PipelineHarness, UsageReportingOperator],
) -> None:
    pipeline, operator = pipeline_and_operator
    operator.used = 97
    await pipeline.create_template(elementName="first")
    await pipeline.travel(ms=0)
    operator.used = 10

    second = await pipeline.create_template(elementName="second")
    await pipeline.travel(ms=0)
    message_id = await pipeline.send_text()
    await pipeline.travel(ms=0)

    assert operator.requests == ["message_templates", "messages"]
    await pipeline.events_of(message_id, until="enqueued")
    assert await status_of(pipeline, second) == "PENDING"
    await pipeline.travel(ms=90_000)
    assert operator.requests == ["message_templates", "messages", "message_templates"]
    assert await status_of(pipeline, second) == "APPROVED"


async def test_direct_call_near_the_limit_gets_503(
    pipeline_and_operator: tuple[PipelineHarness, UsageReportingOperator],
) -> None:
    pipeline, operator = pipeline_and_operator
    operator.used = 100
    await pipeline.create_template(elementName="first")
    await pipeline.travel(ms=0)

    response = await pipeline.send_request("GET", f"/partner/app/{APP.id}/flows", headers={"token": pipeline.app_token})

    assert response.status == 503
    assert int(response.headers["Retry-After"]) > 0
    assert operator.requests == ["message_templates"]


@pytest.mark.both_engines
async def test_messages_wait_near_a_limit_of_messages_and_each_is_sent_once(
    pipeline_and_operator: tuple[PipelineHarness, UsageReportingOperator],
) -> None:
    pipeline, operator = pipeline_and_operator
    operator.used, operator.type = 99, "whatsapp"
    ids = [await pipeline.send_text(to=ANN)]
    await pipeline.travel(ms=0)
    operator.used = 5
    ids += [await pipeline.send_text(to=str(int(ANN) + number)) for number in range(1, 4)]

    await pipeline.travel(ms=0)

    assert operator.requests == ["messages"]
    await pipeline.travel(ms=120_000)
    for message_id in ids:
        await pipeline.events_of(message_id, until="enqueued")
    assert operator.requests == ["messages"] * 4
