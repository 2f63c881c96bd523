"""An operator that is away: its messages wait and are not attempted, and flow when it is back."""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest
from aiohttp import web

from crashes.processes import free_port
from tests.support.builders import OPERATOR
from tests.support.pipeline import PipelineHarness
from waypost.admin import provisioning
from waypost.base.clock import VirtualClock

pytestmark = pytest.mark.content_only

TTL_S: Final = 3000
PER_SECOND: Final = 100
MESSAGES: Final = 200
FIRST: Final = 15_553_000_000
MAX_SLOTS: Final = 64
"""So many messages may be in flight when an outage begins."""


@dataclass
class AbsentOperator:
    """A real server in the operator's place that can be away, in several ways.

    Attributes:
        accepted: our ids of the accepted messages, in order.
        attempts: number of requests that it has responded to.
        error: the response instead of accepting a message; None: it accepts.
    """

    accepted: list[str] = field(default_factory=list[str])
    attempts: int = 0
    error: tuple[int, str] | None = None
    port: int = field(default_factory=free_port)
    _runner: web.AppRunner | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.attempts += 1
        body = await request.json()
        if self.error is not None:
            status, text = self.error
            return web.Response(status=status, text=text, content_type="application/json")
        self.accepted.append(body["biz_opaque_callback_data"])
        return web.json_response({"messages": [{"id": f"wamid.{len(self.accepted)}"}]})

    async def open(self) -> None:
        """Accept connections, always on the same port."""
        application = web.Application()
        application.router.add_post("/{path:.*}", self.handle)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    async def close(self) -> None:
        """Refuse connections."""
        if self._runner is not None:
            await self._runner.cleanup()
        self._runner = None


OutageSetUp = tuple[PipelineHarness, AbsentOperator]


@pytest.fixture
async def pipeline_and_operator(make_pipeline: Any) -> AsyncIterator[OutageSetUp]:
    """A pipeline whose operator may be away, on a virtual clock."""
    changes = {"message_ttl_s": TTL_S, "per_second": PER_SECOND}
    pipeline: PipelineHarness = await make_pipeline(clock=VirtualClock(), changes=changes)
    operator = AbsentOperator()
    await operator.open()
    account = replace(OPERATOR, base_url=f"http://127.0.0.1:{operator.port}")
    await provisioning.put_operator_account(pipeline.waypost.admin_context, account)
    yield pipeline, operator
    await operator.close()


async def send_many(pipeline: PipelineHarness) -> list[str]:
    """Send two messages to each of many recipients; return their ids, in order."""
    return [await pipeline.send_text(to=str(FIRST + number % (MESSAGES // 2))) for number in range(MESSAGES)]


def error_body(code: int) -> str:
    return f'{{"error": {{"message": "down", "type": "OAuthException", "code": {code}}}}}'


@pytest.mark.both_engines
@pytest.mark.parametrize("error", [None, (503, error_body(131016))], ids=["refuses connections", "responds with 503"])
async def test_messages_are_sent_at_the_throughput_of_their_source_when_the_operator_is_back(
    pipeline_and_operator: OutageSetUp, error: tuple[int, str] | None
) -> None:
    pipeline, operator = pipeline_and_operator
    operator.error = error
    if error is None:
        await operator.close()
    message_ids = await send_many(pipeline)
    await pipeline.travel(ms=900_000)
    attempts = operator.attempts

    operator.error = None
    if error is None:
        await operator.open()
    await pipeline.travel(ms=5_000 + 1000 * MESSAGES // PER_SECOND)

    assert attempts < MESSAGES
    assert Counter(operator.accepted) == Counter(message_ids)
    order = {message_id: nth for nth, message_id in enumerate(operator.accepted)}
    pairs = zip(message_ids, message_ids[MESSAGES // 2 :], strict=False)
    assert all(order[first] < order[second] for first, second in pairs)


async def test_few_messages_become_uncertain_behind_a_broken_gateway(pipeline_and_operator: OutageSetUp) -> None:
    pipeline, operator = pipeline_and_operator
    operator.error = (502, "Bad gateway")
    await send_many(pipeline)
    await pipeline.travel(ms=10_000)
    lost = operator.attempts

    operator.error = None
    await pipeline.travel(ms=5_000 + 1000 * MESSAGES // PER_SECOND)

    assert lost < MAX_SLOTS + 30
    assert len(set(operator.accepted)) == len(operator.accepted) == MESSAGES - lost


async def test_messages_that_wait_for_an_absent_operator_fail_when_they_expire(
    pipeline_and_operator: OutageSetUp,
) -> None:
    pipeline, operator = pipeline_and_operator
    await operator.close()
    message_ids = await send_many(pipeline)

    await pipeline.travel(ms=(TTL_S + 600) * 1000)

    events = [await pipeline.events_of(message_id, until="failed") for message_id in message_ids]
    assert {(len(of_message), of_message[0]["payload"]["code"]) for of_message in events} == {(1, 4002)}


async def test_account_with_another_url_sends_within_seconds(pipeline_and_operator: OutageSetUp) -> None:
    pipeline, operator = pipeline_and_operator
    account = await pipeline.waypost.directory.operator_account(OPERATOR.id)
    assert account is not None
    wrong = replace(account, base_url="http://127.0.0.1:9")
    await provisioning.put_operator_account(pipeline.waypost.admin_context, wrong)
    message_ids = await send_many(pipeline)
    await pipeline.travel(ms=60_000)

    await provisioning.put_operator_account(pipeline.waypost.admin_context, account)
    await pipeline.travel(ms=70_000)

    assert Counter(operator.accepted) == Counter(message_ids)
